# MQTT over paho-mqtt. A thread connects and reconnects; callbacks only fill queues; callers never wait for the network.
import logging
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from threading import Event, Lock, RLock, Thread
from time import monotonic
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.properties import Properties

from ..link.backoff import Backoff

LOG = logging.getLogger(__name__)
IDLE_MS = 200  # a session's longest wait for the network
READS = 64  # packets that a session reads before its other work
ANSWER_MS = 2  # within this time a broker continues after an acknowledgement
FIRST_PART, PIECE = 1 << 17, 1 << 16  # bytes kept of a message too large (any topic and its id), and read at once of the rest
CORK = getattr(socket, "TCP_CORK", None)  # Linux


class Client(mqtt.Client):
    """A paho client that takes little memory for a message above `limit` bytes: paho would take what the packet claims.

    It counts such a message in `oversize`, acknowledges it and passes it to nobody. A larger packet of another kind ends the
    connection.

    Attributes:
        limit: bytes of a message.
        oversize: messages above the limit.
        properties: of the CONNECT packet (MQTT 5).
        is_tls: whether the connection is encrypted.
    """

    limit = 1 << 20
    oversize = 0
    properties: Properties | None = None
    is_tls = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._writing = RLock()

    def loop_write(self) -> mqtt.MQTTErrorCode:
        """Two threads write: one that publishes, and the session's."""
        with self._writing:
            return super().loop_write()

    def _sock_recv(self, bufsize: int) -> bytes:
        packet = self._in_packet
        if packet["remaining_length"] <= self.limit:
            return super()._sock_recv(bufsize)
        if packet["command"] & 0xF0 != mqtt.PUBLISH:
            self.oversize += 1
            raise ConnectionError("a packet of %d bytes" % packet["remaining_length"])
        room = FIRST_PART - len(packet["packet"])
        if room > 0:
            return super()._sock_recv(min(bufsize, room))
        data = super()._sock_recv(min(bufsize, PIECE))
        packet["to_process"] -= max(0, len(data) - 1)  # of each piece its last byte is kept, which paho counts itself
        return data[-1:]

    def _handle_on_message(self, message: mqtt.MQTTMessage) -> None:
        if self._in_packet["remaining_length"] > self.limit:
            self.oversize += 1
        else:
            super()._handle_on_message(message)


def _send_at_once(_client: Any, _data: Any, sock: Any) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def make_client(
    client_id: str,
    protocol: mqtt.MQTTProtocolVersion = mqtt.MQTTv311,
    *,
    tls: ssl.SSLContext | None = None,
    user: str | None = None,
    password: str | None = None,
    limit: int = 1 << 20,
    manual_ack: bool = False,
    clean_session: bool | None = None,
    kind: type[Client] = Client,
) -> Client:
    """A paho client that sets TCP_NODELAY: without it every QoS 1 round trip takes 44 ms longer.

    Args:
        clean_session: False lets the broker keep the subscriptions and messages of this client while it is away (MQTT 3.1.1).
        kind: class of the client.
    """
    client = kind(
        mqtt.CallbackAPIVersion.VERSION2,
        client_id=client_id,
        protocol=protocol,
        manual_ack=manual_ack,
        clean_session=clean_session,
    )
    client.on_socket_open = _send_at_once
    client.suppress_exceptions = False
    client.limit = limit
    if tls:
        client.tls_set_context(tls)
        client.is_tls = True
    if user:
        client.username_pw_set(user, password or None)
    return client


class Session:
    """The connections to a broker, one after the other, each with a new client, in one thread from start() to close().

    It does not send again what a connection had not sent when it ended: that is old by then.

    Attributes:
        connections: connections so far.
        oversize: messages above a client's limit.
        trouble: why the last attempt failed or the last connection ended.
        up: set while there is a connection.
        client: of the current connection, or None.
    """

    def __init__(
        self,
        host: str,
        port: int,
        new_client: Callable[[], Client],
        topics: Sequence[str],
        *,
        keep_alive: int = 30,
        deadline_ms: int = 10000,
        seed: int = 1,
        on_up: Callable[["Session"], object] | None = None,
        farewell: Callable[["Session"], object] | None = None,
        work: Callable[[], float] | None = None,
        gather_ms: int = 0,
        former_topics: Sequence[str] = (),
    ) -> None:
        """Prepare a session; start() begins to connect.

        Args:
            host, port: of the broker.
            new_client: makes a client with its callbacks for messages and its last will.
            topics: of its subscriptions, at QoS 1.
            keep_alive: seconds.
            deadline_ms: of one attempt, from the first packet to the subscription.
            seed: of the waits between attempts.
            on_up: called in the session's thread after the subscription.
            farewell: called in the session's thread before a clean end.
            work: called in the session's thread between two waits for the network; returns the longest next wait, milliseconds.
            former_topics: of subscriptions that the broker may have kept, which are given up.
            gather_ms: pause that lets messages pile up, so that one wake-up of the thread serves many; 0: none.
        """
        self.host = host
        self.port = port
        self.connections = self.oversize = 0
        self.trouble = ""
        self.up = Event()
        self.client: Client | None = None
        self._new_client = new_client
        self._topics, self._former_topics = topics, list(former_topics)
        self._keep_alive = keep_alive
        self._deadline = deadline_ms / 1000
        self._backoff = Backoff(seed)
        self._on_up = on_up
        self._farewell = farewell
        self._work = work or (lambda: IDLE_MS)
        self._gather = gather_ms / 1000
        self._attempted = Event()  # the first attempt has ended, well or not
        self._end_reason = ""  # why the current connection has to end
        self._up_since = 0.0
        self._packets_read = 0  # by the last turn
        self._sent = self._acknowledged = 0
        self._count_lock = Lock()  # never held while paho is called, whose own lock is held in callbacks
        self._closing = Event()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._thread = Thread(target=self._run, name="mqtt session", daemon=True)

    def start(self) -> "Session":
        """Begin to connect. Callbacks may need the name to which the constructed session was assigned before."""
        self._thread.start()
        return self

    def open(self, wait_ms: int = 0) -> None:
        """Wait for the first connection, at most wait_ms (0: the deadline). Without one it raises OSError and tries on."""
        self._attempted.wait(wait_ms / 1000 if wait_ms else self._deadline + 1)
        if not self.up.is_set():
            raise OSError("broker %s:%d: %s" % (self.host, self.port, self.trouble or "no answer"))

    def is_contested(self) -> bool:
        """Return whether another client takes our connections: then the longest wait follows each."""
        return False

    def unacknowledged(self) -> int:
        """Publications of this connection that the broker has not acknowledged."""
        return self._sent - self._acknowledged

    def publish(self, topic: str, payload: bytes | str, qos: int = 1, retain: bool = False) -> bool:
        """Publish on the current connection. False while it is down."""
        client = self.client
        if client is None or not self.up.is_set():
            return False
        self._count_sent()
        return client.publish(topic, payload, qos=qos, retain=retain).rc == mqtt.MQTT_ERR_SUCCESS

    def _count_sent(self) -> None:
        with self._count_lock:
            self._sent += 1

    def cork(self, on: bool) -> None:
        """Collect publications in the system until cork(False), at most .2 s: they wake the other end once. Linux only."""
        sock: Any = self.client and self.client.socket()
        if sock and CORK is not None:
            sock.setsockopt(socket.IPPROTO_TCP, CORK, on)

    def drain(self, wait_ms: int) -> None:
        """For work(): read until nothing comes for wait_ms, at most ANSWER_MS.

        A broker may hold messages back until earlier ones are acknowledged. They come while this waits.
        """
        client = self.client
        wait_ms = min(wait_ms, ANSWER_MS)
        for _ in range(READS):
            if client is None or not client.socket() or self._turn(client, wait_ms) or not self._packets_read:
                return

    def renew(self) -> None:
        """End the connection and make another."""
        if self.up.is_set():
            self._end_reason = "the connection is renewed"
            self._wake()

    def close(self) -> None:
        """Say farewell and disconnect. A session that has not begun ends, too: a signal may come before its start."""
        self._closing.set()
        self._wake()
        if self._thread.ident is not None:
            self._thread.join(5)
        self._wake_receiver.close()
        self._wake_sender.close()

    def _wake(self, *_: object) -> None:
        """End the thread's wait for the network."""
        try:
            self._wake_sender.send(b"0")
        except OSError:
            pass

    def _run(self) -> None:
        while not self._closing.is_set():
            self.trouble = self._attempt()
            self.client = None
            if self.up.is_set():
                self.up.clear()
                self._backoff.after_connection(int((monotonic() - self._up_since) * 1000), self.is_contested())
            self._attempted.set()
            self._closing.wait(self._backoff.draw() / 1000)

    def _attempt(self) -> str:
        """Make a client and use it until its connection ends. Returns the reason, whatever went wrong."""
        try:
            self.client = client = self._new_client()
            client.on_connect = self._on_connect
            client.on_subscribe = self._on_subscribe
            client.on_publish = self._on_publish
            self._sent = self._acknowledged = 0
            if client.is_tls:  # one thread reads and writes such a socket: the others' publications wait for it
                client.on_socket_register_write = self._wake
            return self._connection(client)
        except OSError as error:  # the network's
            return str(error) or type(error).__name__
        except Exception as error:  # a callback's, for example: log it, and make another attempt
            LOG.exception("a connection to %s:%d has ended by an exception", self.host, self.port)
            return str(error) or type(error).__name__

    def _connection(self, client: Client) -> str:
        """One connection from its first packet to its end. Returns why it ended."""
        self._end_reason = ""
        end = monotonic() + self._deadline
        client.connect_timeout = self._deadline
        try:
            client.connect(self.host, self.port, self._keep_alive, properties=client.properties)
            self._poll = select.poll()
            self._poll.register(self._wake_receiver, select.POLLIN)
            self._poll.register(client.socket(), select.POLLIN)  # type: ignore[arg-type]
            while not self._closing.is_set():
                wait_ms = self._work()
                if not client.socket():  # lost in drain()
                    return mqtt.error_string(mqtt.MQTT_ERR_CONN_LOST)
                code = self._turn(client, wait_ms)
                if self._end_reason:
                    return self._end_reason
                if code or not client.socket():
                    return mqtt.error_string(code)
                if self.up.is_set():
                    if self._gather and self._packets_read < READS:
                        self._closing.wait(self._gather)
                elif monotonic() > end:
                    return "no answer in %g s" % self._deadline
            if self.up.is_set():
                self._say_farewell(client)
            return "closed"
        finally:
            sock = client.socket()
            if sock:
                sock.close()

    def _say_farewell(self, client: Client) -> None:
        if self._farewell:
            self._farewell(self)
        client.disconnect()
        end = monotonic() + 1
        while client.want_write() and monotonic() < end and not self._turn(client, 20):
            pass

    def _turn(self, client: Client, wait_ms: float) -> mqtt.MQTTErrorCode:
        """Wait for the network at most wait_ms, then read and write what is possible. Returns paho's error code."""
        sock: Any = client.socket()
        poll = self._poll
        pending = client.is_tls and sock.pending()
        if client.want_write():
            poll.modify(sock, select.POLLIN | select.POLLOUT)
        for number, event in poll.poll(0 if pending else wait_ms):
            if number == self._wake_receiver.fileno():
                self._wake_receiver.recv(4096)
            elif event & ~select.POLLOUT:
                pending = True
        poll.modify(sock, select.POLLIN)
        code = mqtt.MQTT_ERR_SUCCESS
        self._packets_read = 0
        try:
            while pending and self._packets_read < READS:
                code = client.loop_read()
                self._packets_read += 1
                pending = not code and client.socket() and (client.is_tls and sock.pending() or poll.poll(0))
        finally:
            self.oversize += client.oversize
            client.oversize = 0
        if not code and client.want_write():
            code = client.loop_write()
        return code or client.loop_misc()

    def _on_connect(self, client: mqtt.Client, _data: object, _flags: object, reason: Any, _properties: object) -> None:
        if reason.is_failure:
            self._end_reason = "the broker refuses the connection: %s" % reason
        else:
            if self._former_topics:
                client.unsubscribe(self._former_topics)
            client.subscribe(self._subscriptions())

    def _subscriptions(self) -> list[tuple[str, int]]:
        """The topics with their QoS."""
        return [(topic, 1) for topic in self._topics]

    def _on_subscribe(self, _client: object, _data: object, _mid: object, reasons: Sequence[Any], _properties: object) -> None:
        if any(reason.is_failure for reason in reasons):
            self._end_reason = "the broker refuses the subscription"
            return
        self.connections += 1
        self._up_since = monotonic()
        self.up.set()
        if self._on_up:
            self._on_up(self)
        self._attempted.set()

    def _on_publish(self, _client: object, _data: object, mid: int, *_: object) -> None:
        self._acknowledged += 1
