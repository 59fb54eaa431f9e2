# MQTT 3.1.1 link on a bare socket, for MicroPython's network ports; runs on CPython too. QoS 1, one subscription per topic.
#
# Two things block, both while there is no connection and a node has nothing in flight: a step of TLS's handshake, as long as
# the processor computes with keys; and getaddrinfo(), at the first attempt and after every fourth that failed, which names.py
# avoids (a broker's address needs no look-up). The service feeds the watchdog before and after. Every other call does only what
# is possible now. The link does not send again what was in flight when a connection ends: the node decides those samples.
import errno
import select
import socket
from time import sleep

from ..clock import remaining, ticks_add, ticks_diff, ticks_ms
from . import presence, wire
from .backoff import LONGEST_MS, Backoff
from .presence import BrokerLink

if 0:  # for type checkers: MicroPython compiles nothing here
    import ssl

    from ..annotations import Any

DOWN, CONNECTING, GREETING, SUBSCRIBING, UP = 0, 1, 2, 3, 4
PENDING = 4  # packets waiting for the socket; one more is refused
READS = 16  # fillings of the buffer that one turn reads
UNACKNOWLEDGED = 16  # requests the broker has not acknowledged; one more is refused
FAREWELL_MS = 1000
MEET_MS = 300  # within this time a reachable broker has named its workers
AGAIN = errno.EAGAIN, 2, 3  # nothing to do now; 2, 3: CPython's SSL_ERROR_WANT_READ and _WRITE
NODELAY = getattr(socket, "TCP_NODELAY", 1)  # lwIP's is TF_NODELAY, 64 (extmod/modlwip.c); the unix port names none


def packet(kind: int, body: bytes, payload: bytes = b"") -> bytes:
    """An MQTT control packet: its fixed header with the length in base 128, then body and payload. It copies them once."""
    head = bytearray([kind])
    n = len(body) + len(payload)
    while True:
        n, digit = n >> 7, n & 127
        head.append(digit | (128 if n else 0))
        if not n:
            return b"".join((bytes(head), body, payload))


def text(s: str | bytes) -> bytes:
    """A length-prefixed UTF-8 string, or bytes as they are."""
    data = s if isinstance(s, bytes) else s.encode()
    return bytes([len(data) >> 8, len(data) & 255]) + data


class MqttLink(BrokerLink):
    """Requests out, replies in, for one device. It connects and reconnects while a caller polls it.

    link = MqttLink("192.168.1.5", 1883, "porch", model=1, boot=start.boot_number())
    """

    def __init__(
        self, host: str, port: int, device: str, model: int, boot: int, *, user: str | None = None, password: str | None = None,
        keep_alive: int = 30, deadline_ms: int = 10000, seed: int = 1, buffer: int = 320, tls: "ssl.SSLContext | None" = None
    ) -> None:  # fmt: skip
        """Begin to connect.

        Args:
            host, port: of the broker.
            device: its name in topics.
            model: number of the remote model whose workers the link looks out for.
            boot: number of this start, which its status carries.
            user, password: of the device at the broker.
            keep_alive: seconds.
            deadline_ms: of one attempt, from the first packet to the subscription.
            seed: of the waits between attempts (Backoff).
            buffer: bytes of an incoming packet; a longer one is skipped and counted in `oversize`.
            tls: a context of tls.context().
        """
        BrokerLink.__init__(self, boot)
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
        self.fill = 0  # bytes in it
        self.skip = 0  # bytes of a packet too large, still to come
        self.id_in = -2  # how many of them precede its packet id, -1: the id's second byte is the next; -2: it has none
        self.id_high = 0
        leaves = [wire.topic(device, leaf) for leaf in ("reply", "command", "status")]
        self.topics = [topic.encode() for topic in leaves + [presence.worker_topic(model, "+")]]
        self.pending: "list[memoryview]" = []  # packets that the socket has not taken whole
        self.state = DOWN
        self.sock: "Any" = None
        self.poller: "Any" = None
        self.addresses: "list[Any]" = []  # what the system knows of the host, the one in use first; localhost often has two
        self.address: "Any" = None
        self.refused = 0  # of these addresses, in this attempt
        self.packet_id = 0
        self.failures = 0  # attempts in a row that failed
        self.unacknowledged = 0
        self.since = ticks_ms()  # when the state began, or when the next attempt is due
        self.heard_at = self.pinged_at = self.since

    def is_connected(self) -> bool:
        return self.state == UP

    def is_connecting(self) -> bool:
        return DOWN < self.state < UP

    def workers(self) -> int:
        return self.count_workers(self.model)

    def open(self, wait_ms: int = 0) -> None:
        """Wait for the first connection, at most wait_ms (0: the deadline). Without one it raises OSError and tries on."""
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
        """Publish a request. False while the link is down or busy; it does not queue the request then."""
        if self.state == UP:
            self._advance(0)
        if self._is_busy() or self.unacknowledged >= UNACKNOWLEDGED:
            self.refused += 1
            return False
        self._publish(presence.request_leaf(presence.model_of(payload)), payload, 1, False)
        return self.state == UP

    def receive(self, wait_ms: int) -> bytes | None:
        end = ticks_add(ticks_ms(), wait_ms)
        while True:
            left_ms = remaining(end, wait_ms)
            self._advance(0 if self.replies else left_ms)
            if self.replies:
                return self.replies.pop(0)
            if not left_ms:
                return None

    def report(self, message: str) -> None:
        if not self._is_busy():
            self._publish("state", message.encode(), 0, True)

    def answer(self, message: str) -> None:
        if not self._is_busy():
            self._publish("answer", message.encode(), 0, False)

    def renew(self) -> None:
        if self.state == UP:
            self._drop("the connection is renewed")

    def close(self) -> None:
        """Say "offline" and disconnect."""
        if self.state == UP:
            self._publish("status", self._status("offline"), 0, True)
            self._write(packet(0xE0, b""))  # DISCONNECT
            end = ticks_add(ticks_ms(), FAREWELL_MS)
            while self.pending and self.state == UP and remaining(end, FAREWELL_MS):
                self._advance(20)
        self._drop("closed")

    def _is_busy(self) -> bool:
        """Whether nothing can be published now: the link is down, or packets pile up."""
        return self.state != UP or len(self.pending) >= PENDING

    def _publish(self, leaf: str, payload: bytes, qos: int, retain: bool) -> None:
        body = text(wire.topic(self.device, leaf))
        if qos:
            body += self._new_id()
            self.unacknowledged += 1
        self._write(packet(0x30 | qos << 1 | retain, body, payload))

    def _new_id(self) -> bytes:
        self.packet_id = self.packet_id % 65535 + 1
        return bytes([self.packet_id >> 8, self.packet_id & 255])

    def _advance(self, wait_ms: int) -> None:
        """Do what is possible within wait_ms: connect, read, write, keep alive."""
        if self.state == DOWN:
            left_ms = ticks_diff(self.since, ticks_ms())
            if left_ms <= 0 or left_ms > LONGEST_MS:  # longer than any wait: the clock has jumped
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
                self._read()  # TLS may hold decrypted bytes that poll() does not report
            if self.pending and self.state > CONNECTING:
                self._flush()
            self._check_times()
        except (OSError, ValueError) as error:  # ValueError: MicroPython's TLS, of a certificate
            self._drop(str(error).strip())

    def _check_times(self) -> None:
        """Send a ping when one is due. OSError when the broker has been silent for too long."""
        now = ticks_ms()
        if self.state != UP:
            if self.state != DOWN and ticks_diff(now, self.since) > self.deadline_ms:
                raise OSError("no answer in %d ms" % self.deadline_ms)
        elif ticks_diff(now, self.heard_at) > self.keep_ms + self.keep_ms // 2:
            raise OSError("nothing heard for %d ms" % ticks_diff(now, self.heard_at))
        elif ticks_diff(now, self.pinged_at) > self.keep_ms // 2:  # also while it sends: the broker need not answer that
            self.pinged_at = now
            self._write(packet(0xC0, b""))  # PINGREQ

    def _start(self) -> None:
        """Begin an attempt to connect."""
        self.since = ticks_ms()
        self.fill = self.skip = self.unacknowledged = 0
        self.pending = []
        self.state = CONNECTING
        try:
            if self.address is None:
                self.addresses = socket.getaddrinfo(self.host, self.port, 0, socket.SOCK_STREAM)
                self.address = self.addresses[0]
            self.sock = socket.socket(self.address[0], socket.SOCK_STREAM)
            self.sock.setblocking(False)
            try:
                self.sock.connect(self.address[-1])
            except OSError as error:
                if error.args[0] not in (errno.EINPROGRESS, errno.EAGAIN):
                    raise
            self.poller = select.poll()
            self.poller.register(self.sock, select.POLLIN | select.POLLOUT)
        except OSError as error:
            self._drop(str(error))

    def _greet(self, event: int) -> None:
        """The socket is connected, or refused: send CONNECT."""
        if event & (select.POLLHUP | select.POLLERR):
            raise OSError("the connection is refused")
        try:
            self.sock.setsockopt(6, NODELAY, 1)  # without it every round trip takes 44 ms longer
        except (OSError, AttributeError):
            pass
        if self.tls:  # shakes hands while it is read and written
            try:
                self.sock = self.tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
            except MemoryError as error:  # a later attempt may find room
                raise OSError(str(error)) from None
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

    def _drop(self, reason: str) -> None:
        """Close the connection. The next attempt is due after a wait that doubles."""
        if self.sock:
            try:
                self.sock.close()
            except OSError:
                pass
        self.sock = self.poller = None
        self.pending = []
        if self.state == CONNECTING and self.addresses:
            self.refused += 1
            self.addresses.append(self.addresses.pop(0))
            self.address = self.addresses[0]
            if self.refused < len(self.addresses):
                self._start()
                return
        self.refused = 0
        self.trouble = reason
        if self.state == UP:
            self.failures = 0
            self.backoff.after_connection(ticks_diff(ticks_ms(), self.since), self.has_namesake())
        else:
            self.failures += 1
            if not self.failures & 3:
                self.address = None  # the broker may have another address now
                self.addresses = []
        self.state = DOWN
        self.since = ticks_add(ticks_ms(), self.backoff.draw())

    def _write(self, data: bytes) -> None:
        self.pending.append(memoryview(data))
        try:
            self._flush()
        except (OSError, ValueError) as error:
            self._drop(str(error).strip())

    def _flush(self) -> None:
        """Give the socket as much as it takes."""
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

    def _read(self) -> None:
        """Read what has come, and process every packet in it."""
        for _ in range(READS):
            space = memoryview(self.buffer)[self.fill :]
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
            self.heard_at = ticks_ms()
            self.fill += n
            self._take_packets()
            if self.state == DOWN or (n < len(space) and not self.tls):
                return

    def _take_packets(self) -> None:
        """Process every whole packet in the buffer, and remove it."""
        buffer = self.buffer
        at = 0
        while at < self.fill:
            if self.skip:
                n = min(self.skip, self.fill - at)
                self._pass_over(at, n)
                if self.state == DOWN:
                    return
                self.skip -= n
                at += n
                continue
            size = shift = 0
            body = at + 1
            while body < self.fill and buffer[body] & 128 and shift < 21:
                size |= (buffer[body] & 127) << shift
                shift += 7
                body += 1
            if body >= self.fill:
                break  # the length is not complete yet
            size |= (buffer[body] & 127) << shift
            body += 1
            if buffer[body - 1] & 128:
                raise OSError("a packet without an end")
            if body - at + size > len(buffer):
                if not self._skip_packet(at, body, size):
                    break
                continue
            if body + size > self.fill:
                break
            self._take(buffer[at], memoryview(buffer)[body : body + size])
            if self.state == DOWN:
                return
            at = body + size
        if at:
            buffer[: self.fill - at] = buffer[at : self.fill]
            self.fill -= at

    def _skip_packet(self, at: int, body: int, size: int) -> bool:
        """Begin to skip a packet that is larger than the buffer. False while the place of its id is not known yet."""
        buffer = self.buffer
        self.id_in = -2
        if buffer[at] & 0xF0 == 0x30 and buffer[at] & 6:
            if body + 2 > self.fill:
                return False
            self.id_in = body - at + 2 + (buffer[body] << 8 | buffer[body + 1])
        self.oversize += 1
        self.skip = body - at + size
        return True

    def _pass_over(self, at: int, n: int) -> None:
        """Skip n bytes, and acknowledge their packet: a broker sends no more where too many are not acknowledged."""
        if self.id_in < -1:
            return
        if 0 <= self.id_in < n:
            self.id_high = self.buffer[at + self.id_in]
        if self.id_in + 1 < n:
            self._write(packet(0x40, bytes([self.id_high, self.buffer[at + self.id_in + 1]])))
            self.id_in = -2
        else:
            self.id_in = -1 if self.id_in < n else self.id_in - n

    def _take(self, kind: int, body: memoryview) -> None:
        """Process a packet."""
        kind_of = kind & 0xF0
        if kind_of == 0x20:  # CONNACK
            if self.state != GREETING or len(body) != 2:
                raise OSError("an unexpected greeting")
            if body[1]:
                raise OSError("the broker refuses the connection, code %d" % body[1])
            self.state = SUBSCRIBING
            self.forget_workers()  # a broker may name the workers before it acknowledges the subscription
            topics = b"".join([text(topic) + b"\x01" for topic in self.topics])
            self._write(packet(0x82, self._new_id() + topics))
        elif kind_of == 0x90 and self.state == SUBSCRIBING:  # SUBACK
            if len(body) != 2 + len(self.topics) or max(body[2:]) & 0x80:
                raise OSError("the broker refuses the subscription")
            self.state = UP
            self.since = self.pinged_at = ticks_ms()
            self.connections += 1
            self.trouble = ""
            self._publish("status", self._status("online"), 0, True)
        elif kind_of == 0x40 and self.unacknowledged:  # PUBACK
            self.unacknowledged -= 1
        elif kind_of == 0x30 and len(body) > 2:  # PUBLISH
            start = 2 + (body[0] << 8 | body[1])
            topic = bytes(body[2:start])
            if kind & 6:
                if start + 2 > len(body):
                    return
                self._write(packet(0x40, bytes(body[start : start + 2])))
                start += 2
            if start <= len(body):
                self._message(topic, bytes(body[start:]), kind & 1)

    def _message(self, topic: bytes, payload: bytes, retained: int) -> None:
        reply, command, status = self.topics[:3]
        if topic == reply:
            self._enqueue(self.replies, payload)
        elif topic == command:
            if not retained:
                self._enqueue(self.commands, payload)
        elif topic == status:
            self.take_status(payload, self.connections > (self.state == UP))
        else:
            try:
                self.take_presence(topic.decode(), payload, retained)
            except ValueError:  # the topic is no text
                pass

    def _status(self, word: str) -> bytes:
        return presence.status(word, self.boot)
