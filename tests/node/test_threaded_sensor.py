"""A slow sensor in a thread of its own: samples are as old as their measurement took, and waiting costs nothing."""

import threading
import time

import pytest
from scripted import running

from h2t2.cpython.threaded_sensor import ThreadedSensor
from h2t2.node.sensing import PARTIAL, PENDING, Sensing


def next_result(sensor, seconds=5):
    """What a call returns once it is no longer pending."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        result = sensor()
        if result is not PENDING:
            return result
    raise AssertionError("pending for ever")


def test_it_measures_when_it_is_asked_and_not_ahead():
    begun = []

    def measure():
        begun.append(time.monotonic())
        return len(begun)

    sensor = ThreadedSensor(measure)
    for n in (1, 2, 3):
        time.sleep(0.02)
        asked = time.monotonic()
        assert next_result(sensor) == n and begun[-1] >= asked and len(begun) == n


def test_none_is_an_answer_and_takes_no_core():
    calls = []
    sensor = ThreadedSensor(lambda: calls.append(1))
    assert next_result(sensor) is None
    time.sleep(0.1)
    assert len(calls) == 1


def test_an_exception_is_raised_in_the_caller_and_the_next_call_asks_again():
    results = iter([OSError("no bus"), 7, StopIteration()])

    def measure():
        result = next(results)
        if isinstance(result, BaseException):
            raise result
        return result

    sensor = ThreadedSensor(measure)
    with pytest.raises(OSError, match="no bus"):
        next_result(sensor)
    assert next_result(sensor) == 7
    with pytest.raises(StopIteration):
        next_result(sensor)


@pytest.mark.parametrize("scheduled, results", [(False, [3]), (True, [PARTIAL, PARTIAL, 3])])
def test_measurements_of_one_sample_are_read_in_a_row_without_a_schedule(scheduled, results):
    measurements = iter([PARTIAL, PARTIAL, 3])
    sensor = ThreadedSensor(lambda: next(measurements), scheduled)
    assert [next_result(sensor) for _ in results] == results


@pytest.mark.parametrize("every_us", [0, 20000])
def test_a_sample_that_is_pending_keeps_its_slot(every_us):
    """The deadline of a sample counts from its slot, and no slot is lost to the time between asking and the answer."""
    ready, count = threading.Event(), [0]

    def measure():
        ready.wait(5)
        ready.clear()
        count[0] += 1
        if count[0] > 5:
            raise StopIteration
        return 5, b"x", count[0]

    sensing = Sensing(ThreadedSensor(measure, every_us > 0), every_us=every_us)
    service, node, decisions, _ = running(sensing=sensing)
    threading.Thread(target=lambda: [(time.sleep(0.01), ready.set()) for _ in range(40)], daemon=True).start()
    began = time.monotonic()
    service.run()
    assert [row[0] for row in decisions] == [1, 2, 3, 4, 5] and not service.errors
    assert not every_us or time.monotonic() - began >= 0.08  # five slots, one sample each


def test_a_late_measurement_counts_against_the_deadline_of_its_slot(monkeypatch):
    sensing = Sensing(ThreadedSensor(lambda: time.sleep(0.03) or 5, True), every_us=1000000)
    sample = None
    while sample is None:
        sample = sensing.take()
    from h2t2.clock import ticks_diff, ticks_ms

    assert sample == 5 and ticks_diff(ticks_ms(), sensing.since) >= 30
