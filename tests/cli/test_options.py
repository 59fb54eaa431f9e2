"""Options that are declared once: their ranges, their way to worker processes, and the pages and files made from them."""

import re

import pytest
from support import ROOT

from h2t2_lab.pages import reference
from h2t2_tools.boards.kinds import SECTIONS
from h2t2_tools.cli.commands import COMMANDS
from h2t2_tools.cli.execute import command, parsed
from h2t2_tools.cli.main import main
from h2t2_tools.cli.options import flag, visible, words
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.fields import about, domain
from h2t2_tools.common.toml_file import parse_entries as toml_entries
from h2t2_tools.fleet.config import FORMAT, NodeConfig

OUT_OF_RANGE = ("nan", "inf", "-1", "1e30", "many")


def numeric_options():
    for name in COMMANDS:
        for key, field in visible(command(name)).items():
            if domain(field).kind in (int, float):
                yield pytest.param(name, key, id=f"{name} {flag(key, field)}")


def required_words(model, but):
    """The words that a command needs before anything else."""
    line = []
    for key, field in visible(model).items():
        if key == but or not field.is_required() or about(field, "unset"):
            continue
        text = str((domain(field).choices or ("x",))[0])
        line += [text] if about(field, "positional") else [f"{flag(key, field)}={text}"]
    return line


@pytest.mark.parametrize("name, key", [*numeric_options()])
def test_a_number_out_of_range_is_refused_by_the_option_s_name(name, key, capsys):
    model = command(name)
    field = model.model_fields[key]
    for text in OUT_OF_RANGE:
        values = [text] * domain(field).count if isinstance(domain(field).count, int) and domain(field).count > 1 else [text]
        line = [*name.split(), flag(key, field), *values] if len(values) > 1 else [*name.split(), f"{flag(key, field)}={text}"]
        assert main([*line, *required_words(model, key)]) == 2, text
        error = capsys.readouterr().err
        assert flag(key, field) in error and error.startswith("h2t2: ") and error.count("\n") == 1, error


def test_there_are_numeric_options_to_test():
    assert len(list(numeric_options())) > 100


def test_every_entry_of_a_configuration_is_an_option_of_the_node_or_a_board_s():
    options = visible(command("node"))
    for name, field in NodeConfig.model_fields.items():
        assert name in options or about(field, "hidden"), name


# a value for every option of `h2t2 rdl`
GIVEN = {
    "pair": "digits", "resolver": "optimised", "broker": "mqtts://h:1", "ca": "ca.crt", "cert": "c.crt", "key": "c.key",
    "user": "u", "password_file": "p", "remote": "m.onnx", "event": "3", "model_id": "7", "workers": "4", "batch": "5",
    "batch_wait": "2500us", "queue": "9", "metrics": "9100", "output": "probabilities",
    "json_file": "r.json", "no_verify": None, "no_watch": None,
    "hang_after": "3.5", "keep_refused": "d", "remote_secret": "t", "then": "n.onnx", "then_beta": "0.5", "then_secret": "s",
    "classes": "no", "keep": "k", "keep_mb": "20", "log": "json", "verbose": None,
}  # fmt: skip


def test_every_option_of_a_worker_reaches_the_workers_of_several():
    model = command("rdl")
    assert visible(model).keys() == GIVEN.keys(), "an option this test does not know: give it a value here"
    line = ["rdl"]
    for name, value in GIVEN.items():
        line.append(flag(name, model.model_fields[name]) + ("" if value is None else f"={value}"))
    first = parsed(line)
    assert parsed(["rdl", *words(first)]) == first
    alone = parsed(["rdl", *words(first, "workers", "metrics", "json_file")])
    assert alone == first.model_copy(update={"workers": 1, "metrics": None, "json_file": None})


def test_a_workers_number_goes_into_its_login_alone():
    line = ["rdl", "--workers=2", "--user=rdl-{}", "--password-file=s/{}", "--key={}.key", "--keep={}", "--remote=m{}.onnx"]
    first, second = (parsed(["rdl", *words]) for words in parsed(line)._workers(None))
    assert (first.user, first.password_file, first.key) == ("rdl-1", "s/1", "1.key") and second.user == "rdl-2"
    assert (second.keep, second.remote, second.cert) == ("{}", "m{}.onnx", "")
    assert not any(word.startswith("--cert") for word in parsed(line)._workers(None)[0])


@pytest.mark.parametrize("line", [["validate", "--bits", "4", "6", "--mode", "every"], ["node", "--samples", "5"], ["boards"]])
def test_lists_and_defaults_come_back(line):
    assert parsed([line[0], *words(parsed(line))]).model_dump() == parsed(line).model_dump()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("every = true", "every = true: want a time"),
        ("deadline = -1", "deadline -1: want a time"),
        ("[boards.moon]", "[boards.moon]: this"),
    ],
)
def test_the_node_names_a_projects_entry_as_its_file_does(tmp_path, line, said):
    """It said `--every True` of `every = true`, and nothing of a board that there is not."""
    (tmp_path / "h2t2.toml").write_text(f"{line}\n")
    with pytest.raises(UserError, match=re.escape(f"{tmp_path / 'h2t2.toml'}: {said}")):
        parsed(["node", str(tmp_path)])


def test_the_node_takes_entries_from_a_project_and_options_override_them(tmp_path):
    (tmp_path / "h2t2.toml").write_text(
        'device = "kitchen"\ndeadline = "700ms"\nprior = "p.json"\nbroker = "10.0.0.9"\nport = 1999\n'
    )
    node = parsed(["node", str(tmp_path), "--deadline", "300ms"])
    assert (node.device, node.deadline_ms, node.url) == ("kitchen", 300, "mqtt://10.0.0.9:1999")
    assert node.prior == str(tmp_path / "p.json") and node.beta == 0.2  # the pair's
    assert node.model_id and node.remote_shape == [30]


def test_the_commented_example_is_as_declared():
    text = (ROOT / "firmware/boards/h2t2.toml").read_text()
    assert text == reference.project_file(), "run: make pages"
    entries = toml_entries(text.encode(), ROOT)
    sections = entries.pop("boards")
    assert entries.pop("format") == FORMAT
    for table in (entries, *sections.values()):
        assert table.keys() <= NodeConfig.model_fields.keys()
    assert sections.keys() <= {*SECTIONS}


def test_the_page_of_the_configuration_is_as_declared():
    assert (ROOT / "docs/configuration.md").read_text() == reference.configuration(), "run: make pages"


def test_a_worker_gets_an_option_of_zero():
    """0 is no default of --then-beta, although it equals False."""
    rdl = parsed(["rdl", "--then", "n.onnx", "--then-beta", "0"])
    assert "--then-beta=0.0" in words(rdl)
