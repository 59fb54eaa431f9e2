"""A board of ports/world.py in this process: its modules, and the runtime's clock on its time."""

import errno
import select
import socket
import sys
import types

from ports.world import NAMES, World

import h2t2.clock
import h2t2.node.asking
import h2t2.node.node
import h2t2.node.sensing
import h2t2.node.service
from h2t2.link import mqtt
from h2t2.node import board, sleep


def play(monkeypatch, chip, **options):
    """The World, with everything of the runtime that looks at a clock or a machine looking at it."""
    world = World(chip, **options)
    network = Proxy(world, "network")
    monkeypatch.setitem(sys.modules, "machine", Proxy(world, "machine"))
    monkeypatch.setitem(sys.modules, "network", network)
    from h2t2.link import ntp, wifi

    monkeypatch.setattr(wifi, "network", network)

    def unix_now():
        return world.unix_ms() // 1000 if world.unix_ms() // 1000 > h2t2.clock.SET else 0

    for module in (h2t2.clock, h2t2.node.asking, h2t2.node.node, h2t2.node.sensing, h2t2.node.service, mqtt, wifi, ntp, sleep):
        monkeypatch.setattr(module, "ticks_ms", world.ticks)
    for module in (h2t2.clock, board, h2t2.node.service, ntp, sleep):
        monkeypatch.setattr(module, "unix_now", unix_now)
    monkeypatch.setattr(sleep, "wall_ms", world.unix_ms)
    for module in (mqtt, wifi):
        monkeypatch.setattr(module, "sleep", lambda seconds: world.pass_ms(int(seconds * 1000)), raising=False)
    monkeypatch.setattr(board, "pause", world.pass_ms)
    monkeypatch.setattr(board, "PLATFORM", NAMES[chip][0])
    monkeypatch.setattr(board, "MACHINE", NAMES[chip][1])
    return world


class Proxy(types.ModuleType):
    """A module of a world: after a reset its new one."""

    def __init__(self, world, name):
        super().__init__(name)
        self._world = world

    def __getattr__(self, name):
        return getattr(getattr(self._world, self.__name__), name)


class Broker:
    """A broker that greets, takes the subscription and answers pings; in place of MqttLink's sockets.

    world: anything with `now` and pass_ms(ms). passes: says whether packets pass. refuses: the host answers, and refuses.
    `connections` and `pings`: when. `options`: of the socket. mute: it answers no
    ping. Set `link` to the MqttLink.
    """

    def __init__(self, world):
        self.world, self.connections, self.pings, self.options = world, [], [], []
        self.waiting, self.mute, self.refuses = b"", False, False
        self.passes = getattr(world, "passes", lambda: True)

    def install(self, monkeypatch):
        names = {name: getattr(select, name) for name in ("POLLIN", "POLLOUT", "POLLHUP", "POLLERR")}
        monkeypatch.setattr(mqtt, "select", types.SimpleNamespace(poll=lambda: self, **names))
        fake = types.SimpleNamespace(socket=lambda *_: self, getaddrinfo=lambda *_: [(0, 0, 0, "", ("b", 1))])
        fake.SOCK_STREAM = socket.SOCK_STREAM
        monkeypatch.setattr(mqtt, "socket", fake)
        return self

    def connect(self, _):
        self.connections.append(self.world.now)
        self.waiting = b""
        raise OSError(errno.EINPROGRESS)

    def setsockopt(self, *option):
        self.options.append(option)

    def setblocking(self, _):
        pass

    def register(self, *_):
        pass

    def close(self):
        pass

    def write(self, data):
        kind = data[0] & 0xF0
        if kind == 0x10:
            self.waiting += bytes([0x20, 2, 0, 0])
        elif kind == 0x80:
            topics = bytes(data).count(b"h2t2")
            self.waiting += bytes([0x90, 2 + topics, data[2], data[3]]) + bytes(topics)
        elif kind == 0xC0:
            self.pings.append(self.world.now)
            self.waiting += b"" if self.mute else bytes([0xD0, 0])
        return len(data)

    def readinto(self, space):
        n = min(len(space), len(self.waiting))
        if not n:
            raise OSError(errno.EAGAIN)
        space[:n], self.waiting = self.waiting[:n], self.waiting[n:]
        return n

    def poll(self, wait_ms):
        if not self.passes():
            self.world.pass_ms(max(1, wait_ms))
            return [(self, select.POLLERR)] if self.refuses and self.link.state == mqtt.CONNECTING else []
        if self.waiting or self.link.state == mqtt.CONNECTING:
            return [(self, select.POLLIN | select.POLLOUT)]
        self.world.pass_ms(max(1, wait_ms))
        return []
