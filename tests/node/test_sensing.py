"""The sensor and its schedule: every sample by its deadline, whatever sensor, window and errors do."""

import pytest
from scripted import Link, running, set_clock
from support import Ldl, paper

from h2t2.clock import ticks_diff
from h2t2.node.keeper import Keeper
from h2t2.node.node import Node
from h2t2.node.sensing import PARTIAL, Sensing
from h2t2.node.service import Service
from h2t2.node.update import period_s


@pytest.fixture
def now(monkeypatch):
    """The clock, milliseconds; it wraps in the middle."""
    at = [2**30 - 5000]
    set_clock(monkeypatch, lambda: at[0] % 2**30)
    return at


class World(Link):
    """A link in the clock's time: a reply after `trip` ms, or never; waiting takes as long as it is told to."""

    def __init__(self, now, trip):
        super().__init__()
        self.answers, self.now, self.trip, self.due = False, now, trip, []

    def send(self, payload):
        super().send(payload)
        if self.trip:
            self.due.append((self.now[0] + self.trip, payload))
        return True

    def receive(self, wait_ms):
        end = self.now[0] + wait_ms
        if self.due and self.due[0][0] <= end:
            self.now[0] = max(self.now[0], self.due[0][0])
            self.answer_to(self.due.pop(0)[1])
            return self.waiting.pop(0)
        self.now[0] = end
        return None


def world(now, sensor, trip=0, every_us=0, samples=50, window=8, deadline_ms=1000, **options):
    """(service, latencies, said): a node with that sensor, until so many samples are decided or a minute is over."""
    handed, late, said = {}, [], []

    def act(tag, *_):
        late.append(ticks_diff(now[0] % 2**30, handed[tag]))

    node = Node(
        paper(epsilon=32768, window=256), Ldl(), World(now, trip), act,
        model_id=1, boot=9, window=window, deadline_ms=deadline_ms, log=said.append, **options,
    )  # fmt: skip
    end = now[0] + 60000

    def taking():
        if now[0] > end:
            raise StopIteration
        given = sensor(node.samples)
        if given is not None:
            handed[given[2]] = sensing.since if every_us else now[0] % 2**30
        return given

    sensing = Sensing(taking, every_us=every_us, complain=node.complain)
    service = Service(node, sensing, Keeper(node.policy, None), shape=(1,), telemetry_s=0, log=said.append)
    service.run(samples)
    assert node.samples == len(late) and not node.in_flight
    return service, late, said


@pytest.mark.parametrize("every_us, window", [(2000000, 8), (10000, 1), (333333, 4), (7000, 8)])
def test_every_decision_is_out_by_the_deadline_though_nobody_answers(now, every_us, window):
    """One sample in 2 s with a window of 8, 100 a second with a window of 1: at most the deadline, from when it was due."""
    service, late, _ = world(now, lambda n: (5, b"x", n), every_us=every_us, window=window)
    assert max(late) <= 1000 and (service.node.crowded > 0) == (window * every_us < 875000)


def test_a_schedule_is_kept_to_the_microsecond_and_what_was_missed_is_counted(now):
    taken = []

    def sensor(n):
        taken.append(now[0])
        if n == 20:
            now[0] += 1000  # a sensor that stalls once
        return 5, b"x", n

    start = now[0]
    service, late, _ = world(now, sensor, trip=3, every_us=33333, samples=60)
    slots = [(at - start) * 1000 / 33333 for at in taken]
    assert all(abs(slot - round(slot)) < 0.05 for slot in slots[:21] + slots[23:])
    assert service.sensing.skipped == 28
    assert round(slots[-1]) == 59 + service.sensing.skipped


def test_a_sensor_that_raises_is_counted_and_backs_off_and_keeps_nothing_waiting(now):
    """It raises for ten seconds while a sample is in flight: that one is decided by its deadline, and the log has few lines."""
    begun = []

    def sensor(n):
        if n:
            begun.append(now[0])
            raise OSError("no such device")
        return 5, b"x", n

    service, late, said = world(now, sensor, window=1)
    assert late[0] <= 1000 and 8 <= service.sensing.errors <= 12 and len(said) <= 6
    waits = [b - a for a, b in zip(begun, begun[1:])]
    assert waits[0] <= 200 and waits[-1] >= 25000 and waits == sorted(waits)


def test_a_sensor_that_comes_back_is_asked_as_before(now):
    def sensor(n):
        if 5 <= n < 6 and service_errors[0] < 3:
            service_errors[0] += 1
            raise OSError("for now")
        return 5, b"x", n

    service_errors = [0]
    service, late, _ = world(now, sensor, trip=5, every_us=10000, samples=100)
    assert service.sensing.errors == 3 and service.sensing.retry_ms == 0 and max(late) <= 1000


@pytest.mark.parametrize("takes", [300, 700])
def test_a_slow_sensor_does_not_make_the_others_late(now, takes):
    def sensor(n):
        now[0] += takes
        return 5, b"x", n

    service, late, _ = world(now, sensor, window=8, samples=20)
    assert max(late) <= 1000


def test_nothing_now_is_not_the_end(now):
    given = iter([None] * 20 + [(5, b"x", 0)])

    def sensor(n):
        return next(given)  # its own StopIteration ends the service

    service, late, _ = world(now, sensor, trip=2)
    assert len(late) == 1 and service.sensing.ended


def test_a_recorded_stream_waits_for_room_and_a_schedule_does_not():
    service, node, decisions, _ = running(bins=(5,) * 100)
    service.run()
    assert node.crowded == 0 and node.replies == 100
    with pytest.raises(ValueError, match="every_us"):
        Sensing(None, every_us=-1)


def test_a_clock_that_jumps_while_the_sensor_measures_is_not_taken_for_a_slow_sensor(now):
    """Ten minutes forward within a call: from the next call on it is asked as before, offloads in flight or not."""
    jump = [0]

    def sensor():
        now[0] += jump[0]
        jump[0] = 0
        return 5, b"x", 0

    sensing = Sensing(sensor)
    for jump[0] in (600000, -600000):
        assert sensing.take() is not None
        assert sensing.call_ms <= 100 and sensing.take(150) is not None


def test_a_clock_that_jumps_makes_no_burst_of_samples(now):
    sensing = Sensing(lambda: (5, b"x", 0), every_us=10000)
    for jump in (600000, -600000):
        now[0] += jump
        taken = sum(sensing.take() is not None for _ in range(50))
        assert taken <= 2
        for _ in range(100):
            now[0] += 10
            taken += sensing.take() is not None
        assert 98 <= taken <= 102


def test_a_schedule_of_hours_is_kept_without_drift(now):
    """The clock wraps meanwhile. Nothing is due before its time, and a sample that comes late shifts no later one."""
    hours = 2 * 3600 * 1000
    sensing = Sensing(lambda: (5, b"x", 0), every_ms=hours)
    assert sensing.take() and (period_s(sensing), sensing.patient) == (7200, False)
    assert period_s(Sensing(lambda: None, every_us=999500000)) == 999
    for late in (0, 7, 30000, 0):
        at = sensing.due
        wait = ticks_diff(at, now[0] % 2**30)
        assert 0 < wait <= hours and sensing.wait_ms() == wait and sensing.take() is None
        now[0] += wait + late
        assert sensing.take() and sensing.since == at and sensing.skipped == 0
        assert ticks_diff(sensing.due, at) == hours


@pytest.mark.parametrize("every_ms", [-1, 86400001])
def test_a_schedule_beyond_a_day_is_refused(every_ms):
    with pytest.raises(ValueError, match="every_ms"):
        Sensing(None, every_ms=every_ms)


def test_the_waits_of_a_sensor_that_fails_double_from_a_tenth_of_a_second_to_half_a_minute(now):
    def sensor():
        raise OSError("no such device")

    sensing, waits = Sensing(sensor, complain=lambda *_: None), []
    for _ in range(11):
        assert sensing.take() is None
        waits.append(sensing.wait_ms())
        now[0] += waits[-1]
    assert waits == [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]


def test_measurements_without_a_schedule_let_the_loop_go_on_after_5_ms(now):
    """As docs/signals.md says: a measurement takes a millisecond here, and a window needs more than five."""
    measured = []

    def sensor():
        now[0] += 1
        measured.append(now[0])
        return PARTIAL

    sensing = Sensing(sensor)
    for turn in (1, 2, 3):
        assert sensing.take() is PARTIAL and len(measured) == 5 * turn
