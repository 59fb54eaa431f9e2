# `espnow` and `network` by the rules of MicroPython's ESP32 port: docs/library/espnow.rst and ports/esp32/modespnow.c at
# 1c3c2011, of August 2026. Version 1 of ESP-NOW: 250 bytes a datagram. install() lets `import` find them.
import sys
from time import sleep

MAX_DATA_LEN, MAX_TOTAL_PEER_NUM = 250, 20
OVERHEAD = 13  # bytes of the receive buffer that each datagram takes beside its own: header and address


class Faults:
    """Draws what happens to a datagram. lost, overtaken: how many of 100."""

    def __init__(self, lost=0, overtaken=0, seed=1):
        self.lost, self.overtaken, self.state = lost, overtaken, seed

    def draw(self, percent):
        self.state = (self.state * 1103515245 + 12345) % (1 << 31)
        return self.state // 65536 % 100 < percent


class Here:
    """The air of one process: radios in it hear each other."""

    def __init__(self):
        self.queues = {}

    def join(self, address):
        self.queues.setdefault(address, [])

    def carry(self, sender, receiver, datagram):
        """Whether a radio is there to acknowledge."""
        if receiver not in self.queues:
            return False
        self.queues[receiver].append((sender, datagram))
        return True

    def arrived(self, address):
        queue, self.queues[address] = self.queues[address], []
        return queue


class Local:
    """The air of several processes of this machine: the last two bytes of an address are a port of UDP."""

    def join(self, address):
        import socket

        self.lookup = lambda address: socket.getaddrinfo("127.0.0.1", address[4] << 8 | address[5])[0][-1]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(self.lookup(address))
        self.socket.setblocking(False)

    def carry(self, sender, receiver, datagram):
        self.socket.sendto(sender + datagram, self.lookup(receiver))
        return True

    def arrived(self, address):
        datagrams = []
        try:
            while True:
                data = self.socket.recv(512)
                datagrams.append((data[:6], data[6:]))
        except OSError:
            return datagrams


class Network:
    """Module `network`."""

    IF_STA = 0
    on = False

    class WLAN:
        IF_STA = 0

        def __init__(self, interface):
            pass

        def active(self, on):
            Network.on = on

        def config(self, channel):
            if not Network.on:
                raise OSError("Wifi Not Started")


class Radio:
    """The singleton ESPNow of a board with this address."""

    def __init__(self, address, air, faults):
        self.address, self.air, self.faults = address, air, faults
        self.on, self.size, self.peers, self.waiting, self.held = False, 528, [], [], None
        self.message = bytearray(MAX_DATA_LEN)  # irecv() uses it again
        self.dropped = 0

    def config(self, rxbuf):
        self.size = rxbuf

    def active(self, on):
        if on and not self.on:
            self.room, self.peers, self.waiting = self.size, [], []
            self.air.join(self.address)
        self.on = on

    def _check(self, wrong=False, name=""):
        if not self.on:
            raise OSError(-12389, "ESP_ERR_ESPNOW_NOT_INIT")
        if wrong:
            raise OSError(-1, name)

    def add_peer(self, peer):
        self._check(peer in self.peers, "ESP_ERR_ESPNOW_EXIST")
        self._check(len(self.peers) == MAX_TOTAL_PEER_NUM, "ESP_ERR_ESPNOW_FULL")
        self.peers.append(bytes(peer))

    def del_peer(self, peer):
        self._check(peer not in self.peers, "ESP_ERR_ESPNOW_NOT_FOUND")
        self.peers.remove(peer)

    def send(self, peer, message, sync=True):
        self._check(peer not in self.peers, "ESP_ERR_ESPNOW_NOT_FOUND")
        self._check(not 0 < len(message) <= MAX_DATA_LEN, "ESP_ERR_ESPNOW_ARG")
        self._check(not Network.on, "ESP_ERR_ESPNOW_IF")
        if self.faults.draw(self.faults.lost):
            return not sync
        if not self.held and self.faults.draw(self.faults.overtaken):
            self.held = peer, bytes(message)
            return True
        acknowledged = self.air.carry(self.address, peer, bytes(message))
        self._release()
        return acknowledged or not sync

    def _release(self):
        if self.held:
            self.air.carry(self.address, *self.held)
            self.held = None

    def irecv(self, timeout_ms):
        self._check()
        self._release()
        while True:
            self._take()
            if self.waiting:
                sender, message = self.waiting.pop(0)
                self.room += OVERHEAD + len(message)
                self.message[:] = message
                return [sender, self.message]
            if timeout_ms <= 0:
                return (None, None)
            sleep(0.001)
            timeout_ms -= 1

    def _take(self):
        """Put what has come into the buffer. What does not fit is lost, although its sender believes that it arrived."""
        for sender, message in self.air.arrived(self.address):
            size = OVERHEAD + len(message)
            if size >= self.room:
                self.dropped += 1
            else:
                self.room -= size
                self.waiting.append((sender, message))


class Espnow:
    """Module `espnow`."""


def install(address, air, faults=None):
    """Let `import espnow, network` find the radio of a board with this address. Return the radio."""
    radio = Radio(address, air, faults or Faults())
    Espnow.ESPNow = lambda: radio
    sys.modules["espnow"], sys.modules["network"] = Espnow, Network
    return radio
