"""A board's configuration, and the lists of what goes onto it."""

import json
import re
from pathlib import Path

import pytest
from support import ROOT

from h2t2.link.cost import LinkCost
from h2t2_tools.boards import kinds, kinds_page, packages
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import config as board_config


@pytest.mark.parametrize("name", ["unix", "esp32", "pico", "pico_w", "microbit"])
def test_the_commented_configurations_are_right(name):
    config = board_config.load(ROOT / f"firmware/boards/{name}/config.toml")
    board = config.content()
    assert board["arguments"]["beta"] == 6554 and board["remote_shape"] == [30]


# entries that are the user's own: what stands in the files is an example
OWN = {"device", "broker", "wifi_name", "remote_shape", "model_id"}


@pytest.mark.parametrize("name", ["unix", "esp32", "pico", "pico_w", "microbit"])
def test_what_stands_in_them_is_the_default_unless_they_say_otherwise(name):
    lines = (ROOT / f"firmware/boards/{name}/config.toml").read_text().splitlines()
    given = board_config.load(ROOT / f"firmware/boards/{name}/config.toml")
    checked = 0
    for line in lines:
        entry, mark, rest = line.partition(" = ")
        if not mark or entry.startswith("#") or entry in OWN:
            continue
        default = board_config.NodeConfig.model_fields[entry].default
        if getattr(given, entry) != default:
            assert f"default {default}" in rest or "the pair's" in rest, entry
        checked += 1
    assert checked > 8


def test_empty_entries_are_left_out_of_config_json_and_zeros_are_not():
    content = board_config.NodeConfig(remote_shape=[3], model_id=0, event=0, telemetry_s=0, user="", sleep="none").content()
    assert (content["model_id"], content["event"], content["telemetry_s"], content["watchdog_ms"]) == (0, 0, 0, 0)
    assert not {"user", "password", "sleep", "stream", "wifi_name", "prior", "bits", "folder"} & content.keys()


@pytest.mark.parametrize("name", ["unix", "esp32", "pico", "pico_w"])
def test_the_cost_table_of_a_board_is_right_when_it_is_taken_in(name, tmp_path):
    text = (ROOT / f"firmware/boards/{name}/config.toml").read_text()
    before, table = text.split("# [offload_cost]\n")
    (tmp_path / "c.toml").write_text(before + "[offload_cost]\n" + re.sub(r"(?m)^# ", "", table))
    board = board_config.load(tmp_path / "c.toml").content()
    assert (
        len(board["offload_cost"]) == 4
        and LinkCost(**board["offload_cost"]).beta_of(1000, 1024) > board["offload_cost"]["fixed"] > 0
    )


@pytest.mark.parametrize(
    "line, word",
    [
        ("beta = 2.0", "beta 2.0"),
        ("bits = 9", "bits 9"),
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


@pytest.mark.parametrize("name", ["unix", "esp32", "pico", "pico_w"])
def test_every_list_of_the_runtime_is_the_one_in_modules_txt(name, monkeypatch):
    """package.json (mip) is what `make pages` writes, and the manifest freezes what `h2t2 flash` copies."""
    folder, kind = ROOT / f"firmware/boards/{name}", kinds.KINDS[name]
    assert (folder / "package.json").read_text() == packages.content(kind), "run: make pages"
    for path, source in json.loads(packages.content(kind))["urls"]:
        assert (folder / source).is_file(), path
    frozen = []

    def run(path, **options):
        if "$" in path:
            return
        monkeypatch.chdir(Path(path).parent)  # as MicroPython's manifestfile.py does
        exec(Path(path).read_text(), {**names, "options": type("Options", (), options)})

    names = {
        "include": lambda path, **options: run(path if "$" in path else str((folder / path).resolve()), **options),
        "package": lambda package, base_path, files: frozen.extend(f"{package}/{file}" for file in files),
        "module": lambda path, base_path: frozen.append(path),
    }
    run(str(folder / "manifest.py"))
    assert frozen == [*kinds.modules(kind), "main.py", "finish.py"] and len(frozen) > 25


def test_the_table_of_kinds_is_the_code_s():
    assert kinds_page.table() in (ROOT / "docs/your-board.md").read_text(), "run: make pages"
