"""Requests that wait for the model: devices in turn, and none that could not be answered in time anyway."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

# of the time a request can wait, that it may: how long it was on its way nobody knows, and the way back takes some
MARGIN = 0.5


@dataclass(frozen=True)
class Item:
    """reply: the topic to answer on. until: when an answer is of no more use; came: when it came (seconds of the caller's
    clock)."""

    device: str
    reply: str
    payload: bytes
    until: float
    came: float = 0.0


class Inbox:
    """At most `most` requests, of any number of devices; each device's own wait in the order they came."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self._queues: dict[str, deque[Item]] = {}
        self._turn: deque[str] = deque()  # devices with a queue, the next one first

    def __len__(self) -> int:
        return self.size

    def put(self, item: Item, now: float, each: float) -> Item | None:
        """Take a request in; the one that is refused for it: itself where it would wait too long, or one of the longest queue.

        each: seconds that the model takes a request.
        """
        own = self._queues.get(item.device)
        depth = len(own) if own else 0
        most = MARGIN * (item.until - now - each)  # seconds it may wait
        if now + each > item.until or self.size * each > most and self._ahead(own, depth) * each > most:
            return item
        refused = None
        if self.size >= self.most:
            longest = max(self._queues.values(), key=len)
            if len(longest) <= depth + 1:
                return item
            refused = longest.pop()
            self.size -= 1
            if not longest:
                self._forget(refused.device)
        if own is None:
            own = self._queues[item.device] = deque()
            self._turn.append(item.device)
        own.append(item)
        self.size += 1
        return refused

    def _ahead(self, own: deque[Item] | None, depth: int) -> int:
        """How many are answered before one of a device with `depth` of its own."""
        return sum(min(len(queue), depth + 1) for queue in self._queues.values() if queue is not own) + depth

    def take(self, most: int, now: float, each: float) -> tuple[list[Item], list[Item]]:
        """(what to answer next, one a device in turn; what has become too late meanwhile). Not more than half of what the most
        urgent of them has left is spent on a batch."""
        batch: list[Item] = []
        late: list[Item] = []
        while self._turn and len(batch) < most:
            device = self._turn[0]
            queue = self._queues[device]
            item = queue[0]
            least = min([item.until, *(other.until for other in batch)])
            too_late = now + each > item.until
            if batch and not too_late and (len(batch) + 1) * each > (least - now) / 2:
                break
            queue.popleft()
            self.size -= 1
            (late if too_late else batch).append(item)
            self._turn.rotate(-1)
            if not queue:
                self._forget(device)
        return batch, late

    def _forget(self, device: str) -> None:
        del self._queues[device]
        self._turn.remove(device)
