"""Every command by group: where its model is, and what it does. Light, since `h2t2 --help` reads it.

A summary's first sentence fits one line of an overview; `h2t2 COMMAND --help` shows the whole summary.
"""

from __future__ import annotations

BENCH = "bench"  # the first word of every benchmark, and the group that `h2t2 help bench` lists

# group -> what its commands are for
TITLES = {
    "use": "Run devices, remote models and boards",
    "fleet": "Watch, secure and update many devices",
    "models": "Make models and pairs",
    "lab": "Choose a policy and its options",
    "proof": "Check that it works",
    BENCH: "Measure both sides of a claim in one run",
}

# group -> name -> (module:model, summary)
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "use": {
        "demo": (
            "proof:Demo",
            "Show broker, remote model and node at work on this machine. The node classifies, offloads and learns; the report "
            "states what each policy costs.",
        ),
        "new": ("boards:New", "Make a project of a pair, which runs as it is. It holds app, configuration, model and data."),
        "run": (
            "proof:Run",
            "Run a project on an emulated board. The board is flashed like a real one; broker and remote model run beside it. "
            "Prints a JSON line for each decision.",
        ),
        "flash": (
            "boards:Flash",
            "Put runtime, model and configuration onto a board. It checks, copies what changed, reads it back and restarts "
            "the board.",
        ),
        "firmware": (
            "boards:Firmware",
            "Freeze the runtime into a MicroPython firmware. The node then takes a third of the memory. Builds a Pico's UF2; "
            "for other boards it prints the command for your checkout of MicroPython.",
        ),
        "node": (
            "fleet:Node",
            "Run an edge node on this machine. It holds local model, policy and MQTT link, and prints a JSON line for each "
            "decision.",
        ),
        "rdl": (
            "fleet:Rdl",
            "Run the remote model's worker. It answers offloaded samples until SIGTERM or Ctrl-C; SIGHUP reloads the model.",
        ),
        "gate": (
            "gate:Gate",
            "Give another detector a second opinion when it pays. It takes scores from MQTT, learns a policy "
            "for each camera or room, asks a remote model, and publishes decisions.",
        ),
        "gateway": (
            "boards:Gateway",
            "Relay between boards on serial lines and an MQTT broker. It serves many boards at once and prints a JSON line "
            "for each decision.",
        ),
        "boards": ("boards:Boards", "List the boards that are plugged in."),
        "emulators": (
            "boards:Emulators",
            "List the MicroPython builds that this machine can run. They take the place of a board.",
        ),
        "emulate": (
            "boards:Emulate",
            "Run an emulated Raspberry Pi Pico. It is a device on a serial port of this machine and prints a JSON line for "
            "each event.",
        ),
        "mip": (
            "boards:Mip",
            "Write the runtime as packages for MicroPython's mip. Boards install them by themselves, from any web server.",
        ),
        "completion": (
            "completion:Completion",
            "Print a script that completes h2t2 commands in a shell. Bash, zsh and fish read it from the files that the "
            "examples name.",
        ),
    },
    "fleet": {
        "fleet": (
            "watch:Fleet",
            "Show every device on a broker, live. It shows what each device does, what it costs, and what is wrong with it.",
        ),
        "dashboard": (
            "watch:Dashboard",
            "Show the fleet as a web page. It shows every device, its costs and pictures over time, and the workers. By "
            "default the page is read-only and bound to localhost.",
        ),
        "command": (
            "fleet:Tell",
            "Send a command to a device and wait for its answer. Commands set costs, save a snapshot, reset and pause. A "
            "device accepts four at once, then one every 15 s.",
        ),
        "head": (
            "fleet:Head",
            "Average the heads that devices have taught, for new devices. It writes a file with which their heads begin. All "
            "devices must have the same local model.",
        ),
        "update": (
            "update:Update",
            "Bring a signed package to devices. It goes to one device, to a tenth of them, to all. Each device tries it and "
            "keeps it, or goes back. Where one does not keep it, or raises an alarm afterwards, the others stay as they are. "
            "Run the command again to go on where it stopped.",
        ),
        "keys": ("update:Keys", "Make a key that signs update packages. Devices know its public part."),
        "sign": (
            "update:Sign",
            "Make a signed package of a pair's local model. It holds the model, its test and its prior table, for devices in "
            "the field.",
        ),
        "certs": (
            "fleet:Certs",
            "Make certificates for a broker and its devices. It makes a development certificate authority, the broker's "
            "certificate, and one for each device or worker (EC P-256).",
        ),
        "broker-config": (
            "fleet:BrokerConfig",
            "Write a Mosquitto configuration. A device reaches only its own topics, and only workers may reply.",
        ),
        "metrics": (
            "watch:Metrics",
            "Export devices and workers as metrics for Prometheus. It serves every device and worker on a broker until Ctrl-C.",
        ),
        "home-assistant": (
            "watch:HomeAssistant",
            "Announce every device on a broker to Home Assistant. It uses MQTT discovery and runs until Ctrl-C.",
        ),
    },
    "models": {
        "pair": (
            "model:MakePair",
            "Make a pair of a local model and a remote model. Labelled samples evaluate both; nodes, workers and boards run "
            "from the folder that it writes.",
        ),
        "convert": (
            "model:Convert",
            "Convert a trained model to a full-int8 .tflite and a bundle. Boards run the bundle; a report says how the int8 "
            "model differs.",
        ),
        "inspect": (
            "model:Inspect",
            "Show what a .tflite holds and whether a board can run it. It shows operators, the memory that they take on a "
            "board, what is not supported, and whether the output can feed the policy.",
        ),
        "pick": (
            "model:Pick",
            "Keep one input and one output of a .tflite with several. The sample goes to the input, and the output decides.",
        ),
        "bundle": (
            "model:Bundle",
            "Prepare an int8 .tflite for a board. Weights, integer multipliers, tables and memory plan go into one checked "
            "file (.h2m).",
        ),
        "samples": (
            "samples:Samples",
            "Summarise the samples that `h2t2 rdl --keep DIR` keeps. It counts how many came from which device, and how often "
            "the remote model agrees with the local one. Each sample counts as many as it stands for.",
        ),
        "retrain": (
            "samples:Retrain",
            "Train a pair's local model again with the kept samples. It writes a new pair if that is better. The recipe is a "
            "Python file with training_data() -> (x, y) and local_model(x, y, weight) -> a model of Keras or scikit-learn.",
        ),
    },
    "lab": {
        "recommend": (
            "lab:Recommend",
            "Recommend policy, bits and table for a trace. It shows the cost beside always asking and never asking.",
        ),
        "replay": (
            "lab:Replay",
            "Compute what every policy costs on a score trace. It reports cost, errors, offloads and regret for each cost of "
            "an offload.",
        ),
        "score": ("lab:Score", "Make a trace of an int8 .tflite: scores and labels. It scores the test part of a data set."),
        "prior": (
            "lab:Prior",
            "Write the table that the adaptive policy starts from. It says how often each score bin holds an event, from "
            "labelled samples.",
        ),
        "experiment": ("lab:Experiment", "Draw the paper's figures and further ones. Each becomes a picture and a CSV."),
        "results": ("lab:Results", "Write the results page. It reads the CSVs of `h2t2 experiment all`."),
    },
    "proof": {
        "validate": (
            "proof:Validate",
            "Compare the integer core with a float64 reference. Both use the same draws; it counts the decisions that differ.",
        ),
        "ldl-check": (
            "proof:LdlCheck",
            "Compare the integer interpreter with TFLite, byte for byte. TFLite's reference kernels are the oracle.",
        ),
        "hil": (
            "proof:Hil",
            "Run the hardware-in-the-loop tests. They run on emulated or real boards; it prints a table and writes an HTML "
            "report.",
        ),
        "chaos": (
            "proof:Chaos",
            "Break brokers, workers, nodes and links, and count samples. It kills, stops and hangs processes; drops, doubles, "
            "delays and stalls messages; fills disks, moves clocks, breaks sensors. It compares samples, decisions and labels "
            "with independent counts. Then it runs two devices in virtual time: their sensors see nothing for an hour, and an "
            "update kills a sensor.",
        ),
        "proxy": (
            "proof:Proxy",
            "Stand between MQTT clients and a broker and spoil the link. Tests with emulated and real boards use it.",
        ),
    },
    BENCH: {
        "bench policy": (
            "bench:Policy",
            "Time a step of the policy. It compares the dense matrix, the O(2^b) form and the tree core, here and on "
            "MicroPython.",
        ),
        "bench simulate": (
            "bench:Simulate",
            "Count simulated steps per second. It compares the compiled simulator, the device core on CPython and the dense "
            "NumPy matrix.",
        ),
        "bench memory": (
            "bench:Memory",
            "Measure flash and heap on each kind of board. Runtime and a small local model take them; each policy's heap is "
            "measured alone, too.",
        ),
        "bench fidelity": (
            "bench:Fidelity",
            "Count decisions that differ from float64. It tries every mode of the integer core, b from 4 to 10.",
        ),
        "bench kernels": (
            "bench:Kernels",
            "Count scores and decisions that LiteRT's kernels change. The integer interpreter of boards is the reference; "
            "LiteRT runs on a Pi.",
        ),
        "bench signals": (
            "bench:Signals",
            "Count measurements per second that a node takes. It takes them one by one and in blocks, on this machine and on "
            "an emulated Pico, and counts instructions of a Raspberry Pi.",
        ),
        "bench tls": (
            "bench:Tls",
            "Measure a TLS handshake on an emulated Pico. It shows chip time, the longest step and heap, with EC and with RSA "
            "keys.",
        ),
        "bench install": (
            "bench:Install",
            "Measure the size of the base install. It shows each library, on each Python of this machine.",
        ),
        "bench saving": (
            "bench:Saving",
            "Measure what the policy saves on the demo's streams. It compares with never asking, always asking and hindsight.",
        ),
        "bench device": (
            "bench:Device",
            "Count instructions on emulated boards. It counts those of the core on a micro:bit, a Cortex-M3 and a RISC-V, and "
            "cycles of a Pico.",
        ),
        "bench ldl": (
            "bench:Ldl",
            "Time one inference. It compares TFLite's kernels with the integer interpreter on CPython and MicroPython, plain "
            "and in machine code.",
        ),
        "bench operators": (
            "bench:Operators",
            "Count cycles of each operator on an emulated Pico. They become the table from which h2t2 inspect --board "
            "predicts, and the shipped models show how well it does.",
        ),
        "bench trees": (
            "bench:Trees",
            "Time one inference of a random forest. It compares size, accuracy and time of CPython, numba, MicroPython and, "
            "where it is installed, emlearn's C code.",
        ),
        "bench cuts": (
            "bench:Cuts",
            "Cut the power during writes, and check what is left. A snapshot, the log or `h2t2 flash` writes, in memory and "
            "on an emulated Pico.",
        ),
        "bench offload": (
            "bench:Offload",
            "Count round trips per second through one Mosquitto. It compares raw paho echo, our link with 1 and 8 offloads in "
            "flight, and 50 devices.",
        ),
        "bench overload": (
            "bench:Overload",
            "Send more requests than a remote model can answer. It counts the answers in time, and whether one device starves "
            "others.",
        ),
        "bench gate": (
            "bench:Gate",
            "Count the decisions per second of a gate. Programs call it from Python and by HTTP; it shows how late local "
            "decisions are.",
        ),
        "bench presets": (
            "bench:Presets",
            "Play a simulated day of each preset of `h2t2 gate`. It shows what the gate saves, and writes the measured parts "
            "of the presets' pages.",
        ),
        "bench dashboard": (
            "bench:Dashboard",
            "Measure the dashboard with many devices and an open page. Each device sends a state per second; it shows CPU, "
            "memory, and how late the page shows a state.",
        ),
        "bench fleet": (
            "bench:Fleet",
            "Measure more and more nodes and workers at one Mosquitto. It shows answers per second, latency, CPU per request "
            "and memory.",
        ),
        "bench all": ("bench:Everything", "Run every benchmark and write docs/benchmarks.md. This takes some ten minutes."),
    },
}

# the commands on the first page of `h2t2 --help`; `h2t2 help GROUP` lists all of a group
FIRST_PAGE = (
    "demo", "new", "run", "flash", "node", "rdl", "fleet", "dashboard", "command", "update", "pair", "convert", "inspect",
    "recommend", "validate",
)  # fmt: skip

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
