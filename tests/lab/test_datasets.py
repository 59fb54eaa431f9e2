"""Loaders against small files in the published layouts, and against damaged ones: a clear error, and no traceback."""

import pickle
import zipfile

import numpy as np
import pytest
from images import RNG, pictures

from h2t2_lab import datasets
from h2t2_lab.recipe import write_linear
from h2t2_tools.common.errors import UserError
from h2t2_tools.replay import synthetic, traces


def test_phishing(tmp_path):
    rows = [",".join(str(v) for v in [*RNG.integers(-1, 2, 30), 1 - 2 * (n % 3 == 0)]) for n in range(60)]
    header = "@relation phishing\n@attribute a { -1,1 }\n@data\n"
    (tmp_path / "phishing.arff").write_text("% a comment\n" + header + "\n".join(rows) + "\n\n")
    data = datasets.load("phishing", tmp_path)
    assert data.x_train.shape == (30, 30) and data.x_test.shape == (30, 30)
    assert data.y_train.sum() + data.y_test.sum() == 20 and abs(int(data.y_test.sum()) - 10) <= 1


@pytest.mark.parametrize(
    "content, message",
    [("1,x,1\n", "row of integers"), ("1,2,1\n1,1\n", "2 fields"), ("", "no rows"), ("1,2,7\n", "last column")],
)
def test_phishing_damaged(tmp_path, content, message):
    (tmp_path / "phishing.arff").write_text(content)
    with pytest.raises(UserError, match=message):
        datasets.load("phishing", tmp_path)


def test_chest_xray_npz_and_folders(tmp_path):
    parts = {}
    for part in ("train", "val", "test"):
        parts[f"{part}_images"] = RNG.integers(0, 256, (6, 28, 28), np.uint8)
        parts[f"{part}_labels"] = np.array([[0], [1]] * 3, np.uint8)
    np.savez(tmp_path / "pneumoniamnist.npz", **parts)
    data = datasets.load("chest_xray", tmp_path)
    assert data.x_train.shape == (12, 28, 28) and data.y_test.tolist() == [0, 1] * 3
    folder = tmp_path / "folders"
    pictures(folder / "chest_xray", [f"{part}/{name}" for part in ("train", "val", "test") for name in ("NORMAL", "PNEUMONIA")])
    data = datasets.load("chest_xray", folder)
    assert data.x_train.shape == (16, 28, 28) and sorted(data.y_test.tolist()) == [0] * 4 + [1] * 4


def test_chest_ct_and_breakhis_folders(tmp_path):
    pictures(tmp_path / "ct/Data", ["train/normal", "train/adenocarcinoma_left_lower_lobe", "test/squamous.cell"], 6)
    data = datasets.load("chest_ct", tmp_path / "ct")
    assert len(data.y_train) + len(data.y_test) == 18 and data.x_train.shape[1:] == (64, 64)
    assert data.y_train.sum() + data.y_test.sum() == 12
    slides = "BreaKHis_v1/histology_slides/breast"
    pictures(tmp_path / slides, ["benign/SOB/adenosis/SOB_B_A/40X", "malignant/SOB/papillary/SOB_M_PC/40X"], 7)
    data = datasets.load("breakhis", tmp_path)
    assert data.x_train.shape == (8, 64, 64, 3) and data.x_test.shape == (6, 64, 64, 3)
    np.savez(tmp_path / "breakhis.npz", images=RNG.integers(0, 256, (9, 64, 64, 3), np.uint8), labels=np.arange(9) % 2)
    assert len(datasets.load("breakhis", tmp_path / "breakhis.npz").y_test) == 3


def test_an_image_that_is_none_is_named(tmp_path):
    pictures(tmp_path / "Data", ["normal", "squamous"], 3)
    (tmp_path / "Data/normal/broken.png").write_bytes(b"not a picture")
    with pytest.raises(UserError, match="broken.png"):
        datasets.load("chest_ct", tmp_path)


def batch(count):
    return RNG.integers(0, 256, (count, 3072), np.uint8), np.arange(count) % 10


def test_cats_dogs_python_and_binary_batches(tmp_path):
    for kind in ("py", "bin"):
        folder = tmp_path / f"cifar-10-batches-{kind}"
        folder.mkdir()
        for name, count in (("data_batch_1", 40), ("data_batch_2", 20), ("test_batch", 20)):
            x, y = batch(count)
            if kind == "py":
                (folder / name).write_bytes(pickle.dumps({b"data": x, b"labels": y.tolist()}, protocol=2))
            else:
                np.concatenate([y[:, None].astype(np.uint8), x], 1).tofile(folder / f"{name}.bin")
        data = datasets.load("cats_dogs", folder)
        assert data.x_train.shape == (12, 32, 32, 3) and data.y_test.tolist() == [0, 1, 0, 1]
    (folder / "data_batch_1.bin").write_bytes(b"short")
    with pytest.raises(UserError, match="3073"):
        datasets.load("cats_dogs", folder)


def test_a_pickle_that_would_run_code_is_refused(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()

    class Evil:
        def __reduce__(self):
            return print, ("run",)

    (folder / "data_batch_1").write_bytes(pickle.dumps(Evil()))
    (folder / "test_batch").write_bytes(b"")
    with pytest.raises(UserError, match="builtins.print"):
        datasets.load("cats_dogs", folder)


@pytest.mark.parametrize("name", ["phishing", "chest_xray", "chest_ct", "breakhis", "cats_dogs"])
def test_what_is_not_there_says_what_was_looked_for(name, tmp_path):
    with pytest.raises(UserError, match="--data"):
        datasets.load(name, tmp_path)


@pytest.mark.parametrize("name", ["chest_xray", "chest_ct", "cats_dogs"])
def test_an_npz_of_something_else(name, tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK not really")
    with pytest.raises(UserError, match="a.npz"):
        datasets.load(name, tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", other=np.zeros(3))
    with pytest.raises(UserError, match="other"):
        datasets.load(name, tmp_path / "b.npz")


def test_unknown_names():
    with pytest.raises(UserError, match="not one of"):
        datasets.load("mnist")


@pytest.mark.parametrize("name", synthetic.PRESETS)
def test_presets_have_the_papers_errors(name):
    preset, trace = synthetic.PRESETS[name], synthetic.make(name)
    guess = trace.score >= 0.5
    assert len(trace.label) == preset.samples and trace.score.min() > 0 and trace.score.max() < 1
    assert (guess & (trace.label == 0)).mean() == pytest.approx(preset.fp, abs=1 / preset.samples)
    assert (~guess & (trace.label == 1)).mean() == pytest.approx(preset.fn, abs=1 / preset.samples)
    assert np.array_equal(trace.score, synthetic.make(name).score)


@pytest.mark.parametrize("name", ["breast_cancer", "digits"])
def test_scikit_sets(name):
    pytest.importorskip("sklearn", reason="pip install scikit-learn")
    data = datasets.load(name)
    assert len(data.x_test) == len(data.y_test) > 200


SHAPES = {"phishing": (1106, 30), "chest_xray": (624, 28, 28), "chest_ct": (278, 64, 64), "cats_dogs": (2000, 32, 32, 3)}


@pytest.mark.parametrize("name, shape", SHAPES.items())
def test_the_shared_sets_have_the_papers_test_sizes(name, shape):
    try:
        data = datasets.load(name)
    except UserError as error:
        pytest.skip(str(error))
    assert data.x_test.shape == shape


def test_streams_keep_their_order(tmp_path):
    """The first part trains, the rest comes as it was recorded; both are measured in the first part's deviations."""
    days = [[n, *RNG.normal(n, 1, 8).round(3), n % 3 == 0] for n in range(60)]
    (tmp_path / "rainfall_data.csv").write_text("\n".join(["head", *(",".join(str(float(x)) for x in day) for day in days)]))
    data = datasets.load("weather", tmp_path)
    assert data.x_train.shape == data.x_test.shape == (30, 8) and abs(data.x_train.mean()) < 1e-6 < 2 < data.x_test.mean()
    assert [*data.y_train, *data.y_test] == [n % 3 == 0 for n in range(60)]
    room = [f"2015-02-04 17:{n}:00,{20 + n % 5},{30 + n},{400 * (n % 2)},{700 + n}" for n in range(40)]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/occupancy.csv").write_text("\n".join(["time,V1,V2,V3,V4", *room]))
    data = datasets.load("occupancy", tmp_path)
    assert data.x_test.shape == (20, 3) and data.y_test.tolist() == [0, 1] * 10 and data.classes == ("dark", "lit")


def written(path, head, rows):
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")


def test_streams_with_named_columns(tmp_path):
    """A row that lacks a number is left out; of several airports one is read; flights come in the order of their departure."""
    hours = [[n % 24, 0.5, 0.4, n / 99, n % 2, 100 + 100 * (n % 2)] for n in range(40)]
    written(tmp_path / "Bikeshare.csv", "hr,temp,hum,windspeed,workingday,bikers", hours)
    data = datasets.load("bikes", tmp_path)
    assert data.x_test.shape == (20, 8) and data.y_test.tolist() == [0, 1] * 10 and data.classes == ("calm", "busy")
    head = "origin,temp,dewp,humid,wind_speed,visib,precip"
    hours = [["EWR" if n % 3 else "JFK", n, n, "NA" if n == 7 else 50, 5, 10 - n % 2, n % 4 // 3] for n in range(60)]
    written(tmp_path / "weather.csv", head, hours)
    fog, showers = (datasets.load(name, tmp_path) for name in ("fog", "showers"))
    assert [*fog.y_train, *fog.y_test] == [n % 2 for n in range(60) if n % 3 and n != 7]
    assert [*showers.y_train, *showers.y_test] == [n % 4 == 3 for n in range(60) if n % 3 == 0]
    trips = [["ORD" if n % 2 else "BOS", "EWR", 1, 30 - n // 2, 600, 6, n, 40 * (n % 4 == 1)] for n in range(60)]
    with zipfile.ZipFile(tmp_path / "flights.csv.zip", "w") as archive:
        head = "dest,origin,month,day,sched_dep_time,hour,dep_delay,arr_delay"
        archive.writestr("flights.csv", "\n".join([head, *(",".join(map(str, row)) for row in trips)]))
    flights = datasets.load("flights", tmp_path)
    assert [*flights.y_train, *flights.y_test] == [n % 4 == 1 for n in range(59, 0, -2)] and flights.x_test.shape == (15, 4)
    written(tmp_path / "Bikeshare.csv", "hr,temp,hum,windspeed,workingday", [[1, 2, 3, 4, 5]])
    with pytest.raises(UserError, match="no column bikers"):
        datasets.load("bikes", tmp_path)
    written(tmp_path / "Bikeshare.csv", "hr,temp,hum,windspeed,workingday,bikers", [[1, 2, 3, 4, 5, "x"]])
    with pytest.raises(UserError, match=":2: '1, 2, 3, 4, 5, x' are not numbers"):
        datasets.load("bikes", tmp_path)


def test_a_linear_model_is_written_without_tensorflow(tmp_path):
    x = np.random.default_rng(1).normal(size=(80, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.uint8)
    about = {"title": "T", "event": "e", "data": "d", "licence": "MIT", "ldl": "logistic regression", "paper": None}
    write_linear(tmp_path / "t", about, (x[:40], y[:40]), (x[40:], y[40:]))
    trace = traces.load(tmp_path / "t/trace.npz")
    assert ((trace.score > 0.5) == y[40:]).mean() > 0.9 and "4 parameters" in (tmp_path / "t/README.md").read_text()


@pytest.mark.parametrize(
    "content, message",
    [("head\n0,1,2,3\n", ":2: 4 fields, want 5"), ("head\nx,1,a,3,4\n", ":2: 'x,1,a,3,4' is not"), ("head\n", "no rows")],
)
def test_streams_damaged(tmp_path, content, message):
    (tmp_path / "occupancy.csv").write_text(content)
    with pytest.raises(UserError, match=message):
        datasets.load("occupancy", tmp_path)
