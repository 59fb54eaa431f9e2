"""Brokers for a demo or a test: amqtt in this process, a Mosquitto of our own, or an existing one at a URL."""

import asyncio
import logging
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from h2t2.cpython import address
from h2t2.link.mqtt import packet, text

from ..common.errors import Failure, UserError, as_user_error
from ..common.places import temporary_folder

EPHEMERAL = 32768  # the first port that Linux assigns to connections
PATCHED = ("0.11.", "0.12.")  # versions of amqtt that lose clients, and whose attribute _subscriptions we know
CONNECT = packet(0x10, text("MQTT") + b"\x04\x02\x00\x00" + text(""))  # MQTT 3.1.1: a client without a name

LOG = logging.getLogger(__name__)
_claims: deque[socket.socket] = deque(maxlen=64)  # names of the ports that this process chose last


def parse(text: str, tls: bool = False, port: int = 0) -> tuple[str, int]:
    """(host, port) of [mqtt://]host[:port], and of mqtts:// where tls. UserError for anything else.

    port: Where the text names none; 0: the usual one.
    """
    if "@" in text:
        raise UserError("broker: no user or password in its address; give --user, and the password in a file or H2T2_PASSWORD")
    with as_user_error(f"broker {text}"):
        host, number, by_tls = address.parse(text, port)
    if by_tls and not tls:
        raise UserError(f"broker {text}: no TLS here; want mqtt://")
    return host, number


def free_port() -> int:
    """A free TCP port below EPHEMERAL, which Linux assigns to no connection meanwhile, and no other call chose just now."""
    chosen = random.SystemRandom()
    while not (free("127.0.0.1", port := chosen.randrange(10240, EPHEMERAL)) and _claim(port)):
        pass
    return port


def _claim(port: int) -> bool:
    """Whether no process chose a port before its server listens. On Linux a name says so, which ends with this process."""
    if sys.platform != "linux":
        return True
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0h2t2-port-{port}")
    except OSError:
        name.close()
        return False
    _claims.append(name)
    return True


def free(host: str, port: int) -> bool:
    """Whether a server can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError):
            return False
    return True


def wait_for_broker(host: str, port: int, seconds: float) -> bool:
    """Whether a broker answers there within so many seconds.

    An open port does not suffice: the kernel takes connections before Mosquitto's loop begins, and a SIGTERM that comes in
    between is lost. A port for TLS answers the plain CONNECT with an alert or with an end.
    """
    end = time.monotonic() + seconds
    while (remaining_s := end - time.monotonic()) > 0:
        try:
            with socket.create_connection((host, port), timeout=min(1, remaining_s)) as connection:
                connection.settimeout(remaining_s)
                with suppress(ConnectionError):
                    connection.sendall(CONNECT)
                    connection.recv(1)
                return True
        except OSError:
            time.sleep(0.02)
    return False


def mosquitto() -> str | None:
    """Path of the mosquitto program, or None. Debian keeps it in /usr/sbin, off a user's PATH."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")


OPEN: set[str] = set()  # the URLs of the brokers that running() runs: they take everyone, and nobody's password belongs there


@contextmanager
def running(kind: str) -> Iterator[str]:
    """The URL of a broker of the kind "amqtt", "mosquitto" or "mqtt://host:port", which runs until the context ends."""
    if kind in ("amqtt", "mosquitto"):
        with _amqtt() if kind == "amqtt" else _mosquitto() as url:
            OPEN.add(url)
            try:
                yield url
            finally:
                OPEN.remove(url)
    else:
        parse(kind)
        yield kind


class Mosquitto:
    """A Mosquitto on a local port of its own, which can be stopped and started again."""

    host = "127.0.0.1"

    def __init__(self, folder: Path, *settings: str) -> None:
        """UserError where Mosquitto is not installed.

        Args:
            folder: for its configuration and log.
            settings: further lines of its configuration.
        """
        self._program = mosquitto()
        if self._program is None:
            raise UserError("broker mosquitto: not installed; run: sudo apt-get install mosquitto (or use --broker amqtt)")
        self.port = free_port()
        self._log = folder / "log"
        self._config = folder / "mosquitto.conf"
        lines = [f"listener {self.port} 127.0.0.1", "allow_anonymous true", "set_tcp_nodelay true", *settings]
        self._config.write_text("\n".join(lines) + "\n")
        self._config.chmod(0o644)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The number of its process, while it runs."""
        assert self._process
        return self._process.pid

    def start(self) -> None:
        """Start the process. Failure, with the end of its log, if it does not come up."""
        with self._log.open("w") as log:
            self._process = subprocess.Popen([str(self._program), "-c", str(self._config)], stdout=log, stderr=log)
        if not wait_for_broker("127.0.0.1", self.port, 10):
            raise Failure(f"mosquitto did not start: {self._log.read_text().strip()[-200:]}")

    def stop(self, kill: bool = False) -> None:
        if self._process:
            (self._process.kill if kill else self._process.terminate)()
            self._process.wait(10)
            self._process = None


@contextmanager
def _mosquitto() -> Iterator[str]:
    with temporary_folder("mosquitto") as folder:
        Path(folder).chmod(0o755)
        broker = Mosquitto(Path(folder))
        broker.start()
        try:
            yield broker.url
        finally:
            broker.stop()


class _StableDict(dict[str, Any]):
    """A dict that may change during an iteration.

    amqtt 0.11 and 0.12 await inside loops over their subscriptions. When a client subscribes meanwhile, the loop raises and
    another client that is just connecting is lost.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.keys()))

    def items(self) -> Any:
        return list(super().items())


def _patch_subscriptions(broker: Any, version: str) -> None:
    """Give a broker of amqtt a _StableDict. Another version than PATCHED stays as it is, with a warning."""
    if version.startswith(PATCHED) and type(getattr(broker, "_subscriptions", None)) is dict:
        broker._subscriptions = _StableDict()
    else:
        LOG.warning("amqtt %s is unknown and runs without our patch: if clients are lost, use --broker mosquitto", version)


@contextmanager
def _amqtt() -> Iterator[str]:
    from amqtt.broker import Broker

    logging.getLogger("amqtt").setLevel(logging.CRITICAL)
    logging.getLogger("transitions").setLevel(logging.CRITICAL)
    port = free_port()
    loop = asyncio.new_event_loop()
    config: dict[str, Any] = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }

    async def start() -> Broker:
        broker = Broker(config)  # inside the loop: before Python 3.11 its objects belong to the current loop
        _patch_subscriptions(broker, metadata.version("amqtt"))
        await broker.start()
        return broker

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    broker = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    try:
        yield f"mqtt://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(_end(broker), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


async def _end(broker: Any) -> None:
    """Shut amqtt down. It would wait 5 s for its idle broadcast loop, so its tasks are cancelled after half a second."""
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(broker.shutdown(), 0.5)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
