"""The workers that a link over a broker knows, and other devices of its name."""

from h2t2.link import presence
from h2t2.link.presence import BrokerLink


def topic(model, worker):
    return presence.worker_topic(model, worker)


def test_workers_come_and_go():
    link = BrokerLink(7, capacity=3)
    assert link.take_presence(topic(5, "a"), b"{}", True) and link.take_presence(topic(5, "b"), b"{}", False)
    assert link.take_presence(topic(6, "c"), b"{}", True)
    assert (link.count_workers(5), link.count_workers(6), link.count_workers(7)) == (2, 1, 0) and link.announcements == 1
    assert link.take_presence(topic(5, "d"), b"{}", False) and link.count_workers(5) == 2  # no room
    assert link.take_presence(topic(5, "a"), b"{}", False) and link.announcements == 3  # it is known
    assert link.take_presence(topic(5, "a"), b"", True) and link.take_presence(topic(5, "nobody"), b"", True)
    assert link.count_workers(5) == 1 and link.announcements == 3
    link.forget_workers()
    assert link.count_workers(5) == link.count_workers(6) == 0


def test_a_topic_of_something_else_is_none_of_its_business():
    link = BrokerLink(7)
    assert link.take_presence("h2t2/cam/state", b"{}", True) is False and link.announced == []


def test_a_namesake_is_another_start_that_says_so_while_ours_runs():
    link = BrokerLink(7)
    for status in (presence.status("online", 7), b"online", b"offline x"):  # ours, and those of releases without a number
        link.take_status(status, True)
    link.take_status(presence.status("online", 8), False)
    assert link.signs == 0
    link.take_status(presence.status("online", 8), True)
    link.take_status(presence.status("offline", 0), True)
    assert link.signs == 2


def test_a_namesake_that_shows_itself_no_more_is_gone(monkeypatch):
    now = [2**30 - 1000]  # the ticks wrap meanwhile
    monkeypatch.setattr(presence, "ticks_ms", lambda: now[0] % 2**30)
    link, other = BrokerLink(7), presence.status("online", 8)
    for _ in range(presence.CERTAIN):
        assert not link.has_namesake()
        link.take_status(other, True)
    now[0] += presence.GONE_MS
    assert link.has_namesake()
    now[0] += 1
    assert not link.has_namesake()
    link.take_status(other, True)
    assert link.has_namesake()
