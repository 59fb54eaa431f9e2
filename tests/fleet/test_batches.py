"""One bad sample of a batch: it has its own reply, and so has each of the others."""

import base64
import json

import numpy as np
import pytest
from http_server import serving
from support import worker_replies

from h2t2.link import wire
from h2t2_tools.fleet.failures import Later, Misconfigured, Partial, Refused
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.models import tensors
from h2t2_tools.fleet.rdl.worker import Worker

BAD = b"BAD!"
SAMPLES = [b"ok00", b"ok01", BAD, b"ok03", b"ok04", b"ok05"]
SERVED = ["/v1/models/big:predict", "/v2/models/big"]
METADATA = {"extensions": [], "inputs": [{"name": "clip", "datatype": "BYTES", "shape": [-1, 1]}]}
PROGRAM = """
asked = []
def scores(batch):
    asked.append(len(batch))
    if b"BAD!" in batch:
        raise ValueError("cannot decode")
    return [0.75] * len(batch)
def first(batch): return [0.5] * len(batch)
def rows(batch): return [[0.125, 0.75, 0.125]] * len(batch)
def two_of_one(batch):
    if b"BAD!" in batch and len(batch) > 1:
        raise ValueError("cannot decode")
    return [0.75] * (2 if b"BAD!" in batch else len(batch))
def outside(batch): return [7.0 if sample == b"BAD!" else 0.75 for sample in batch]
def away(batch): raise OSError("gone")
def broken(batch): raise ValueError("cannot decode")
"""


class Function:
    """A model that calls a function."""

    raw = True
    shape = None

    def __init__(self, scores):
        self.scores = scores


def asked(worker, samples=SAMPLES):
    """The status of the reply to each sample of one batch."""
    requests = [wire.encode_request(3, 1, n, (4,), sample, dtype=wire.RAW) for n, sample in enumerate(samples)]
    return [wire.decode_reply(reply)[0] for reply in worker_replies(worker, requests)]


def program(folder, name, log=print):
    (folder / "mine.py").write_text(PROGRAM)
    return Worker(models.load(models.Source(f"{folder}/mine.py:{name}")), 3, log)


def chained(folder, first, second, costs=None):
    """A chain of two functions; the second is always asked where the first is not certain."""
    (folder / "mine.py").write_text(PROGRAM)
    event = None if costs else 1
    source = models.Source(f"{folder}/mine.py:{second}", event)
    return models.load(models.Source(f"{folder}/mine.py:{first}", event, second=source, second_beta=0.0, costs=costs))


def server(status, batch=-1):
    """A server of both protocols that answers `status` to a request with the bad sample. batch: that its model takes."""
    metadata = {**METADATA, "inputs": [{**METADATA["inputs"][0], "shape": [batch, 1]}]}

    def answer(_path, body, _headers):
        if not body:
            return json.dumps(metadata).encode()
        if base64.b64encode(BAD) in body:
            return status, b"cannot decode"
        content = json.loads(body)
        if "instances" in content:
            return json.dumps({"predictions": [[0.75]] * len(content["instances"])}).encode()
        count = len(content["inputs"][0]["data"])
        return json.dumps({"outputs": [{"name": "p", "datatype": "FP32", "shape": [count], "data": [0.75] * count}]}).encode()

    return serving(answer)


def of_third(status):
    return [status if sample == BAD else wire.OK for sample in SAMPLES]


@pytest.mark.parametrize("name", ["scores", "outside", "two_of_one"])
def test_a_function_that_fails_on_one_sample_answers_the_others(tmp_path, name):
    assert asked(program(tmp_path, name)) == of_third(wire.FAILED)


@pytest.mark.parametrize("path", SERVED)
@pytest.mark.parametrize(("status", "reply"), [(400, wire.FAILED), (413, wire.FAILED), (500, wire.LATER)])
def test_a_server_that_fails_on_one_sample_answers_the_others(path, status, reply):
    with server(status) as url:
        assert asked(Worker(models.load(models.Source(url + path)), 3)) == of_third(reply)
        assert sum(bool(body) for _, _, body in url.requests) == 1 + len(SAMPLES)


@pytest.mark.parametrize(("status", "reply"), [(400, wire.FAILED), (500, wire.LATER)])
def test_a_server_that_takes_one_sample_at_a_time_is_asked_about_each_once(status, reply):
    with server(status, batch=1) as url:
        assert asked(Worker(models.load(models.Source(url + SERVED[1])), 3)) == of_third(reply)
        assert sum(bool(body) for _, _, body in url.requests) == len(SAMPLES)


@pytest.mark.parametrize("path", SERVED)
@pytest.mark.parametrize("status", [401, 503])
def test_no_sample_is_asked_about_alone_where_the_server_or_the_set_up_fails(path, status):
    with server(status) as url:
        assert asked(Worker(models.load(models.Source(url + path)), 3)) == [wire.LATER] * len(SAMPLES)
        assert sum(bool(body) for _, _, body in url.requests) == 1


def test_a_model_that_fails_on_all_samples_is_asked_about_each_once(tmp_path):
    lines = []
    worker = program(tmp_path, "broken", lines.append)
    assert asked(worker) == [wire.FAILED] * len(SAMPLES) and worker.failures == 1
    assert "failed on 6 samples: ValueError: cannot decode" in lines[0]


def test_the_second_model_of_a_chain_answers_the_samples_on_which_it_does_not_fail(tmp_path):
    chain = chained(tmp_path, "first", "scores")
    assert chain.scores(SAMPLES).tolist() == [0.5 if sample == BAD else 0.75 for sample in SAMPLES]
    assert (chain.asked_count, chain.failed_count) == (6, 1)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("second", "costs"), [("first", None), ("rows", [[0, 1, 1], [1, 0, 1], [1, 1, 0]])])
def test_the_second_model_of_a_chain_answers_where_the_first_fails_on_each_sample(tmp_path, count, second, costs):
    """Also of one sample: what is asked about with it must not matter."""
    chain = chained(tmp_path, "broken", second, costs)
    expected = [0.5] if costs is None else [[0.125, 0.75, 0.125]]
    assert chain.scores([BAD] * count).tolist() == expected * count


@pytest.mark.parametrize("count", [1, 3])
def test_a_sample_on_which_both_models_of_a_chain_fail_has_the_failure_of_the_first(tmp_path, count):
    _, failures = tensors.answered(chained(tmp_path, "broken", "away"), [b"ok00"] * count + [BAD])
    assert [type(error) for error in failures.values()] == [ValueError] * (count + 1)
    with pytest.raises(ValueError, match="cannot decode"):
        chained(tmp_path, "broken", "away").scores([BAD])


def test_the_second_model_of_a_chain_is_not_asked_where_the_server_of_the_first_is_away(tmp_path):
    chain = chained(tmp_path, "away", "first")
    with pytest.raises(OSError, match="gone"):
        chain.scores(SAMPLES)
    assert not chain.asked_count


def failing(fails, log):
    """A model that raises fails(sample) where that is an exception, and notes the batches that it is asked about."""

    def scores(batch):
        log.append(list(batch))
        for sample in batch:
            if error := fails(sample):
                raise error
        return np.full(len(batch), 0.75)

    return Function(scores)


def test_the_questions_about_single_samples_end_with_the_first_failure_of_the_server():
    log, gone = [], Later("gone")
    errors = {b"b": Refused("no"), b"c": gone}
    scores, failures = tensors.answered(failing(errors.get, log), [b"a", b"b", b"c", b"d"])
    assert scores[0] == 0.75 and np.isnan(scores[1:]).all()
    assert failures == {1: errors[b"b"], 2: gone, 3: gone} and log[1:] == [[b"a"], [b"b"], [b"c"]]


def test_the_questions_about_single_samples_are_limited(monkeypatch):
    """The other samples have no failure of their own: they may be asked about later."""
    log, samples = [], [bytes([n]) for n in range(tensors.ALONE + 2)]
    _, failures = tensors.answered(failing(lambda _: Refused("no"), log), samples)
    assert len(log) == 1 + tensors.ALONE
    assert [type(error) for error in failures.values()] == [Refused] * tensors.ALONE + [Later] * 2
    log.clear()
    monkeypatch.setattr(tensors, "ALONE_S", -1.0)
    with pytest.raises(Later, match="not been asked about alone") as raised:
        tensors.answered(failing(lambda _: Refused("no"), log), samples)
    assert len(log) == 1 and raised.value.untaken


def test_a_sample_alone_raises_its_failure():
    error = Refused("no")
    with pytest.raises(Refused) as raised:
        tensors.answered(failing(lambda _: error, []), [b"a"])
    assert raised.value is error


def test_each_question_about_a_single_sample_has_a_deadline_of_its_own():
    """The parent kills a worker whose question takes too long, not one that asks many."""
    noted = []

    class Note:
        def read_suspects(self):
            pass

        def suspicion(self, _data):
            return 0

        def begin_batch(self, payloads, expected):
            noted.append(list(payloads))

        def end_batch(self):
            noted.append("end")

    worker = Worker(failing({BAD: Refused("no")}.get, []), 3, note=Note())
    asked(worker, SAMPLES[1:4])
    assert noted == [SAMPLES[1:4], [SAMPLES[1]], [BAD], [SAMPLES[3]], "end"]


def test_samples_of_which_none_has_an_answer_fail_together_only_for_one_cause():
    """A cause other than the sample: nobody is asked again about each."""
    one_row = np.array([[0.25, 0.75]])
    same = [Later("gone"), Later("gone, too")]
    with pytest.raises(Later, match="gone$"):
        tensors.gathered(same)
    for failures in ([Refused("no"), Later("gone")], [Later("gone"), Misconfigured("no")], [Refused("no")] * 2):
        with pytest.raises(Partial) as raised:
            tensors.gathered(failures)
        assert list(raised.value.errors.values()) == failures and np.isnan(raised.value.scores).all()
    with pytest.raises(Partial) as raised:
        tensors.gathered([one_row, same[0]])
    assert np.array_equal(raised.value.scores, [[0.25, 0.75], [np.nan] * 2], equal_nan=True)
    assert tensors.gathered([one_row, one_row]).tolist() == [[0.25, 0.75]] * 2
