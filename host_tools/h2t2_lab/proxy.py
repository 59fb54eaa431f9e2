"""`h2t2-lab proxy`: a bad link between MQTT clients and a broker. It drops, doubles, delays, corrupts and stalls packets."""

import asyncio
import random
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field

from h2t2_tools.common.errors import UserError
from h2t2_tools.common.fields import LocalPort, NotNegative, Seconds, Share
from h2t2_tools.fleet.broker import parse

PUBLISH = 3
Milliseconds = Annotated[int, Field(ge=0, le=3600000)]


@dataclass(kw_only=True)
class Faults:
    """The faults of a proxy, and how many PUBLISH packets each has hit. They may change while the proxy runs.

    Attributes:
        drop, double, corrupt, late: Probability for each packet, 0 to 1.
        delay_ms: Shortest and longest delay, which also reorders packets.
        late_ms: A late packet takes up to so much longer.
        up: Faults hit packets from client to broker, too.
        stall: Nothing passes in either direction.
        seed: Seed of the draws.
    """

    drop: float = 0.0
    double: float = 0.0
    corrupt: float = 0.0
    delay_ms: tuple[int, int] = (0, 0)
    late: float = 0.0
    late_ms: int = 30000
    up: bool = False
    stall: bool = False
    passed: int = 0
    dropped: int = 0
    doubled: int = 0
    corrupted: int = 0
    delayed: int = 0
    connections: int = 0
    seed: int = 1

    def check(self) -> "Faults":
        """Return the faults. Raise UserError for a probability outside 0 to 1, or a delay whose first number is the larger."""
        for name in ("drop", "double", "corrupt", "late"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"--{name} {getattr(self, name):g} is not between 0 and 1")
        if not 0 <= self.delay_ms[0] <= self.delay_ms[1]:
            raise UserError(f"--delay {self.delay_ms[0]} {self.delay_ms[1]}: give the shorter delay first, in milliseconds")
        return self


class Proxy:
    """Relays from the local port `port` until stop()."""

    def __init__(self, host: str, port: int, faults: Faults, listen: int = 0) -> None:
        self.host, self.broker_port, self.faults = host, port, faults.check()
        self._random = random.Random(faults.seed)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # of the thread, while it listens
        self._stopping = asyncio.Event()
        self._listen = listen
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0
        self._trouble: OSError | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        self._ready.wait(10)
        if self._trouble:
            raise UserError(f"port {listen}: {self._trouble.strerror}")

    async def _run(self) -> None:
        try:
            server = await asyncio.start_server(self._serve, "127.0.0.1", self._listen)
        except OSError as error:
            self._trouble = error
            self._ready.set()
            return
        self.port = server.sockets[0].getsockname()[1]
        self._loop = asyncio.get_running_loop()
        self._ready.set()
        await self._stopping.wait()
        self._loop = None
        server.close()
        for writer in self._open:
            writer.transport.abort()
        # asyncio.run() then cancels the connections' tasks, which _serve() expects, and awaits their end

    def stop(self) -> None:
        """End every connection, and the thread."""
        if self._loop:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):  # stop(); Python 3.11 would log it with a traceback
            await self._connect(reader, writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.faults.connections += 1
        self._open.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection(self.host, self.broker_port)
        except OSError:
            self._open.discard(writer)
            writer.close()
            return
        pumps = [
            asyncio.ensure_future(self._pump(reader, far_writer, True)),
            asyncio.ensure_future(self._pump(far_reader, writer, False)),
        ]
        self._open.add(far_writer)
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            self._open -= {writer, far_writer}
            for end in (writer, far_writer):
                end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, up: bool) -> None:
        try:
            while True:
                packet = await _packet(reader)
                while self.faults.stall:
                    await asyncio.sleep(0.02)
                await self._pass_on(packet, writer, up)
        except (asyncio.IncompleteReadError, OSError):
            return

    async def _pass_on(self, packet: bytes, writer: asyncio.StreamWriter, up: bool) -> None:
        f, chance = self.faults, self._random.random
        if packet[0] >> 4 != PUBLISH or (up and not f.up):
            _write(writer, packet)
            return
        if chance() < f.drop:
            f.dropped += 1
            return
        if chance() < f.corrupt:
            f.corrupted += 1
            at = self._random.randrange(max(2, len(packet) - 12), len(packet))
            packet = packet[:at] + bytes([packet[at] ^ 1 << self._random.randrange(8)]) + packet[at + 1 :]
        copies = 2 if chance() < f.double else 1
        f.doubled += copies - 1
        f.passed += 1
        for _ in range(copies):
            delay = self._random.uniform(*f.delay_ms) / 1000
            if chance() < f.late:
                f.delayed += 1
                delay += chance() * f.late_ms / 1000
            if delay:
                asyncio.get_running_loop().call_later(delay, _write, writer, packet)
            else:
                _write(writer, packet)


def measure(
    progress: Callable[[str], None],
    listen: LocalPort = 0,
    broker: str = "mqtt://localhost:1883",
    drop: Share = 0.0,
    double: Share = 0.0,
    corrupt: Share = 0.0,
    delay: tuple[Milliseconds, Milliseconds] = (0, 0),
    late: Share = 0.0,
    both: bool = False,
    seed: NotNegative = 1,
    seconds: Seconds | None = None,
) -> dict[str, Any]:
    """Stand between MQTT clients and a broker and spoil the link. Tests with emulated and real boards use it.

    Args:
        listen: local port; default: any free one
        broker: mqtt://HOST:PORT
        drop: chance that a message to a client is lost
        double: chance that a message comes twice
        corrupt: chance that a bit of a message is turned
        delay: shortest and longest delay of each message, in milliseconds
        late: chance that a message comes up to 30 s later
        both: messages to the broker as well
        seed: seed of the chances
        seconds: stop after so long; default: never

    Examples:
        h2t2-lab proxy --listen 1884 --broker mqtt://localhost:1883 --drop 0.05 --double 0.05 --delay 0 300

    Returns:
        The Faults, which count the packets.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    faults = Faults(drop=drop, double=double, corrupt=corrupt, delay_ms=delay, late=late, up=both, seed=seed)
    running = Proxy(*parse(broker), faults, listen)
    print(f"h2t2-lab proxy: mqtt://127.0.0.1:{running.port} leads to {broker}", file=sys.stderr, flush=True)
    try:
        threading.Event().wait(seconds)
    except (KeyboardInterrupt, SystemExit):
        pass
    finally:
        running.stop()
    return asdict(faults)


def _write(writer: asyncio.StreamWriter, packet: bytes) -> None:
    if not writer.is_closing():  # the connection may have ended meanwhile
        writer.write(packet)


async def _packet(reader: asyncio.StreamReader) -> bytes:
    """Read an MQTT control packet."""
    head = await reader.readexactly(2)
    size, shift = head[1] & 127, 7
    while head[-1] & 128:
        head += await reader.readexactly(1)
        size |= (head[-1] & 127) << shift
        shift += 7
    return head + await reader.readexactly(size)
