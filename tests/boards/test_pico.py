"""The emulated Raspberry Pi Pico: a device on a serial port, for our tools and for somebody else's."""

import json
import re
import subprocess
import sys
import time
from contextlib import closing

import pytest
import replayed
from http_server import serving_folder
from support import ROOT, worker

from h2t2.cpython.whole_frames import encode
from h2t2.link import frames
from h2t2.node.node import SILENT_AFTER
from h2t2_lab.processes import remaining_output
from h2t2_tools.boards import flash, project
from h2t2_tools.boards import repl as repl_module
from h2t2_tools.boards.emulators import flash_image
from h2t2_tools.boards.emulators.catalogue import PICO
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.emulators.session import Out, analogue, obey
from h2t2_tools.boards.kinds import KINDS, Contents
from h2t2_tools.boards.rehearsal_peer import reply
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.boards.targets import Repl
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure, UserError
from h2t2_tools.fleet.config import NodeConfig, described

pytestmark = [
    pytest.mark.whole,
    # seconds of the chip's time, each of which takes a core of its own five, and a busy machine more
    pytest.mark.timeout(1200),
    pytest.mark.skipif(PICO.missing() is not None, reason=str(PICO.missing())),
]


def test_pins_adc_and_resets(tmp_path):
    """A relay and a button, a light sensor, three kinds of reset; the file system outlives them and the emulator."""
    image = tmp_path / "flash.bin"
    with Pico(image) as pico, RawRepl(pico.port, pace=False) as repl:
        assert pico.watch(15) == 0
        pico.set_pin(14, 1)
        pico.feed_adc(26, [100, 4095, 7])
        out = repl.run(
            "from machine import ADC, Pin, reset_cause\nrelay = Pin(15, Pin.OUT)\nrelay.on()\nlight = ADC(26)\n"
            "print(Pin(14, Pin.IN).value(), [light.read_u16() >> 4 for _ in range(4)], reset_cause())"
        )
        assert out == "1 [100, 4095, 7, 7] 1\n"
        assert [pico.wait("pin")["level"] for _ in range(2)] == [0, 1]
        repl.write_file("kept", b"yes")
        repl.start("import machine\nmachine.reset()")
        assert pico.wait("reset")["by"] == "software"
        pico.wait("ready")
        repl.interrupt()
        assert repl.run("import machine\nprint(machine.reset_cause(), open('kept').read())") == "3 yes\n"
        repl.start("from machine import WDT\nw = WDT(timeout=500)\nwhile True:\n pass")
        assert pico.wait("reset")["by"] == "watchdog"
        pico.wait("ready")
        pico.reset()
        told = pico.time()
        assert told["cycles"] > 1e7 and told["slower"] > 0.1 and told["on"] and told["operations"] > 3
        pico.power(False)
        assert not pico.time()["on"]
    with Pico(image) as pico, RawRepl(pico.port, pace=False) as repl:
        assert repl.read_file("kept") == b"yes"


def test_power_is_cut_where_it_was_asked_for(tmp_path):
    image = tmp_path / "flash.bin"
    with Pico(image) as pico, RawRepl(pico.port, pace=False) as repl:
        repl.write_file("state", b"older")
        found = []
        for when in ("before", "middle", "after"):
            pico.cut(1, when)
            repl.start("f = open('state', 'w')\nf.write('newer')\nf.close()")
            told = pico.wait("cut")
            assert told["when"] == when and told["kind"] in ("erase", "program") and not pico.time()["on"]
            pico.power()
            repl.interrupt()
            found.append(repl.read_file("state"))
        assert found[0] == b"older" and {*found} <= {b"older", b"newer"}
        board = Repl(repl, True)
        assert not board.loses_files()
        repl.run("import os, vfs, rp2\nos.umount('/')\nvfs.VfsFat.mkfs(rp2.Flash())\nvfs.mount(vfs.VfsFat(rp2.Flash()), '/')")
        assert board.loses_files()
        pico.ask("load", path=str(image))
        assert pico.alive()


def test_a_slow_line_needs_no_pauses_where_the_board_controls_the_flow(monkeypatch):
    """A file of 20 KB to a board behind a UART: it took 3,600 pauses. What it raises comes back as ever."""
    pauses = []
    with Pico() as pico, RawRepl(pico.port) as repl:
        monkeypatch.setattr(repl_module.time, "sleep", pauses.append)
        content = bytes(n * n % 251 for n in range(20_000))
        repl.write_file("a", content)
        assert repl.read_file("a") == content and repl.run("print(1)") == "1\n"
        for source, words in (("1 / 0", "ZeroDivisionError"), ("if:\n" + "x=1\n" * 500, "SyntaxError")):
            with pytest.raises(Failure, match=words):
                repl.run(source)
        assert repl.run("print('é' * 300)") == "é" * 300 + "\n"
    assert len(pauses) < 200


def test_in_words_for_who_has_no_use_for_python(tmp_path):
    (tmp_path / "light.csv").write_text("1, 2\n3\n")
    assert analogue(f"26={tmp_path / 'light.csv'}") == (26, [1, 2, 3])
    (tmp_path / "dark.csv").write_text("4096\n")
    for text, why in ((f"26={tmp_path / 'dark.csv'}", "0 to 4095"), ("5=x", "PIN=FILE"), (f"26={tmp_path}/x", "no such file")):
        with pytest.raises(UserError, match=why):
            analogue(text)
    command = [sys.executable, "-m", "h2t2_tools", "emulate", "pico", "--link", str(tmp_path / "pico"), "--watch", "15"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "an emulated Pico is at" in process.stderr.readline()
        listed = {row["port"]: row["about"] for row in flash.ports()}
        assert listed[str(tmp_path / "pico")] == "emulated Raspberry Pi Pico"
        with RawRepl(str(tmp_path / "pico"), pace=False) as repl:
            repl.run("from machine import Pin\nPin(15, Pin.OUT).on()")
        process.stdin.write("time\nnonsense\n")
        process.stdin.flush()
        assert "'nonsense': say pin N LEVEL" in process.stderr.readline()
        told = [json.loads(process.stdout.readline()) for _ in range(4)]
        assert [line["event"] for line in told] == ["ready", "pin", "pin", "time"] and told[2]["level"] == 1
    finally:
        process.terminate()
        trouble = remaining_output(process, 20)[1]
    assert not (tmp_path / "pico").is_symlink() and "Traceback" not in trouble
    with pytest.raises(Failure, match="has ended"):
        stopped = Pico()
        stopped._process.kill()
        stopped._process.wait()
        try:
            obey(stopped, ["time"], Out(print, print))
        finally:
            stopped.stop()


def mpremote(pico, *words):
    command = [sys.executable, "-m", "mpremote", "connect", pico.port, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, (words, done.stdout[-300:], done.stderr[-300:])
    return done.stdout


@pytest.mark.evidence
def test_mpremote_unchanged_puts_the_runtime_on_it(tmp_path):
    """Somebody else's client: fs, run, and mip install of our package.json from a web server; then a node that it stops."""
    script = tmp_path / "mine.py"
    script.write_text("import h2t2.core.h2t2 as h2t2\nprint(h2t2.H2T2().decide(3))\n")
    with Pico() as pico, serving_folder(ROOT / "firmware") as url:
        mpremote(pico, "mip", "install", "--target", "/", f"{url}/boards/pico/package.json")
        mpremote(pico, "fs", "cp", str(script), ":mine.py")
        assert mpremote(pico, "fs", "cat", ":mine.py") == script.read_text()
        assert mpremote(pico, "run", str(script)) in ("-1\n", "0\n", "1\n")
        config = {"link": "serial", "device": "d", "policy": "h2t2", "arguments": {"bits": 4}, "ldl": "ldl.h2m", "event": 1}
        config.update(remote_shape=[30], model_id=1, in_flight=1, deadline_ms=50, records="samples.bin", every_us=100000)
        (tmp_path / "config.json").write_text(json.dumps(config))
        (tmp_path / "samples.bin").write_bytes(bytes(35 * 400))
        for file in (ROOT / "models/breast_cancer/ldl.h2m", tmp_path / "config.json", tmp_path / "samples.bin"):
            mpremote(pico, "fs", "cp", str(file), ":")
        pico.reset()
        with closing(RawRepl(pico.port, pace=False)) as line:
            line.until(b"h2t2: ready", 200)
        assert "main.py" in mpremote(pico, "fs", "ls")  # it stopped the node that was running


RELAY = """
from machine import Pin

relay = Pin(15, Pin.OUT)
_write = act


def act(decision):
    relay.value(decision.label)
    _write(decision)
"""


@pytest.mark.evidence
def test_a_node_with_a_relay_whose_gateway_is_killed(broker, tmp_path, request):
    """500 real samples of the digits, 100 with --quick: every decision is the host's, with and without answers."""
    samples = 100 if request.config.getoption("--quick", False) else 500
    folder, pair = tmp_path / "shed", pairs.load("digits")
    project.write(folder, pair, bundle=(pair.folder / "ldl.h2m").read_bytes(), board="pico")
    order = pairs.draw_indices(pair, samples, 5)
    rows = [",".join(f"{v:.7g}" for v in pair.x[n].ravel().tolist()) for n in order]
    (folder / "samples.csv").write_text("\n".join(rows) + "\n")
    app = folder / "app.py"
    assert "raise StopIteration" in app.read_text()
    app.write_text(app.read_text().replace("raise StopIteration", "return None") + RELAY)  # it runs on, and feeds its watchdog
    toml = folder / "h2t2.toml"
    assert 'watchdog = "8s"' in toml.read_text()
    toml.write_text(re.sub(r"# deadline = \S+", 'deadline = "400ms"', toml.read_text()))
    contents = project.load(folder).contents
    contents = type(contents)(contents.model, contents.config, None, contents.own)
    image = tmp_path / "flash.bin"
    flash_image.runtime_on_a_pico(image)
    events = []
    with worker(broker.url), Pico(image, events.append) as pico:
        pico.watch(15)
        flash.flash(KINDS["pico"], pico.port, contents, False, lambda *_: None, start=False)
        first = gateway(pico, broker.url, "--restart")
        for _ in range(60):
            assert first.stdout.readline()
        first.kill()
        first.wait()
        time.sleep(1)
        second = gateway(pico, broker.url)
        told = [json.loads(line) for line in iter(second.stdout.readline, "") if ended(line, second, samples - 1)]
        second.wait(30)
        with RawRepl(pico.port, pace=False) as repl:
            decided = written(repl.read_file("decisions.csv"))
            pico.ask("pace", on=False)  # the chip's time flies while it waits; Ctrl-C has released the watchdog
            repl.run("import time\ntime.sleep(600)", 300)
        assert not [event for event in events if event["event"] == "reset"]
    assert len(decided) == samples and told[-1]["n"] == samples - 1
    sources = [source for _, source, _ in decided]
    arguments = contents.config.content()["arguments"]
    data, event, silent = "\n".join(rows), contents.config.event, range(SILENT_AFTER + 1)
    assert decided in [replayed.decisions(pair.folder, data, arguments, event, sources, lost=n)[0] for n in silent]
    gone = [n for n, source in enumerate(sources) if source == "fallback"]
    assert gone and "remote" in sources[: gone[0]] and "remote" in sources[gone[-1] :], sources
    levels = [label for n, (label, *_) in enumerate(decided) if n == 0 or decided[n - 1][0] != label]
    switched = [event["level"] for event in events if event["event"] == "pin"]
    assert switched[: len(levels)] == levels or switched[1 : len(levels) + 1] == levels  # it begins switched off


def test_a_project_runs_on_it_and_goes_on_where_it_was(tmp_path, capsys):
    """`h2t2 new --board pico`, `h2t2 run --board pico`, twice: the second start knows what the first has learned."""
    folder = tmp_path / "shed"
    assert main(["new", str(folder), "--from", "breast_cancer", "--board", "pico"]) == 0
    data = (folder / "samples.csv").read_text().splitlines(keepends=True)
    (folder / "samples.csv").write_text("".join(data[:12]))
    for restored in (False, True):
        assert main(["run", str(folder), "--board", "pico", "--json", str(tmp_path / "report.json")]) == 0
        report = json.loads((tmp_path / "report.json").read_text())
        assert report["summary"]["samples"] == sum(report["decisions"].values()) == 12
        assert report["summary"]["restored"] == restored and (folder / "run-pico/flash.bin").is_file()
    capsys.readouterr()
    (folder / "h2t2.toml").write_text((folder / "h2t2.toml").read_text() + '\nbroker = "somewhere"\n')
    assert main(["flash", str(folder), "--board", "pico", "--dry-run"]) == 2
    assert "broker: a pico has no network" in capsys.readouterr().err


def flashed(pico, name, folder):
    """Flash a shipped pair with five recorded samples, and answer its node's questions.

    Return the node's summary, its snapshots, and those that it set aside: their contents by name.
    """
    pair = pairs.load(name)
    folder.mkdir(exist_ok=True)
    config = NodeConfig(**{**described(pair.info), "device": "shelf", "deadline": 5})
    contents = Contents(pair.folder / "ldl.h2m", config, folder / "samples.bin")
    contents.records.write_bytes(bytes(5 * contents.record_size))
    flash.flash(KINDS["pico"], pico.port, contents, False, lambda *_: None, start=False)
    decoder = frames.Decoder()
    with RawRepl(pico.port, pace=False) as repl:
        repl.reset()
        summaries = []
        while not summaries:
            arrived = decoder.feed(repl.read())
            summaries = [json.loads(payload) for kind, payload in arrived if kind == frames.END]
            for payload in [payload for kind, payload in arrived if kind == frames.REQUEST]:
                repl.line.write(encode(frames.REPLY, reply(payload)))
        repl.interrupt(300)
        states = {file: repl.read_file(file) for file in repl.files() if file.startswith("h2t2.state")}
        return summaries[0], *({file: states[file] for file in states if ("kept" in file) is kept} for kept in (False, True))


def test_a_pair_begins_with_no_lessons_of_another(tmp_path):
    """Pair A, A again, B, and A: what a pair has learned is for its own models alone, and what does not fit is kept."""
    image = tmp_path / "flash.bin"
    flash_image.runtime_on_a_pico(image)
    taught, states, kept = 0, {}, {}
    with Pico(image) as pico:
        for name, restored in (("breast_cancer", False), ("breast_cancer", True), ("digits", False), ("breast_cancer", False)):
            if not restored:
                taught, aside = 0, {**kept, **{f"{file}.kept{len(kept) // 2 + 1}": states[file] for file in states}}
            summary, states, kept = flashed(pico, name, tmp_path / name)
            assert summary["restored"] is restored and summary["samples"] == 5, name
            taught += sum(summary["answered"])
            assert any(summary["answered"]) and summary["taught"] == taught, (name, summary)
            assert kept == aside and len(states) == 2


def gateway(pico, url, *options):
    command = [sys.executable, "-m", "h2t2_tools", "gateway", "--port", f"{pico.port}=shed", "--broker", url, "--fast"]
    command += options
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def ended(line, process, last):
    """End a gateway that has relayed the last decision."""
    if json.loads(line)["n"] == last:
        process.kill()
    return True


def written(data):
    lines = [line.split(",") for line in data.decode().splitlines()]
    return [(int(label), source, round(float(score), 6)) for label, source, score in lines]


ASLEEP = """import machine, time
from h2t2.node import board
from h2t2.node.sleep import Sleep
class Link:
    outlives_ms = lead_ms = connections = 0
    def close(self):
        pass
class Node:
    link = Link()
    offloads = 3
    def credit_budget(sample):
        pass
print(board.start_cause())
dog = machine.WDT(timeout=1000)
Sleep("deep", machine, watchdog_ms=1000).nap(3000, Node, dog.feed)
"""


def test_a_start_tells_a_waking_from_an_update_and_the_watchdog():
    """The chip's own registers; and a deep sleep three times as long as its watchdog, which it does not end."""
    with Pico() as pico, RawRepl(pico.port, pace=False) as repl:
        repl.run("import os\nfor name in ('h2t2', 'h2t2/node'):\n os.mkdir(name)")
        for path in ("__init__", "clock", "modules", "node/__init__", "node/board", "node/causes", "node/ports", "node/sleep"):
            repl.write_file(f"h2t2/{path}.py", (ROOT / f"firmware/h2t2/{path}.py").read_bytes())

        def hello_after(source=""):
            if source:
                repl.start(source)
                pico.wait("reset")
                pico.wait("ready")
                repl.interrupt()
            return repl.run("from h2t2.node import board, ports\nprint(board.start_cause(), ports.this_port().watchdog_ms)")

        assert hello_after() == "pwron 8388\n"
        assert hello_after("from h2t2.node import board\nboard.restart(board.UPDATED)") == "update 8388\n"
        assert hello_after("from machine import WDT\nWDT(timeout=500)\nwhile True:\n pass") == "wdt 8388\n"
        assert hello_after("import machine\nmachine.reset()") == "hard 8388\n"
        assert hello_after(ASLEEP) == "deepsleep 8388\n"
        repl.run("import machine\nfrom h2t2.node.sleep import Sleep\nslept = Sleep('deep', machine, woken=True)")
        wakes, asleep_ms = map(int, repl.run("print(slept.wakes, slept.asleep_ms)").split())
        assert wakes == 1 and 2900 <= asleep_ms <= 3010


CHOSEN = """import os
if "h2t2.runtime" in os.listdir():
    import selector
from h2t2 import one
print("runs", one.NAME)
"""


def test_a_runtime_on_trial_is_chosen_for_three_starts():
    """selector.py on the chip's own littlefs: then the one before runs, and a runtime that is kept stays."""
    with Pico() as pico:

        def runs(line):
            pico.reset()
            line.until(b"runs ", 200)
            name = line.until(b"\r\n", 30)
            line.interrupt()
            return name.decode()

        with RawRepl(pico.port, pace=False) as line:
            for folder, name in ((".", "flashed"), ("h2t2_1", "newer")):
                line.run(f"import os\nfor name in ({folder!r}, {folder + '/h2t2'!r}):\n if name != '.':os.mkdir(name)")
                line.write_file(f"{folder}/h2t2/one.py", f"NAME = {name!r}\n".encode())
            line.write_file("selector.py", (ROOT / "firmware/boards/selector.py").read_bytes())
            line.write_file("main.py", CHOSEN.encode())
            line.write_file("h2t2.runtime", b". h2t2_1 3")
            assert [runs(line) for _ in range(4)] == ["newer"] * 3 + ["flashed"]
            line.write_file("h2t2.runtime", b"h2t2_1 . 0")
            assert runs(line) == "newer" and line.read_file("h2t2.runtime") == b"h2t2_1 . 0"
