"""Two remote models in a chain."""

import re
import urllib.request

import numpy as np
import pytest
from support import until, worker, worker_replies

from h2t2.link import wire
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet.broker import free_port
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.worker import Worker

FILE = """
import numpy as np
asked = []
def first(x): return (x.reshape(len(x), -1)[:, 0].astype(float) + 128) / 255
def second(x):
    asked.append(len(x))
    return np.ones(len(x))
def broken(x): raise OSError("gone")
def some(x): return [1.0 if n else float("nan") for n in range(len(x))]
def rows(x): return np.array([[.4, .35, .25] if one.ravel()[0] > 0 else [.9, .05, .05] for one in x])
def sure(x): return np.array([[0, 0, 1.0]] * len(x))
"""


def chained(folder, first, second, beta=0.2, log=lambda _: None, event=None, costs=None):
    (folder / "mine.py").write_text(FILE)
    source = models.Source(f"{folder}/mine.py:{second}", event)
    return models.load(models.Source(f"{folder}/mine.py:{first}", event, second=source, second_beta=beta, costs=costs), log)


def test_the_second_is_asked_where_the_first_is_unsure(tmp_path):
    """Theorem 1 with costs .7 and 1 and .21 for asking: from .21 to 1 - .21 / .7 = .7."""
    chain = chained(tmp_path, "first", "second", 0.21, event=1)
    levels = np.arange(-128, 128).astype(np.int8)[:, None]
    scores = chain.scores(levels)
    own = (levels[:, 0].astype(float) + 128) / 255
    unsure = (own >= 0.21) & (own < 0.7)
    assert (scores == np.where(unsure, 1.0, own)).all() and chain.asked_count == unsure.sum() and not chain.failed_count


def test_more_classes_than_two(tmp_path):
    """Theorem 3: the best guess is expected to cost .6 where the first is unsure, .1 where it is not."""
    costs = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    chain = chained(tmp_path, "rows", "sure", 0.3, costs=costs)
    assert chain.scores(np.array([[1], [-1]], np.int8)).argmax(1).tolist() == [2, 0]
    assert chain.asked_count == 1


def test_the_first_ones_answer_stands_where_the_second_has_none(tmp_path):
    said = []
    batch = np.array([[0], [1], [127]], np.int8)
    own = (batch[:, 0].astype(float) + 128) / 255
    chain = chained(tmp_path, "first", "broken", log=said.append, event=1)
    assert np.allclose(chain.scores(batch), own) and chain.failed_count == 2 and "gone" in said[0]
    chain = chained(tmp_path, "first", "some", event=1)
    assert np.allclose(chain.scores(batch), [own[0], 1.0, own[2]]) and chain.failed_count == 1


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5])
def test_a_pairs_worker(tmp_path, beta):
    """What a pair's own remote model is unsure of, by what it says of the samples alone."""
    (tmp_path / "mine.py").write_text(FILE)
    pair = pairs.load("digits")
    requests = [wire.encode_request(2, 1, n, (8, 8, 1), pair.test_payload(n)) for n in range(200)]
    own = worker_replies(Worker(models.load(models.of_pair(pair)), 2), requests)
    alone = [wire.decode_reply(reply)[4] / 32768 for reply in own]
    unsure = sum(beta < min(p, 0.7 * (1 - p)) for p in alone)
    chain = models.load(models.of_pair(pair, second=models.of_pair(pair, f"{tmp_path}/mine.py:second"), second_beta=beta))
    worker = Worker(chain, 2)
    before = chain.asked_count
    replies = worker_replies(worker, requests)
    assert all(wire.decode_reply(reply)[0] == wire.OK for reply in replies)
    assert chain.asked_count - before == unsure and (beta == 0.5) == (unsure == 0)


@pytest.mark.slow
def test_prometheus_is_told_how_often_the_second_was_asked(broker, tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    port = free_port()
    options = ["--then", f"{tmp_path}/mine.py:second", "--then-beta", "0", "--metrics", str(port)]
    with worker(broker.url, "digits", *options):
        assert (
            main(["node", "--pair", "digits", "--broker", broker.url, "--samples", "40", "--beta", "0", "--out", "/dev/null"])
            == 0
        )

        def metric(what):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
                found = re.search(rf'h2t2_rdl_second{{what="{what}"}} ([0-9.]+)', reply.read().decode())
            return float(found[1]) if found else 0

        assert until(lambda: metric("asked") > 5, 30) and metric("failed") == 0
