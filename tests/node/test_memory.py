"""What a streaming model has seen survives a restart, where that was asked for."""

import numpy as np
import pytest
from bundles import need_oracle
from command_line import h2t2
from random_models import Maker
from scripted import running

from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2.node import store
from h2t2.node.model_state import ModelState
from h2t2_tools.common import places
from h2t2_tools.model import bundle

pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")


def streaming(folder, seed=1):
    """The bundle of a model that remembers three rows, and one number a channel."""
    make = Maker(seed, (2, 3, 2))
    x = make.added_up(make.remembered(make.first, rows=3))
    (folder / "made.tflite").write_bytes(make.bytes(make.scored(make.dense(make.mean(x), 2), "SOFTMAX")))
    return bundle.from_tflite(folder / "made.tflite")


SAMPLES = [[(n * k * 37) % 256 - 128 for k in range(12)] for n in range(1, 9)]


def state(model):
    """The variables of a model."""
    return bytes(model.arena[: model.state_size])


def test_reset_begins_anew_and_a_state_put_back_goes_on(tmp_path):
    model = Int8Model(streaming(tmp_path))
    alone = [model.run(x) for x in SAMPLES]
    assert model.state_size > 0
    assert alone != [model.run(x) for x in SAMPLES]  # what it saw before counts
    model.reset()
    assert [model.run(x) for x in SAMPLES[:4]] == alone[:4]
    saved = store.file_store(str(tmp_path / "state"))
    list(ModelState(model, saved).saving())
    model.reset()
    ModelState(model, saved)
    assert [model.run(x) for x in SAMPLES[4:]] == alone[4:]
    key = ModelState(model, saved).key
    log, before = [], state(model)
    list(saved.writing(7, (key, bytes(3))))
    ModelState(model, saved, log.append)
    assert "3 bytes, this bundle has" in log[0] and state(model) == before


def test_a_pi_sees_the_same_stream(tmp_path):
    need_oracle()
    board = Int8Model(streaming(tmp_path))
    pi = TFLiteModel(str(tmp_path / "made.tflite"))
    for _ in range(2):
        assert [board.run(x) for x in SAMPLES] == [pi.run(np.array(x, np.int8)) for x in SAMPLES]
        board.reset()
        pi.reset()


def test_it_is_saved_with_the_policy_and_taken_up_by_the_same_model_only(tmp_path):
    content = streaming(tmp_path)
    alone = [Int8Model(content).run(SAMPLES[0])]
    model = Int8Model(content)
    service, _, _, _ = running(bins=(5,) * 20, store=store.file_store(str(tmp_path / "state")))
    service.keeper.model_state = ModelState(model, store.file_store(str(tmp_path / "state.ldl")))
    for x in SAMPLES[:4]:
        model.run(x)
    service.run()
    again = Int8Model(content)
    ModelState(again, store.file_store(str(tmp_path / "state.ldl")))
    assert state(again) == state(model) and [again.run(x) for x in SAMPLES[4:]] == [model.run(x) for x in SAMPLES[4:]]
    other = Int8Model(streaming(tmp_path, 2))
    first = state(other)
    ModelState(other, store.file_store(str(tmp_path / "state.ldl")))
    assert state(other) == first
    (tmp_path / "state.ldl.0").write_bytes(b"damaged")
    (tmp_path / "state.ldl.1").write_bytes(b"damaged")
    fresh = Int8Model(content)
    ModelState(fresh, store.file_store(str(tmp_path / "state.ldl")))
    assert [fresh.run(SAMPLES[0])] == alone


@pytest.mark.slow
def test_who_asks_for_it_in_vain_is_told(tmp_path):
    options = ("--broker", "mqtt://localhost:1", "--snapshot", tmp_path / "s", "--snapshot-ldl")
    for ldl in ("ldl.h2m", "ldl.tflite"):
        run = h2t2("node", *options, "--ldl", places.models() / "breast_cancer" / ldl)
        assert run.returncode == 2 and "keeps no state, or is no bundle" in run.stderr, run.stderr
