"""docs/case.md and docs/five-commands.md: every command of a page runs, and the page holds what they printed."""

import re
import subprocess
import sys

import pytest
from support import ROOT, need, need_mosquitto

from h2t2_lab.pages import page_parts
from h2t2_tools.boards.emulators.catalogue import UNIX

PAGES = {"case": ROOT / "docs/case.md", "walkthrough": ROOT / "docs/five-commands.md"}  # by the target of make
RUN = re.compile(r"^(<!-- run: (.+) -->)$", re.M)
REPLAY = re.compile(r"^<!-- run: h2t2 replay occupancy .+ -->$", re.M)


def unfilled(text: str) -> list[str]:
    """Return the commands of a page without their output."""
    return [command for mark, command in RUN.findall(text) if command not in page_parts.inside(text, mark)]


@pytest.mark.parametrize("target", PAGES)
def test_the_page_holds_the_output_of_each_command(target):
    text = PAGES[target].read_text()
    assert len(RUN.findall(text)) > 8 and not unfilled(text), f"run: make {target}"
    for picture in re.findall(r"]\((images/.+?)\)", text):
        assert (ROOT / "docs" / picture).is_file()


@pytest.mark.whole
@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", PAGES)
def test_the_commands_of_the_page_run(target, tmp_path):
    need(UNIX)
    need_mosquitto()
    page = tmp_path / "page.md"
    text = PAGES[target].read_text()
    page.write_text(re.sub(r"(-->\n).*?(<!-- end -->)", r"\1\2", text, flags=re.S))
    assert unfilled(page.read_text())
    command = [sys.executable, "-m", "h2t2_lab.case", str(page)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=580)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not unfilled(page.read_text())
    if target == "case":
        assert list((tmp_path / "images").glob("case-*.png"))
        (replay,) = REPLAY.findall(text)
        assert page_parts.inside(page.read_text(), replay) == page_parts.inside(text, replay), "run: make case"
