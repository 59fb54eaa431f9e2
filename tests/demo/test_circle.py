"""A device in the field gets better by itself, and is not made worse: real firmware on emulated boards, a real broker, a real
worker. The offloads of its weak model train a better one, which is signed, brought, tried and kept; a worse one goes back."""

import json
import subprocess
import sys
import threading
from contextlib import closing

import numpy as np
import pytest
import weak_pair
from support import need, until, worker

from h2t2_tools.boards import flash
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.boards.kinds import KINDS, Contents
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet import config
from h2t2_tools.fleet.samples import sample_store

BETA, FALSE_ALARM, MISSED = 0.2, 0.7, 1.0
LIVED = 1500  # samples before the first update, at least
KEPT = 300  # of them asked about: how many of so many depends on the node's draws, and a quarter must be enough to judge by
MEASURED = 2000
BESIDE_THE_RULE = np.array([1.5, 2.0, 0, 0, 0, 0])  # at a right angle to weak_pair.RULE
APP = """patient = True
n = -1
file = open("rows.csv")  # a board has no room for all of them
recent = []  # (row, its number): of what may be undecided


def sense():
    global n
    line = file.readline()
    if not line:
        file.seek(0)
        n = -1
        line = file.readline()
    n += 1
    row = [float(x) for x in line.split(",")]
    recent.append((row, n))
    del recent[:-9]
    return row


def act(decision):
    number = [n for row, n in recent if row is decision.tag or row == decision.tag][-1]
    print("decided", number, decision.label, decision.source)
"""
CONFIG = """device = "porch"
broker = "{host}"
port = {port}
model_id = {model}
remote_shape = [6]
beta = 0.2
deadline = "20s"
pair = "{pair}"
app = "app.py"
update_key = "{key}"
snapshot = "h2t2.state"
"""


class Life:
    """A node that runs on an emulated board, and what its decisions cost, by what the remote model says of every row."""

    def __init__(self, emulator, folder, labels):
        self.labels, self.costs, self.said = labels, [], []
        command = emulator.node(folder / "main.py")
        env = emulator.environment(folder)
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            words = line.split()
            if words[:1] != ["decided"]:
                self.said += [line] if line.startswith("h2t2") or "Error" in line or "File" in line else []
                continue
            true, said = self.labels[int(words[1])], int(words[2])
            wrong = 0 if said == true else MISSED if true else FALSE_ALARM
            self.costs.append(BETA if words[3] == "remote" else wrong)

    def lives(self, samples, seconds=500):
        """So many samples more; their mean cost."""
        first = len(self.costs)
        assert until(lambda: len(self.costs) >= first + samples or self.process.poll() is not None, seconds), self.summary()
        assert self.process.poll() is None, self.summary()
        return float(np.mean(self.costs[first : first + samples]))

    def ends(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()

    def summary(self):
        return f"{len(self.costs)} samples; " + "".join(self.said)[-3000:]


@pytest.mark.whole
@pytest.mark.timeout(900)
@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=["unix", "arm32"])
def test_a_device_gets_better_and_is_not_made_worse(emulator, broker, tmp_path, capsys):
    need(emulator)
    weak = weak_pair.make(tmp_path, "--beta", str(BETA))
    rng = np.random.default_rng(8)
    x, labels = weak_pair.draw_samples(rng, 400)
    # It knows nothing of the rule. Random labels would by chance: of those of one seed a model learned 79 % of the rule.
    worse = weak_pair.with_model(tmp_path, "worse", x, (x @ BESIDE_THE_RULE > 0).astype(int), "--beta", str(BETA))
    assert main(["update", "keys", "--out", str(tmp_path / "fleet")]) == 0
    board = tmp_path / "board"
    board.mkdir()
    with worker(broker.url, str(weak.folder), "--keep", str(tmp_path / "kept")):
        flash_node(tmp_path, weak, broker, board, x, emulator)
        life = Life(emulator, board, labels)
        try:
            life.lives(LIVED - 500)
            assert until(lambda: kept_samples(tmp_path) >= KEPT, 500), (kept_samples(tmp_path), life.summary())
            before = life.lives(500)
            better = tmp_path / "better"
            assert main(["retrain", str(weak.folder), "--samples", str(tmp_path / "kept"), "--out", str(better)]) == 0
            report = updated(tmp_path, pairs.load(str(better)), broker, capsys)
            assert report["devices"][0]["outcome"] == "kept" and not report["stopped"], (report, life.summary())
            after = life.lives(MEASURED)
            assert after < before * 0.8, (before, after, life.summary())
            report = updated(tmp_path, worse, broker, capsys, status=1)
            assert report["devices"][0]["outcome"] == "back", (report, life.summary())
            assert "a sample costs 0." in report["devices"][0]["why"]
            assert life.lives(500) < before * 0.8  # with what it had learned
        finally:
            life.ends()
    print(f"cost a sample before {before:.4f}, after {after:.4f}", file=sys.stderr)


def kept_samples(folder):
    """How many samples the worker has kept so far."""
    with closing(sample_store.open_folder(folder / "kept")) as base:
        return sum(1 for _ in sample_store.read(base))


def flash_node(folder, pair, broker, board, x, emulator):
    """The node of this checkout onto the board."""
    (folder / "app.py").write_text(APP)
    given = {"host": broker.host, "port": broker.port, "model": weak_pair.MODEL, "key": folder / "fleet.pub"}
    (folder / "h2t2.toml").write_text(CONFIG.format(**given, pair=pair.folder))
    rows = "".join(",".join(f"{value:.4f}" for value in row) + "\n" for row in x).encode()
    contents = Contents(pair.folder / "ldl.h2m", config.load(folder / "h2t2.toml"), own={"rows.csv": rows})
    flash.flash(KINDS["unix"], str(board), contents, False, lambda *_: None, interpreter=emulator)


def updated(folder, pair, broker, capsys, status=0):
    """What `h2t2 update` reports, of a package of that pair."""
    made = folder / f"{pair.folder.name}.h2u"
    command = ["update", "sign", str(pair.folder), "--key", str(folder / "fleet.key"), "--trial", "300"]
    command += ["--trial-time", "1", "--out", str(made)]
    assert main(command) == 0
    capsys.readouterr()
    assert main(["update", "porch", str(made), "--soak", "0", "--broker", broker.url, "--json", "-"]) == status
    return json.loads(capsys.readouterr().out)
