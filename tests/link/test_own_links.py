"""The three links of firmware/examples/links: in one process with their other end, and to a real remote model."""

import json
import os
import re
import socket
import subprocess
import threading
from contextlib import contextmanager, suppress

import pytest
from command_line import started
from pseudo_terminal import Pty
from support import ROOT, need, retained, until

from h2t2_lab.boards import drive
from h2t2_lab.emulators import lwip
from h2t2_tools.boards import gateway, kinds, refusals
from h2t2_tools.boards import project as projects
from h2t2_tools.boards.emulators.catalogue import ARM32, PICO, UNIX
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import app
from h2t2_tools.fleet.broker import free_port
from h2t2_tools.fleet.endpoint import Endpoint

LINKS = ROOT / "firmware/examples/links"
PAGE = (ROOT / "docs/links.md").read_text()
BOARDS = [UNIX, *(pytest.param(board, marks=pytest.mark.whole) for board in (ARM32, PICO))]
SAMPLES = 40
TEXT = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}


def block(name):
    """A program of docs/links.md."""
    return re.search(rf"<!-- {name} -->\n\n```\w+\n(.*?)```", PAGE, re.S)[1]


def played(board, link, faults=(0, 0)):
    """What tests/portable/links.py prints."""
    files = {path.name: path.read_bytes() for path in LINKS.glob("*.py")}
    files["fake_espnow.py"] = (ROOT / "tests/ports/espnow.py").read_bytes()
    files["answering.py"] = (ROOT / "tests/portable/answering.py").read_bytes()
    source = f"LINK, FAULTS = {link!r}, {faults}\n" + (ROOT / "tests/portable/links.py").read_text()
    return json.loads(drive.run(need(board), source, files).splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("link", ["espnow", "uart"])
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_node_asks_over_the_link(board, link):
    """Requests of three datagrams, beside a stranger's; on a Pico over its two UARTs."""
    told = played(board, link)
    assert told["decided"] and told["replies"] == told["offloads"] == told["asked"] > 10 and not told["fallbacks"], told
    assert told["reports"] and not told["noise"] and not any(told["lost"].values()), told


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_what_is_lost_or_out_of_order_is_decided_at_its_deadline(board):
    told = played(board, "espnow", (5, 5))
    assert (
        told["decided"] and 5 < told["replies"] < told["offloads"] and told["replies"] + told["fallbacks"] == told["offloads"]
    )
    assert told["lost"]["datagrams"] and told["lost"]["radio"], told


def project(folder, link, machine=""):
    """A project whose app makes a link, flashed into a folder of MicroPython's unix port; that folder. machine: a module."""
    assert main(["new", str(folder), "--from", "breast_cancer", "--board", "unix"]) == 0
    for path in LINKS.glob("*.py"):
        (folder / path.name).write_bytes(path.read_bytes())
    if machine:
        (folder / "machine.py").write_text(machine)
    (folder / "fake_espnow.py").write_bytes((ROOT / "tests/ports/espnow.py").read_bytes())
    (folder / "app.py").write_text((folder / "app.py").read_text() + "\n" + link)
    rows = (folder / "samples.csv").read_text().splitlines()[:SAMPLES]
    (folder / "samples.csv").write_text("\n".join(rows) + "\n")
    device = folder.with_name(folder.name + "-device")
    device.mkdir()
    assert main(["flash", str(folder), "--board", "unix", "--port", str(device)]) == 0
    return device


@contextmanager
def micropython(script, folder, *paths, on=UNIX, **streams):
    process = subprocess.Popen(need(on).command(script, []), cwd=folder, env=on.environment(*paths), **streams)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Lines:
    """What a gateway tells."""

    def __init__(self):
        self.log, self.decisions, self.summaries = [], [], []
        self.out = gateway.Out(self.log.append, self.decisions.append, self.summaries.append)


@pytest.mark.slow
def test_espnow_reaches_a_worker_through_a_gateway_board(broker, rdl, tmp_path):
    """Node, gateway board, `h2t2 gateway`, Mosquitto, worker: datagrams are lost or overtaken, and a stranger sends some."""
    addresses = [b"\x24\x0a\xc4\0" + free_port().to_bytes(2, "big") for _ in range(3)]
    node, host, stranger = addresses
    air = "import fake_espnow\nradio = fake_espnow.install(%r, fake_espnow.Local(), fake_espnow.Faults(3, 3, %d))\n"
    usual = r'b"\x24\x0a\xc4\x00\x00\x02"'
    assert usual in block("link: espnow")
    link = air % (node, 1) + block("link: espnow").replace(usual, repr(host))
    device = project(tmp_path / "porch", link)
    board = tmp_path / "board.py"
    board.write_text(air % (host, 2) + "import espnow_gateway\nespnow_gateway.main()\n")
    other = tmp_path / "stranger.py"
    other.write_text(air % (stranger, 3) + STRANGER % host)
    end, lines = Pty(), Lines()
    places = ROOT / "firmware", tmp_path / "porch"
    with micropython(board, tmp_path, *places, stdin=end.end, stdout=end.end), micropython(other, tmp_path, *places):
        os.set_blocking(end.end, True)
        to, options = Endpoint(broker.host, broker.port), gateway.LineOptions(pace=False)
        line = gateway.Line(end.port, {node: "porch"}, to, options, lines.out)
        with micropython("main.py", device, device, **TEXT) as run:
            told = run.communicate(timeout=120)[0]
        assert until(lambda: len(lines.decisions) > SAMPLES * 3 // 4, 30)
        counters = line.stop()["porch"]
    decided = (device / "decisions.csv").read_text().splitlines()
    sources = [row.split(",")[1] for row in decided]
    assert len(decided) == SAMPLES, told
    assert counters.requests >= counters.replies >= sources.count("remote") > 0 and not counters.refused, (sources, counters)
    assert all(sources[row["n"]] == row["source"] for row in lines.decisions)
    assert line.strangers and any(stranger.hex(":") in text for text in lines.log), lines.log


STRANGER = """import espnow_line
espnow_line.radio()
from time import sleep
radio.add_peer(%r)
while True:
    radio.send(radio.peers[0], bytes(250))
    sleep(.05)
"""


ANSWERS = {
    "a wrong token": b"HTTP/1.1 401 Unauthorized\r\n\r\n{}",
    "garbage": b"\xff\0",
    "a flood": b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100_000),
}
TOKEN = "the token of the gate"


@contextmanager
def gate(folder, broker):
    """The port of a running `h2t2 gate --http` as docs/links.md has it."""
    (folder / "generic.toml").unlink(missing_ok=True)
    words = ["--remote", "worker:1", "--broker", broker.url, "--out", str(folder / "generic.toml")]
    assert main(["gate", "--preset", "generic", *words]) == 0
    token, port = folder / "token", free_port()
    token.write_text(TOKEN)
    token.chmod(0o600)
    words = ["gate", "generic.toml", "--http", str(port), "--bind", "0.0.0.0", "--token-file", str(token)]
    with started(*words, ready="ready", cwd=folder):
        yield port


@pytest.mark.slow
@pytest.mark.parametrize(
    "on", [UNIX, *(pytest.param(on, marks=pytest.mark.whole) for on in (ARM32, lwip.LWIP))], ids=lambda on: on.name
)
def test_a_board_asks_workers_through_a_gate(on, broker, rdl, tmp_path):
    """Node, `h2t2 gate`, Mosquitto, worker. The gate goes on with a connection that says nothing."""
    host = lwip.HOST if on is lwip.LWIP else "127.0.0.1"
    with gate(tmp_path, broker) as port:
        device = project(tmp_path / "porch", block("link: http").replace('"192.168.1.5", 8090', f'"{host}", {port}'))
        with socket.create_connection(("127.0.0.1", port)), micropython("main.py", device, device, on=on, **TEXT) as run:
            told = run.communicate(timeout=120)[0]
    sources = [row.split(",")[1] for row in (device / "decisions.csv").read_text().splitlines()]
    assert len(sources) == SAMPLES and sources.count("remote") > 10 and "fallback" not in sources, told
    assert json.loads(told.splitlines()[-1])["summary"]["replies"] == sources.count("remote")


@contextmanager
def server(trouble):
    """The port of a server that answers no request."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        if trouble == "nobody listens":
            listening.close()
            yield free_port()
            return
        connections = []

        def serve():
            with suppress(OSError):
                while True:
                    connections.append(listening.accept()[0])
                    if trouble != "silence":
                        connections[-1].recv(65536)
                        with connections[-1]:
                            connections[-1].sendall(ANSWERS[trouble])

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["nobody listens", "a wrong token", "silence", "garbage", "a flood"])
def test_a_gate_that_gives_no_answer_costs_the_answer_alone(trouble, tmp_path):
    """Every sample is decided, and a refusal decides at once."""
    with server(trouble) as port:
        device = project(tmp_path / "porch", block("link: http").replace('"192.168.1.5", 8090', f'"127.0.0.1", {port}'))
        with micropython("main.py", device, device, **TEXT) as run:
            told = run.communicate(timeout=120)[0]
    sources = [row.split(",")[1] for row in (device / "decisions.csv").read_text().splitlines()]
    assert len(sources) == SAMPLES and "fallback" in sources and "remote" not in sources, told
    assert ("no worker serves this model" in told) == (trouble != "silence"), told


@pytest.mark.slow
def test_an_app_with_a_link_gets_what_it_needs_and_is_tried_by_mqtt(tmp_path):
    """On an ESP32 without entries about a network. `h2t2 run` has no radio, and does not call link()."""
    folder = tmp_path / "porch"
    assert main(["new", str(folder), "--from", "breast_cancer", "--board", "esp32"]) == 0
    (folder / "espnow_line.py").write_bytes((LINKS / "espnow_line.py").read_bytes())
    (folder / "app.py").write_text((folder / "app.py").read_text() + "\n" + block("link: espnow"))
    contents = projects.load(folder, "esp32").contents
    refusals.refuse(KINDS["esp32"], contents)
    files = kinds.payload(KINDS["esp32"], contents)
    assert {"espnow_line.py", "h2t2/link/datagrams.mpy", "h2t2/link/frames.mpy", "h2t2/link/serial.mpy"} <= {*files}
    entries = json.loads(files["config.json"])
    assert entries["link"] == "app" and not {"broker", "wifi_name"} & {*entries}
    need(UNIX)
    assert main(["run", str(folder), "--board", "unix", "--samples", "5"]) == 0


def test_an_async_link_is_refused(tmp_path):
    (tmp_path / "app.py").write_text("def sense(): pass\ndef act(decision): pass\nasync def link(config, boot): pass\n")
    with pytest.raises(UserError, match="async def link"):
        app.source(tmp_path / "app.py")


MACHINE = """import io, select
class Pin:
    def __init__(self, number): pass
class UART(io.IOBase):
    def __init__(self, id, baud, *, tx, rx, rxbuf):
        self.out, self.arriving = open(%r, "r+b"), open(%r, "r+b")
        self.poller = select.poll()
        self.poller.register(self.arriving, select.POLLIN)
    def ioctl(self, request, argument): return argument & 1 if request == 3 and self.poller.poll(0) else 0
    def write(self, data): return self.out.write(data)
    def read(self):
        data = b""
        while len(data) < 256 and self.poller.poll(0): data += self.arriving.read(1)
        return data or None
"""


@pytest.mark.slow
def test_a_second_board_speaks_mqtt_for_one_on_its_uart(broker, rdl, tmp_path):
    """Both programs of docs/links.md in processes of their own, with two pipes for the wires; Mosquitto and a worker."""
    wires = [str(tmp_path / name) for name in ("one", "other")]
    for wire in wires:
        os.mkfifo(wire)
    device = project(tmp_path / "porch", block("link: uart"), machine=MACHINE % (*wires,))
    second = tmp_path / "second"
    second.mkdir()
    (second / "machine.py").write_text(MACHINE % (*reversed(wires),))
    usual = '"192.168.1.5", 1883'
    assert usual in block("program: uart")
    (second / "main.py").write_text(block("program: uart").replace(usual, f'"{broker.host}", {broker.port}'))
    with micropython("main.py", second, ROOT / "firmware", LINKS):
        with micropython("main.py", device, device, **TEXT) as run:
            told = run.communicate(timeout=120)[0]
        assert '"samples"' in retained(broker, "h2t2/2/porch/state"), told
    sources = [row.split(",")[1] for row in (device / "decisions.csv").read_text().splitlines()]
    assert len(sources) == SAMPLES and "remote" in sources, told
