# Who else is on the broker, from retained messages. Workers: each says on wire.presence() that it serves a model; one that
# leaves clears that message. Namesakes: another device of the same name has left its own start in wire.status().
from . import wire
from .link import Link

CERTAIN = 2  # signs of a namesake that prove one: a broker that was restarted may repeat an old status once


class Presence:
    """The workers that a link knows.

    Attributes:
        announcements: of workers that came or changed while the link listened.
    """

    def __init__(self, capacity: int = 32) -> None:
        """capacity: how many workers it remembers."""
        self.capacity = capacity
        self.topics: "list[str]" = []
        self.announcements = 0

    def clear(self) -> None:
        """Forget every worker: at a new connection the broker sends all retained messages again."""
        self.topics = []

    def take(self, topic: str, payload: bytes, retained: int | bool) -> bool:
        """Process a message. False where its topic is not one of presence."""
        if not topic.startswith(wire.PRESENCE):
            return False
        if not payload:
            if topic in self.topics:
                self.topics.remove(topic)
            return True
        if topic not in self.topics and len(self.topics) < self.capacity:
            self.topics.append(topic)
        if not retained:
            self.announcements += 1
        return True

    def count(self, model: int | str | None) -> int:
        """How many workers serve a model."""
        start = wire.presence(model, "")
        return len([topic for topic in self.topics if topic.startswith(start)])


class Namesakes:
    """Whether another device has this name: the broker then ends our connection for its, and its for ours."""

    def __init__(self, boot: int) -> None:
        """boot: the number of our start."""
        self.boot = boot
        self.signs = 0

    def take(self, status: bytes, reconnected: bool) -> None:
        """Process a status of our name. reconnected: whether this start has had an earlier connection."""
        if reconnected and wire.boot_of(status) not in (self.boot, -1):
            self.signs += 1

    def exist(self) -> bool:
        return self.signs >= CERTAIN


class BrokerLink(Link):
    """A link over a broker, which names the workers and shows whether another device has the same name.

    Attributes:
        presence: the workers that announced themselves.
        namesakes: signs of another device with the same name.
    """

    def __init__(self, boot: int, workers: int = 32) -> None:
        """boot: the number of this start. workers: how many of them `presence` remembers at most."""
        Link.__init__(self, boot)
        self.presence = Presence(workers)
        self.namesakes = Namesakes(boot)

    @property
    def announcements(self) -> int:  # type: ignore[override]
        return self.presence.announcements

    def has_namesake(self) -> bool:
        return self.namesakes.exist()
