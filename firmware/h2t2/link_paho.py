# MQTT link for a Pi or a desktop, over paho-mqtt. Callbacks only fill a queue; the node's thread does the rest.
import socket
from queue import Empty, SimpleQueue
from threading import Event

import paho.mqtt.client as mqtt

from . import wire


def make_client(client_id, protocol=mqtt.MQTTv311):
    """A paho client that sets TCP_NODELAY: without it every QoS 1 round trip waits 44 ms."""
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=protocol)
    client.on_socket_open = lambda _client, _data, sock: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.suppress_exceptions = False
    return client


class PahoLink:
    """Requests out, replies in, for one device. Reconnects and resubscribes by itself; status is retained, with a last will.

    Raises ConnectionError from the constructor when the broker is not reached within `deadline` seconds.
    """

    def __init__(self, host, port, device, deadline=10.0):
        self._request = wire.topic(device, "request")
        self._status = wire.topic(device, "status")
        self._state = wire.topic(device, "state")
        self._reply = wire.topic(device, "reply")
        self._replies = SimpleQueue()
        self._ready = Event()
        self._refused = ""
        self._client = client = make_client("h2t2-" + device)
        client.will_set(self._status, "offline", qos=1, retain=True)
        client.on_connect = self._on_connect
        client.on_subscribe = lambda *_: self._ready.set()
        client.on_message = self._on_message
        try:
            client.connect(host, port, keepalive=30)
        except OSError as error:
            raise ConnectionError("broker %s:%d is not reachable: %s" % (host, port, error)) from None
        client.loop_start()
        if not self._ready.wait(deadline) or self._refused:
            client.loop_stop()
            raise ConnectionError("broker %s:%d: %s" % (host, port, self._refused or "no answer in %g s" % deadline))

    def _on_connect(self, client, _data, _flags, reason, _properties):
        if reason.is_failure:
            self._refused = str(reason)
            self._ready.set()
            return
        client.subscribe(self._reply, qos=1)
        client.publish(self._status, "online", qos=1, retain=True)

    def _on_message(self, _client, _data, message):
        if len(message.payload) <= 64:  # a reply has 13 bytes; decode_reply() judges
            self._replies.put(message.payload)

    def send(self, payload):
        """Publish a request; False while the link is down (nothing is queued then)."""
        if not self._client.is_connected():
            return False
        return self._client.publish(self._request, payload, qos=1).rc == mqtt.MQTT_ERR_SUCCESS

    def receive(self, wait_ms):
        """The next reply payload, or None when none has come after wait_ms milliseconds (0: do not wait)."""
        try:
            return self._replies.get(wait_ms > 0, wait_ms / 1000)
        except Empty:
            return None

    def report(self, text):
        """Publish telemetry (JSON text), retained."""
        self._client.publish(self._state, text, qos=0, retain=True)

    def close(self):
        """Say "offline" and disconnect."""
        if self._client.is_connected():
            self._client.publish(self._status, "offline", qos=1, retain=True).wait_for_publish(2)
        self._client.disconnect()
        self._client.loop_stop()
