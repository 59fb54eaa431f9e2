"""The two programs of docs/your-program.md, on boards that hold what `mip` installs and on CPython."""

import json
import re
import sys

import pytest
from command_line import ran
from rig import Material
from support import ROOT, need

from h2t2_lab.boards import drive
from h2t2_lab.emulators import lwip
from h2t2_lab.emulators.built import PICO_FROZEN
from h2t2_tools.boards import cross, kinds
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.boards.emulators.scripts import output

PROGRAMS = dict(
    zip(("asyncio", "plain"), re.findall(r"```python\n(.*?)```", (ROOT / "docs/your-program.md").read_text(), re.S))
)
SAMPLES = 40
# what the page leaves to its reader: a sensor, an actuator, another task
BEFORE = {
    "asyncio": """import asyncio, json
rows, decided, ran, nodes = iter(json.load(open("rows.json"))), [], [], []
async def measure():
    row = next(rows, None)
    if row is None:
        raise StopAsyncIteration
    return row[0], bytes(row[1]), None
async def switch(decision):
    decided.append(decision)
async def blink():
    while len(decided) < 40:
        ran.append(1)
        await asyncio.sleep(0.05)
""",
    "plain": """import json
rows, decided, ran, nodes = json.load(open("rows.json")), [], [], []
def running():
    return len(rows)
def measure():
    row = rows.pop(0)
    return row[0], bytes(row[1]), None
def switch(decision):
    decided.append(decision)
""",
}
AFTER = """
if nodes:
    node = nodes[0].node
print(json.dumps({"decided": len(decided), "ran": len(ran), "replies": node.replies, "lessons": node.policy.lessons}))
"""


def program(name, address):
    """The source of a program. address: of its broker, as text in the source; "": a link in the program answers."""
    source = PROGRAMS[name].replace("gather(node.arun()", "gather((nodes.append(node), node.arun())[1]")
    usual = '"192.168.1.5", 1883'
    assert usual in source
    if address:
        source = source.replace(usual, address)
    else:
        source = source.replace("MqttLink, ", "", 1)  # a Pico has no network
        source = "from answering import Remote\n" + re.sub(r'MqttLink\("192.*?boot_number\(\)\)', "Remote()", source)
    return BEFORE[name] + source + AFTER


@pytest.fixture
def material(tmp_path):
    made = Material(tmp_path, SAMPLES)
    made.rows = json.dumps(
        [[x.tolist(), list(made.records.read_bytes()[35 * n + 5 : 35 * n + 35])] for n, x in enumerate(made.local)]
    )
    return made


def check(name, out):
    told = json.loads(out.splitlines()[-1])
    assert told["decided"] == SAMPLES and 5 < told["replies"] <= told["lessons"] <= SAMPLES, told
    assert name == "plain" or told["ran"] > 20


def test_each_program_has_fifteen_lines():
    for source in PROGRAMS.values():
        assert len([line for line in source.splitlines() if line.strip()]) <= 15


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_runs_on_a_pi(name, material, broker, rdl, tmp_path):
    (tmp_path / "rows.json").write_text(material.rows)
    script = tmp_path / "program.py"
    script.write_text(program(name, f'"{broker.host}", {broker.port}'))
    run = ran([sys.executable, script], cwd=tmp_path)
    check(name, run.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("board", [UNIX, pytest.param(PICO_FROZEN, marks=pytest.mark.whole)], ids=lambda board: board.name)
def test_the_program_runs_on_a_board_with_a_link_of_its_own(name, board, material):
    if board is PICO_FROZEN and board.is_quick():
        board.build(lambda step: None)  # with the runtime of this checkout
    answering = (ROOT / "tests/portable/answering.py").read_bytes()
    files = {"ldl.h2m": material.blob, "rows.json": material.rows.encode(), "answering.py": answering}
    check(name, drive.run(need(board), "import os\nos.chdir(FOLDER or '/')\n" + program(name, ""), files))


@pytest.mark.whole
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_runs_on_a_pico_ws_network_with_what_mip_installs(name, material, broker, rdl, tmp_path):
    """On the heap of a Pico W; its folder holds the modules of the package h2t2-pico_w."""
    need(lwip.LWIP)
    (tmp_path / "rows.json").write_text(material.rows)
    for path in kinds.modules(kinds.KINDS["pico_w"]):
        if not path.endswith(kinds.VIPER):  # machine code of another processor
            module, content = cross.compiled_file(path, (ROOT / "firmware" / path).read_bytes(), None)
            (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / module).write_bytes(content)
    script = tmp_path / "program.py"
    script.write_text(f"import os\nos.chdir({str(tmp_path)!r})\n" + program(name, f'"{lwip.HOST}", {broker.port}'))
    environment = lwip.LWIP.environment(tmp_path)
    check(name, output("lwip", script, lwip.LWIP.command(script, []), environment, 100))
