"""Every command: where its model is, and what it does in a sentence. Light: `h2t2 --help` needs nothing else."""

from __future__ import annotations

import argparse
from typing import NoReturn

from ..common.errors import UserError

BENCH = "bench"  # the command that groups the benchmarks

# name -> (module:model, summary)
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("proof:Demo", "Broker, RDL worker and node on this machine: classify, offload, learn, and show what it cost."),
    "run": (
        "proof:Run",
        "Run a project on an emulated board, flashed as onto a real one, with broker and remote model; prints a JSON line for "
        "each decision.",
    ),
    "validate": (
        "proof:Validate",
        "Drive the integer core and the float64 reference with the same draws and count the decisions that differ.",
    ),
    "ldl-check": ("proof:LdlCheck", "Compare the integer interpreter with TFLite's reference kernels, byte for byte."),
    "hil": (
        "proof:Hil",
        "Run the hardware-in-the-loop tests on emulated or real boards; prints a table and writes an HTML report.",
    ),
    "chaos": (
        "proof:Chaos",
        "Kill, stop and hang brokers, workers and nodes; drop, double, delay and stall messages; fill disks, move clocks, "
        "break sensors. Count samples, decisions and labels against independent counts. Then run two devices in virtual time: "
        "their sensors see nothing for an hour, and an update kills a sensor.",
    ),
    "proxy": (
        "proof:Proxy",
        "Stand between MQTT clients and a broker and make the link bad, for tests with emulated and real boards.",
    ),
    "node": ("fleet:Node", "Run an edge node on this machine: LDL, policy and MQTT link; one JSON line per decision."),
    "rdl": (
        "fleet:Rdl",
        "Run the remote model's worker: it answers offloaded samples until SIGTERM or Ctrl-C; SIGHUP reloads the model.",
    ),
    "command": (
        "fleet:Tell",
        "Send a command to a device (new costs, snapshot, reset, pause) and wait for its answer. A device accepts four at "
        "once, then one every 15 s.",
    ),
    "certs": (
        "fleet:Certs",
        "Make a development certificate authority, the broker's certificate, and one for each device or worker (EC P-256).",
    ),
    "broker-config": (
        "fleet:BrokerConfig",
        "Write a Mosquitto configuration: a device reaches only its own topics, and only workers may reply.",
    ),
    "fleet": ("watch:Fleet", "Show every device on a broker, live: what it does, what it costs, and what is wrong with it."),
    "dashboard": (
        "watch:Dashboard",
        "Show the fleet as a web page: every device, its costs and pictures over time, the workers. By default the page is "
        "read-only and bound to localhost.",
    ),
    "metrics": ("watch:Metrics", "Export every device and worker on a broker as metrics for Prometheus, until Ctrl-C."),
    "home-assistant": (
        "watch:HomeAssistant",
        "Announce every device on a broker to Home Assistant, by MQTT discovery, until Ctrl-C.",
    ),
    "samples": (
        "samples:Samples",
        "Summarise the samples that `h2t2 rdl --keep DIR` keeps: how many of which device, how often the remote model agrees "
        "with the local one. Each sample counts as many as it stands for.",
    ),
    "retrain": (
        "samples:Retrain",
        "Train a pair's local model again with the kept samples, and write a new pair if it is better. The recipe is a Python "
        "file with training_data() -> (x, y) and local_model(x, y, weight) -> a model of Keras or scikit-learn.",
    ),
    "keys": ("update:Keys", "Make a key that signs update packages, and its public part, which devices know."),
    "sign": (
        "update:Sign",
        "Make a signed package of a pair's local model, its test and its prior table, for devices in the field.",
    ),
    "update": (
        "update:Update",
        "Bring a signed package to devices: to one, to a tenth of them, to all. Each device tries it and keeps it, or goes "
        "back. Where one does not keep it, or raises an alarm afterwards, the others stay as they are. Run it again to go on "
        "where it stopped.",
    ),
    "emulators": ("boards:Emulators", "List the MicroPython builds that this machine can run in place of a board."),
    "emulate": (
        "boards:Emulate",
        "Run an emulated Raspberry Pi Pico, a device on a serial port of this machine; prints a JSON line for each event.",
    ),
    "boards": ("boards:Boards", "List the boards that are plugged in."),
    "new": ("boards:New", "Make a project: app, configuration, model and data of a pair, which runs as it is."),
    "flash": (
        "boards:Flash",
        "Put runtime, model and configuration onto a board: check, copy what changed, read it back, restart the board.",
    ),
    "mip": (
        "boards:Mip",
        "Write the runtime as packages that boards install by themselves, from any web server, with MicroPython's mip.",
    ),
    "gateway": (
        "boards:Gateway",
        "Relay between boards on serial lines and an MQTT broker, many at once; prints a JSON line for each decision.",
    ),
    "inspect": (
        "model:Inspect",
        "Show what a .tflite holds, the memory it takes on a board, what is not supported, whether it can feed the policy.",
    ),
    "pick": (
        "model:Pick",
        "Keep one input and one output of a .tflite that has several: the sample goes to the one, the other decides.",
    ),
    "convert": (
        "model:Convert",
        "Convert a trained model to a full-int8 .tflite and a bundle for boards, and report how the int8 model differs.",
    ),
    "pair": (
        "model:MakePair",
        "Make the folder that nodes, workers and boards run from, of a local model, a remote model and labelled samples.",
    ),
    "bundle": (
        "model:Bundle",
        "Prepare an int8 .tflite for a board: weights, integer multipliers, tables and memory plan in one checked file (.h2m).",
    ),
    "replay": (
        "lab:Replay",
        "Compute what every policy costs on a score trace: cost, errors, offloads and regret for each cost of an offload.",
    ),
    "score": ("lab:Score", "Make a trace: an int8 .tflite's scores of a data set's test part, and the labels."),
    "prior": (
        "lab:Prior",
        "Write the table that the adaptive policy starts from: how often each score bin holds an event, from labelled samples.",
    ),
    "recommend": (
        "lab:Recommend",
        "Recommend policy, bits and table for a trace, with the cost beside always asking and never asking.",
    ),
    "experiment": ("lab:Experiment", "Draw the paper's figures and further ones: a picture and a CSV each."),
    "results": ("lab:Results", "Write the results page from the CSVs of `h2t2 experiment all`."),
    "bench policy": (
        "bench:Policy", "Time a step of the dense matrix, the O(2^b) form and the tree core, here and on MicroPython.",
    ),
    "bench simulate": (
        "bench:Simulate", "Steps per second of the compiled simulator, the device core on CPython and the dense NumPy matrix.",
    ),
    "bench memory": (
        "bench:Memory",
        "Flash and heap that runtime and a small local model take on each kind of board; heap of each policy alone.",
    ),
    "bench fidelity": (
        "bench:Fidelity", "Decisions of the integer core that differ from float64, every mode, b from 4 to 10.",
    ),
    "bench kernels": (
        "bench:Kernels",
        "How LiteRT's kernels on a Pi change scores and decisions, against the integer interpreter of boards.",
    ),
    "bench tls": (
        "bench:Tls",
        "A TLS handshake on an emulated Pico, with EC and with RSA keys: chip time, its longest step, heap.",
    ),
    "bench install": (
        "bench:Install", "Size of the base install, library by library, and on each Python of this machine.",
    ),
    "bench saving": (
        "bench:Saving",
        "What the policy saves on the demo's streams, against never asking, always asking and hindsight.",
    ),
    "bench device": (
        "bench:Device",
        "Count on emulated boards: the core on a micro:bit; cycles of a Pico, instructions of a Cortex-M3 and a RISC-V.",
    ),
    "bench ldl": (
        "bench:Ldl",
        "Time one inference: TFLite's kernels, the integer interpreter on CPython and MicroPython, plain and in machine code.",
    ),
    "bench cuts": (
        "bench:Cuts",
        "Cut the power while a snapshot, the log or `h2t2 flash` writes, and look at what is left, in memory and on an "
        "emulated Pico.",
    ),
    "bench offload": (
        "bench:Offload",
        "Round trips per second against one Mosquitto: raw paho echo, our link with 1 and 8 offloads in flight, 50 devices.",
    ),
    "bench overload": (
        "bench:Overload",
        "Send more requests than a remote model can answer: how many are in time, and whether one device starves others.",
    ),
    "bench dashboard": (
        "bench:Dashboard",
        "Devices with a state per second each and an open page: CPU, memory, and how late a state is seen.",
    ),
    "bench fleet": (
        "bench:Fleet",
        "More and more nodes and workers at one Mosquitto: answers per second, latency, CPU per request, memory.",
    ),
    "bench all": (
        "bench:Everything", "Run every benchmark and write the page docs/benchmarks.md. Takes some ten minutes.",
    ),
}  # fmt: skip


class Parser(argparse.ArgumentParser):
    """argparse, whose errors are UserErrors in one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; {self.prog} --help shows more")
