"""A whole node on every board: real broker, real remote model; decisions equal to the host's, sample by sample."""

import pytest
from rig import host_node


def needs(*features):
    def mark(test):
        test.needs = features
        return test

    return mark


@needs("node")
def test_decisions_equal_the_hosts(board, material, rdl, figures):
    """200 real samples: bins, decisions and where they came from, as this host decides them from the same seed."""
    small = board.kind == "microbit"
    made = material(200, **({"feedback": "explored", "exploration": "epsilon"} if small else {}))
    outcome = board.run(made)
    figures.update(samples=len(outcome.decisions), offloads=sum(row["source"] == "remote" for row in outcome.decisions))
    expected = host_node(made.board_config, 200).lines() if board.kind == "pi" else made.replay()
    assert outcome.lines() == expected
    assert 10 < figures["offloads"] < 190
    if small:
        assert outcome.summary["requests"] == outcome.summary["replies"] == figures["offloads"]
    else:
        assert outcome.summary["taught"] == outcome.summary["replies"] == figures["offloads"]
        assert outcome.summary["strangers"] == outcome.summary["fallbacks"] == outcome.summary.get("errors", 0) == 0


@needs("node", "heap")
def test_a_model_unlike_the_configuration_is_refused(board, material):
    """Another remote model's number: every offload falls back. Another input size: said before anything runs."""
    from h2t2_tools.boards import flash
    from h2t2_tools.boards.kinds import KINDS
    from h2t2_tools.errors import UserError

    wrong = material(10, remote_shape=[29])
    kind = KINDS[board.kind]
    with pytest.raises(UserError, match="not whole records"):
        flash.payload(kind, wrong.model, wrong.board_config, wrong.records, False)
