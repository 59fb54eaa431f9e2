"""Which class is the event: words have no order, so somebody names it; of 0 and 1 it is 1. No combination is silent."""

import io
import sys

import numpy as np
import pytest

from h2t2_tools.common import event
from h2t2_tools.common.errors import UserError
from h2t2_tools.model.pair.labelled_samples import load_samples

LABELS = {
    "0 and 1": ([0, 1], "1"),
    "text 0 and 1": (["0", "1"], "1"),
    "booleans": ([False, True], "1"),
    "words for booleans": (["False", "True"], "1"),
    "words": (["broken", "ok"], None),
    "1 and 2": ([1, 2], None),
    "three words": (["ant", "bee", "cat"], None),
    "three numbers": ([0, 1, 2], None),
}


def samples(folder, labels, **options):
    """Thirty samples whose only number is the place of their label."""
    places = np.arange(30) % len(labels)
    np.savez(folder / "t.npz", x=places[:, None].astype(np.float32), y=np.array(labels)[places])
    return load_samples(folder / "t.npz", **options)


@pytest.mark.parametrize("kind", LABELS)
def test_without_a_name_only_a_plain_event_is_taken(kind, tmp_path):
    labels, plain = LABELS[kind]
    if plain is None:
        with pytest.raises(UserError, match=r"it has the classes .*; add --event CLASS, the one whose miss costs most"):
            samples(tmp_path, labels)
    else:
        taken = samples(tmp_path, labels)
        assert (taken.y == taken.x[:, 0]).all() and (taken.names or [None, "1"])[1] == plain


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("kind", LABELS)
def test_every_class_may_be_the_event(kind, number, tmp_path):
    labels, _ = LABELS[kind]
    if number >= len(labels):
        return
    named = labels[number] if isinstance(labels[number], str) or kind in ("1 and 2", "booleans") else number
    taken = samples(tmp_path, labels, event=str(named))
    assert (taken.y == (taken.x[:, 0] == number)).all()
    assert taken.names is None or taken.names[1] == str(named)


def test_a_terminal_asks_for_the_event(tmp_path, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    answer, screen = Terminal("broken\n"), Terminal()
    monkeypatch.setattr(sys, "stdin", answer)
    monkeypatch.setattr(sys, "stderr", screen)
    assert samples(tmp_path, ["broken", "ok"]).names == ["ok", "broken"]
    assert "has the classes broken, ok. Which is the event, whose miss costs most?" in screen.getvalue()


def test_the_event_in_words():
    assert event.in_words("broken", 0.7, 1.0) == "Event: broken. A missed broken costs 1, a false alarm 0.7."
    assert event.in_words("the event", 0.7, 1.0) == "Event: class 1. A missed class 1 costs 1, a false alarm 0.7."
    assert event.in_words("the digit 8, among 1, 3, 5, 8 and 9", 0.7, 1.0) == (
        "Event: the digit 8, among 1, 3, 5, 8 and 9. A missed event costs 1, a false alarm 0.7."
    )
    assert event.event_names(["a", "b", "c"], 2) == ["not c", "c"] and event.event_names(["a", "b"], 0) == ["b", "a"]
    assert event.plain_event([1.0, 0.0], 2) == 0 and event.plain_event([True, False], 2) == 0
