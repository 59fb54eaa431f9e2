"""Labels as people have them become class numbers, and their names go with the pair."""

import json

import numpy as np
import pytest
from PIL import Image

from h2t2_tools.cli.main import main
from h2t2_tools.common import labels, matrices, pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.tables import Selection
from h2t2_tools.fleet.config import NodeConfig, described
from h2t2_tools.model.convert import calibration
from h2t2_tools.model.convert.readers import Table
from h2t2_tools.model.pair.labelled_samples import load_samples
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
        (["True", "False"], [1, 0], None),
        (["FALSE", "true "], [0, 1], None),
        (["no", "yes"], [0, 1], ["no", "yes"]),
        (["1.0", "0.0"], [1, 0], None),
        (["none", "NO"], [1, 0], ["NO", "none"]),
        (["fault", "ok", "fault "], [0, 1, 0], ["fault", "ok"]),
    ],
)
def test_labels_become_class_numbers(y, numbers, names):
    given, told = labels.class_numbers("y", np.array(y))
    assert given.tolist() == numbers and given.dtype == np.int64
    assert told == names


@pytest.mark.parametrize(
    "y, why",
    [
        ([0.5, 1.0], "whole numbers; it holds"),
        ([np.nan, 1], "sample 0 has no label; --missing skip"),
        ([[1, 1], [0, 1]], "not one-hot"),
        (["ok", "", "bad"], "sample 1 has no label"),
        (["Fault", "fault ", "ok"], "'Fault' and 'fault' differ in capitals alone"),
        ([1j, 0], "whole numbers"),
        (["0.5", "1.7", "2"], "whole numbers; it holds"),
    ],
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


@pytest.mark.parametrize("field", ["", " ", "NA", "n/a", "None", "null", "nan", "NaN"])
def test_a_field_that_says_that_there_is_no_number_is_a_missing_one(field, tmp_path):
    path = written(tmp_path / "a.csv", "a,b,label\n" + "".join(f"{n},{field if n == 3 else n},{n % 2}\n" for n in range(12)))
    x = calibration.load(path, None, None, table=Table(missing=True)).x
    assert np.argwhere(np.isnan(x)).tolist() == [[3, 1]]
    with pytest.raises(UserError, match="line 5: b: a number is missing, as in 1 of 12 samples"):
        calibration.load(path, None, None)


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
    with pytest.raises(UserError, match="costs.csv: not a matrix of numbers: '0,5' has a decimal comma"):
        matrices.read_costs(written(tmp_path / "costs.csv", "0;0,5\n1;0\n"), 2)


@pytest.mark.parametrize(
    "text, why",
    [
        ("label\nham\nspam\n", "it has the column 'label' alone"),
        ("1,2\n3,4\n", "the first line names the columns"),
        ("a,label\n1,0\n2\n", "line 3: 1 fields, the header has 2"),
        ("a,label\n1,x\nz,y\n", "line 3: a: 'z' is no number; --drop a leaves the column out"),
        ("a,b c,d,label\nz,q,3,x\nv,w,1,y\n", "line 2: a: 'z' is no number; --drop a 'b c' leaves the columns out, --label a"),
        ("\na,label\n\n1,x\nz,y\n", "line 5: a: 'z' is no number"),
        ("a,label\n", "the first line names the columns"),
        ("#a,state\n1,ok\n2,bad\n3,ok\n", "the first line names the columns, .*; lines that begin with # are comments"),
        ("a;label\n3,5;x\n1,5;y\n", "line 2: a: '3,5' has a decimal comma; write numbers with a decimal point"),
        ("a,label\n3,5,1\n", "line 2: 3 fields, the header has 2; write numbers with a decimal point"),
        ("a,label\n1_000,x\n2,y\n", "'1_000' is no number"),
        ("a,b,a,label\n1,2,3,x\n", "the header names the column a twice"),
        ("a, a ,label\n1,2,x\n", "the header names the column a twice"),
        (",a,label\n0,3,x\n", r"the header does not name column 1.*to_csv\(index=False\)"),
        ("a,class,target\n1,0,1\n", "each of the columns class, target may hold the labels: --label COLUMN"),
        ("a,state,room\n1,ok,hall\n2,ok,hall\n", "each of the columns state, room may hold the labels"),
        ("a,state,class\n1,ok,3\n2,ok,4\n", "each of the columns state, class may hold the labels"),
        ("a,label\n1,0\n,1\n", "line 3: a: a number is missing, as in 1 of 2 samples; --missing skip .*; --drop a the column"),
        ("a,label\n1,0\n2,\n", "line 3: the label is missing, as in 1 of 2 samples; --missing skip leaves"),
    ],
)
def test_a_csv_that_cannot_be_read_names_the_line(text, why, tmp_path):
    with pytest.raises(UserError, match=why):
        calibration.load(written(tmp_path / "a.csv", text), None, None)


READINGS = [(n, n / 2, -n, n % 2) for n in range(12)]  # what an accelerometer says, and whether it shakes


def test_an_accelerometers_y_is_no_label(tmp_path):
    """With or without true labels, in words or numbers, and where y holds two values."""
    for label in ("label", "state"):
        words = ["calm", "shakes"] if label == "state" else [0, 1]
        lines = [f"x,y,z,{label}", *(f"{x},{y % 2 // 1:g},{z},{words[n]}" for x, y, z, n in READINGS)]
        samples = calibration.load(written(tmp_path / "a.csv", "\n".join(lines)), None, None)
        assert samples.columns == ["x", "y", "z"] and samples.y.tolist() == [0, 1] * 6
    samples = calibration.load(
        written(tmp_path / "b.csv", "\n".join(["x,y,z", *(f"{x},{y},{z}" for x, y, z, _ in READINGS)])), None, None
    )
    assert samples.columns == ["x", "y", "z"] and samples.y is None
    reads = Table(columns=("y",))  # a model that was fitted on it
    samples = calibration.load(
        written(tmp_path / "c.csv", "\n".join(["x,y", *(f"{x},{n}" for x, _, _, n in READINGS)])), None, None, None, reads
    )
    assert samples.columns == ["x", "y"] and samples.y is None
    assert calibration.load(tmp_path / "c.csv", None, None).y.tolist() == [0, 1] * 6  # as scikit-learn calls a label


def test_the_user_chooses_the_label_and_drops_columns(tmp_path):
    lines = [
        "time,id,y,label,state",
        *(f"2026-11-{n + 10} 05:00,{n},{y},{z},{['ok', 'bad'][n % 2]}" for n, y, z, _ in READINGS),
    ]
    path = written(tmp_path / "a.csv", "\n".join(lines))
    with pytest.raises(UserError, match="each of the columns label, state may hold the labels"):
        calibration.load(path, None, None)
    with pytest.raises(UserError, match="line 2: time: '2026-11-10 05:00' is no number; --drop time"):
        calibration.load(path, None, None, selection=Selection("state"))
    samples = calibration.load(path, None, None, selection=Selection("state", ("time", "id")))
    assert samples.columns == ["y", "label"] and samples.names == ["bad", "ok"] and samples.y.tolist() == [1, 0] * 6
    for selection, why in (
        (Selection("stat"), "--label stat: the header names no such column; it names time, id, y, label, state"),
        (Selection("state", ("clock",)), "--drop clock: the header names no such column"),
        (Selection("state", ("state",)), "--label state: --drop leaves this column out"),
    ):
        with pytest.raises(UserError, match=why):
            calibration.load(path, None, None, selection=selection)
    np.savez(tmp_path / "a.npz", x=RNG.normal(size=(12, 2)), y=np.arange(12) % 2)
    with pytest.raises(UserError, match=r"--drop: .*a.npz names no columns; a .csv or .parquet does"):
        calibration.load(tmp_path / "a.npz", None, None, selection=Selection(drop=("time",)))


def test_samples_that_lack_something_are_left_out_where_the_user_says_so(tmp_path, capsys):
    cells = ["1,2,ok", ",2,ok", "1,NaN,bad", "1,2,", "3,NA,ok", *(f"{n},{n},{['ok', 'bad'][n % 2]}" for n in range(12))]
    path = written(tmp_path / "a.csv", "\n".join(["a,b,state", *cells]))
    samples = calibration.load(path, None, None, selection=Selection(skip_missing=True))
    assert len(samples.x) == len(samples.y) == 13 and samples.names == ["bad", "ok"] and np.isfinite(samples.x).all()
    assert "4 of 17 samples lack a number or their label and are left out" in capsys.readouterr().err
    imputes = Table(missing=True)
    with pytest.raises(UserError, match="line 5: the label is missing, as in 1 of 17 samples"):
        calibration.load(path, None, None, None, imputes)
    with pytest.raises(UserError, match="each sample lacks a number or its label; --drop b"):
        calibration.load(
            written(tmp_path / "b.csv", "a,b,label\n" + "1,,0\n2,,1\n" * 6), None, None, selection=Selection(skip_missing=True)
        )
    x, y = np.ones((20, 2)) * np.arange(20)[:, None], np.arange(20) % 2.0
    x[3, 1], y[5] = np.nan, np.nan
    np.savez(tmp_path / "a.npz", x=x, y=y)
    with pytest.raises(UserError, match=r"a.npz, sample 3: a number is missing \(NaN\), as in 2 of 20 samples; --missing skip"):
        calibration.load(tmp_path / "a.npz", None, None)
    assert len(calibration.load(tmp_path / "a.npz", None, None, selection=Selection(skip_missing=True)).y) == 18


def test_words_and_marks_of_programs_are_read(tmp_path):
    """A byte order mark, comments, blank lines and cells, an empty last column, a header again; yes and True are 1."""
    rows = [f" {n} ;{['yes', 'No'][n % 2]};{n % 3 == 0};{['ok', 'bad '][n % 2]};" for n in range(12)]
    text = "\n".join(
        ["\ufeff# a sensor's log, 2026", "#", "", "length;open;wet;state;", *rows[:6], "# moved", ";;;;", *rows[6:]]
    )
    samples = calibration.load(written(tmp_path / "a.csv", text), None, None)
    assert samples.columns == ["length", "open", "wet"] and samples.names == ["bad", "ok"] and len(samples.y) == 12
    assert samples.x[:4].tolist() == [[0, 1, 1], [1, 0, 0], [2, 1, 0], [3, 0, 1]]
    flags = "\n".join(["length,broken", *(f"{n},{['no', 'yes'][n % 2]}" for n in range(12))])
    samples = calibration.load(written(tmp_path / "b.csv", flags), None, None)
    assert samples.columns == ["length"] and samples.names == ["no", "yes"]
    bools = flags.replace("no", "False").replace("yes", "True")
    samples = calibration.load(written(tmp_path / "c.csv", bools), None, None)
    assert samples.y.tolist() == [0, 1] * 6 and samples.names is None


def test_a_csv_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes("größe,label\n1,2\n".encode("latin-1"))
    with pytest.raises(UserError, match="a.csv: not a .csv file in UTF-8; save it with this encoding"):
        calibration.load(tmp_path / "a.csv", None, None)


def test_a_models_own_spelling_of_a_class_counts(tmp_path):
    text = "\n".join(["a,state", *(f"{n},{['Fault', 'OK', 'fault '][n % 3]}" for n in range(12))])
    samples = calibration.load(written(tmp_path / "a.csv", text), None, None, None, Table(classes=["ok", "fault"]))
    assert samples.names == ["ok", "fault"] and samples.y.tolist() == [1, 0, 1] * 4


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
