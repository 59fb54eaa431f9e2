# A link whose remote model answers class 1 after ANSWER_MS, for programs on boards without a network.
from struct import pack, unpack_from
from time import sleep

from h2t2.clock import ticks_diff, ticks_ms
from h2t2.link import wire
from h2t2.link.link import Link

ANSWER_MS = 30
COMMAND = b'{"command": "status", "id": "1"}'


class Remote(Link):
    """Answers class 1 after ANSWER_MS, and brings a command with every tenth answer."""

    def __init__(self):
        Link.__init__(self, 7)
        self.asked = []
        self.reports = self.answers = 0

    def send(self, payload):
        self.asked.append((ticks_ms(), payload))
        return True

    def receive(self, wait_ms):
        began = ticks_ms()
        while not self.asked or ticks_diff(ticks_ms(), self.asked[0][0]) < ANSWER_MS:
            if ticks_diff(ticks_ms(), began) >= wait_ms:
                return None
            sleep(0.001)
        _, payload = self.asked.pop(0)
        self.answers += 1
        if not self.answers % 10:
            self.commands.append(COMMAND)
        boot, sequence = unpack_from("<II", payload, 4)
        return pack("<BBIIhH", payload[0], wire.OK, boot, sequence, 1, 20000)

    def report(self, message):
        self.reports += 1
