"""The command about detectors that somebody else runs: gate."""

import logging
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from ..common.collector import spare_collections
from ..common.errors import UserError
from ..common.fields import Port, file, option
from ..fleet import profile
from ..fleet.visitors import LOCAL, read_token
from .options import Connected, Daemon, Reporting
from .output import show_next

LOG = logging.getLogger(__name__)
SWITCH_S = 0.0005  # for which a thread computes while another waits; Python's default is 0.005
PresetName = Literal["frigate", "birdnet-go", "generic"]


class Gate(Connected, Reporting, Daemon):
    """It takes scores from MQTT, learns a policy for each camera or room, asks a remote model, and publishes decisions."""

    examples = (
        "h2t2 gate --preset frigate --remote llava.toml   # writes frigate.toml",
        "h2t2 gate frigate.toml",
        "h2t2 gate --preset frigate --remote llava.toml --detector http://nvr.lan:5000 --broker mqtt://broker.lan",
        "h2t2 gate frigate.toml --http 8090   # a program asks: POST /v1/decide",
        "h2t2 gate generic.toml --http 8090 --bind 0.0.0.0 --token-file token   # boards ask: POST /v1/ask",
    )
    config: str | None = option(None, "its configuration", unset="none: --preset writes one", positional=True, metavar="CONFIG")
    broker: str = option(
        "mqtt://localhost:1883", "MQTT broker, [mqtt[s]://]HOST[:PORT]", unset="the configuration's", metavar="URL"
    )
    preset: PresetName | None = option(None, "write the configuration for this detector")
    remote: str = option("", "the remote model of that configuration, as of h2t2 rdl --remote, or worker:N", metavar="MODEL")
    detector: str = option("", "address of the detector's web server", unset="the usual one on this machine", metavar="URL")
    out: str = file("", "where the configuration goes", unset="PRESET.toml")
    http: Port | None = option(
        None, "also serve HTTP: POST /v1/decide, and /v1/ask for boards (docs/links.md); /docs describes it", metavar="PORT"
    )
    bind: str = option("127.0.0.1", "address of --http; 0.0.0.0: the network")
    token_file: str | None = file(
        None, "the token that visitors of --http must know, readable by its owner alone", unset="only this machine may ask"
    )

    @classmethod
    def configured(cls, words: dict[str, Any]) -> dict[str, Any]:
        """The broker of the configuration; below it, the profile."""
        entries: dict[str, Any] = {}
        if "config" in words:
            from ..fleet.gate.gate_config import load

            broker = load(Path(words["config"])).broker
            entries = {"broker": broker} if broker else {}
        return {**profile.defaults({**entries, **words}), **entries}

    def run(self) -> None:
        if bool(self.config) == bool(self.preset):
            raise UserError("gate: want a configuration, or --preset with --remote, which writes one")
        if self.preset:
            self._write()
        else:
            self._serve(Path(self.config or ""))

    def _write(self) -> None:
        from ..fleet.gate import presets

        if not self.remote:
            raise UserError("--preset: also give --remote, the model to ask")
        path = Path(self.out or f"{self.preset}.toml")
        broker = self.broker if "broker" in self.model_fields_set else ""
        config = presets.write(str(self.preset), self.remote, self.detector, broker, path)
        if self.report(config.model_dump(mode="json", exclude_defaults=True)):
            print(f"wrote {path}")
            show_next({"decide": ["h2t2", "gate", str(path)]})

    def _serve(self, path: Path) -> None:
        from h2t2.cpython import signals

        from ..fleet.gate.door import Door
        from ..fleet.gate.gate_config import load

        self.begin_log("gate")
        config = load(path)
        token = read_token(Path(self.token_file)) if self.token_file else ""
        if self.http is not None and not token and self.bind not in LOCAL:
            raise UserError(f"--bind {self.bind}: visitors of the network need a token: --token-file")
        stopped, opened = threading.Event(), threading.Event()

        def stop() -> None:
            stopped.set()
            if not opened.is_set():  # a model may load for minutes
                sys.exit(128 + signal.SIGTERM)

        signals.on_stop(stop)
        door = Door(config, self.connection(), on_open=opened.set)
        with ExitStack() as doors:
            doors.callback(door.close)
            if self.http is not None:
                from ..fleet.gate.http_door import HttpDoor

                http = HttpDoor(door.gate, config, self.bind, self.http, token)
                doors.callback(http.close)
                LOG.info("http://%s:%d/v1/decide takes scores", self.bind, http.port)
            sys.setswitchinterval(SWITCH_S)
            spare_collections()
            LOG.info("ready: device %s decides what comes on %s", config.device, config.topic)
            while not stopped.wait(0.2):  # a wait without an end would not see the signal
                pass
        self.report(door.summary())
