"""A pair's README: what its models do, and what to run next."""

import shlex
from typing import Any

from pydantic import BaseModel, ConfigDict

from ...common import event
from ...common.labels import described
from ...common.policies import DEFAULTS


class Card(BaseModel):
    """Further lines of the README: name -> text."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str]


def markdown(report: dict[str, Any]) -> str:
    """The folder's README, from the report of `h2t2 pair`."""
    commands = {shlex.join(words): purpose for purpose, words in next_commands(report).items()}
    longest = max(map(len, commands))
    lines = [f"{command:{longest}}  # {purpose}" for command, purpose in commands.items()]
    return "\n".join([text(report), "```sh", *lines, "```", ""])


def text(report: dict[str, Any]) -> str:
    """The README without the commands at its end."""
    lines = [f"# {report['name']}", "", f"Made by `h2t2 pair`; judged on {report['samples']} labelled samples.", ""]
    card = dict(report["card"])
    if "rdl_confusion" not in report["rates"]:
        lines += [f"- {event.in_words(card.pop('event'), DEFAULTS['delta_fp'], DEFAULTS['delta_fn'])}"]
    lines += [*(f"- {key[0].upper()}{key[1:]}: {text}" for key, text in card.items())]
    lines += [f"- Classes: {described(report['class_names'])}"] if report["class_names"] else []
    lines += [""]
    shares = [name for name in ("accuracy", "fp", "fn") if name in report["ldl"]["int8"]]
    head = ["model", "from", "bytes", "numbers", "accuracy", "false alarms", "misses"][: 4 + len(shares)]
    lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in ("ldl", "rdl"):
        model = report[name]
        for kind in ("float", "int8"):
            errors = model[kind]
            if errors:
                numbers = " | ".join(f"{errors[share]:.1%}" for share in shares)
                lines.append(f"| {name.upper()} | {model['kind']} | {model['bytes']:,} | {kind} | {numbers} |")
    problems = [f"Not for a board: {problem}." for problem in report["not_for_a_board"]]
    warnings = [f"**Beware:** {warning}.\n" for warning in report["warnings"]]
    return "\n".join([*lines, "", *_explanation(report), "", *warnings, *problems])


def next_commands(report: dict[str, Any]) -> dict[str, list[str]]:
    """What to run next: the purpose of each command -> its words."""
    folder = report["folder"]
    commands = {
        "both models, a broker and a node on this machine": ["demo", "--pair", folder],
        "what to choose": ["recommend", f"{folder}/trace.npz", "--beta", f"{report['beta']:g}"],
        "the remote model's worker": ["rdl", "--pair", folder],
    }
    if not report["not_for_a_board"]:
        commands["a project: an app of your own, on a board"] = ["new", "mine", "--from", folder]
    return {purpose: ["h2t2", *words] for purpose, words in commands.items()}


def _explanation(report: dict[str, Any]) -> list[str]:
    """What the numbers of the table mean, and how the models differ."""
    int8 = "If the remote model is no .tflite, its `int8` row counts its answers to what an offload sends."
    agreement = f"The two models agree on {report['agreement']:.1%}."
    rates = report["rates"]
    if "rdl_confusion" in rates:
        return [int8, "", f"{agreement} How often the remote model says each class: `rates` in pair.json."]
    return [
        f"False alarms and misses are shares of all samples, decision at score 0.5. {int8}",
        "",
        f"{agreement} The remote model says 1 for {rates['rdl_fp']:.1%} of the 0s and 0 for {rates['rdl_fn']:.1%} of the 1s",
        "(`rdl_fp`, `rdl_fn`).",
    ]
