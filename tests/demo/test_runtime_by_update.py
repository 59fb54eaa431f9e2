"""A runtime comes over MQTT to a node on MicroPython, in the heap of a Pico W: it is tried and kept; one that does not start
gives way. The test starts the process again where a board resets itself."""

import json
import subprocess
import threading
from dataclasses import replace

import pytest
from support import need, until

from h2t2_tools.boards import flash
from h2t2_tools.boards.cross import compiled_file
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.boards.kinds import KINDS, Contents, runtime_files
from h2t2_tools.boards.targets import mpy_number
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, places
from h2t2_tools.fleet import config
from h2t2_tools.fleet.update import signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions

PAIR = pairs.load("breast_cancer")
CONFIG = """device = "porch"
broker = "{host}"
port = {port}
model_id = {model}
remote_shape = {shape}
pair = "breast_cancer"
app = "app.py"
every = "10ms"
update_key = "{key}"
snapshot = "h2t2.state"
"""
APP = "def sense():\n    return {row}\ndef act(decision):\n    pass\n"
NEWER, BROKEN = b"\nprint('the newer runtime')\n", b"\nimport no_such_module\n"


class Lives:
    """A node's process, which starts again whenever it ends."""

    def __init__(self, emulator, folder):
        self.command, self.folder, self.environment = emulator.node(folder / "main.py"), folder, emulator.environment(folder)
        self.lines, self.starts, self.over = [], 0, False
        self.process = None
        self.reader = threading.Thread(target=self._live, daemon=True)
        self.reader.start()

    def _live(self):
        while not self.over:
            self.starts += 1
            self.process = subprocess.Popen(
                self.command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for line in self.process.stdout:
                if not line.startswith("{"):
                    self.lines.append(line)
            self.process.wait()

    def ends(self):
        self.over = True
        self.process.kill()
        self.reader.join()


@pytest.mark.whole
@pytest.mark.timeout(900)
@pytest.mark.parametrize("emulator, arch", [(UNIX, "x64"), (ARM32, "armv7emdp")], ids=["unix", "arm32"])
def test_a_runtime_comes_over_mqtt_and_one_that_does_not_start_gives_way(emulator, arch, broker, tmp_path, capsys):
    need(emulator)
    assert main(["update", "keys", "--out", str(tmp_path / "fleet")]) == 0
    board = tmp_path / "board"
    kind = replace(KINDS["unix"], arch=arch)

    def update(counter, addition):
        files = runtime_files(kind)
        source = (places.RUNTIME.parent / "h2t2/node/run.py").read_bytes()
        files.update([compiled_file("h2t2/node/run.py", source + addition, None)])
        options = PackageOptions(counter=counter, trial=50, trial_time=1)
        made = tmp_path / f"{counter}.h2u"
        made.write_bytes(signed_package.runtime(files, mpy_number(arch), tmp_path / "fleet.key", options).content)
        capsys.readouterr()
        main(["update", "porch", str(made), "--soak", "0", "--broker", broker.url, "--json", "-"])
        return json.loads(capsys.readouterr().out)["devices"][0]

    (tmp_path / "app.py").write_text(APP.format(row=[float(x) for x in PAIR.x[0]]))
    given = {"host": broker.host, "port": broker.port, "model": PAIR.info.model_id, "key": tmp_path / "fleet.pub"}
    (tmp_path / "h2t2.toml").write_text(CONFIG.format(**given, shape=list(PAIR.info.remote.shape)))
    contents = Contents(PAIR.folder / "ldl.h2m", config.load(tmp_path / "h2t2.toml"))
    flash.flash(KINDS["unix"], str(board), contents, False, lambda *_: None, interpreter=emulator)
    lives = Lives(emulator, board)
    try:
        assert until(lambda: any("ready" in line for line in lives.lines), 120), lives.lines
        delivered = update(7, NEWER)
        assert delivered["outcome"] == "kept", (delivered, lives.lines)
        assert lives.lines.count("the newer runtime\n") == 1 and lives.starts == 2
        delivered = update(8, BROKEN)
        assert (delivered["outcome"], delivered["why"]) == ("back", "the runtime does not start"), (delivered, lives.lines)
        assert sum("no_such_module" in line for line in lives.lines) == 3
        assert lives.lines.count("the newer runtime\n") >= 2 and (board / "h2t2_1").exists()
        assert "it has tried package 8 already" in update(6, NEWER)["why"]
    finally:
        lives.ends()
