"""Labels as people have them become class numbers, and their names go with the pair."""

import json

import numpy as np
import pytest
from PIL import Image

from h2t2_tools.cli.main import main
from h2t2_tools.common import labels, matrices, pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.config import NodeConfig, described
from h2t2_tools.model.convert import calibration
from h2t2_tools.model.pair.samples import load_samples
from h2t2_tools.replay import traces

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    "y, numbers, names",
    [
        ([0, 2, 1], [0, 2, 1], None),
        ([1, 2, 1], [0, 1, 0], ["1", "2"]),
        ([-1.0, 1.0, 1.0], [0, 1, 1], ["-1", "1"]),
        (["2", "1", "2"], [1, 0, 1], ["1", "2"]),
        (["dog", "cat", "dog"], [1, 0, 1], ["cat", "dog"]),
        (["a/b", "<i>"], [1, 0], ["_i_", "a_b"]),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [1, 2, 0], None),
        ([[1], [0], [1]], [1, 0, 1], None),
        ([True, False], [1, 0], None),
    ],
)
def test_labels_become_class_numbers(y, numbers, names):
    given, told = labels.class_numbers("y", np.array(y))
    assert given.tolist() == numbers and given.dtype == np.int64
    assert told == names


@pytest.mark.parametrize(
    "y, why", [([0.5, 1.0], "whole numbers; it holds"), ([np.nan, 1], "whole numbers"), ([[1, 1], [0, 1]], "not one-hot")]
)
def test_what_is_no_label_is_refused(y, why):
    with pytest.raises(UserError, match=why):
        labels.class_numbers("y", np.array(y))


def written(path, text):
    path.write_text(text)
    return path


def test_numbers_of_known_classes_stay_as_they_are():
    """A test set of three classes without one sample of class 0; 1 to 3 of three classes are numbered from 0."""
    assert labels.class_numbers("y", np.array([1, 2, 1]), classes=3)[0].tolist() == [1, 2, 1]
    assert labels.class_numbers("y", np.array([1, 2, 3]), classes=3)[0].tolist() == [0, 1, 2]


def test_a_csv_with_a_header_is_read(tmp_path):
    rows = "".join(f"{n},{['ham', 'spam'][n % 2]},{n / 2}\n" for n in range(12))
    samples = calibration.load(written(tmp_path / "a.csv", "length,kind,links\n" + rows), None, None)
    assert samples.x[3].tolist() == [3, 1.5] and samples.y.tolist() == [0, 1] * 6 and samples.names == ["ham", "spam"]
    numbers = "".join(f"{n},{n % 2 + 1}\n" for n in range(12))
    samples = calibration.load(written(tmp_path / "b.csv", "length,Label\n" + numbers), None, None)
    assert samples.x.shape == (12, 1) and samples.y.tolist() == [0, 1] * 6 and samples.names == ["1", "2"]
    assert calibration.load(written(tmp_path / "c.csv", "a,b\n" + numbers), None, None).y is None


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_may_have_semicolons_or_tabs(delimiter, tmp_path):
    lines = ["length, in cm;links;label", *(f"{n};{n / 2};{n % 2}" for n in range(12))]
    text = "\n".join(lines).replace("length, in cm", '"length, in cm"').replace(";", delimiter)
    samples = calibration.load(written(tmp_path / "a.csv", text), None, None)
    assert samples.x[3].tolist() == [3, 1.5] and samples.y.tolist() == [0, 1] * 6
    assert samples.columns == ["length, in cm", "links"]


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_matrices_and_traces_may_have_semicolons(delimiter, tmp_path):
    costs = written(tmp_path / "costs.csv", "0,.5\n1,0\n".replace(",", delimiter))
    assert matrices.read_costs(costs, 2) == [[0, 0.5], [1, 0]]
    trace = traces.load(written(tmp_path / "t.csv", "score,label\n.25,1\n.5,0\n".replace(",", delimiter)))
    assert trace.score.tolist() == [0.25, 0.5] and trace.label.tolist() == [1, 0]


@pytest.mark.parametrize(
    "text, why",
    [
        ("label\nham\nspam\n", "it has the column 'label' alone"),
        ("1,2\n3,4\n", "the first line names the columns"),
        ("a,label\n1,0\n2\n", "line 3: 1 fields, the header has 2"),
        ("a,label\n1,x\nz,y\n", "line 3: a is 'z', want a number"),
        ("\na,label\n\n1,x\nz,y\n", "line 5: a is 'z'"),
        ("", "the first line names the columns"),
    ],
)
def test_a_csv_that_cannot_be_read_names_the_line(text, why, tmp_path):
    with pytest.raises(UserError, match=why):
        calibration.load(written(tmp_path / "a.csv", text), None, None)


def pictures(folder, size=(9, 6)):
    """A folder of dark cats and bright dogs."""
    for name, brightness in (("cat", 40), ("dog", 200)):
        (folder / name).mkdir(parents=True)
        for n in range(12):
            Image.new("L", size, brightness + n).save(folder / name / f"{n}.png")
    return folder


def test_a_folder_of_pictures_for_each_class_is_read(tmp_path):
    samples = load_samples(pictures(tmp_path / "pictures"), event="cat")
    assert samples.x.shape == (24, 6, 9, 1) and samples.y.tolist() == [1] * 12 + [0] * 12
    assert samples.names == ["dog", "cat"] and samples.x[0, 0, 0, 0] == np.float32(40 / 255)
    spec = pairs.PictureSpec(width=18, height=12, channels=3, wide=3, high=2)
    scaled = load_samples(tmp_path / "pictures", event="dog", source=spec)
    assert scaled.raw.shape == (24, 12, 18, 3) and scaled.x.shape == (24, 2, 3, 3) and scaled.y.tolist() == [0] * 12 + [1] * 12
    Image.new("L", (5, 5)).save(tmp_path / "pictures/cat/odd.png")
    with pytest.raises(UserError, match="images of unlike sizes; --picture WxHxC"):
        load_samples(tmp_path / "pictures")


def test_an_event_is_called_by_its_name(tmp_path):
    np.savez(tmp_path / "t.npz", x=RNG.normal(size=(30, 2)), y=np.array(["ant", "bee", "cat"] * 10))
    assert load_samples(tmp_path / "t.npz", event="bee").names == ["not bee", "bee"]
    assert load_samples(tmp_path / "t.npz", classes=3).names == ["ant", "bee", "cat"]
    with pytest.raises(UserError, match="--event fly: there is no such class; want one of ant, bee, cat"):
        load_samples(tmp_path / "t.npz", event="fly")
    np.savez(tmp_path / "o.npz", x=RNG.normal(size=(30, 2)), y=np.array(["ant", "bee"] * 15, object))
    with pytest.raises(UserError, match="save labels as text"):
        load_samples(tmp_path / "o.npz")


def test_the_names_go_with_the_pair_to_decisions(tmp_path, capsys):
    joblib = pytest.importorskip("joblib")
    pytest.importorskip("ai_edge_quantizer")
    from sklearn.linear_model import LogisticRegression

    x = RNG.normal(size=(120, 3))
    y = np.array(["ant", "bee", "cat"])[x.argmax(1)]
    joblib.dump(LogisticRegression().fit(x, y), tmp_path / "m.joblib")
    lines = ["a,b,c,label", *(f"{','.join(map(str, row))},{label}" for row, label in zip(x.tolist(), y))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    model = str(tmp_path / "m.joblib")
    command = ["pair", model, model, "--test", str(tmp_path / "t.csv"), "--classes", "3", "--out", str(tmp_path / "p")]
    assert main([*command, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["class_names"] == ["ant", "bee", "cat"]
    assert "- Classes: 0 ant, 1 bee, 2 cat" in (tmp_path / "p/README.md").read_text()
    info = pairs.load(str(tmp_path / "p")).info
    config = NodeConfig(**{key: value for key, value in described(info).items() if value != ""})
    assert config.content()["class_names"] == ["ant", "bee", "cat"]
    with pytest.raises(UserError, match="class_names: 2 names for 3 classes"):
        config.model_copy(update={"class_names": ["a", "b"]}).content()
