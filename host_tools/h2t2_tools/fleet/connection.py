"""Connects to a broker and subscribes, for commands and for whatever follows a fleet."""

import logging
from collections.abc import Callable
from typing import Any

from h2t2.cpython.mqtt_session import Session, make_client

from .endpoint import Endpoint, unreachable

LARGEST = 1 << 16  # bytes of a packet
REFUSALS = "refuses", "certificate"  # in the words of a broker that is there and does not want us
LOG = logging.getLogger(__name__)


def connect(
    to: Endpoint,
    topics: list[str],
    take: Callable[[Any], None],
    *,
    begin: Callable[[], None] = lambda: None,
    patient: bool = False,
    **options: Any,
) -> Session:
    """A session that is connected and subscribed. It reconnects by itself.

    Args:
        topics: to subscribe to.
        take: is called with each message of paho, in the session's thread.
        begin: is called there before each attempt to connect.
        patient, options: as start()'s and Session's.

    Raises:
        Failure: the broker cannot be reached.
    """

    def client() -> Any:
        begin()
        new = make_client("", limit=LARGEST, **to.login)
        new.on_message = lambda _client, _data, message: take(message)
        return new

    session = Session(to.host, to.port, client, topics, **options)
    start(session, patient=patient)
    return session


def scores_client(device: str) -> str:
    """The client of a gate that takes scores. The broker keeps its subscriptions while it is away."""
    return f"h2t2-{device}-scores"


def forget(to: Endpoint, client_id: str) -> None:
    """Let the broker forget the session of a client, with its subscriptions and the messages that wait for it.

    Raises:
        Failure: the broker cannot be reached.
    """
    session = Session(to.host, to.port, lambda: make_client(client_id, clean_session=True, **to.login), ["h2t2/none"])
    start(session)
    session.close()


def start(session: Session, *, patient: bool = False) -> None:
    """Start a session and wait for its first connection.

    Args:
        patient: a broker that does not answer may come later; the session goes on trying.

    Raises:
        Failure: the broker cannot be reached, or refuses us. The session is closed then.
    """
    session.start()
    try:
        session.open()
    except OSError as error:
        if patient and not any(word in str(error) for word in REFUSALS):
            LOG.warning("%s; waiting for it", error)
            return
        session.close()
        raise unreachable(error) from None
