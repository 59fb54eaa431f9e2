"""The base install: the wheel in an empty environment; with `litert`, a node and a worker from it, through a real broker."""

import json
import re
import subprocess
import sys
import venv

import pytest
from command_line import started
from support import ROOT, made_once

from h2t2_tools.cli.commands import COMMANDS

pytestmark = pytest.mark.whole


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    return done.stdout


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """An environment that holds the wheel and what it depends on, in the versions of the lock file, and nothing else."""
    return made_once(tmp_path_factory, "light", install) / "venv"


def install(folder):
    """Build the wheel and install it."""
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    wheel = next(folder.glob("*.whl"))
    versions = re.findall(r"^(\S+==\S+(?: ;[^\\\n]*)?) *\\?$", (ROOT / "host_tools/locks/dev.txt").read_text(), re.M)
    (folder / "constraints.txt").write_text("\n".join(versions) + "\n")
    venv.create(folder / "venv", symlinks=True)  # as `python -m venv` does
    pip = (sys.executable, "-m", "pip", "--python", folder / "venv/bin/python")
    run(*pip, "install", "-q", "--no-compile", wheel, "-c", folder / "constraints.txt", cwd=folder)


def test_it_holds_little_and_says_so(base, capsys):
    """Installed size of the base, without pip itself; the README names it."""
    site = next(base.glob("lib/python3.*/site-packages"))
    sizes = {}
    for path in site.rglob("*"):
        if path.is_file() and not path.is_symlink():
            package = path.relative_to(site).parts[0].partition("-")[0].removesuffix(".libs")
            sizes[package] = sizes.get(package, 0) + path.stat().st_size
    mine = {name: size for name, size in sizes.items() if name not in ("pip", "setuptools", "_distutils_hack", "__pycache__")}
    with capsys.disabled():
        largest = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in sorted(mine.items(), key=lambda i: -i[1])[:4])
        print(f"\nbase install: {sum(mine.values()) / 1e6:.0f} MB ({largest})")
    heavy = "matplotlib numba llvmlite sklearn onnxruntime tensorflow cryptography rich amqtt ai_edge_litert"
    assert not set(heavy.split()) & set(sizes)
    assert sum(mine.values()) < 70e6


def test_a_worker_of_a_function_needs_no_interpreter(base, broker, tmp_path):
    (tmp_path / "mine.py").write_text("def scores(x):\n    return [0.5] * len(x)\n")
    words = ["rdl", "--pair", "breast_cancer", "--remote", "mine.py:scores", "--broker", broker.url]
    with started(*words, ready="ready", program=[base / "bin/h2t2"], cwd=tmp_path):
        pass


@pytest.mark.parametrize(
    "words, extra",
    [
        (["node"], "litert"),
        (["rdl"], "litert"),
        (["demo", "--samples", "10"], "demo"),
        (["replay", "phishing"], "lab"),
        (["certs"], "fleet"),
        (["boards"], "boards"),
        (["rdl", "--metrics", "9100"], "fleet"),
        (["metrics"], "fleet"),
        (["dashboard"], "dashboard"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_command_whose_extra_is_missing_says_how_to_get_it(base, words, extra, tmp_path):
    done = subprocess.run([base / "bin/h2t2", *words], capture_output=True, text=True, timeout=280, cwd=tmp_path)
    assert done.returncode == 2 and f"{next(base.parent.glob('*.whl'))}[{extra}]'" in done.stderr, done.stderr[-400:]
    assert "Traceback" not in done.stderr


HELP = """import contextlib, io, sys
from h2t2_tools.cli.main import main
for word in sys.argv[1:]:
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told):
            main([word, "--help"])
    except SystemExit as end:
        print(word, end.code or 0, f"usage: h2t2 {word}" in told.getvalue())
"""


def test_every_command_has_its_help_without_any_extra(base, tmp_path):
    words = [name for name in COMMANDS if " " not in name]
    told = run(base / "bin/python", "-c", HELP, *words, cwd=tmp_path)
    assert told.splitlines() == [f"{word} 0 True" for word in words]


def test_a_node_and_a_worker_run_with_litert(base, broker, tmp_path):
    pip = (sys.executable, "-m", "pip", "--python", base / "bin/python")
    wheel = next(base.parent.glob("*.whl"))
    run(*pip, "install", "-q", "--no-compile", f"{wheel}[litert]", "-c", base.parent / "constraints.txt", cwd=tmp_path)
    words, installed = ["rdl", "--pair", "breast_cancer", "--broker", broker.url], base / "bin/h2t2"
    with started(*words, ready="ready", program=[installed], cwd=tmp_path):
        out = run(installed, "node", "--broker", broker.url, "--samples", "200", cwd=tmp_path)
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert summary["samples"] == 200 and summary["taught"] == summary["replies"] == summary["offloads"] > 20
