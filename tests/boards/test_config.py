"""A board's configuration, and the lists of what goes onto it."""

import json
import re

import pytest
from support import ROOT, configuration, project_file

from h2t2.link.cost import LinkCost
from h2t2_lab.pages import kinds_page, mip_packages
from h2t2_tools.boards import kinds
from h2t2_tools.common import durations
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.fields import about, domain
from h2t2_tools.fleet import config as board_config
from h2t2_tools.fleet import template

COMMENTED = re.compile(r"# (\w+ = .*)")


def uncommented(text):
    """An h2t2.toml whose entries that show a default are entries; the table of costs stays a comment."""
    lines = []
    for line in text.split("# [offload_cost]")[0].splitlines() + text[text.index("\n[boards") :].splitlines():
        entry = COMMENTED.match(line)
        lines.append(entry[1] if entry else line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", template.SECTIONS)
def test_every_section_is_what_its_board_takes(tmp_path, name):
    config = configuration(tmp_path, name)
    board = config.content()
    assert board["arguments"]["beta"] == 6554 and board["remote_shape"] == [30]


@pytest.mark.parametrize("name", template.SECTIONS)
def test_a_line_that_shows_a_default_may_become_an_entry(tmp_path, name):
    """What is commented out is the default, apart from examples, whose comments do not say that they are one."""
    text = project_file(tmp_path, name).read_text()
    assert not COMMENTED.match("bits = 4")
    before = board_config.load(tmp_path / "h2t2.toml", name)
    (tmp_path / "h2t2.toml").write_text(uncommented(text))
    shown = board_config.ProjectFile(tmp_path / "h2t2.toml").entries(name)
    assert len(shown) > 30
    examples = {entry for entry, field in board_config.NodeConfig.model_fields.items() if about(field, "example") is not None}
    for entry in shown.keys() - examples:
        is_time = domain(board_config.NodeConfig.model_fields[entry]).duration
        assert (durations.parse(shown[entry]) if is_time else shown[entry]) == getattr(before, entry), entry


def test_empty_entries_are_left_out_of_config_json_and_zeros_are_not():
    content = board_config.NodeConfig(remote_shape=[3], model_id=0, event=0, telemetry=0, user="", sleep="none").content()
    assert (content["model_id"], content["event"], content["telemetry_s"], content["watchdog_ms"]) == (0, 0, 0, 0)
    assert not {"user", "password", "sleep", "stream", "wifi_name", "prior", "bits", "folder"} & content.keys()


def test_the_table_of_costs_is_right_when_it_is_taken_in(tmp_path):
    text = project_file(tmp_path).read_text()
    before, table = text.split("# [offload_cost]\n")
    table, section = table.split("\n\n", 1)
    (tmp_path / "h2t2.toml").write_text(f"{before}[offload_cost]\n" + re.sub(r"(?m)^# ", "", table) + "\n" + section)
    board = board_config.load(tmp_path / "h2t2.toml", "unix").content()
    assert (
        len(board["offload_cost"]) == 4
        and LinkCost(**board["offload_cost"]).beta_of(1000, 1024) > board["offload_cost"]["fixed"] > 0
    )


def test_a_section_overrides_what_stands_above_it(tmp_path):
    path = tmp_path / "h2t2.toml"
    path.write_text(
        'remote_shape = [30]\nmodel_id = 1\nbeta = 0.1\nbroker = "10.0.0.9"\nprior = "none.json"\n'
        '[boards.esp32]\nbeta = 0.4\nprior = ""\n[boards.esp32.offload_cost]\nseconds = 4.0\n[boards.pico]\nprior = ""\n'
    )
    esp32 = board_config.load(path, "esp32")
    assert (esp32.beta, esp32.broker, esp32.offload_cost.seconds) == (0.4, "10.0.0.9", 4)
    pico = board_config.load(path, "pico", network=False)
    assert (pico.beta, pico.offload_cost, "broker" in pico.model_fields_set) == (0.1, None, False)
    with pytest.raises(UserError, match="none.json"):
        board_config.load(path)
    path.write_text("boards = 3\n")
    with pytest.raises(UserError, match=r"want a section for each board, such as \[boards.pico_w\]"):
        board_config.load(path)
    path.write_text("[boards.pico]\ncolour = 3\n")
    with pytest.raises(UserError, match="colour: there is no such entry"):
        board_config.load(path)


@pytest.mark.parametrize(
    "line, word",
    [
        ("beta = 2.0", "beta 2.0"),
        ("bits = 9", "bits 9"),
        ('bits = "4"', 'bits = "4": want a whole number, 1 to 8'),
        ("every = true", "every = true: want a time, 0 to 1d"),
        ("report_decisions = 1", "report_decisions = 1: want true or false"),
        ("device = true", "device = true: want text"),
        ("prior = []", "0 numbers; bits = 4 wants 16"),
        ('policy = "h2t2"\nprior = [0.5]', "takes no table"),
        ("colour = 1", "colour"),
        ('device = "a/b"', "device"),
        ("beta = ", "not TOML"),
        ('password = ["secret-word"]', "password"),
    ],
)
def test_a_wrong_entry_is_named_and_no_secret_told(line, word, tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(f"remote_shape = [30]\nmodel_id = 1\n{line}\n")
    with pytest.raises(UserError) as error:
        board_config.load(path)
    assert word in str(error.value) and "secret-word" not in str(error.value)


def test_a_table_may_stand_in_a_file_beside_the_configuration(tmp_path):
    (tmp_path / "c.toml").write_text('remote_shape = [30]\nmodel_id = 1\nbits = 1\nprior = "p.json"\n')
    with pytest.raises(UserError, match="p.json: not a table"):
        board_config.load(tmp_path / "c.toml")
    (tmp_path / "p.json").write_text('{"prior": [0.25, 0.5]}')
    assert board_config.load(tmp_path / "c.toml").content()["arguments"]["prior"] == [8192, 16384]
    (tmp_path / "p.json").write_text('{"prior": [0.25]}')
    with pytest.raises(UserError, match="1 bits want 2"):
        board_config.load(tmp_path / "c.toml")


@pytest.mark.parametrize("name", [kind.name for kind in kinds.KINDS.values() if kind.links and not kind.like])
def test_every_list_of_the_runtime_is_the_one_in_modules_txt(name):
    """package.json (mip) is what `make pages` writes."""
    folder, kind = ROOT / f"firmware/boards/{name}", kinds.KINDS[name]
    assert (folder / "package.json").read_text() == mip_packages.content(kind), "run: make pages"
    for path, source in json.loads(mip_packages.content(kind))["urls"]:
        assert (folder / source).is_file(), path


def test_the_table_of_kinds_is_the_code_s():
    assert kinds_page.table() in (ROOT / "docs/your-board.md").read_text(), "run: make pages"
