"""A node of a pair's folder: the entries are those of `h2t2 node` and `h2t2 flash`, and the program sees the model's score."""

import pytest
from support import mosquitto, worker

from h2t2.cpython import pair as pair_node
from h2t2.cpython.tflite import TFLiteModel
from h2t2.node.node import Node
from h2t2_tools.common import pairs
from h2t2_tools.fleet import app
from h2t2_tools.fleet.config import NodeConfig, described


@pytest.mark.parametrize("name", ["breast_cancer", "digits", "ten_digits"])
def test_a_folder_gives_the_entries_of_a_flashed_board(name):
    pair = pairs.load(name)
    config, _ = pair_node.configuration(pair.folder)
    entries = described(pair.info)
    flashed = NodeConfig(**{key: value for key, value in entries.items() if value != ""}).content()
    assert config["measured"] == app.measured(pair)
    assert [config[key] for key in ("event", "remote_shape", "model_id")] == [
        entries[key] for key in ("event", "remote_shape", "model_id")
    ]
    assert config["arguments"]["beta"] == flashed["arguments"]["beta"]
    assert config["arguments"].get("costs") == flashed["arguments"].get("costs")


@pytest.mark.parametrize("content", [None, "{}", "[]", "{", '{"remote": 1}'])
def test_a_folder_that_is_no_pair_is_refused(content, tmp_path):
    if content is not None:
        (tmp_path / "pair.json").write_text(content)
    with pytest.raises(ValueError, match="no pair: .*h2t2 pair makes one"):
        Node.from_pair(tmp_path, print, print)


@pytest.mark.slow
def test_a_program_of_three_lines_decides_with_the_models_score(tmp_path, localhost):
    pair = pairs.load("breast_cancer")
    model = TFLiteModel(str(pair.ldl), event=pair.info.event_output("ldl"))
    rows, decisions = iter(pair.x[:40].tolist()), []
    with mosquitto(tmp_path) as broker, worker(broker.url, "breast_cancer"):
        node = Node.from_pair(pair.folder, lambda: next(rows), decisions.append, port=broker.port, device="kitchen")
        node.node.link.open(5000)
        node.run()
        node.node.link.close()
    assert len(decisions) == 40 and "remote" in {decision.source for decision in decisions}
    for decision, x in zip(sorted(decisions, key=lambda each: pair.x[:40].tolist().index(each.tag)), pair.x):
        exact = model.score(model.run(model.quantise(pair.model_input(x, "ldl"))))
        assert abs(decision.score - exact) <= 1 / 128 + 0.03  # app.py's integers may round a number the other way
