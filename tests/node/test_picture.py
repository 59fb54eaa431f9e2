"""Pictures: made smaller as NumPy does it, equal on every interpreter, and a device that is given them as a camera does."""

import json

import numpy as np
import pytest
import replayed
import scikit_models
from command_line import h2t2
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT, need, worker

from h2t2.node.picture import Picture
from h2t2_tools.boards import run_emulated
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet import broker, config
from h2t2_tools.fleet.rdl import models

RNG = np.random.default_rng(3)


def expected(picture, wide, high, square, grey):
    """In floats, block by block."""
    height, width, _ = picture.shape
    if square:
        side = min(width, height)
        top, left = (height - side) // 2, (width - side) // 2
        picture = picture[top : top + side, left : left + side]
        height = width = side
    rows, columns = [n * height // high for n in range(high + 1)], [n * width // wide for n in range(wide + 1)]
    blocks = [[picture[a:b, c:d].mean((0, 1)) for c, d in zip(columns, columns[1:])] for a, b in zip(rows, rows[1:])]
    made = np.floor(np.array(blocks) + 0.5)
    return np.floor(made @ [77, 150, 29] / 256 + 0.5)[..., None] if grey else made


@given(st.integers(1, 24), st.integers(1, 24), st.sampled_from([1, 3]), st.booleans(), st.booleans(), st.data())
def test_it_is_the_mean_of_what_falls_on_each(width, height, channels, square, grey, data):
    side = min(width, height)
    wide, high = (data.draw(st.integers(1, side if square else size)) for size in (width, height))
    grey = grey and channels == 3
    picture = RNG.integers(0, 256, (height, width, channels), dtype=np.uint8)
    got = Picture(width, height, channels, wide, high, square, grey)(picture.tobytes())
    want = expected(picture, wide, high, square, grey)
    assert np.array(got).reshape(want.shape).tolist() == want.tolist()


@pytest.mark.parametrize(
    "sizes, why",
    [
        ((8, 8, 2, 4, 4, False, False), "2 channels"),
        ((8, 8, 1, 4, 4, False, True), "not grey"),
        ((8, 8, 3, 9, 4, False, False), "8 pixels to 9"),
        ((8, 4, 3, 8, 4, True, False), "4 pixels to 8"),
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes, why):
    with pytest.raises(ValueError, match=why):
        Picture(*sizes)
    with pytest.raises(ValueError, match="a picture of 5 bytes, want 192"):
        Picture(8, 8, 3, 4, 4, False, False)(b"12345")


SAME = """import json
from h2t2.node.picture import Picture
made = []
for sizes, seed in CASES:
    n = sizes[0] * sizes[1] * sizes[2]
    pixels = bytes([(seed * (i + 7) * (i + 3) >> 3) & 255 for i in range(n)])
    made.append(Picture(*sizes)(pixels))
print(json.dumps(made))
"""
CASES = [((31, 17, 3, 8, 8, True, True), 5), ((40, 30, 3, 10, 7, False, False), 11), ((16, 16, 1, 16, 5, True, False), 3)]


@pytest.mark.parametrize("emulator", [catalogue.UNIX, catalogue.ARM32], ids=lambda emulator: emulator.name)
def test_every_interpreter_makes_the_same(tmp_path, emulator):
    need(emulator)
    (tmp_path / "same.py").write_text(SAME.replace("CASES", repr(CASES)))
    there = json.loads(emulator.run(tmp_path / "same.py", [], ROOT / "firmware"))
    for (sizes, seed), numbers in zip(CASES, there):
        n = sizes[0] * sizes[1] * sizes[2]
        assert numbers == Picture(*sizes)(bytes([(seed * (i + 7) * (i + 3) >> 3) & 255 for i in range(n)]))


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A pair that sees whether a light is in the upper or in the lower half of a colour picture, after it was made 4 by 4."""
    folder = tmp_path_factory.mktemp("seen")
    y = RNG.integers(0, 2, 300)
    x = RNG.integers(0, 90, (300, 12, 20, 3))
    for picture, label in zip(x, y):
        row, column = RNG.integers(0, 5) + 6 * label, RNG.integers(5, 13)
        picture[row : row + 2, column : column + 2] += RNG.integers(40, 160)
    made = pairs.PictureSpec(width=20, height=12, channels=3, wide=4, high=4, square=True, grey=True)
    small = np.array([made.convert(picture).ravel() for picture in x], np.float32)
    local = scikit_models.logistic(small[:150, [0, 4, 8, 12]], y[:150])
    remote = scikit_models.logistic(small[:150], y[:150], C=10)
    scikit_models.save(folder, x[150:].astype(np.uint8), y[150:], small=local, big=remote)
    return folder, remote.score(small[150:], y[150:])


def make(folder, out, *more):
    words = ["pair", folder / "big.joblib", folder / "big.joblib", "--test", folder / "test.npz", "--out", out, "--beta", 0.1]
    return main([str(word) for word in [*words, *more]])


SIZES = ("--picture", "20x12x3", "--to", "4x4", "--square", "--grey")


@pytest.mark.slow
@pytest.mark.parametrize("board", ["unix", "arm32"])
def test_a_camera_on_a_board(seen, tmp_path, board):
    """Pictures as a camera gives them from a CSV: every decision is that of the host's own integers."""
    need(run_emulated.EMULATED[board])
    folder, big = seen
    assert make(folder, tmp_path / "pair", *SIZES) == 0
    pair = pairs.load(str(tmp_path / "pair"))
    assert pair.x.shape == (150, 4, 4, 1) and pair.raw.shape == (150, 12, 20, 3)
    accuracy = json.loads((tmp_path / "pair/pair.json").read_text())["metrics"]["rdl"]["int8"]["accuracy"]
    assert abs(accuracy - big) < 0.03 and big > 0.8
    assert main(["new", str(tmp_path / "mine"), "--from", str(tmp_path / "pair")]) == 0
    replayed.run(tmp_path / "mine", board)
    own, csv = config.load(tmp_path / "mine/h2t2.toml"), (tmp_path / "mine/samples.csv").read_text()
    wanted, _ = replayed.decisions(tmp_path / "pair", csv, own.arguments(), own.event)
    assert replayed.written(tmp_path / f"mine/run-{board}/decisions.csv") == wanted and len(wanted) == 150


@pytest.mark.parametrize(
    "more, why",
    [
        (("--picture", "20x12"), "want WxHxC, such as 64x48x3"),
        ((*SIZES[:2], "--to", "30x4"), "20 pixels to 30"),
        (("--picture", "12x20x3", "--to", "4x4"), "--picture wants (20, 12, 3)"),
        (("--to", "4x4"), "are of --picture"),
        ((*SIZES, "--scale", 255), "no --scale"),
    ],
)
def test_pictures_that_cannot_be_are_refused(seen, tmp_path, capsys, more, why):
    assert make(seen[0], tmp_path, *more) == 2
    said = capsys.readouterr().err
    assert why in said and said.count("\n") == 1


@pytest.mark.whole
def test_the_whole_picture_is_sent_and_a_small_one_decided_about(seen, tmp_path):
    """A function that is sent pictures as PNG says which half is lighter; the small model is given 16 numbers."""
    folder, _ = seen
    (tmp_path / "mine.py").write_text(
        "import io\nimport numpy as np\nfrom PIL import Image\n"
        "def png(x):\n    out = io.BytesIO()\n    Image.fromarray(x).save(out, 'PNG')\n    return out.getvalue()\n"
        "def scores(sent):\n    seen = [np.asarray(Image.open(io.BytesIO(data)), float) for data in sent]\n"
        "    return [float(x[6:].max() > x[:6].max()) for x in seen]\n"
    )
    words = ["pair", folder / "big.joblib", f"{tmp_path}/mine.py:scores", "--test", folder / "test.npz", "--beta", 0.1, *SIZES]
    words += ["--payload", "raw", "--encode", f"{tmp_path}/mine.py:png", "--media", "image/png", "--out", tmp_path / "pair"]
    assert main([str(word) for word in words]) == 0
    pair = pairs.load(str(tmp_path / "pair"))
    halves = pair.raw.reshape(150, 2, -1).max(2)
    assert models.labels(models.answers(pair)).tolist() == (halves[:, 1] > halves[:, 0]).astype(int).tolist()
    with broker.running("amqtt") as url, worker(url, str(tmp_path / "pair")):
        ran = h2t2("node", "--pair", tmp_path / "pair", "--broker", url, "--samples", 60, "--beta", 0.02)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    asked = [(line["sample"], line["decision"]) for line in lines if line.get("source") == "remote"]
    assert len(asked) > 10 and all(decision == (halves[n, 1] > halves[n, 0]) for n, decision in asked)
