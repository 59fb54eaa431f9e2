"""docs/growing.md: nodes of a site ask the workers of another broker through a bridge, as the page configures it."""

import json
import re
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest
from command_line import ran
from support import ROOT, mosquitto, retained, until, worker

from h2t2_tools.fleet import broker

pytestmark = [pytest.mark.slow]


def bridge(office):
    """The page's site.conf for free ports, and the site's port."""
    page = (ROOT / "docs/growing.md").read_text()
    (text,) = re.findall(r"```\n(listener 1884\n.*?)```", page, re.S)
    port = broker.free_port()
    return text.replace("listener 1884", f"listener {port} 127.0.0.1").replace("127.0.0.1:1883", f"127.0.0.1:{office}"), port


def test_a_node_asks_the_workers_of_another_broker(tmp_path):
    with mosquitto(tmp_path) as office, worker(f"mqtt://127.0.0.1:{office.port}", "breast_cancer"):
        text, port = bridge(office.port)
        (tmp_path / "site.conf").write_text(text)
        site = subprocess.Popen([broker.mosquitto(), "-c", tmp_path / "site.conf"], stderr=subprocess.DEVNULL)
        try:
            assert until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
            there = SimpleNamespace(host="127.0.0.1", port=port)
            assert retained(there, "h2t2-workers/#") == "1"  # the bridge shows the worker to the site
            command = [sys.executable, "-m", "h2t2_tools", "node", "--pair", "breast_cancer", "--samples", "40"]
            command += ["--broker", f"mqtt://127.0.0.1:{port}", "--device", "kitchen"]
            done = ran(command, timeout=120)
            sources = [json.loads(line).get("source") for line in done.stdout.splitlines()]
            assert sources.count("remote") > 5
            # the node is known there, and has ended; the bridge may forward that later
            assert until(lambda: retained(office, "h2t2/2/kitchen/status").startswith("offline"))
        finally:
            site.terminate()
            site.wait(10)
