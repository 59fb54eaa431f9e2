"""Connects to a broker and subscribes, for commands and for whatever follows a fleet."""

from collections.abc import Callable
from typing import Any

from h2t2.cpython.mqtt_session import Session, make_client

from .endpoint import Endpoint, unreachable

LARGEST = 1 << 16  # bytes of a packet


def connect(to: Endpoint, topics: list[str], take: Callable[[Any], None], **options: Any) -> Session:
    """A session that is connected and subscribed. It reconnects by itself.

    Args:
        topics: to subscribe to.
        take: is called with each message of paho, in the session's thread.
        options: of Session.

    Raises:
        Failure: the broker cannot be reached.
    """

    def client() -> Any:
        new = make_client("", limit=LARGEST, **to.login)
        new.on_message = lambda _client, _data, message: take(message)
        return new

    session = Session(to.host, to.port, client, topics, **options)
    start(session)
    return session


def start(session: Session) -> None:
    """Start a session and wait for its first connection. Failure, after which it is closed, if the broker cannot be reached."""
    session.start()
    try:
        session.open()
    except OSError as error:
        session.close()
        raise unreachable(error) from None
