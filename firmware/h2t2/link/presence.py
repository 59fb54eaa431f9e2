# Who else is on the broker, from what it retains. Workers: each says on wire.presence() that it serves a model, and one that
# goes leaves that empty. Namesakes: another device of the same name has left its own start in wire.status().
from . import wire

CERTAIN = 2  # signs of a namesake before it is believed: a broker that was restarted may tell of long ago, once


class Presence:
    """What a link knows of the workers. clear() at each new connection: the broker tells it all again.

    most: workers remembered. `announced`: workers that came, or said something new, while the link listened.
    """

    def __init__(self, most=32):
        self.most = most
        self.there = []  # topics
        self.announced = 0

    def clear(self) -> None:
        self.there = []

    def take(self, topic: str, payload, retained) -> bool:
        """A message: False where its topic is none of presence."""
        if not topic.startswith(wire.PRESENCE):
            return False
        if not payload:
            if topic in self.there:
                self.there.remove(topic)
            return True
        if topic not in self.there and len(self.there) < self.most:
            self.there.append(topic)
        if not retained:
            self.announced += 1
        return True

    def count(self, model) -> int:
        """Workers that serve a model."""
        start = wire.presence(model, "")
        return len([topic for topic in self.there if topic.startswith(start)])


class Namesakes:
    """Whether another device bears this name: the broker then ends our connection for its, and its for ours.

    boot: the number of our start.
    """

    def __init__(self, boot):
        self.boot = boot
        self.signs = 0

    def take(self, status, earlier) -> None:
        """A status of our name, at or after our connection to the broker; earlier: whether this start had another before."""
        if earlier and wire.boot_of(status) not in (self.boot, -1):
            self.signs += 1

    def found(self) -> bool:
        return self.signs >= CERTAIN
