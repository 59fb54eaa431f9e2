# The second board: it has a network, and relays between a board on its UART and the broker, in that board's name.
from h2t2.link.frames import ANSWER, COMMAND, REPLY, REQUEST, STATE, Decoder, send

LIMIT = 4096  # bytes of a frame: of a request, or of the other board's state
TURN_MS = 5


class Gateway:
    """Relays between a line and a link, such as MqttLink(BROKER, 1883, "porch", 1, boot_number())."""

    def __init__(self, line, link):
        self.line, self.link, self.decoder = line, link, Decoder(LIMIT)

    def turn(self):
        """Relay what has come, both ways. A request that cannot be sent is dropped: its sample is decided at its deadline."""
        for kind, payload in self.decoder.feed(self.line.read() or b""):
            if kind == REQUEST:
                self.link.send(payload)
            elif kind in (STATE, ANSWER):
                self.tell(kind, payload)
        for kind, payload in ((REPLY, self.link.receive(TURN_MS)), (COMMAND, self.link.command())):
            if payload:
                send(self.line, kind, payload)

    def tell(self, kind, payload):
        """Publish a text of the other board."""
        try:
            (self.link.report if kind == STATE else self.link.answer)(payload.decode())
        except ValueError:  # it is no UTF-8
            pass
