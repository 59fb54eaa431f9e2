# MQTT 3.1.1 link on a bare socket, for MicroPython's network ports; runs on CPython too. QoS 1, one subscription a topic.
# Two things block, both while there is no connection and a node has nothing in flight: a step of TLS's handshake, for as long
# as the processor computes with keys; and the look-up of a broker's name, which names.py does without (a broker named by its
# address has none): at the first attempt and after every fourth that failed. The service feeds the watchdog before and after.
# Every other call does what can be done now. What was in flight when a connection ends is not sent again: the node decides it
# at once.
import errno
import select
import socket
from time import sleep

from ..clock import remaining, ticks_add, ticks_diff, ticks_ms
from . import wire
from .backoff import LONGEST_MS, Backoff
from .link import Link

DOWN, CONNECTING, GREETING, SUBSCRIBING, UP = 0, 1, 2, 3, 4
QUEUE = 16  # replies waiting to be taken; one more drops the oldest
PENDING = 4  # packets waiting for the socket; one more is refused
AT_ONCE = 16  # fillings of the buffer that are read before anything else has its turn
UNACKNOWLEDGED = 16  # requests the broker has not acknowledged; one more is refused
FAREWELL_MS = 1000
MEET_MS = 300  # a broker that is there tells of its workers by then
AGAIN = errno.EAGAIN, 2, 3  # nothing to do now; 2, 3: what CPython's TLS says for it
NODELAY = getattr(socket, "TCP_NODELAY", 1)  # lwIP numbers it otherwise (64), and says so; the unix port names none


def packet(kind: int, body) -> bytes:
    """An MQTT control packet: its fixed header with the length in base 128, then the body."""
    head = bytearray([kind])
    n = len(body)
    while True:
        n, digit = n >> 7, n & 127
        head.append(digit | (128 if n else 0))
        if not n:
            return bytes(head) + body


def text(s) -> bytes:
    """A length-prefixed UTF-8 string, or bytes as they are."""
    data = s if isinstance(s, bytes) else s.encode()
    return bytes([len(data) >> 8, len(data) & 255]) + data


class MqttLink(Link):
    """Requests out, replies in, for one device; PahoLink's interface. Connects and reconnects by itself while polled.

    model: the remote model whose workers it looks out for. boot: this start's number, told in its status. seed: of the waits
    between attempts (Backoff).
    buffer: bytes an incoming packet may have; a longer one is passed over and counted in `oversize`, no memory taken.
    counters: `connections`, `oversize`, `dropped` (replies never taken), `refused` (sends while down or full).
    """

    def __init__(
        self, host, port, device, model, boot, user=None, password=None, keep_alive=30, deadline_ms=10000, seed=1, buffer=320,
        tls=None
    ):  # fmt: skip
        """tls: None, or a context of tls.context(). deadline_ms: for one attempt, first packet to subscription."""
        Link.__init__(self, boot)
        self.host = host
        self.port = port
        self.device = device
        self.model = model
        self.user = user
        self.password = password
        self.keep_ms = keep_alive * 1000
        self.deadline_ms = deadline_ms
        self.tls = tls
        self.backoff = Backoff(seed)
        self.buffer = bytearray(buffer)
        self.have = 0  # bytes in it
        self.skip = 0  # bytes of a packet too large, still to come
        self.id_in = -2  # how many of them come before its packet id, -1: its second byte is the next; -2: none to acknowledge
        self.id_high = 0
        leaves = [wire.topic(device, leaf) for leaf in ("reply", "command", "status")]
        self.topics = [topic.encode() for topic in leaves + [wire.presence(model, "+")]]
        self.queue = []
        self.commands = []
        self.pending = []  # packets (memoryviews) the socket has not taken whole
        self.state = DOWN
        self.sock = None
        self.poller = None
        self.address = None
        self.packet_id = self.failed = 0  # failed: attempts in a row
        self.unacknowledged = 0
        self.since = ticks_ms()  # when the state began, or when the next attempt is due
        self.heard = self.pinged = self.since

    def is_connected(self) -> bool:
        return self.state == UP

    def is_connecting(self) -> bool:
        """Whether an attempt is under way: a device that sleeps now would never end it."""
        return DOWN < self.state < UP

    def workers(self) -> int:
        """How many workers serve the model, as far as they have announced themselves."""
        return self.presence.count(self.model)

    def open(self, wait_ms: int = 0) -> None:
        """Wait for the first connection, at most wait_ms (0: the deadline): OSError, saying why, without it. Trying goes on."""
        wait_ms = wait_ms or self.deadline_ms
        end = ticks_add(ticks_ms(), wait_ms)
        while self.state != UP:
            self._advance(20)
            if not remaining(end, wait_ms) or (self.state == DOWN and self.trouble):
                raise OSError("broker %s:%d: %s" % (self.host, self.port, self.trouble or "no answer"))
        end = ticks_add(ticks_ms(), MEET_MS)
        while self.state == UP and not self.workers() and remaining(end, MEET_MS):
            self._advance(20)

    def send(self, payload: bytes) -> bool:
        """Publish a request; False while the link is down or its packets pile up (nothing is queued then)."""
        if self.state == UP:
            self._advance(0)
        if self.state != UP or len(self.pending) >= PENDING or self.unacknowledged >= UNACKNOWLEDGED:
            self.refused += 1
            return False
        self._publish(wire.request_leaf(wire.model_of(payload)), payload, 1, False)
        return self.state == UP

    def receive(self, wait_ms: int) -> bytes | None:
        """The next reply payload, or None when none has come after wait_ms milliseconds (0: do not wait)."""
        end = ticks_add(ticks_ms(), wait_ms)
        while True:
            left = remaining(end, wait_ms)
            self._advance(0 if self.queue else left)
            if self.queue:
                return self.queue.pop(0)
            if not left:
                return None

    def command(self) -> bytes | None:
        """The next command payload (JSON, not checked), or None."""
        return self.commands.pop(0) if self.commands else None

    def report(self, message: str) -> None:
        """Publish telemetry (JSON text), retained; left out while the link is down or busy."""
        if self.state == UP and len(self.pending) < PENDING:
            self._publish("state", message.encode(), 0, True)

    def answer(self, message: str) -> None:
        """Publish the answer to a command (JSON text); left out while the link is down or busy."""
        if self.state == UP and len(self.pending) < PENDING:
            self._publish("answer", message.encode(), 0, False)

    def renew(self) -> None:
        """End the connection and make another."""
        if self.state == UP:
            self._drop("made anew")

    def close(self) -> None:
        """Say "offline" and disconnect."""
        if self.state == UP:
            self._publish("status", self._status("offline"), 0, True)
            self._write(packet(0xE0, b""))
            end = ticks_add(ticks_ms(), FAREWELL_MS)
            while self.pending and self.state == UP and remaining(end, FAREWELL_MS):
                self._advance(20)
        self._drop("closed")

    def _publish(self, leaf, payload, qos, retain):
        body = text(wire.topic(self.device, leaf))
        if qos:
            self.packet_id = self.packet_id % 65535 + 1
            body += bytes([self.packet_id >> 8, self.packet_id & 255])
            self.unacknowledged += 1
        self._write(packet(0x30 | qos << 1 | retain, body + payload))

    def _advance(self, wait_ms):
        """Do what can be done within wait_ms: connect, read, write, keep alive."""
        now = ticks_ms()
        if self.state == DOWN:
            left = ticks_diff(self.since, now)
            if left <= 0 or left > LONGEST_MS:  # longer than any wait: the clock has jumped
                self._start()
            elif wait_ms:
                sleep(min(wait_ms, 20) / 1000)
            return
        try:
            events = self.poller.poll(wait_ms)
            if self.state == CONNECTING:
                if events:
                    self._greet(events[0][1])
            elif events:
                if events[0][1] & select.POLLIN:
                    self._read()
                elif events[0][1] & (select.POLLHUP | select.POLLERR):
                    raise OSError("the broker closed the connection")
            elif self.tls:
                self._read()  # what it holds, no poll tells of
            if self.pending and self.state > CONNECTING:
                self._flush()
            now = ticks_ms()
            if self.state != UP:
                if self.state != DOWN and ticks_diff(now, self.since) > self.deadline_ms:
                    raise OSError("no answer in %d ms" % self.deadline_ms)
            elif ticks_diff(now, self.heard) > self.keep_ms + self.keep_ms // 2:
                raise OSError("nothing heard for %d ms" % ticks_diff(now, self.heard))
            elif ticks_diff(now, self.pinged) > self.keep_ms // 2:  # whatever is sent meanwhile: it need not be answered
                self.pinged = now
                self._write(packet(0xC0, b""))
        except (OSError, ValueError) as error:  # ValueError: MicroPython's TLS, of a certificate
            self._drop(str(error).strip())

    def _start(self):
        self.since = ticks_ms()
        self.have = self.skip = self.unacknowledged = 0
        self.pending = []
        try:
            if self.address is None:
                self.address = socket.getaddrinfo(self.host, self.port, 0, socket.SOCK_STREAM)[0]
            self.sock = socket.socket(self.address[0], socket.SOCK_STREAM)
            self.sock.setblocking(False)
            self.state = CONNECTING
            try:
                self.sock.connect(self.address[-1])
            except OSError as error:
                if error.args[0] not in (errno.EINPROGRESS, errno.EAGAIN):
                    raise
            self.poller = select.poll()
            self.poller.register(self.sock, select.POLLIN | select.POLLOUT)
        except OSError as error:
            self._drop(str(error))

    def _greet(self, event):
        if event & (select.POLLHUP | select.POLLERR):
            raise OSError("the connection is refused")
        try:
            self.sock.setsockopt(6, NODELAY, 1)  # without it every round trip waits 44 ms
        except (OSError, AttributeError):
            pass
        if self.tls:  # shakes hands while it is read and written
            self.sock = self.tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.poller = select.poll()
        self.poller.register(self.sock, select.POLLIN)
        flags = 0x26 | (0x80 if self.user else 0) | (0x40 if self.user and self.password else 0)  # clean, will retained, QoS 0
        body = text("MQTT") + bytes([4, flags, self.keep_ms // 1000 >> 8, self.keep_ms // 1000 & 255])
        body += text("h2t2-" + self.device) + text(self.topics[2]) + text(self._status("offline"))
        if self.user:
            body += text(self.user)
            if self.password:
                body += text(self.password)
        self.state = GREETING
        self._write(packet(0x10, body))

    def _drop(self, why):
        """Close what is open; the next attempt is due after a wait that doubles."""
        if self.sock:
            try:
                self.sock.close()
            except OSError:
                pass
        self.sock = self.poller = None
        self.pending = []
        self.trouble = why
        if self.state == UP:
            self.failed = 0
            self.backoff.ended(ticks_diff(ticks_ms(), self.since), self.namesakes.found())
        else:
            self.failed += 1
            if not self.failed & 3:
                self.address = None  # it may have moved
        self.state = DOWN
        self.since = ticks_add(ticks_ms(), self.backoff.draw())

    def _write(self, data):
        self.pending.append(memoryview(data))
        try:
            self._flush()
        except (OSError, ValueError) as error:
            self._drop(str(error).strip())

    def _flush(self):
        while self.pending:
            try:
                n = self.sock.write(self.pending[0]) if hasattr(self.sock, "write") else self.sock.send(self.pending[0])
            except OSError as error:
                if error.args[0] in AGAIN:
                    return
                raise
            if not n:  # None: the socket takes nothing now
                return
            if n < len(self.pending[0]):
                self.pending[0] = self.pending[0][n:]
            else:
                self.pending.pop(0)

    def _read(self):
        for _ in range(AT_ONCE):
            space = memoryview(self.buffer)[self.have :]
            try:
                n = self.sock.readinto(space) if hasattr(self.sock, "readinto") else self.sock.recv_into(space)
            except OSError as error:
                if error.args[0] in AGAIN:
                    return
                raise
            if n is None:
                return
            if not n:
                raise OSError("the broker closed the connection")
            self.heard = ticks_ms()
            self.have += n
            self._packets()
            if self.state == DOWN or (n < len(space) and not self.tls):
                return

    def _packets(self):
        """Take every whole packet out of the buffer."""
        buffer = self.buffer
        at = 0
        while at < self.have:
            if self.skip:
                n = min(self.skip, self.have - at)
                self._pass_over(at, n)
                if self.state == DOWN:
                    return
                self.skip -= n
                at += n
                continue
            size = shift = 0
            body = at + 1
            while body < self.have and buffer[body] & 128 and shift < 21:
                size |= (buffer[body] & 127) << shift
                shift += 7
                body += 1
            if body >= self.have:
                break  # the length is not all there yet
            size |= (buffer[body] & 127) << shift
            body += 1
            if buffer[body - 1] & 128:
                raise OSError("a packet without an end")
            if body - at + size > len(buffer):
                if not self._too_large(at, body, size):
                    break
                continue
            if body + size > self.have:
                break
            self._take(buffer[at], memoryview(buffer)[body : body + size])
            if self.state == DOWN:
                return
            at = body + size
        if at:
            buffer[: self.have - at] = buffer[at : self.have]
            self.have -= at

    def _too_large(self, at, body, size):
        """Begin to pass over a packet; False: the length of its topic is not here yet."""
        buffer = self.buffer
        self.id_in = -2
        if buffer[at] & 0xF0 == 0x30 and buffer[at] & 6:
            if body + 2 > self.have:
                return False
            self.id_in = body - at + 2 + (buffer[body] << 8 | buffer[body + 1])
        self.oversize += 1
        self.skip = body - at + size
        return True

    def _pass_over(self, at, n):
        """Let n bytes go by, and acknowledge their packet: a broker sends no more where too many are not acknowledged."""
        if self.id_in < -1:
            return
        if 0 <= self.id_in < n:
            self.id_high = self.buffer[at + self.id_in]
        if self.id_in + 1 < n:
            self._write(packet(0x40, bytes([self.id_high, self.buffer[at + self.id_in + 1]])))
            self.id_in = -2
        else:
            self.id_in = -1 if self.id_in < n else self.id_in - n

    def _take(self, kind, body):
        kind_of = kind & 0xF0
        if kind_of == 0x20:
            if self.state != GREETING or len(body) != 2:
                raise OSError("an unexpected greeting")
            if body[1]:
                raise OSError("the broker refuses the connection, code %d" % body[1])
            self.state = SUBSCRIBING
            self.presence.clear()  # a broker may tell of the workers before it acknowledges the subscription
            self.packet_id = self.packet_id % 65535 + 1
            topics = b"".join([text(topic) + b"\x01" for topic in self.topics])
            self._write(packet(0x82, bytes([self.packet_id >> 8, self.packet_id & 255]) + topics))
        elif kind_of == 0x90 and self.state == SUBSCRIBING:
            if len(body) != 2 + len(self.topics) or max(body[2:]) & 0x80:
                raise OSError("the broker refuses the subscription")
            self.state = UP
            self.since = self.pinged = ticks_ms()
            self.connections += 1
            self.trouble = ""
            self._publish("status", self._status("online"), 0, True)
        elif kind_of == 0x40 and self.unacknowledged:
            self.unacknowledged -= 1
        elif kind_of == 0x30 and len(body) > 2:
            start = 2 + (body[0] << 8 | body[1])
            leaf = bytes(body[2:start])
            if kind & 6:
                if start + 2 > len(body):
                    return
                self._write(packet(0x40, bytes(body[start : start + 2])))
                start += 2
            if start <= len(body):
                self._message(leaf, bytes(body[start:]), kind & 1)

    def _message(self, topic, payload, retained):
        reply, command, status = self.topics[:3]
        if topic == reply or (topic == command and not retained):
            waiting = self.queue if topic == reply else self.commands
            if len(waiting) >= QUEUE:
                waiting.pop(0)
                self.dropped += 1
            waiting.append(payload)
        elif topic == status:
            self.namesakes.take(payload, self.connections > (self.state == UP))
        else:
            try:
                self.presence.take(topic.decode(), payload, retained)
            except ValueError:  # no text at all
                pass

    def _status(self, word):
        return wire.status(word, self.boot)
