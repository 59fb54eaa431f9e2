# The gateway board: it passes datagrams on between ESP-NOW and its USB line, on which `h2t2 gateway` listens.
from espnow_line import radio

from h2t2.link.datagrams import ADDRESS, AT_ONCE, SIZE, VIA
from h2t2.link.frames import Decoder, send
from h2t2.link.stdio import Stdio

PEERS = 20  # boards that ESP-NOW sends to at a time
LIMIT = 300  # bytes of a frame from the host
BUFFER = 4096  # bytes of datagrams that wait while the line is busy
TURN_MS = 5


class Gateway:
    """Passes datagrams on. lost: datagrams that no board acknowledged."""

    def __init__(self, on, line):
        self.radio, self.line, self.decoder = on, line, Decoder(LIMIT)
        self.peers = []  # addresses that the radio knows, the oldest first
        self.lost = 0

    def turn(self):
        """Pass on what has come, both ways."""
        for n in range(AT_ONCE):
            sender, datagram = self.radio.irecv(0 if n else TURN_MS)
            if not sender:
                break
            send(self.line, VIA, sender, datagram)
        for kind, payload in self.decoder.feed(self.line.read() or b""):
            if kind == VIA and ADDRESS < len(payload) <= ADDRESS + SIZE:
                self.pass_on(payload[:ADDRESS], payload[ADDRESS:])

    def pass_on(self, board, datagram):
        """Send a datagram to a board. A lost one is not sent again: its sample is decided at its deadline."""
        try:
            if board not in self.peers:
                if len(self.peers) == PEERS:
                    self.radio.del_peer(self.peers.pop(0))
                self.radio.add_peer(board)
                self.peers.append(board)
            self.lost += not self.radio.send(board, datagram)
        except OSError:
            self.lost += 1


def main():
    line = Stdio()
    try:
        gateway = Gateway(radio(buffer=BUFFER), line)
        while True:
            gateway.turn()
    finally:
        line.close()


if __name__ == "__main__":
    main()
