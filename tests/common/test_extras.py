"""The message about a missing extra has a command that works for this installation."""

import json
import sys
from importlib.metadata import PackageNotFoundError

import pytest
from support import ROOT

from h2t2_tools.common import extras


class Installed:
    """A distribution with a direct_url.json, or without."""

    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.origin and json.dumps(self.origin)


@pytest.mark.parametrize(
    "origin, source",
    [
        (None, "'h2t2-edge[fleet]'"),
        ({"url": ROOT.as_uri(), "dir_info": {"editable": True}}, f"-e '{ROOT}[fleet]'"),
        ({"url": ROOT.as_uri(), "dir_info": {}}, f"'{ROOT}[fleet]'"),
        ({"url": "file:///no/longer/there", "dir_info": {"editable": True}}, "'h2t2-edge[fleet]'"),
    ],
)
def test_the_command_installs_from_where_the_package_came(origin, source, monkeypatch):
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Installed(origin))
    monkeypatch.setattr(extras.shutil, "which", lambda name: f"{sys.prefix}/bin/pip")
    assert extras.install_command("fleet") == f"pip install {source}"
    assert extras.install_hint("onnx", "convert").startswith("install the extras `onnx` and `convert`: pip install")
    assert extras.install_hint("fleet").endswith("; with [all], every extra but TensorFlow")


def test_the_pip_is_this_environments(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    monkeypatch.setattr(extras.sys, "prefix", "/some/venv")
    monkeypatch.setattr(extras.shutil, "which", lambda name: "/usr/bin/pip")
    assert extras.install_command("fleet") == f"{sys.executable} -m pip install 'h2t2-edge[fleet]'"
