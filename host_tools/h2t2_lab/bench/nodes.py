"""Many nodes in one process, for benchmarks. Each has the link of a board and a connection of its own."""

from __future__ import annotations

import itertools
import select
import time
from collections import deque

from h2t2.cpython.tflite import TFLiteModel
from h2t2.link import wire
from h2t2.link.mqtt import MqttLink
from h2t2.link.statuses import STATUS
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure

PAIR, MODEL = "breast_cancer", 1
DEADLINE_MS = 5000
KEEP_ALIVE_S = 5.0  # interval at which every link is read, so that it can send its keep-alive


class Requests:
    """Requests with samples of the pair.

    Attributes:
        shape: Shape of a sample.
        tensors: 64 samples.
    """

    def __init__(self) -> None:
        pair = pairs.load(PAIR)
        rdl = TFLiteModel(str(pair.rdl))
        self.tensors = [rdl.quantise(x).tobytes() for x in pair.x[:64]]
        self.shape = rdl.input_shape[1:]

    def encode(self, number: int, boot: int = 9) -> bytes:
        tensor = self.tensors[number % len(self.tensors)]
        return wire.encode_request(MODEL, boot, number, self.shape, tensor, remaining_ms=DEADLINE_MS)


class Nodes:
    """Nodes with the link of a board and a connection each, driven by one thread.

    Args:
        address: Host and port of the broker.
        nodes: Number of nodes.
        requests: Source of the requests.
        in_flight: Unanswered requests of all nodes together, under the load in which answers make room for requests.
        window: Most unanswered requests of a node.
    """

    def __init__(self, address: tuple[str, int], nodes: int, requests: Requests, *, in_flight: int, window: int) -> None:
        self._links = [MqttLink(*address, f"fleet-{n}", MODEL, 9, deadline_ms=10000) for n in range(nodes)]
        self._requests, self._in_flight, self._window = requests, in_flight, window
        self._number = itertools.count(1)
        self._poll = select.epoll()
        self._link_of: dict[int, MqttLink] = {}  # descriptor -> link
        self._waiting: deque[int] = deque(range(nodes))  # nodes that may send, in order
        self._unanswered = [0] * nodes  # requests of each node
        self._node_of: dict[int, int] = {}  # number of a request -> node
        self._read_all = 0.0

    def __enter__(self) -> Nodes:
        for link in self._links:
            link.open()
            assert link.sock
            self._poll.register(link.sock, select.EPOLLIN)
            self._link_of[link.sock.fileno()] = link
        return self

    def __exit__(self, *_: object) -> None:
        self._poll.close()
        for link in self._links:
            link.close()

    def ask(self, rate: float, seconds: float) -> tuple[list[float], float]:
        """Send requests for some time, from the nodes in turn, and wait for the answers.

        Args:
            rate: Requests per second of all nodes together; 0: in_flight at first, then one after each answer.
            seconds: Time of sending.

        Returns:
            The seconds that each answer took, and the duration in seconds.
        """
        sent: dict[int, float] = {}
        times: list[float] = []
        began = last = time.perf_counter()
        count = 0
        while True:
            time_s = time.perf_counter()
            running = time_s - began < seconds
            if not running and not sent:
                if not times:
                    raise Failure("the workers are too busy to answer anything")
                return times, time_s - began
            if sent and time_s - last > DEADLINE_MS / 1000:
                raise Failure(f"no reply within {DEADLINE_MS / 1000:g} s")
            while running and (count < (time_s - began) * rate if rate else len(sent) < self._in_flight) and self._waiting:
                self._send(sent)
                count += 1
            wait = max(0.0, began + (count + 1) / rate - time_s) if rate and running else 0.1
            for link in self._ready(wait):
                while (payload := link.receive(0)) is not None:
                    last = time.perf_counter()
                    status, _, number, _, _ = wire.decode_reply(payload)
                    at = sent.pop(number)
                    self._end(number)
                    if status == wire.OK:
                        times.append(last - at)
                    elif status != wire.BUSY:
                        raise Failure(f"the worker answers: {STATUS[status]}")

    def _send(self, sent: dict[int, float]) -> None:
        number, n = next(self._number), self._waiting.popleft()
        self._node_of[number] = n
        self._unanswered[n] += 1
        if self._unanswered[n] < self._window:
            self._waiting.append(n)
        link = self._links[n]
        payload = self._requests.encode(number)
        sent[number] = time.perf_counter()
        if not link.send(payload):
            raise Failure(f"a link refused a request: {link.trouble or 'busy'}")

    def _end(self, number: int) -> None:
        n = self._node_of.pop(number)
        self._unanswered[n] -= 1
        if self._unanswered[n] == self._window - 1:
            self._waiting.append(n)

    def _ready(self, wait_s: float) -> list[MqttLink]:
        """Return the links that have something to read, or every KEEP_ALIVE_S all links."""
        time_s = time.perf_counter()
        if time_s - self._read_all > KEEP_ALIVE_S:
            self._read_all = time_s
            return self._links
        return [self._link_of[number] for number, _ in self._poll.poll(wait_s)]
