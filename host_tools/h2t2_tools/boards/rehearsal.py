"""Finds how much heap a node needs: it runs the node on emulated 32-bit ARM with less and less heap until the node fails.

The node does everything that it does on a board: start, local model, connection, offloads and their labels, snapshots, a
command, a lost connection and the next one, its state, its end. It uses MicroPython's own allocator, so fragmentation counts.
"""

import json
import os
import re
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from h2t2.cpython.whole_frames import encode
from h2t2.link import frames

from ..common import places
from ..common.errors import Failure
from ..common.places import cache, temporary_folder, written_whole
from . import in_place
from .cross import fingerprint
from .emulators.catalogue import ARM32
from .rehearsal_peer import COMMAND, COMMANDED, Peer, reply

SAMPLES = 48
START_S, SAMPLE_S = 100, 0.4  # longest start, and longest decision, of emulated ARM on a busy machine
RESOLUTION = 1536
MOST_WORK = 96 << 10  # a board that compiles the runtime itself needs the most
SPARE = 1024  # reserve, because fragments lie elsewhere in each run
TLS = 32 << 10  # a handshake on an RP2040 at its peak, and what stays: `h2t2-lab bench tls`
UPDATE = 9 << 10  # a package while it arrives in one piece and is verified: `h2t2-lab bench memory`
LEFT_OUT = (  # entries that this emulation does not support, or that would only make it wait
    "wifi_name", "wifi_password", "ntp", "ca", "cert", "key", "user", "password", "watchdog_ms", "every_us", "every_ms",
    "sleep", "app", "measured", "provision",
)  # fmt: skip
APART = {  # entries whose modules the rehearsal imports without using them
    "ca": ["link.tls"], "wifi_name": ["link.wifi"], "provision": ["link.wifi"],
    "app": ["node.app", "node.measured", "node.window", "node.windowed"], "sleep": ["node.sleep"],
}  # fmt: skip
NO_ROOM = re.compile("MemoryError|memory allocation failed")  # a full heap may cut off the end of a message
MAIN = places.text("boards/programs/rehearsal.py.txt")
AGAIN = 3  # exit status of a node that wants to be restarted
STARTS = 3


def peak(
    files: dict[str, bytes],
    record: int,
    resting: int,
    progress: Callable[[int, int], None] = lambda n, of: None,
    aside: int = 0,
) -> int:
    """Return the bytes of heap that must be free on a board when its main.py begins.

    Args:
        files: Files of `h2t2 flash`, with machine code that 32-bit ARM runs.
        record: Bytes of a recorded sample.
        resting: Bytes of heap that the idle node takes.
        progress: Called with the finished runs and all runs.
        aside: Bytes that in_place.py takes and a frozen runtime does not; 0: the runtime is not frozen.

    Raises:
        Failure: The node fails even with ample heap; the message quotes it.
    """
    config = json.loads(files["config.json"])
    unrehearsed = (TLS if config.get("ca") else 0) + (UPDATE if config.get("update") else 0) + SPARE
    beside = Path(__file__).read_bytes() + MAIN.encode() + (str(aside).encode() if aside else b"")
    rehearsed = fingerprint(_as_rehearsed(files, config, record), beside)
    result = cache() / "heap" / f"{rehearsed[:32]}.json"
    if result.exists():
        return int(json.loads(result.read_text())) + unrehearsed
    low, high = resting, resting + MOST_WORK
    runs = 1 + (MOST_WORK // RESOLUTION - 1).bit_length()
    why = trouble(files, record, high, aside=aside)
    if why:
        raise Failure(f"on emulated ARM the node fails with {high:,} bytes of heap: {why}")
    for n in range(1, runs):
        progress(n, runs)
        middle = (low + high) // 2
        if trouble(files, record, middle, aside=aside):
            low = middle
        else:
            high = middle
    with written_whole(result) as partial:
        partial.write_text(json.dumps(high))
    return high + unrehearsed


def trouble(
    files: dict[str, bytes], record: int, heap: int, samples: int = SAMPLES, peer: Peer | None = None, aside: int = 0
) -> str:
    """Run the node on some samples with a limited heap.

    Args:
        files: As for peak().
        record: Bytes of a recorded sample.
        heap: Bytes that are free at its start.
        samples: Samples to decide.
        peer: Other end of its connection; None: a new one.
        aside: As of peak().

    Returns:
        The reason why it failed, "" if it did not.
    """
    config = json.loads(files["config.json"])
    with temporary_folder("rehearsal") as name:
        folder = Path(name)
        rehearsed = _as_rehearsed(files, config, record, samples)
        for path, data in (in_place.packed(rehearsed) if aside else rehearsed).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        script = folder / "rehearsal.py"
        script.write_text(
            MAIN.format(
                folder=name,
                imports=in_place.MOUNT if aside else in_place.FILES,
                modules=_apart(files, config),
                late=["link.ntp"] if config.get("wifi_name") and config.get("ntp") else [],
                app=(folder / "app.py").exists(),
                again=AGAIN,
            )
        )
        with peer or Peer(SAMPLES // 3) as other_end:
            for _ in range(STARTS):
                status, why = _play(folder, script, heap + aside, samples, other_end)
                if status != AGAIN:
                    break
        return why


def _as_rehearsed(files: dict[str, bytes], config: dict[str, Any], record: int, samples: int = SAMPLES) -> dict[str, bytes]:
    """Return the files of a node that connects to this machine and decides random samples."""
    entries = {name: value for name, value in config.items() if name not in LEFT_OUT}
    entries.update({"link": "serial"} if "link" in entries else {})
    entries.update(device="rehearsal", records="samples.bin", snapshot="h2t2.state", deadline_ms=3000, telemetry_s=1)
    program = {path: data for path, data in files.items() if path.startswith("h2t2/") or path in (config["ldl"], "app.py")}
    program["samples.bin"] = Random(1).randbytes(samples * record)
    return {**program, "config.json": json.dumps(entries).encode()}


def _apart(files: dict[str, bytes], config: dict[str, Any]) -> list[str]:
    """Return the modules of a node that the rehearsal imports without using them."""
    names = [name for entry, imported in APART.items() if config.get(entry) for name in imported]
    return [name for name in names if any(path.startswith(f"h2t2/{name.replace('.', '/')}.") for path in files)]


def _play(folder: Path, script: Path, heap: int, samples: int, peer: Peer) -> tuple[int, str]:
    """Start the node once. Return its exit status and why it failed, "" if it did not."""
    config = json.loads((folder / "config.json").read_text())
    serial = config.get("link") == "serial"
    if not serial:
        (folder / "config.json").write_text(json.dumps({**config, "broker": "127.0.0.1", "port": peer.port}))
    process = subprocess.Popen(
        ARM32.node(script, heap), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=ARM32.environment(folder), cwd=folder,
    )  # fmt: skip
    timer = threading.Timer(START_S + samples * SAMPLE_S, process.kill)
    timer.start()
    try:
        words, summary = _by_line(process) if serial else _by_network(process)
        if not summary and not NO_ROOM.search(words):
            process.wait()
    finally:
        timer.cancel()
        process.kill()
        status = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
    if NO_ROOM.search(words) or not summary:
        return status, words.strip()[-300:] or "it ended without output"
    failures = summary["unsaved"] + summary["errors"]
    worked = summary["saves"] and summary["commands"] and (peer.answered or serial)
    in_order = summary["samples"] == samples and worked and not failures
    return status, "" if in_order else f"its summary is {summary}"


def _by_network(process: subprocess.Popen[bytes]) -> tuple[str, dict[str, Any]]:
    """Return what a node on the network printed, and its summary, {} without one."""
    assert process.stdout
    words = ""
    for data in process.stdout:
        line = data.decode(errors="replace")
        words = words[-4096:] + line
        if line.startswith('{"summary"'):
            return words, dict(json.loads(line)["summary"])
        if NO_ROOM.search(line):  # the node would restart again and again
            break
    return words, {}


def _by_line(process: subprocess.Popen[bytes]) -> tuple[str, dict[str, Any]]:
    """As _by_network(), for a node on a serial line. It answers the node's requests."""
    assert process.stdout and process.stdin
    decoder = frames.Decoder()
    words = b""
    answered = 0
    while True:
        data = os.read(process.stdout.fileno(), 4096)
        if not data:
            return words.decode(errors="replace"), {}
        words = (words + data)[-4096:]
        if NO_ROOM.search(words.decode(errors="replace")):
            return words.decode(errors="replace"), {}
        for kind, payload in decoder.feed(data):
            if kind == frames.END:
                return words.decode(errors="replace"), dict(json.loads(payload))
            if kind == frames.REQUEST:
                answered += 1
                command = encode(frames.COMMAND, COMMAND) if answered == COMMANDED else b""
                with suppress(OSError):
                    process.stdin.write(encode(frames.REPLY, reply(payload)) + command)
                    process.stdin.flush()
