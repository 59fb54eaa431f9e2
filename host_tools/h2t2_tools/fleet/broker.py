"""Brokers for a demo or a test: amqtt in this process, a Mosquitto of our own, or an existing one at a URL."""

import asyncio
import logging
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..common.errors import Failure, UserError

EPHEMERAL = 32768  # the first port that Linux assigns to connections
PATCHED = ("0.11.", "0.12.")  # versions of amqtt that lose clients, and whose attribute _subscriptions we know

LOG = logging.getLogger(__name__)


def parse(url: str, tls: bool = False) -> tuple[str, int]:
    """(host, port) of mqtt://host[:port], and of mqtts:// where tls. UserError for anything else."""
    if "@" in url:
        raise UserError("broker: no user or password in its address; give --user, and the password in a file or H2T2_PASSWORD")
    try:
        parts = urlsplit(url)
        port = parts.port or (8883 if parts.scheme == "mqtts" else 1883)
    except ValueError as error:
        raise UserError(f"broker {url}: {error}") from None
    if parts.scheme == "mqtts" and not tls:
        raise UserError(f"broker {url}: no TLS here; want mqtt://")
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or parts.path not in ("", "/"):
        raise UserError(f"broker {url}: want mqtt://host or mqtt://host:port")
    return parts.hostname, port


def free_port() -> int:
    """A free TCP port below EPHEMERAL, which Linux assigns to no connection meanwhile."""
    chosen = random.SystemRandom()
    while not free("127.0.0.1", port := chosen.randrange(10240, EPHEMERAL)):
        pass
    return port


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


def wait_for_port(host: str, port: int, seconds: float) -> bool:
    """Whether a server accepts connections there within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection((host, port), timeout=1).close()
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

    def __init__(self, folder: Path) -> None:
        """folder: for its configuration and log. UserError where Mosquitto is not installed."""
        self._program = mosquitto()
        if self._program is None:
            raise UserError("broker mosquitto: not installed; run: sudo apt-get install mosquitto (or use --broker amqtt)")
        self.port = free_port()
        self._log = folder / "log"
        self._config = folder / "mosquitto.conf"
        self._config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n")
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
        if not wait_for_port("127.0.0.1", self.port, 10):
            raise Failure(f"mosquitto did not start: {self._log.read_text().strip()[-200:]}")

    def stop(self, kill: bool = False) -> None:
        if self._process:
            (self._process.kill if kill else self._process.terminate)()
            self._process.wait(10)
            self._process = None


@contextmanager
def _mosquitto() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="h2t2-mosquitto-") as folder:
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
