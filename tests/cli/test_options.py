"""A command line from what was parsed: nothing is dropped on the way to a worker of several."""

import pytest

from h2t2_tools.cli.main import parser
from h2t2_tools.cli.options import words

# an example of every value that an option of `h2t2 rdl` may take
GIVEN = {
    "pair": "digits", "resolver": "optimised", "broker": "mqtts://h:1", "ca": "ca.crt", "cert": "c.crt", "key": "c.key",
    "user": "u", "password_file": "p", "model": "m.onnx", "event": "3", "model_id": "7", "workers": "4", "batch": "5",
    "wait_ms": "2.5", "queue": "9", "metrics": "9100", "json": "r.json", "no_verify": None, "no_watch": None,
    "hang_after": "3.5", "keep_refused": "d", "model_secret": "t", "then": "n.onnx", "then_beta": "0.5", "then_secret": "s", 
    "classes": "no",
    "keep": "k", "keep_mb": "20", "log": "json", "verbose": None, "debug": None,
}  # fmt: skip


def parsed(line):
    made = vars(parser().parse_args(line)).copy()
    made.pop("parser")
    return made


def test_every_option_of_a_worker_reaches_the_workers_of_several():
    line = ["rdl"]
    for name, value in GIVEN.items():
        line.append(f"--{name.replace('_', '-')}" + ("" if value is None else f"={value}"))
    args = parser().parse_args(line)
    options = {action.dest for action in args.parser._actions if action.option_strings and action.dest != "help"}
    assert options == set(GIVEN), "an option this test does not know: give it a value here"
    again = parsed(["rdl", *words(args)])
    assert again == parsed(line)
    alone = parsed(["rdl", *words(args, "workers", "metrics", "json")])
    assert alone == {**again, "workers": 1, "metrics": None, "json": None}


@pytest.mark.parametrize("line", [["validate", "--bits", "4", "6", "--mode", "every"], ["node", "--samples", "5"], ["boards"]])
def test_lists_and_defaults_come_back(line):
    assert parsed([line[0], *words(parser().parse_args(line))]) == parsed(line)
