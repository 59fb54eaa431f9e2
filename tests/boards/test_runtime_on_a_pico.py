"""A Pico behind a gateway gets another runtime over its line, runs it on trial, and keeps it."""

import json
import sys

import pytest
from command_line import started
from support import need, until

from h2t2_tools.boards import flash, project
from h2t2_tools.boards.emulators import catalogue, flash_image
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.kinds import KINDS, runtime_files
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.boards.targets import mpy_number
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.fleet.update import delivery, signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions
from h2t2_tools.model import bundle

APP = """def sense():
    return {row}
def act(decision):
    pass
"""


@pytest.mark.evidence
@pytest.mark.timeout(1500)
def test_a_pico_gets_a_runtime_over_its_line_and_keeps_it(broker, tmp_path, capsys, monkeypatch):
    """From its own flash: the folders, selector.py, the resets and the watchdog, which 70 files must not let end."""
    need(catalogue.PICO)
    monkeypatch.setattr(delivery, "AGAIN_S", 60.0)  # an emulated chip is several times slower than its sender expects
    folder, pair, image = tmp_path / "shed", pairs.load("breast_cancer"), tmp_path / "flash.bin"
    assert main(["update", "keys", "--out", str(tmp_path / "fleet")]) == 0
    project.write(folder, pair, bundle=bundle.for_board(pair, "pico"), board="pico")
    (folder / "app.py").write_text(APP.format(row=pair.x[0].tolist()))
    toml = folder / "h2t2.toml"
    toml.write_text(f'update_key = "{tmp_path}/fleet.pub"\nevery = "1s"\n' + toml.read_text())
    files = runtime_files(KINDS["pico"], ["app", "update_key", "ordered", "heads"])
    made = tmp_path / "runtime.h2u"
    options = PackageOptions(counter=7, trial=5, trial_time=1)
    made.write_bytes(signed_package.runtime(files, mpy_number("armv6m"), tmp_path / "fleet.key", options).content)
    flash_image.runtime_on_a_pico(image)
    with Pico(image) as pico:
        flash.flash(
            KINDS["pico"], pico.port, project.load(folder).contents, False, lambda *_: None, start=False, replace_app=True
        )
        words = ["gateway", "--port", f"{pico.port}=shed", "--broker", broker.url, "--fast", "--restart"]
        with started(*words) as gateway:
            capsys.readouterr()
            reports = []

            def is_delivered():
                """Deliver, once the node has said of itself how it is."""
                main(["update", "shed", str(made), "--soak", "0", "--patience", "300", "--broker", broker.url, "--json", "-"])
                out = capsys.readouterr().out
                reports.extend(json.loads(out)["devices"] if out else [])
                return reports and "never published" not in reports[-1]["why"]

            assert until(is_delivered, 300), gateway.poll()
            assert reports[-1]["outcome"] == "kept", reports[-1]
        print(gateway.log[-3000:], file=sys.stderr)
        with RawRepl(pico.port, pace=False) as repl:
            assert repl.run("print(open('h2t2.runtime').read())") == "h2t2_1 . 0\n"
            names = repl.run("import os\nprint(sorted(os.listdir('h2t2_1/h2t2')))")
            assert "'node'" in names
