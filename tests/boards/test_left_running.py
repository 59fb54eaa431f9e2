"""What h2t2 flash leaves behind on an emulated Pico: a node that runs, or its files as they were, and room for the next try."""

import json
import shutil

import pytest
from snapshots import restored, saved
from support import made_once, need

from h2t2.core import policies
from h2t2.node import start
from h2t2.node.store import file_store
from h2t2_tools.boards import flash, kinds, project, targets
from h2t2_tools.boards.emulators import catalogue, flash_image
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.boards.repl import RawRepl, open_line
from h2t2_tools.boards.targets import wait_hello
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure, UserError
from h2t2_tools.model import bundle

pytestmark = [pytest.mark.whole, pytest.mark.timeout(1200)]
START_S = 400  # until a node is ready: three seconds of the chip, which an emulator beside other work needs a minute for
LESSONS = 40  # that the node has learned before each test
APP = """from time import sleep
ROW = {row}
def sense():
    sleep(.2)
    return ROW
def act(decision):
    pass
"""


def flashed(folder, port, dry=False, **options):
    return flash.flash(KINDS["pico"], port, project.load(folder).contents, dry, lambda *_: None, **options)


@pytest.fixture(scope="module")
def shed(tmp_path_factory):
    """A project whose node never ends, and the flash of a Pico that has it: (folder, file)."""
    need(catalogue.PICO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flash, "BOOT_S", START_S)
        made = made_once(tmp_path_factory, "shed", make_shed)
        yield made / "shed", made / "flash.bin"


def make_shed(made):
    """Write the project `shed`, and flash a Pico whose flash is `flash.bin`."""
    folder, image = made / "shed", made / "flash.bin"
    pair = pairs.load("breast_cancer")
    project.write(folder, pair, bundle=bundle.for_board(pair, "pico"), board="pico")
    (folder / "app.py").write_text(APP.format(row=pair.x[0].tolist()))
    flash_image.runtime_on_a_pico(image)
    with Pico(image) as pico:
        assert flashed(folder, pico.port, replace_app=True)["hello"] == "shed"
        store, policy = file_store(str(made / "learned")), policy_of(folder)
        while policy.lessons < LESSONS:
            policy.decide(policy.ticket % 16)
            policy.learn(policy.ticket, policy.lessons % 2)
        store.save(saved(policy, policy.cost_list()))
        with RawRepl(pico.port, pace=False) as repl:
            for path in {f"h2t2.state.{n}" for n in (0, 1)} & {*repl.files()}:
                repl.remove(path)
            repl.write_file(f"h2t2.state.{store.newest[1]}", (made / f"learned.{store.newest[1]}").read_bytes())


def policy_of(folder):
    """The policy of a project's node, in its first state."""
    config = json.loads(kinds.payload(KINDS["pico"], project.load(folder).contents)["config.json"])
    return policies.make(config["policy"], start.seeded(config))


def lessons_kept(board, shed, folder):
    """The number of lessons in the newest snapshot of a board, as its node would restore them."""
    policy = policy_of(shed)
    with RawRepl(board.port, pace=False) as repl:
        names = repl.files()
        assert not [name for name in names if ".kept" in name], "a snapshot was set aside"
        for name in names:
            if name.startswith("h2t2.state."):
                (folder / name).write_bytes(repl.read_file(name))
    restored(policy, file_store(str(folder / "h2t2.state")).load(), policy.cost_list())
    return policy.lessons


@pytest.fixture
def pico(shed, tmp_path):
    """That Pico, with its node running. What it has learned is there at the end of each test."""
    image = tmp_path / "flash.bin"
    shutil.copy(shed[1], image)
    with Pico(image) as board:
        started(board)
        yield board
        assert lessons_kept(board, shed[0], tmp_path) == LESSONS


def started(board):
    """Wait until the node of a board says that it is ready."""
    line = open_line(board.port, 115200)
    try:
        wait_hello(lambda: line.read(4096), b"h2t2: ready", START_S)
    finally:
        line.close()


def test_a_dry_run_leaves_the_node_running(pico, shed):
    assert flashed(shed[0], pico.port, True)["copied"] == 0
    started(pico)


def test_a_refusal_leaves_the_node_running(pico, shed, tmp_path):
    folder = tmp_path / "shed"
    shutil.copytree(shed[0], folder)
    (folder / "app.py").write_text((folder / "app.py").read_text() + "# another\n")
    with pytest.raises(UserError, match=r"the board holds another app\.py"):
        flashed(folder, pico.port)
    started(pico)


def test_a_failure_while_files_are_copied_leaves_the_node_running(pico, shed, tmp_path, monkeypatch):
    folder = tmp_path / "shed"
    shutil.copytree(shed[0], folder)
    (folder / "h2t2.toml").write_text("beta = 0.3\n" + (folder / "h2t2.toml").read_text())

    def fails(*_, **__):
        raise Failure("the line loses bytes")

    with monkeypatch.context() as patch:
        patch.setattr(RawRepl, "write_file", fails)
        with pytest.raises(Failure, match="still has its previous program"):
            flashed(folder, pico.port)
    started(pico)


def test_a_cable_that_is_pulled_while_files_are_copied_leaves_the_node_running(pico, shed, tmp_path, monkeypatch):
    """Amid a file. The board has power from elsewhere: its watchdog starts the node, and the next flash goes on."""
    folder = tmp_path / "shed"
    shutil.copytree(shed[0], folder)
    (folder / "h2t2.toml").write_text("beta = 0.3\n" + (folder / "h2t2.toml").read_text())

    def pulled(self, path, data, check=True):
        self.run(f"f=open({path!r},'wb');f.write({data[: len(data) // 2]!r})")
        self.line.close()
        self.run("f.close()")

    with monkeypatch.context() as patch:
        patch.setattr(RawRepl, "write_file", pulled)
        with pytest.raises(Failure, match="the board is gone.*still has its previous program"):
            flashed(folder, pico.port)
    pico.wait("reset", START_S)
    started(pico)
    assert flashed(folder, pico.port)["hello"] == "shed"


def test_a_host_that_vanishes_while_it_checks_does_not_stop_the_watchdog(pico, shed, monkeypatch):
    """Killed in the middle of a check: the node's watchdog starts it again."""
    monkeypatch.setattr(flash, "check", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    monkeypatch.setattr(targets.Repl, "restart", lambda self: None)  # it could not do that any more
    with pytest.raises(KeyboardInterrupt):
        flashed(shed[0], pico.port, True)
    pico.wait("reset", START_S)
    started(pico)


def test_a_program_of_the_users_own_is_not_ended(pico, shed):
    with RawRepl(pico.port, pace=False) as repl:
        repl.write_file("main.py", b"print('mine')\n")
    with pytest.raises(UserError, match=r"the board holds another main\.py; save it, or give --replace-app"):
        flashed(shed[0], pico.port)
    with RawRepl(pico.port, pace=False) as repl:
        assert repl.read_file("main.py") == b"print('mine')\n"
    assert flashed(shed[0], pico.port, replace_app=True)["hello"] == "shed"


FILL = """import os
s = os.statvfs('/')
n = s[3] - {free}
with open('recordings.bin', 'wb') as f:
    for _ in range(n):
        f.write(bytes(s[0]))
print(os.statvfs('/')[3])
"""


@pytest.mark.evidence
def test_the_room_of_files_is_counted_in_blocks_before_anything_is_copied(pico, shed, monkeypatch):
    """As many bytes as files have, are not enough: each takes whole blocks, and the present ones stay until the end."""
    real = flash.payload
    monkeypatch.setattr(
        flash, "payload", lambda *words: {n: d + b"\n" if n[-3:] == "mpy" else d for n, d in real(*words).items()}
    )
    with RawRepl(pico.port, pace=False) as repl:
        room = int(repl.run(FILL.format(free=50)))
    with pytest.raises(UserError, match=r"bytes to copy take [\d,]+ in its file system, which has [\d,]+ free"):
        flashed(shed[0], pico.port)
    with monkeypatch.context() as patch:  # a board whose free space is less than what it says
        patch.setattr(flash, "check_room", lambda *_: None)
        with pytest.raises(Failure, match="its file system is full. The board still has its previous program"):
            flashed(shed[0], pico.port)
    started(pico)
    with RawRepl(pico.port, pace=False) as repl:
        left = int(repl.run("import os;print(os.statvfs('/')[3])"))
        folders = int(repl.run("import os;print(2 + sum(e[1] == 0x4000 for e in os.ilistdir('/h2t2')))"))
        assert left >= room - 2 * folders - 1  # littlefs never joins the pairs of a folder's list again; and a snapshot
        repl.run("import os;os.remove('recordings.bin')")
    assert flashed(shed[0], pico.port)["hello"] == "shed"


ENDING = """rows = [{row}] * 3
starts = 0
def setup(config):
    global starts, out
    starts += 1
    if starts < 3:
        raise ValueError("nothing answers at 0x76")
    out = open("decided.csv", "a")
def sense():
    if not rows:
        raise StopIteration
    return rows.pop()
def act(decision):
    out.write("%d\\n" % decision.label)
    out.flush()
"""


def heard(board, mark):
    """Return what a board prints up to a mark."""
    line = open_line(board.port, 115200)
    try:
        return wait_hello(lambda: line.read(4096), mark, START_S)
    finally:
        line.close()


def ten_minutes(board, repl):
    """Let ten minutes of the chip pass at its prompt; nothing resets it meanwhile."""
    while not board.events.empty():
        board.events.get()
    board.ask("pace", on=False)  # the chip's time flies while it waits
    assert repl.run("import time\ntime.sleep(600)\nprint(1)", 300) == "1\n"
    board.ask("pace", on=True)
    assert board.events.empty()


def test_a_setup_that_raises_and_a_program_that_ends_are_no_loop(shed, pico, tmp_path):
    """With the default watchdog of 8 s. It was reset after each, and appended the same decisions again."""
    folder = tmp_path / "shed"
    shutil.copytree(shed[0], folder)
    (folder / "app.py").write_text(ENDING.format(row=pairs.load("breast_cancer").x[0].tolist()))
    flashed(folder, pico.port, replace_app=True, start=False)
    pico.reset()
    said = heard(pico, b">>> ")  # MicroPython's prompt, after the program
    assert said.count(b"starting again in") == 2 and b"ended: no more samples" in said
    with RawRepl(pico.port, pace=False) as repl:
        ten_minutes(pico, repl)
        assert repl.read_file("decided.csv").count(b"\n") == 3
        log = repl.read_file("h2t2.log")
    assert log.count(b"ValueError: nothing answers at 0x76") == 2 and b"ended: no more samples" in log


def test_a_session_of_mpremote_is_not_cut_off(pico):
    """It asks for the prompt with Ctrl-C and a soft reset."""
    with RawRepl(pico.port, pace=False) as repl:
        ten_minutes(pico, repl)
        assert b"ended: Ctrl-C at its line; the watchdog is off" in repl.read_file("h2t2.log")
        repl.reset()
    started(pico)
