"""Options and fixtures of the HIL tests: the boards, a broker, a remote model, and what JUnit's file says of each test."""

import json
import sys
from pathlib import Path

import pytest
from rig import ENTRIES, Board, Material

from h2t2_lab.emulators import install
from h2t2_tools.fleet import broker

HERE = Path(__file__).parent
ROOT = HERE.parent
QUICK = ("unix", "arm32", "wasm")  # the emulated boards of `make test`
NEWER = "-forky"  # a board with a newer MicroPython; with --quick it runs these tests alone, for the board itself runs all
ON_NEWER = ("test_golden_vectors", "test_decisions_equal_the_hosts")
sys.path.insert(0, str(ROOT / "tests"))


def pytest_addoption(parser):
    group = parser.getgroup("hil")
    group.addoption("--board", action="append", help="ID of boards.toml, `emulated` (default) or `all`; repeatable")
    group.addoption("--install", action="store_true", help="fetch or build the missing emulators of these boards first")
    group.addoption("--port", help="serial line of a real board")
    group.addoption("--flash", action="store_true", default=True, help="put the node of this checkout onto the board (default)")
    group.addoption("--no-flash", dest="flash", action="store_false", help="test the files that are already on the board")
    group.addoption("--broker", help="mqtt://host:port of a running broker; without it the tests start a Mosquitto")
    group.addoption("--repeat", type=int, default=1, metavar="N", help="run every test N times")
    group.addoption("--quick", action="store_true", help="test less on slow boards and newer MicroPythons, as make does")


def chosen(config):
    ids = config.getoption("--board") or ["emulated"]
    entries = [e for e in ENTRIES if e["id"] in ids or "all" in ids or ("emulated" in ids and "emulator" in e)]
    unknown = set(ids) - {e["id"] for e in ENTRIES} - {"all", "emulated"}
    if unknown:
        raise pytest.UsageError(f"--board {', '.join(unknown)}: not in hil/boards.toml ({', '.join(e['id'] for e in ENTRIES)})")
    return entries


def pytest_sessionstart(session):
    if session.config.getoption("--install"):
        names = {entry.get("emulator") for entry in chosen(session.config)}
        install.install([board for board in install.EMULATORS if board.name in names and board.missing()], print)


def pytest_generate_tests(metafunc):
    if "board" in metafunc.fixturenames:
        needs = set(getattr(metafunc.function, "needs", ()))
        entries = [e for e in chosen(metafunc.config) if needs <= set(e["features"])]
        metafunc.parametrize("board", entries, indirect=True, ids=[e["id"] for e in entries])
    repeat = metafunc.config.getoption("--repeat")
    if repeat > 1:
        metafunc.fixturenames.append("round_of")
        metafunc.parametrize("round_of", range(repeat))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Deselect tests for which no chosen board has the features, because pytest would report each as skipped.

    Boards that are slow or built from source run in the whole suite only.
    """
    own = [item for item in items if HERE in item.path.parents]  # tests elsewhere may have a parameter `board` of their own
    params_of = [(item, item.callspec.params if hasattr(item, "callspec") else {}) for item in own]
    empty = [item for item, params in params_of if "board" in params and not isinstance(params["board"], dict)]
    if config.getoption("--quick"):
        empty += [item for item, params in params_of if _is_repeated(item, params)]
    if empty:
        config.hook.pytest_deselected(items=empty)
        items[:] = [item for item in items if item not in empty]
    for item, params in params_of:
        emulator = params["board"].get("emulator", "") if isinstance(params.get("board"), dict) else "unix"
        if emulator not in QUICK or (item.get_closest_marker("long") and emulator != "unix"):
            item.add_marker("whole")
            item.add_marker("slow")


def _is_repeated(item, params):
    """Whether a test runs on a board with a newer MicroPython, and the board with the older one is enough."""
    board = params.get("board")
    return isinstance(board, dict) and board["id"].endswith(NEWER) and item.originalname not in ON_NEWER


@pytest.fixture
def board(request):
    device = Board(request.param, request.config.getoption("--port"), request.config.getoption("--flash"))
    record(request, board=device.id, emulated=bool(device.emulator))
    reason = device.absent()
    if reason:
        pytest.skip(reason)
    yield device
    record(request, firmware=device.firmware)
    report = request.config.getoption("xmlpath")
    if device.serial_log and report:
        log = Path(report).parent / "hil-logs" / f"{request.node.originalname}-{device.id}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("\n".join(device.serial_log) + "\n")
        record(request, log=str(log))


@pytest.fixture
def figures(request):
    """Figures of a test for the report: heap_before, heap_after, instructions or others."""
    values = {}
    yield values
    record(request, **values)


def record(request, **properties):
    """Put properties of a test, as JSON, into JUnit's file."""
    request.node.user_properties += [(name, json.dumps(value)) for name, value in properties.items()]


class Elsewhere:
    """A running broker, named by --broker."""

    def __init__(self, url):
        self.url = url
        self.host, self.port = broker.parse(url)

    def stop(self, kill=False):
        pytest.skip(f"the tests may not stop the broker of --broker {self.url}")


@pytest.fixture
def mosquitto(tmp_path_factory, request):
    """A Mosquitto that the test may stop and start, or the broker of --broker, which it may not."""
    url = request.config.getoption("--broker")
    if url:
        yield Elsewhere(url)
        return
    from support import mosquitto as own

    with own(tmp_path_factory.mktemp("mosquitto")) as server:
        yield server


@pytest.fixture
def rdl(mosquitto):
    """The process of a real RDL worker behind the broker."""
    from support import worker

    with worker(mosquitto.url, "breast_cancer") as process:
        yield process


@pytest.fixture
def make_material(tmp_path, mosquitto, board):
    """Return make_material(samples, **config) -> Material, for the test's broker and a policy that the board has room for."""
    policy = {"policy": "h2t2", "exploration": "epsilon"} if board.kind == "microbit" else {"policy": "adaptive"}
    entries = {"broker": board.broker(mosquitto.host), "port": mosquitto.port, "device": "hil", **policy}
    return lambda samples, **config: Material(tmp_path, samples, {**entries, **config})
