"""No command runs the Python files of the current folder because of their names, and neither do the Pythons that it starts."""

import ast
import subprocess
import sys
from importlib.util import find_spec

import pytest
from command_line import ran
from support import ROOT

from h2t2.cpython import interpreter
from h2t2_tools.cli import commands
from h2t2_tools.common import pairs
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.rdl.pool import READY

H2T2 = str(ROOT / ".venv/bin/h2t2")
LIBRARIES = "h2t2 h2t2_lab h2t2_tools numpy paho pydantic httpx PIL joblib numba sklearn matplotlib rich usercustomize".split()
HOSTILE = """open({path!r}, "a").write(__name__ + "\\n")\nraise SystemExit("a file of the current folder ran: " + __name__)\n"""
EVERY = """
import sys
sys.path[0] = {bin!r}  # as the console script has it
from h2t2_tools.cli.main import main
for words in {lines!r}:
    main(words)
"""


TRIAL = """
import sys, threading
sys.path.append({folder!r})
from pathlib import Path
from h2t2.cpython.tflite_trial import try_first
threading.Thread(target=threading.Event().wait, daemon=True).start()  # a process of one thread would fork
try_first(Path({model!r}).read_bytes(), "BUILTIN_REF")
"""


@pytest.fixture
def hostile(tmp_path):
    """A folder with a file for each module that Python or we might import. The file `ran` names those that ran."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    for name in {*sys.stdlib_module_names, *LIBRARIES} - set(sys.builtin_module_names):
        if find_spec(name):  # Linux has no _winapi
            (folder / f"{name}.py").write_text(HOSTILE.format(path=str(folder / "ran")))
    yield folder
    assert not (folder / "ran").exists(), (folder / "ran").read_text()


def test_one_function_starts_every_other_python():
    """A command list with sys.executable and -m or -c stands in interpreter.py alone."""
    found = []
    for path in [*ROOT.glob("host_tools/**/*.py"), *ROOT.glob("firmware/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            words = node.elts if isinstance(node, ast.List) else node.args if isinstance(node, ast.Call) else []
            if any(ast.unparse(word) == "sys.executable" for word in words):
                options = [word.value for word in words if isinstance(word, ast.Constant)]
                if {"-m", "-c"}.intersection(options) and "-P" not in options and path.name != "interpreter.py":
                    found.append(f"{path}:{node.lineno}")
    assert not found


def test_every_command_begins_without_the_files_of_its_folder(hostile):
    lines = [[*name.split(), "--no-such-option"] for name in commands.COMMANDS]
    code = EVERY.format(bin=str(ROOT / ".venv/bin"), lines=lines)
    run = subprocess.run([sys.executable, "-P", "-c", code], cwd=hostile, capture_output=True, text=True)
    assert run.stderr.count("no-such-option") >= len(lines), run.stderr[-2000:]


@pytest.mark.slow
def test_workers_begin_without_the_files_of_their_folder(hostile):
    with broker.running("mosquitto") as url:
        process = subprocess.Popen(
            [H2T2, "rdl", "--pair", "digits", "--broker", url, "--workers", "2"], cwd=hostile, stderr=subprocess.PIPE, text=True
        )
        line = process.stderr.readline()
        process.terminate()
        process.communicate(timeout=60)
    assert READY in line


@pytest.mark.slow
def test_a_model_is_tried_without_the_files_of_the_folder(hostile):
    """Not even those of a folder that a function of the user's added to the path: the order of the path stays."""
    code = TRIAL.format(model=str(pairs.load("digits").ldl), folder=str(hostile))
    ran([sys.executable, "-P", "-c", code], cwd=hostile)


@pytest.mark.whole
@pytest.mark.parametrize(
    "words",
    [
        ["h2t2", "demo", "--samples", "200"],
        ["h2t2-lab", "bench", "ldl", str(ROOT / "models/digits/ldl.tflite")],
        ["h2t2-lab", "experiment", "bits", "--quick"],
    ],
    ids=lambda words: words[1],
)
def test_runs_of_several_processes_ignore_the_files_of_the_folder(hostile, words):
    program = str(ROOT / ".venv/bin" / words[0])
    ran([program, *words[1:]], cwd=hostile)


@pytest.mark.slow
@pytest.mark.parametrize(
    "option, code", [("-m", "h2t2_tools"), ("-c", "import sys; from h2t2_tools.cli.main import main; sys.exit(main())")]
)
def test_python_before_3_11_ignores_the_files_of_the_folder_too(hostile, monkeypatch, option, code):
    """It has no option -P."""
    monkeypatch.setattr(interpreter, "HAS_SAFE_PATH", False)
    command = interpreter.python(option, code, "inspect", str(ROOT / "models/digits/ldl.tflite"))
    run = subprocess.run(command, cwd=hostile, capture_output=True, text=True)
    assert "-P" not in command and run.returncode == 0, run.stderr
