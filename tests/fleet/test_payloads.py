"""What an offload may send, int8, uint8, floats or bytes of any kind: from a pair over a node, a broker and a worker."""

import json
import math

import numpy as np
import pytest
import scikit_models
from command_line import H2T2, h2t2, ran
from http_server import serving
from scripted import running
from support import ROOT, configuration, need, worker, worker_replies

from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2.node.node import FALLBACK, REMOTE
from h2t2_tools.boards import kinds, run_emulated
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import broker, config
from h2t2_tools.fleet.gate import paths
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.worker import Worker

OWN = """

def remote(measured):
    import json
    return json.dumps(measured).encode()
"""
DTYPES = ("int8", "uint8", "float32", "raw")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two models of four numbers of unlike ranges, as scikit-learn has them, the remote one also as a function of text."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(2)
    x = rng.normal(0, 1, (700, 4)) * [1, 1000, 0.01, 50] + [0, 5000, 0, -200]
    y = (x[:, 0] + x[:, 2] * 100 + (x[:, 1] - 5000) / 700 + rng.normal(0, 0.4, 700) > 0).astype(int)
    small = scikit_models.logistic(x[:500, :2], y[:500])
    big = scikit_models.network(x[:500], y[:500])
    scikit_models.save(folder, x[500:], y[500:], small=small, big=big)
    (folder / "mine.py").write_text(
        f"import joblib\nimport numpy as np\nmodel = joblib.load({str(folder / 'big.joblib')!r})\n"
        "def scores(x):\n"
        "    if isinstance(x, list): x = np.array([json.loads(text) for text in x])\n"
        "    return model.predict_proba(x)[:, 1]\n"
        "def text(x): return json.dumps(x.tolist()).encode()\n"
        "def none(x): return b''\n"
        "def blind(x): raise ValueError('my camera gave no picture')\n"
        "import json\n"
    )
    return folder, big


def make(folder, out, rdl, dtype, *more):
    words = ["pair", folder / "small.joblib", rdl, "--test", folder / "test.npz", "--ldl-columns", 0, 1, "--out", out]
    if dtype == "raw" and "--encode" not in more:
        more = ("--encode", f"{folder / 'mine.py'}:text", "--media", "application/json", *more)
    words += ["--payload", dtype, "--model-id", 9, "--beta", 0.2, *more]
    return main([str(word) for word in words])


@pytest.mark.slow
@pytest.mark.parametrize("rdl", ["big.joblib", "mine.py:scores"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_sent_says_the_same(trained, tmp_path, capsys, dtype, rdl):
    """The worker's label of every sample is the trained model's, but where int8 cannot tell."""
    folder, big = trained
    made = make(folder, tmp_path, folder / rdl, dtype)
    if dtype == "raw" and rdl == "big.joblib":
        assert made == 2 and "--payload raw is for FILE.py:FUNCTION or a URL" in capsys.readouterr().err
        return
    pair = pairs.load(str(tmp_path))
    remote = pair.info.remote
    source = models.of_pair(pair)
    one = Worker(models.load(source), 9, limit=source.limit, media=source.media)
    code = wire.DTYPES.index(dtype)
    requests = []
    for n, x in enumerate(pair.x):
        data = pair.remote_payload(x)
        shape = (len(data),) if dtype == "raw" else tuple(remote.shape)
        requests.append(wire.encode_request(9, 5, n, shape, data, dtype=code, media=remote.media))
        assert len(requests[-1]) == wire.request_size(shape, code, remote.media)
    said = [wire.decode_reply(reply) for reply in worker_replies(one, requests)]
    assert {status for status, *_ in said} == {wire.OK}
    trained_says = big.predict(pair.x)
    assert np.mean([label for *_, label, _ in said] == trained_says) >= (0.98 if dtype != "raw" else 1)
    if dtype in ("float32", "raw") and rdl != "big.joblib":
        assert np.abs(np.array([score for *_, score in said]) / 32768 - big.predict_proba(pair.x)[:, 1]).max() < 1e-4
    assert main(["new", str(tmp_path / "mine"), "--from", str(tmp_path), "--board", "unix"]) == 0
    given = config.load(tmp_path / "mine/h2t2.toml", "unix").model_copy(update={"app": ""})
    assert (given.remote_dtype, given.remote_media) == (dtype, remote.media)
    refused = main(["new", str(tmp_path / "mine"), "--board", "microbit"])
    assert refused == (2 if dtype == "raw" else 0)
    if dtype != "raw":
        files = kinds.payload(kinds.KINDS["unix"], kinds.Contents(tmp_path / "ldl.h2m", given, tmp_path / "samples.bin"))
        assert len(files["samples.bin"]) == 200 * (2 + 4 * wire.ITEM[code])


@pytest.mark.whole
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_from_a_node_to_the_worker_and_back(trained, tmp_path, dtype):
    folder, big = trained
    assert make(folder, tmp_path, folder / "mine.py:scores", dtype) == 0
    with broker.running("amqtt") as url, worker(url, str(tmp_path)):
        ran = h2t2("node", "--pair", tmp_path, "--broker", url, "--samples", 150, "--seed", 3)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0 and lines[-1]["summary"]["replies"] == lines[-1]["summary"]["offloads"] > 30
    pair = pairs.load(str(tmp_path))
    asked = [(line["sample"], line["decision"]) for line in lines if line.get("source") == "remote"]
    right = [decision == big.predict(pair.x[[index]])[0] for index, decision in asked]
    assert np.mean(right) >= (1 if dtype == "raw" else 0.97)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("board", ["unix", "arm32"])
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_from_a_board_to_the_worker_and_back(trained, tmp_path, board, dtype):
    """A project whose app sends text, floats or uint8, this with a streamed model; remote decisions are the function's own."""
    need(run_emulated.EMULATED[board])
    folder, big = trained
    assert make(folder, tmp_path / "pair", folder / "mine.py:scores", dtype) == 0
    project = tmp_path / "mine"
    assert main(["new", str(project), "--from", str(tmp_path / "pair")]) == 0
    lines = (project / "samples.csv").read_text().splitlines(True)[:40]
    (project / "samples.csv").write_text("".join(lines))
    if dtype == "raw":
        app = (project / "app.py").read_text() + OWN
        (project / "app.py").write_text(app)
    if dtype == "uint8":
        with (project / "h2t2.toml").open("a") as file:
            file.write("stream = true\n")
    ran([*H2T2, "run", project, "--board", board])
    written = [line.split(",") for line in (project / f"run-{board}/decisions.csv").read_text().splitlines()]
    pair = pairs.load(str(tmp_path / "pair"))
    asked = [int(label) == big.predict(pair.x[[n]])[0] for n, (label, source, _) in enumerate(written) if source == "remote"]
    assert len(written) == 40 and len(asked) > 10 and np.mean(asked) >= (1 if dtype == "raw" else 0.95)


def test_an_app_that_makes_no_bytes_is_refused_before_it_is_flashed(trained, tmp_path, capsys):
    folder, _ = trained
    assert make(folder, tmp_path / "pair", folder / "mine.py:scores", "raw") == 0
    assert main(["new", str(tmp_path / "mine"), "--from", str(tmp_path / "pair")]) == 0
    said = "Offloads send application/json: write `remote(measured)` in `app.py`"
    assert said in capsys.readouterr().out and said in (tmp_path / "mine/README.md").read_text()
    (tmp_path / "device").mkdir()
    assert main(["flash", str(tmp_path / "mine"), "--board", "unix", "--port", str(tmp_path / "device")]) == 2
    assert "its function remote(measured) makes what an offload sends" in capsys.readouterr().err


def test_more_than_the_model_takes_is_not_sent_and_not_served():
    service, node, decisions, said = running(bins=[], dtype=wire.RAW, media="text/plain", data_limit=5)
    node.step(5, (1,), b"12345", "fits")
    node.poll()
    node.step(5, (1,), b"123456", "too much")
    request = worker_wire.decode_request(node.link.sent[0])
    assert (request.dtype, request.media, bytes(request.data)) == (wire.RAW, "text/plain", b"12345")
    assert [(tag, source) for tag, _, _, source in decisions] == [("fits", REMOTE), ("too much", FALLBACK)]
    assert len(node.link.sent) == 1 and "6 bytes of data, the model takes 5" in said[0]

    class Texts:
        shape, raw = None, True

        def scores(self, batch):
            return np.array([data == b"yes" for data in batch], float)

    one = Worker(Texts(), 1, limit=5, media="text/plain")

    def ask(data, dtype=wire.RAW, media="text/plain"):
        (reply,) = worker_replies(one, [wire.encode_request(1, 5, 1, (len(data),), data, dtype=dtype, media=media)])
        return wire.decode_reply(reply)

    assert ask(b"yes")[0] == wire.OK and ask(b"yes")[3:] == (1, 32768) and ask(b"no")[3] == 0
    assert ask(b"123456")[0] == wire.TOO_LARGE and ask(b"yes", media="image/png")[0] == wire.MALFORMED


def test_a_model_of_numbers_takes_no_bytes():
    pair = pairs.load("digits")
    one = Worker(models.load(models.of_pair(pair)), 2)
    (reply,) = worker_replies(one, [wire.encode_request(2, 5, 1, (64,), bytes(64), dtype=wire.RAW, media="image/png")])
    assert wire.decode_reply(reply)[0] == wire.MALFORMED


def test_another_version_is_refused_as_such():
    one = Worker(models.load(models.of_pair(pairs.load("digits"))), 2)
    request = wire.encode_request(2, 5, 1, (8, 8, 1), bytes(64))
    old, wrong = one.refuse(b"\x01" + request[1:]), one.refuse(request[:-1])
    assert wire.decode_reply(old) == (wire.OTHER_VERSION, 5, 1, -1, 0) and wire.decode_reply(wrong)[0] == wire.MALFORMED


def predicted(path, body, _):
    """TensorFlow Serving's predict, of a sample's first number."""
    given = json.loads(body)["instances"]
    if path == "/none":
        return json.dumps({"error": "no such model"}).encode()
    return json.dumps({"predictions": [[1 - min(max(x[0] / 2, 0), 1), min(max(x[0] / 2, 0), 1)] for x in given]}).encode()


@pytest.fixture
def server():
    with serving(predicted) as url:
        yield url


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_a_remote_model_behind_a_url(trained, tmp_path, server, dtype):
    folder, _ = trained
    assert make(folder, tmp_path, f"{server}/v1/models/big:predict", dtype) == 0
    pair = pairs.load(str(tmp_path))
    assert pair.info.remote.model.startswith("http") and not list(tmp_path.glob("rdl*"))
    got = models.answers(pair)
    assert np.abs(got - np.clip(pair.x[:, 0] / 2, 0, 1)).max() < (0.02 if dtype == "int8" else 1e-6)
    assert "| RDL | URL | 0 |" in (tmp_path / "README.md").read_text()


def test_a_url_that_serves_nothing_is_said(trained, tmp_path, capsys, server):
    folder, _ = trained
    assert make(folder, tmp_path, f"{server}/none", "int8") == 2
    assert 'no "predictions" in its answer' in capsys.readouterr().err
    assert make(folder, tmp_path, f"http://127.0.0.1:{broker.free_port()}/x", "int8") == 2
    assert "refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more, why",
    [
        (("--encode", "{}/mine.py:none", "--media", "a/b"), "want bytes, 1 to 262144 (--limit) of a sample"),
        (("--encode", "{}/mine.py:blind", "--media", "a/b"), "encode.py:blind: ValueError: my camera gave no picture"),
        (("--limit", 10), "want bytes, 1 to 10 (--limit) of a sample"),
        (("--limit", 0), "want a whole number, 1 to 262144"),
        (("--encode", "", "--media", "a/b"), "go together"),
        (("--encode", "{}/nowhere.py:none"), "no such file"),
    ],
)
def test_bytes_that_cannot_be_are_refused(trained, tmp_path, capsys, more, why):
    folder, _ = trained
    words = [str(word).replace("{}", str(folder)) for word in more]
    assert make(folder, tmp_path, folder / "mine.py:scores", "raw", *words) == 2
    assert why in capsys.readouterr().err


def test_the_micro_bit_sends_int8(tmp_path):
    given = configuration(tmp_path, "microbit").model_copy(update={"remote_dtype": "uint8"})
    folder = ROOT / "models/breast_cancer"
    with pytest.raises(UserError, match="the micro:bit sends its recorded int8"):
        kinds.payload(kinds.KINDS["microbit"], kinds.Contents(folder / "ldl.h2m", given, folder / "samples.bin"))


def test_a_worker_of_more_classes_than_a_node_decides_between(tmp_path):
    """Forty classes of a function, asked for all of them, and for one."""
    (tmp_path / "mine.py").write_text("import numpy as np\ndef scores(x):\n    return np.eye(40)[x[:, 0] % 40]\n")
    pair = pairs.load("digits")
    one = Worker(models.load(models.of_pair(pair, f"{tmp_path}/mine.py:scores", "all")), 2)
    requests = [wire.encode_request(2, 5, n, (2,), bytes([n, 0])) for n in range(40)]
    assert [wire.decode_reply(reply)[3] for reply in worker_replies(one, requests)] == list(range(40))
    assert models.of_pair(pair, None, "0").event == 0 and models.of_pair(pair).event == 1


def test_a_moment_in_which_the_machine_stands_still_says_nothing_about_the_model(monkeypatch):
    """A second that is lost once must not make a worker refuse what it can answer; a model that has become slow is noticed."""
    now, took = [0.0], [0.001]

    class Model:
        raw, shape = False, (1,)

        def scores(self, batch):
            now[0] += took[0]
            return [0.5] * len(batch)

    monkeypatch.setattr("h2t2_tools.fleet.rdl.worker.perf_counter", lambda: now[0])
    serving = Worker(Model(), 1)
    request = wire.encode_request(1, 1, 1, (1,), b"\0", remaining_ms=1000)
    for _ in range(50):
        worker_replies(serving, [request])
    assert serving.seconds_each == pytest.approx(0.001, rel=0.1)
    took[0] = 1.0
    worker_replies(serving, [request])
    assert serving.seconds_each < 0.002
    for _ in range(60):
        worker_replies(serving, [request])
    assert serving.seconds_each > 0.9


@pytest.mark.parametrize(
    "entry", [[], [1.0] * 6, ["1"], [None], [True], [math.nan], [math.inf], [-math.inf], [[1]], "1", 1, None, {}]
)
def test_what_is_no_list_of_a_few_finite_numbers_is_refused(entry):
    with pytest.raises(ValueError, match="want"):
        paths.numbers(entry, 5)


def test_numbers_become_floats():
    assert paths.numbers([1, -2.5, 0, 1e9, 3], 5) == (1.0, -2.5, 0.0, 1e9, 3.0)
