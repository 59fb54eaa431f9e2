"""docs/first-change.md works as it stands, in a clone; the files for contributors name what is there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import ROOT

from h2t2_tools.common import toml_file

PAGE = (ROOT / "docs/first-change.md").read_text()


@pytest.mark.whole
def test_the_first_change_works_as_its_page_says(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    (clone / ".venv").symlink_to(Path(sys.prefix))  # in place of `make setup`
    environment = {**os.environ, "PYTHONPATH": f"{clone}/firmware:{clone}/host_tools"}
    rows = []
    for kind, block in re.findall(r"```(sh|diff)\n(.*?)```", PAGE, re.S):
        if kind == "diff":
            subprocess.run(["git", "apply", "-"], input=block, text=True, check=True, cwd=clone)
        elif block != "make setup\n":
            done = subprocess.run(
                ["bash", "-e", "-c", block], cwd=clone, env=environment, capture_output=True, text=True, timeout=280
            )
            assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-500:]
            rows += re.findall(r"^\| EXP \|.*", done.stdout, re.M)
    refused, accepted = rows
    assert "use RELU" in refused and "int8" in accepted and "use RELU" not in accepted


def test_the_workflow_runs_the_readmes_command_on_every_python():
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    classifiers = toml_file.read_entries(ROOT / "pyproject.toml")["project"]["classifiers"]
    supported = [name.rpartition(" ")[2] for name in classifiers if re.search(r":: 3\.\d+$", name)]
    assert workflow["jobs"]["quick"]["strategy"]["matrix"]["python"] == supported
    commands = [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]
    assert {"make test", "make test-all"} <= set(commands)


def test_the_hooks_run_the_programs_of_make_lint():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    entries = [hook["entry"] for repository in config["repos"] for hook in repository["hooks"]]
    assert entries == [".venv/bin/ruff format", ".venv/bin/ruff check", ".venv/bin/mypy"]


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name)
def test_a_form_for_issues_can_be_read(path):
    form = yaml.safe_load(path.read_text())
    assert "blank_issues_enabled" in form or {"name", "description", "body"} <= set(form)


def test_the_container_makes_the_usual_environment():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make setup"


@pytest.mark.parametrize("name", ["PULL_REQUEST_TEMPLATE.md", "CODE_OF_CONDUCT.md"])
def test_links_of_the_contributors_pages_lead_somewhere(name):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / ".github" / name).read_text()):
        assert (ROOT / ".github" / target).exists(), target
