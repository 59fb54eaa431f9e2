"""The workers that a link knows."""

from h2t2.link import presence
from h2t2.link.presence import Namesakes, Presence


def topic(model, worker):
    return presence.worker_topic(model, worker)


def test_workers_come_and_go():
    presence = Presence(capacity=3)
    assert presence.take(topic(5, "a"), b"{}", True) and presence.take(topic(5, "b"), b"{}", False)
    assert presence.take(topic(6, "c"), b"{}", True)
    assert (presence.count(5), presence.count(6), presence.count(7)) == (2, 1, 0) and presence.announcements == 1
    assert presence.take(topic(5, "d"), b"{}", False) and presence.count(5) == 2  # no room
    assert presence.take(topic(5, "a"), b"{}", False) and presence.announcements == 3  # it is known
    assert presence.take(topic(5, "a"), b"", True) and presence.take(topic(5, "nobody"), b"", True)
    assert presence.count(5) == 1 and presence.announcements == 3
    presence.clear()
    assert presence.count(5) == presence.count(6) == 0


def test_a_topic_of_something_else_is_none_of_its_business():
    presence = Presence()
    assert presence.take("h2t2/cam/state", b"{}", True) is False and presence.topics == []


def test_a_namesake_is_another_start_that_says_so_while_ours_runs():
    namesakes = Namesakes(7)
    for status in (presence.status("online", 7), b"online", b"offline x"):  # ours, and those of releases without a number
        namesakes.take(status, True)
    namesakes.take(presence.status("online", 8), False)
    assert namesakes.signs == 0
    namesakes.take(presence.status("online", 8), True)
    namesakes.take(presence.status("offline", 0), True)
    assert namesakes.signs == 2


def test_a_namesake_that_shows_itself_no_more_is_gone(monkeypatch):
    now = [2**30 - 1000]  # the ticks wrap meanwhile
    monkeypatch.setattr(presence, "ticks_ms", lambda: now[0] % 2**30)
    namesakes, other = Namesakes(7), presence.status("online", 8)
    for _ in range(presence.CERTAIN):
        assert not namesakes.exist()
        namesakes.take(other, True)
    now[0] += presence.GONE_MS
    assert namesakes.exist()
    now[0] += 1
    assert not namesakes.exist()
    namesakes.take(other, True)
    assert namesakes.exist()
