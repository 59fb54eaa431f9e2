"""The scripts of `h2t2 completion`, as the shells run them."""

import shutil
import subprocess

import pytest

from h2t2.core.policies import NAMES
from h2t2_tools.cli.commands import COMMANDS, GROUPS
from h2t2_tools.cli.execute import command
from h2t2_tools.cli.main import main
from h2t2_tools.cli.options import flag, visible

BASH = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _h2t2; printf "%s\\n" "${COMPREPLY[@]}"'
FISH = 'source $argv[1]; complete -C "$argv[2]"'
POLICIES = set(NAMES)
LINES = [
    ("h2t2 das", {"dashboard"}),
    ("h2t2 help ", set(GROUPS)),
    ("h2t2 completion ", {"bash", "zsh", "fish"}),
    ("h2t2 demo --pol", {"--policy"}),
    ("h2t2 demo --policy ", POLICIES),
]


@pytest.fixture
def script(capsys, tmp_path):
    """Writes the script of a shell into a file."""

    def write(shell: str):
        assert main(["completion", shell]) == 0
        path = tmp_path / shell
        path.write_text(capsys.readouterr().out)
        return path

    return write


def completed(*command: str) -> set[str]:
    """What a shell offers."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return {line.partition("\t")[0] for line in done.stdout.splitlines()} - {""}


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize("line, words", LINES)
def test_bash_completes(line, words, script):
    path = script("bash")
    assert completed("bash", "-c", BASH, str(path), *line.split(" ")) == words


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_values_after_an_equals_sign_and_leaves_files_to_readline(script):
    path = script("bash")
    assert completed("bash", "-c", BASH, str(path), "h2t2", "demo", "--policy", "=", "ad") == {"adaptive"}
    assert completed("bash", "-c", BASH, str(path), "h2t2", "demo", "--policy", "=") == POLICIES
    assert completed("bash", "-c", BASH, str(path), "h2t2", "demo", "--json", "") == set()


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("fish"), reason="no fish; run: sudo apt-get install fish")
@pytest.mark.parametrize("line, words", LINES)
def test_fish_completes(line, words, script):
    path = script("fish")
    assert completed("fish", "--no-config", "-c", FISH, str(path), line) == words


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh; run: sudo apt-get install zsh")
def test_zsh_reads_its_script(script):
    path = script("zsh")
    names = completed("zsh", "-f", "-c", f"source {path}; print -l $_comps[h2t2]")
    assert names == {"_bash_complete -o default -F _h2t2"}


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_script_knows_every_command_and_option(shell, script):
    text = script(shell).read_text()
    for name in COMMANDS:
        assert name.split()[-1] in text
        for key, field in visible(command(name)).items():
            word = flag(key, field)
            assert not word.startswith("--") or (word if shell == "bash" else f"-l {word[2:]} ") in text, f"{name} {word}"
