"""Every command by group. Light, since `h2t2 --help` reads it.

A command is module:class. The class's docstring says more than the sentence here; its `examples` are command lines.
"""

EVERYWHERE = ("--debug", "--trust")  # options of every command, which execute() reads

# group -> what its commands are for
TITLES = {
    "use": "Run devices, remote models and boards",
    "fleet": "Watch, secure and update many devices",
    "models": "Make models and pairs",
    "policies": "Choose a policy and its options",
    "checks": "Check that it works",
}

# group -> name -> (module:class, what the command does)
GROUPS = {
    "use": {
        "demo": ("checks:Demo", "Show broker, remote model and node at work on this machine"),
        "new": ("boards:New", "Make a project of a pair, which runs as it is"),
        "run": ("checks:Run", "Run a project on an emulated board"),
        "flash": ("boards:Flash", "Put runtime, model and configuration onto a board"),
        "firmware": ("boards:Firmware", "Freeze the runtime into a MicroPython firmware"),
        "node": ("node:Node", "Run an edge node on this machine"),
        "rdl": ("rdl:Rdl", "Run the remote model's worker"),
        "gate": ("gate:Gate", "Give another detector a second opinion when it pays"),
        "gateway": ("boards:Gateway", "Relay between boards on serial lines and an MQTT broker"),
        "boards": ("boards:Boards", "List the boards that are plugged in, and the emulated ones"),
        "emulate": ("boards:Emulate", "Run an emulated Raspberry Pi Pico"),
        "export-c": ("export_c:ExportC", "Write the policies of a pair as a library in C"),
        "mip": ("boards:Mip", "Write the runtime as packages for MicroPython's mip"),
        "doctor": ("doctor:Doctor", "Tell what is installed and what answers"),
        "doctor clean": ("clean:Clean", "List what h2t2 has written outside of projects, and delete it"),
        "completion": ("completion:Completion", "Print a script that completes h2t2 commands in a shell"),
    },
    "fleet": {
        "fleet": ("watching:Fleet", "Show every device on a broker, live"),
        "dashboard": ("watching:Dashboard", "Show the fleet as a web page"),
        "command": ("fleet:Tell", "Send a command to a device and wait for its answer"),
        "head": ("fleet:Head", "Average the heads that devices have taught, for new devices"),
        "update": ("update:Update", "Bring a signed package to devices"),
        "update keys": ("update:Keys", "Make a key that signs update packages"),
        "update sign": ("update:Sign", "Make a signed package of a pair's local model"),
        "certs": ("fleet:Certs", "Make certificates for a broker and its devices"),
        "broker-config": ("fleet:BrokerConfig", "Write a Mosquitto configuration"),
        "metrics": ("watching:Metrics", "Export devices and workers as metrics for Prometheus"),
        "home-assistant": ("watching:HomeAssistant", "Announce every device on a broker to Home Assistant"),
    },
    "models": {
        "pair": ("model:MakePair", "Make a pair of a local model and a remote model"),
        "convert": ("model:Convert", "Convert a trained model to a full-int8 .tflite and a bundle"),
        "inspect": ("model:Inspect", "Show what a .tflite holds and whether a board can run it"),
        "samples": ("samples:Samples", "Summarise the samples that `h2t2 rdl --keep DIR` keeps"),
        "retrain": ("samples:Retrain", "Train a pair's local model again with the kept samples"),
    },
    "policies": {
        "recommend": ("replay:Recommend", "Recommend policy, bits and table for a trace"),
        "replay": ("replay:Replay", "Compute what every policy costs on a score trace"),
        "score": ("replay:Score", "Make a trace of an int8 .tflite: scores and labels"),
        "prior": ("replay:Prior", "Write the table that the adaptive policy starts from"),
    },
    "checks": {
        "validate": ("checks:Validate", "Compare the integer core with a float64 reference"),
        "ldl-check": ("checks:LdlCheck", "Compare the integer interpreter with TFLite, byte for byte"),
        "hil": ("checks:Hil", "Run the hardware-in-the-loop tests"),
    },
}

# the commands on the first page of `h2t2 --help`; `h2t2 help GROUP` lists all of a group
FIRST_PAGE = "demo new run flash node rdl fleet dashboard command update pair convert inspect recommend validate".split()

# former name of a command -> its name now
MOVED = {
    name: f"`h2t2-lab {name}`, in a clone of the repository," for name in ("bench", "chaos", "experiment", "proxy", "results")
} | {
    "bundle": "`h2t2 inspect MODEL --bundle FILE`",
    "pick": "`h2t2 inspect MODEL --pick FILE`",
    "clean": "`h2t2 doctor clean`",
    "emulators": "`h2t2 boards`",
    "keys": "`h2t2 update keys`",
    "sign": "`h2t2 update sign`",
}

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
