"""Requests that wait for the model. It takes devices in turn and refuses requests that would be late."""

from collections import deque
from dataclasses import dataclass

from h2t2.cpython.worker_wire import Request

# the part of its remaining time that a request may wait: the way here is unknown, and the way back takes time
MARGIN = 0.5


@dataclass(frozen=True)
class Item:
    """A request that waits.

    Args:
        reply: the topic of its answer.
        until: when an answer is too late, by the caller's clock.
        came: when it came, by the caller's clock.
    """

    device: str
    reply: str
    request: Request
    until: float
    came: float = 0.0


class Inbox:
    """At most `limit` requests, of any number of devices; those of one device stay in order."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._queues: dict[str, deque[Item]] = {}
        self._turn: deque[str] = deque()  # devices with a queue, the next one first

    def __len__(self) -> int:
        return self.size

    def add(self, item: Item, clock_s: float, seconds_each: float) -> Item | None:
        """Add a request.

        Args:
            clock_s: the caller's clock.
            seconds_each: seconds that the model takes for a request.

        Returns:
            A request that is refused: the new one, if it would wait too long, or one of the longest queue; None.
        """
        own = self._queues.get(item.device)
        depth = len(own) if own else 0
        wait_s = MARGIN * (item.until - clock_s - seconds_each)
        waits_too_long = self.size * seconds_each > wait_s and self._ahead(own, depth) * seconds_each > wait_s
        if clock_s + seconds_each > item.until or waits_too_long:
            return item
        refused = None
        if self.size >= self.limit:
            longest = max(self._queues.values(), key=len)
            if len(longest) <= depth + 1:
                return item
            refused = longest.pop()
            self.size -= 1
            if not longest:
                self._drop_queue(refused.device)
        if own is None:
            own = self._queues[item.device] = deque()
            self._turn.append(item.device)
        own.append(item)
        self.size += 1
        return refused

    def _ahead(self, own: deque[Item] | None, depth: int) -> int:
        """The number of requests that are answered before the next one of a device with `depth` requests."""
        return sum(min(len(queue), depth + 1) for queue in self._queues.values() if queue is not own) + depth

    def take(self, limit: int, clock_s: float, seconds_each: float) -> tuple[list[Item], list[Item]]:
        """(the next batch, a request a device in turn; requests that have become too late). A batch takes at most half of the
        time that its most urgent request has left."""
        batch: list[Item] = []
        late: list[Item] = []
        while self._turn and len(batch) < limit:
            device = self._turn[0]
            queue = self._queues[device]
            item = queue[0]
            earliest = min([item.until, *(queued.until for queued in batch)])
            too_late = clock_s + seconds_each > item.until
            if batch and not too_late and (len(batch) + 1) * seconds_each > (earliest - clock_s) / 2:
                break
            queue.popleft()
            self.size -= 1
            (late if too_late else batch).append(item)
            self._turn.rotate(-1)
            if not queue:
                self._drop_queue(device)
        return batch, late

    def _drop_queue(self, device: str) -> None:
        del self._queues[device]
        self._turn.remove(device)
