# Who else is on the broker, and topics that only links over a broker need. Retained messages tell of workers: each says on
# worker_topic() that it serves a model; one that leaves clears that message. They tell of namesakes: another device of the same
# name has left its own start in status().
from struct import unpack_from

from ..clock import ticks_diff, ticks_ms
from .backoff import LONGEST_MS
from .link import Link

TOPICS = "h2t2-workers/2/"  # worker_topic() begins with it
CERTAIN = 2  # signs of a namesake that prove one: a broker that was restarted may repeat an old status once
GONE_MS = 4 * LONGEST_MS  # without a further sign; each of two devices of one name waits LONGEST_MS at most and connects again


def request_leaf(model: int | str) -> str:
    """The leaf of requests for a model, to which that model's workers subscribe; '+' for any model."""
    return "request/%s" % model


def model_of(payload: bytes) -> int:
    """The model a request is for, 0 for bytes too short to say."""
    return unpack_from("<H", payload, 2)[0] if len(payload) >= 4 else 0


def worker_topic(model: int | str | None, worker: str) -> str:
    """The topic of a worker's retained message that it serves a model. '+' for any model or worker."""
    return "%s%s/%s" % (TOPICS, model, worker)


def status(word: str, boot: int) -> bytes:
    """A device's retained status: "online" or "offline", and the number of its start."""
    return b"%s %d" % (word.encode(), boot)


def boot_of(status: bytes) -> int:
    """The number of the start in a status(), -1 where there is none."""
    words = bytes(status[:32]).split(b" ")
    return int(words[1]) if len(words) == 2 and words[1].isdigit() else -1


class BrokerLink(Link):
    """A link over a broker, which names the workers and shows whether another device has the same name.

    Attributes:
        announced: topics of the workers that have announced themselves.
        signs: of another device with the same name.
    """

    def __init__(self, boot: int, capacity: int = 32) -> None:
        """boot: the number of this start. capacity: how many workers it remembers."""
        Link.__init__(self, boot)
        self.capacity = capacity
        self.announced: "list[str]" = []
        self.signs = self.seen_at = 0

    def forget_workers(self) -> None:
        """Forget every worker: at a new connection the broker sends all retained messages again."""
        self.announced = []

    def take_presence(self, topic: str, payload: bytes, retained: int | bool) -> bool:
        """Process a message. False where its topic is not one of presence."""
        if not topic.startswith(TOPICS):
            return False
        if not payload:
            if topic in self.announced:
                self.announced.remove(topic)
            return True
        if topic not in self.announced and len(self.announced) < self.capacity:
            self.announced.append(topic)
        if not retained:
            self.announcements += 1
        return True

    def count_workers(self, model: int | str | None) -> int:
        """How many workers serve a model."""
        start = worker_topic(model, "")
        return len([topic for topic in self.announced if topic.startswith(start)])

    def take_status(self, status: bytes, reconnected: bool) -> None:
        """Process a status of our name. reconnected: whether this start has had an earlier connection."""
        if reconnected and boot_of(status) not in (self.boot, -1):
            self.signs += 1
            self.seen_at = ticks_ms()

    def has_namesake(self) -> bool:
        """Whether another device has this name: the broker ends our connection for its, and its for ours.

        One that has gone needs a single sign when it comes back.
        """
        if self.signs >= CERTAIN and ticks_diff(ticks_ms(), self.seen_at) > GONE_MS:
            self.signs = CERTAIN - 1
        return self.signs >= CERTAIN
