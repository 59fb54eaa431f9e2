# MQTT link for a Pi or a desktop, over paho-mqtt: MqttLink's interface and behaviour. A thread of its own connects and
# reconnects; callbacks only fill queues; what the node calls never waits for the network.
import logging
import select
import socket
import ssl
from collections import deque
from threading import Event, Lock, RLock, Thread
from time import monotonic

import paho.mqtt.client as mqtt
from paho.mqtt.properties import Properties

from ..link import wire
from ..link.backoff import Backoff
from ..link.link import Link

LOG = logging.getLogger(__name__)
QUEUE = 16  # replies waiting to be taken; one more drops the oldest
IDLE_MS = 200  # a session's longest wait for the network
AT_ONCE = 64  # packets a session reads before it looks at its other work
ANSWER_MS = 2  # a broker sends on after an acknowledgement within
FEW = 4  # packets of a turn that show that nothing was held back
UNACKNOWLEDGED = 16  # requests the broker has not acknowledged; one more is refused
MEET_S = 0.3  # a broker that is there tells of its workers by then
WORKERS = 1024  # remembered
BEGINNING, PIECE = 1 << 17, 1 << 16  # bytes kept of a message too large: any topic and its number; read at once of the rest
CORK = getattr(socket, "TCP_CORK", None)  # Linux


class Client(mqtt.Client):
    """paho takes the memory that a packet claims; of a message above `limit` bytes this one keeps the beginning alone.

    Such a message is counted in `oversize`, acknowledged, and told to nobody. Another packet of that size ends the connection.
    """

    limit = 1 << 20
    oversize = 0
    properties: Properties | None = None  # of its CONNECT packet (MQTT 5)
    is_tls = False

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._writing = RLock()

    def loop_write(self):
        """Two threads write: one that publishes, and the session's."""
        with self._writing:
            return super().loop_write()

    def _sock_recv(self, bufsize):
        packet = self._in_packet
        if packet["remaining_length"] <= self.limit:
            return super()._sock_recv(bufsize)
        if packet["command"] & 0xF0 != mqtt.PUBLISH:
            self.oversize += 1
            raise ConnectionError("a packet of %d bytes" % packet["remaining_length"])
        room = BEGINNING - len(packet["packet"])
        if room > 0:
            return super()._sock_recv(min(bufsize, room))
        data = super()._sock_recv(min(bufsize, PIECE))
        packet["to_process"] -= max(0, len(data) - 1)  # of each piece its last byte is kept, which paho counts itself
        return data[-1:]

    def _handle_on_message(self, message):
        if self._in_packet["remaining_length"] > self.limit:
            self.oversize += 1
        else:
            super()._handle_on_message(message)


def make_client(
    client_id: str,
    protocol: mqtt.MQTTProtocolVersion = mqtt.MQTTv311,
    tls: ssl.SSLContext | None = None,
    user: str | None = None,
    password: str | None = None,
    limit: int = 1 << 20,
    manual_ack: bool = False,
) -> Client:
    """A paho client that sets TCP_NODELAY: without it every QoS 1 round trip waits 44 ms. tls: an ssl.SSLContext."""
    client = Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=protocol, manual_ack=manual_ack)
    client.on_socket_open = lambda _client, _data, sock: sock.setsockopt(  # type: ignore[attr-defined]
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )
    client.suppress_exceptions = False
    client.limit = limit
    if tls:
        client.tls_set_context(tls)
        client.is_tls = True
    if user:
        client.username_pw_set(user, password or None)
    return client


class Session:
    """A client's connections, one after the other, each a new paho client in one thread of its own, from start() to close().

    make(): a client with its callbacks for messages and its last will. topics: subscribed to at QoS 1.
    In the session's thread: on_up(session), once subscribed; farewell(session), before a clean end; work(), between two looks
    at the network, gives the milliseconds until it wants to be called again.
    What was published and not sent when a connection ends is not sent again: it is old by then.
    """

    def __init__(
        self, host, port, make, topics, keep_alive=30, deadline_ms=10000, seed=1, on_up=None, farewell=None, work=None,
        gather_ms=0
    ):  # fmt: skip
        """deadline_ms: for one attempt, from the first packet to the subscription. seed: of the waits between attempts.
        gather_ms: what comes is read together so often; 0: at once, which wakes the thread for each message."""
        self.host = host
        self.port = port
        self.connections = 0
        self._oversize = 0  # of the connections before
        self.trouble = ""  # why the last attempt failed or the last connection ended
        self.up = Event()
        self.tried = Event()  # the first attempt has ended, well or not
        self.client = None
        self._make = make
        self._topics = topics
        self._keep_alive = keep_alive
        self._deadline = deadline_ms / 1000
        self._backoff = Backoff(seed)
        self._on_up = on_up
        self._farewell = farewell
        self._work = work or (lambda: IDLE_MS)
        self._gather = gather_ms / 1000
        self._refusal = ""
        self._since = 0.0  # when it was up
        self.slow = False  # wait longest after each connection: somebody takes them away
        self._read = 0  # packets that the last turn read
        self._sent = self._acknowledged = 0
        self._counting = Lock()
        self._closing = Event()
        self._woken, self._waking = socket.socketpair()
        self._thread = Thread(target=self._run, name="mqtt session", daemon=True)

    def start(self) -> "Session":
        """Begin; apart from the constructor, as its callbacks may need what it is assigned to."""
        self._thread.start()
        return self

    @property
    def oversize(self) -> int:
        """Packets above a client's limit, of all connections."""
        client = self.client
        return self._oversize + (client.oversize if client else 0)

    def open(self, wait_ms: int = 0) -> None:
        """Wait for the first connection, at most wait_ms (0: the deadline): OSError, saying why, without it. Trying goes on."""
        self.tried.wait(wait_ms / 1000 if wait_ms else self._deadline + 1)
        if not self.up.is_set():
            raise OSError("broker %s:%d: %s" % (self.host, self.port, self.trouble or "no answer"))

    def unacknowledged(self) -> int:
        """Publications of this connection that the broker has not acknowledged."""
        return self._sent - self._acknowledged

    def publish(self, topic: str, payload: bytes | str, qos: int = 1, retain: bool = False) -> bool:
        """False while the connection is down."""
        client = self.client
        if client is None or not self.up.is_set():
            return False
        with self._counting:
            self._sent += 1
        return client.publish(topic, payload, qos=qos, retain=retain).rc == mqtt.MQTT_ERR_SUCCESS

    def hold(self, back: bool) -> None:
        """Let what is published from now on wait in the system, at most .2 s, and go out in one piece when it is let go:
        whoever is on the other side is woken once. Where the system can (Linux)."""
        sock = self.client and self.client.socket()
        if sock and CORK is not None:
            sock.setsockopt(socket.IPPROTO_TCP, CORK, back)

    def drain(self) -> None:
        """For work(): read what the broker has, however much it holds back until what it sent is acknowledged."""
        client = self.client
        for _ in range(AT_ONCE):
            if client is None or not client.socket() or self._turn(client, ANSWER_MS) or self._read < FEW:
                return

    def renew(self) -> None:
        """End the connection and make another."""
        if self.up.is_set():
            self._refusal = "made anew"
            self._wake()

    def close(self) -> None:
        """Say farewell and disconnect."""
        self._closing.set()
        self._wake()
        self._thread.join(5)
        self._woken.close()
        self._waking.close()

    def _wake(self, *_):
        """End the thread's wait for the network."""
        try:
            self._waking.send(b"0")
        except OSError:
            pass

    def _run(self):
        while not self._closing.is_set():
            self.trouble = self._attempt()
            self.client = None
            if self.up.is_set():
                self.up.clear()
                self._backoff.ended((monotonic() - self._since) * 1000, self.slow)
            self.tried.set()
            self._closing.wait(self._backoff.draw() / 1000)

    def _attempt(self):
        """Make a client and use it until its connection ends: why it ended, whatever went wrong."""
        try:
            self.client = client = self._make()
            client.on_connect = self._on_connect
            client.on_subscribe = self._on_subscribe
            client.on_publish = self._on_publish
            self._sent = self._acknowledged = 0
            if client.is_tls:
                # such a socket is read and written by one thread: what another publishes waits for this one
                client.on_socket_register_write = self._wake
            try:
                return self._connection(client)
            finally:
                self._oversize += client.oversize
        except OSError as error:  # the network's
            return str(error) or type(error).__name__
        except Exception as error:  # a callback's, for example: it is logged, and the next attempt comes
            LOG.exception("a connection to %s:%d has ended by an exception", self.host, self.port)
            return str(error) or type(error).__name__

    def _connection(self, client):
        """One connection from its first packet to its end: why it ended."""
        self._refusal = ""
        end = monotonic() + self._deadline
        client.connect_timeout = self._deadline
        try:
            client.connect(self.host, self.port, self._keep_alive, properties=client.properties)
            self._poll = select.poll()
            self._poll.register(self._woken, select.POLLIN)
            self._poll.register(client.socket(), select.POLLIN)
            while not self._closing.is_set():
                wait_ms = self._work()
                if not client.socket():  # lost in drain()
                    return mqtt.error_string(mqtt.MQTT_ERR_CONN_LOST)
                code = self._turn(client, wait_ms)
                if self._refusal:
                    return self._refusal
                if code or not client.socket():
                    return mqtt.error_string(code)
                if self.up.is_set():
                    if self._gather and self._read < AT_ONCE:
                        self._closing.wait(self._gather)
                elif monotonic() > end:
                    return "no answer in %g s" % self._deadline
            if self.up.is_set():
                if self._farewell:
                    self._farewell(self)
                client.disconnect()
                end = monotonic() + 1
                while client.want_write() and monotonic() < end and not self._turn(client, 20):
                    pass
            return "closed"
        finally:
            sock = client.socket()
            if sock:
                sock.close()

    def _turn(self, client, wait_ms):
        """Wait for the network at most so long, and do what there is to do: paho's error code."""
        sock = client.socket()
        poll = self._poll
        pending = client.is_tls and sock.pending()
        if client.want_write():
            poll.modify(sock, select.POLLIN | select.POLLOUT)
        code = 0
        for number, event in poll.poll(0 if pending else wait_ms):
            if number == self._woken.fileno():
                self._woken.recv(4096)
            elif event & ~select.POLLOUT:
                pending = True
        poll.modify(sock, select.POLLIN)
        self._read = 0
        if pending:
            for _ in range(AT_ONCE):
                code = client.loop_read()
                self._read += 1
                if code or not client.socket() or not (client.is_tls and sock.pending() or poll.poll(0)):
                    break
        if not code and client.want_write():
            code = client.loop_write()
        return code or client.loop_misc()

    def _on_connect(self, client, _data, _flags, reason, _properties):
        if reason.is_failure:
            self._refusal = "the broker refuses the connection: %s" % reason
        else:
            client.subscribe([(topic, 1) for topic in self._topics])

    def _on_subscribe(self, _client, _data, _mid, reasons, _properties):
        if any(reason.is_failure for reason in reasons):
            self._refusal = "the broker refuses the subscription"
            return
        self.connections += 1
        self._since = monotonic()
        self.up.set()
        if self._on_up:
            self._on_up(self)
        self.tried.set()

    def _on_publish(self, _client, _data, _mid, _reason, _properties):
        self._acknowledged += 1


class PahoLink(Link):
    """Requests out, replies in, for one device. Connects, reconnects and resubscribes by itself; status has a last will.

    Counters: `connections`, `oversize`, `dropped` (replies never taken), `refused` (sends while down or full).
    """

    def __init__(
        self, host, port, device, model, boot, user=None, password=None, keep_alive=30, deadline_ms=10000, seed=1, buffer=320,
        tls=None
    ):  # fmt: skip
        """As MqttLink; model: None looks out for workers of every model.

        buffer: bytes an incoming packet may have; a longer message is passed over.
        """
        Link.__init__(self, boot, WORKERS)
        self.host = host
        self.port = port
        self.device = device
        self.model = model
        self._reply, self._command, self._status = [wire.topic(device, leaf) for leaf in ("reply", "command", "status")]
        self._made = "h2t2-" + device, mqtt.MQTTv311, tls, user, password, buffer
        self._replies: deque[bytes] = deque()
        self._came = Event()  # a reply
        self._commands: deque[bytes] = deque()
        self._met = Event()  # a worker of the model
        topics = [self._reply, self._command, self._status, wire.presence("+" if model is None else model, "+")]
        self._session = Session(host, port, self._client, topics, keep_alive, deadline_ms, seed, self._online, self._offline)
        self._session.start()

    @property
    def connections(self) -> int:
        return self._session.connections

    @property
    def oversize(self) -> int:
        return self._session.oversize

    @property
    def trouble(self) -> str:
        return self._session.trouble

    def is_connected(self) -> bool:
        return self._session.up.is_set()

    def workers(self, model: int | None = None) -> int:
        """How many workers serve the model (the link's own), as far as they have announced themselves."""
        return self.presence.count(self.model if model is None else model)

    def open(self, wait_ms: int = 0) -> None:
        """Wait for the first connection, at most wait_ms (0: the deadline): OSError, saying why, without it. Trying goes on."""
        self._session.open(wait_ms)
        self._met.wait(MEET_S)

    def send(self, payload: bytes) -> bool:
        """Publish a request; False while the link is down or too many are not acknowledged (nothing is queued then)."""
        session = self._session
        if session.unacknowledged() < UNACKNOWLEDGED:
            if session.publish(wire.topic(self.device, wire.request_leaf(wire.model_of(payload))), payload):
                return True
        self.refused += 1
        return False

    def receive(self, wait_ms: int) -> bytes | None:
        """The next reply payload, or None when none has come after wait_ms milliseconds (0: do not wait)."""
        # not SimpleQueue.get(): a signal that comes at the end of its wait makes CPython 3.11 wait for ever
        end = monotonic() + wait_ms / 1000
        while True:
            self._came.clear()
            if self._replies:
                return self._replies.popleft()
            left = end - monotonic()
            if left <= 0:
                return None
            self._came.wait(left)

    def command(self) -> bytes | None:
        """The next command payload (JSON, not checked), or None."""
        return self._commands.popleft() if self._commands else None

    def report(self, message: str) -> None:
        """Publish telemetry (JSON text), retained; left out while the link is down or busy."""
        self._say("state", message, True)

    def answer(self, message: str) -> None:
        """Publish the answer to a command (JSON text); left out while the link is down or busy."""
        self._say("answer", message, False)

    def renew(self) -> None:
        """End the connection and make another."""
        self._session.renew()

    def close(self) -> None:
        """Say "offline" and disconnect."""
        self._session.close()

    def _say(self, leaf, message, retain):
        if self._session.unacknowledged() < UNACKNOWLEDGED:
            self._session.publish(wire.topic(self.device, leaf), message, 0, retain)

    def _client(self):
        self.presence.clear()
        client = make_client(*self._made)
        client.will_set(self._status, wire.status("offline", self.boot), qos=0, retain=True)
        client.on_message = self._on_message
        return client

    def _online(self, session):
        session.publish(self._status, wire.status("online", self.boot), 0, True)

    def _offline(self, session):
        session.publish(self._status, wire.status("offline", self.boot), 0, True)

    def _on_message(self, _client, _data, message):
        try:
            topic = message.topic
        except UnicodeDecodeError:  # no text at all: nothing of ours
            return
        if topic == self._reply:
            if len(self._replies) >= QUEUE:
                self._replies.popleft()
                self.dropped += 1
            self._replies.append(message.payload)
            self._came.set()
        elif topic == self._command:
            if message.retain:
                return
            if len(self._commands) >= QUEUE:
                self._commands.popleft()
                self.dropped += 1
            self._commands.append(message.payload)
        elif topic == self._status:
            self.namesakes.take(message.payload, self.connections > self.is_connected())
            self._session.slow = self.namesakes.found()
        elif self.presence.take(topic, message.payload, message.retain) and self.workers():
            self._met.set()
