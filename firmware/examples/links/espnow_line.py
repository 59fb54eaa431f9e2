# ESP-NOW as the line of a SerialLink: a radio without an access point, for an ESP32 whose gateway board runs espnow_gateway.py.
import espnow
import network

from h2t2.link.datagrams import Datagrams

CHANNEL = 1  # of both boards


def radio(channel=CHANNEL, buffer=528):
    """The radio, switched on. buffer: bytes for datagrams that nobody has taken yet; what does not fit is lost."""
    station = network.WLAN(network.WLAN.IF_STA)
    station.active(True)
    station.config(channel=channel)
    on = espnow.ESPNow()
    on.config(rxbuf=buffer)
    on.active(True)
    return on


class EspNow(Datagrams):
    """The way to a gateway board."""

    def __init__(self, gateway, channel=CHANNEL):
        """gateway: address of the gateway board, 6 bytes, as network.WLAN().config("mac") says there."""
        Datagrams.__init__(self)
        self.gateway = gateway
        self.radio = radio(channel)
        self.radio.add_peer(gateway)

    def send(self, datagram):
        if not self.radio.send(self.gateway, datagram):
            raise OSError("the gateway board did not acknowledge")

    def receive(self, wait_ms):
        sender, datagram = self.radio.irecv(wait_ms)
        if not sender:
            return None
        return bytes(datagram) if sender == self.gateway else b""  # a copy: the radio uses its buffer again

    def close(self):
        self.radio.active(False)
