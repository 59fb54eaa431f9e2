"""Computes what a node with an app must have decided: the host's integers, remote model and policy on the same samples."""

import json

import numpy as np
from command_line import H2T2, ran

from h2t2.core.class_forecaster import likeliest
from h2t2.core.policy import OFFLOAD
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.class_scores import ClassScores
from h2t2.ldl.head_sample import HeadSample
from h2t2.node import head_start
from h2t2.node.measured import Measured
from h2t2.node.picture import Picture
from h2t2.node.window import Window
from h2t2_tools.common import pairs, policies
from h2t2_tools.common.head_file import MODEL_BITS
from h2t2_tools.fleet import app
from h2t2_tools.fleet.rdl import models

# For an app before its first sample: within two seconds after the node began to ask for samples a worker announces itself. From
# then on the node can offload every sample, as the host does.
SETTLED = """import time

_first = []


def settled():
    if not _first:
        _first.append(time.time())
    return time.time() > _first[0] + 2


"""


def patient(app):
    """Return the source of app_csv's app, changed to wait for this."""
    return SETTLED + app.replace("    line = lines", "    if not settled():\n        return None\n    line = lines")


def run(project, board):
    """Run a project with app_csv's app, which waits for this, on an emulated board."""
    (project / "app.py").write_text(patient((project / "app.py").read_text()))
    ran([*H2T2, "run", project, "--board", board])


def decisions(folder, csv, arguments, event, sources=None, context=None, head=None, lost=0):
    """Return [(label, source, score)] of a CSV of measured samples, with labels at once, and [the local model's label].

    folder: of the pair, with its bundle; arguments: of the adaptive policy. sources: the node's source for each sample;
    "fallback" means that the offload had no answer. context: of an app whose policy has a head. head: the file that a head
    begins with. lost: how many of the first offloads without an answer the node took for lost questions; the later ones fell
    back because it knew that nobody answers.
    """
    pair = pairs.load(str(folder))
    ends = app.measured(pair.folder, pair.info)
    local, remote = (Measured(**ends[name]) for name in ("local", "remote"))
    window = Window(**ends["window"]) if "window" in ends else None
    shaped = Picture(**ends["picture"]) if "picture" in ends else list
    ldl = Int8Model((folder / "ldl.h2m").read_bytes(), event)
    classes = len(arguments.get("costs", ()))
    added = arguments.get("features", 0) - ldl.features
    ldl = ClassScores(ldl, classes) if classes else ldl
    if "features" in arguments:
        ldl = HeadSample(ldl, arguments["features"], added, context, print)
    policy, rdl = policies.core.make("adaptive", arguments), models.load(models.of_pair(pair))
    if head:
        policy.adopt(ldl.model.checksum & MODEL_BITS)
        head_start.begin(policy, str(head), print)
    rows, local_labels = [], []
    for line in csv.splitlines():
        values = [int(x) if x.lstrip("-").isdigit() else float(x) for x in line.split(",")]
        if window:
            window.add(values)
        values = window.take() if window else shaped(values)
        if values is None:
            continue
        output = ldl.run(local(values))
        level = ldl.level(output)
        reading = policy.reading(output, level)
        k = policy.bin(reading)
        action = policy.decide(reading)
        tensor = np.array([remote(values)], np.int8).reshape(1, *pair.info.remote.shape)
        label = int(models.labels(rdl.scores(tensor))[0])
        decided = (action, "local")
        if action == OFFLOAD and sources and sources[len(rows)] == "fallback":
            decided = (policy.local, "fallback")
            if lost > 0:
                policy.count_question(k, 0)
                lost -= 1
            policy.lose(policy.ticket)
        elif action == OFFLOAD:
            decided = (label, "remote")
            policy.count_question(k, 1)
            policy.learn(policy.ticket, label)
        rows.append((*decided, round(level / 256, 6)))
        local_labels.append(likeliest(reading[:classes]) if classes else int(k >= 8))
    return rows, local_labels


def written(path):
    """Return [(label, source, score)] that the app of firmware/examples/app_csv wrote."""
    lines = [line.split(",") for line in path.read_text().splitlines()]
    return [(int(label), source, round(float(score), 6)) for label, source, score in lines]


def printed_decisions(out):
    """Return [(decision, source)] of the JSON lines that a node printed."""
    lines = [json.loads(line) for line in out.splitlines() if '"bin"' in line]
    return [(line["decision"], line["source"]) for line in lines]
