"""A worker whose answers come from a person, at a terminal or at the dashboard."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...common.errors import UserError
from ...common.pairs import Pair
from ..endpoint import Endpoint
from .desk import Desk
from .models import of_pair
from .server import Server
from .worker_options import WorkerOptions

HUMAN = "human"  # in place of a model's file


def classes(pair: Pair, names: list[str] | None) -> list[str]:
    """The names of a pair's classes: its own, else numbers, or of two the event. UserError for another count."""
    if names and len(names) != pair.info.classes:
        raise UserError(f"--classes: {len(names)} names; the pair has {pair.info.classes} classes")
    if names:
        return names
    if pair.info.class_names:
        return pair.info.class_names
    if pair.info.classes > 2:
        return [str(k) for k in range(pair.info.classes)]
    return [f"not {pair.info.event}", pair.info.event]


@contextmanager
def by_a_person(
    pair: Pair,
    model_id: int,
    endpoint: Endpoint,
    options: WorkerOptions,
    *,
    hold_s: float = 0.0,
    metrics: tuple[str, int] | None = None,
) -> Iterator[tuple[Server, Desk]]:
    """A worker in a thread of its own, and its desk, which holds answers for hold_s. Its end sends the answers so far."""
    desk = Desk(pair.info.classes, hold_s)
    server = Server(replace(of_pair(pair), path=HUMAN), model_id, endpoint, options, metrics=metrics, desk=desk)
    thread = threading.Thread(target=server.serve_until_stopped, name="desk", daemon=True)
    thread.start()
    try:
        yield server, desk
    finally:
        server.stop()
        thread.join()
