"""Updates on MicroPython itself: each package's own program, damaged files, and packages that are malformed."""

import hashlib
import json

import pytest
from node_updates import BLOB, body, made_key, signed
from support import need

from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.common import places
from h2t2_tools.fleet.update import signed_package

SCRIPT = """
import json
import os
import sys
from binascii import crc32
from struct import pack

from h2t2.node import package, start
from h2t2.node.asking import Asking
from h2t2.node.node import Complaints
from h2t2.node.update import Updates

os.chdir(FOLDER)
sys.path.insert(0, FOLDER)
NUMBERS = {"columns": None, "multipliers": [1] * 5, "offsets": [0] * 5, "shifts": [0] * 5}
CONFIG = {
    "ldl": "ldl.h2m", "snapshot": "state", "event": 1, "model_id": 1, "policy": "adaptive", "arguments": {"bits": 4},
    "update": {"key": KEY, "max_bytes": 1 << 18, "app": True},
    "deadline_ms": 100, "measured": {"local": NUMBERS, "remote": NUMBERS},
}


class Running(Asking):
    def __init__(self):
        Asking.__init__(self, 4)
        self.node = self.sensing = self
        self.errors = self.every_ms = self.every_us = self.retry_ms = self.standing = 0
        self.complain = Complaints(print)
        self.samples = self.scores[3] = 1000


def bring(updates, name):
    with open(name, "rb") as file:
        content = file.read()
    number = package.id_of(content)
    for at in range(0, len(content), package.MOST_DATA):
        data = content[at : at + package.MOST_DATA]
        chunk = pack("<4sIIII", package.CHUNK, number, len(content), at, crc32(data)) + data
        answer, whole = updates.take(chunk, Running())
        if whole or not json.loads(answer)["ok"] or json.loads(answer)["next"] == len(content):
            return json.loads(answer)


for name in PACKAGES:
    updates = Updates(CONFIG, lambda line: None)
    updates.begin()
    answer = bring(updates, name)
    updates = Updates(CONFIG, lambda line: None)
    config = updates.begin()
    if not answer["ok"]:
        print(json.dumps({"why": answer["why"]}))
        continue
    app = start.open_app(config, None)
    updates.look(Running())
    print(json.dumps({"program": app.digest, "version": app.program.version, "said": updates.report()["said"]}))
for name in os.listdir():
    if name.startswith("state.u") and name.endswith(".json"):
        with open(name, "rb") as file:
            data = bytearray(file.read())
        data[len(data) // 2] ^= 4
        with open(name, "wb") as file:
            file.write(data)
updates = Updates(CONFIG, lambda line: None)
updates.begin()
print(json.dumps({"said": updates.report()["said"]}))
"""


KEYS = """
for name in PACKAGES:
    updates = Updates(CONFIG, lambda line: None)
    updates.begin()
    answer = bring(updates, name)
    print(json.dumps({"why": answer["why"], "key": updates.report()["key"], "counter": updates.report()["key_counter"]}))
"""


@pytest.mark.whole
@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=["unix", "arm32"])
def test_a_key_is_replaced(emulator, tmp_path):
    need(emulator)
    old, new = made_key(tmp_path, "old"), made_key(tmp_path, "new")
    (tmp_path / "ldl.h2m").write_bytes(BLOB)
    made = [signed_package.rotation(new.public, old.private, 5)] * 2 + [
        signed(old, 7),
        signed_package.rotation(old.public, new.private, 5),
    ]
    names = [f"{n}.h2u" for n in range(len(made))]
    for name, content in zip(names, made):
        (tmp_path / name).write_bytes(content.content)
    script = tmp_path / "script.py"
    program = SCRIPT[: SCRIPT.index("for name in PACKAGES")] + KEYS
    script.write_text(f"FOLDER, KEY, PACKAGES = {str(tmp_path)!r}, {old.modulus!r}, {names!r}\n{program}")
    rows = [json.loads(line) for line in emulator.run(script, [], places.RUNTIME.parent).splitlines() if line.startswith("{")]
    strange = "the package is not signed with the key that this node trusts"
    assert [row["why"] for row in rows] == ["", strange, strange, "key 5; this node has had 5 already"]
    assert {(row["key"], row["counter"]) for row in rows} == {(new.id, 5)}


@pytest.mark.whole
@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=["unix", "arm32"])
def test_programs_and_malformed_packages(emulator, tmp_path):
    need(emulator)
    key = made_key(tmp_path)
    (tmp_path / "ldl.h2m").write_bytes(BLOB)
    names, digests = [], []
    for version in (1, 2, 3):
        app = tmp_path / f"version{version}.py"
        app.write_text(f"version = {version}\ndef sense():\n    return [0] * 5\ndef act(decision):\n    pass\n")
        digests.append(hashlib.sha256(app.read_bytes()).hexdigest()[:16])
        (tmp_path / f"{version}.h2u").write_bytes(signed(key, version, app=app).content)
        names.append(f"{version}.h2u")
    malformed = {b"[]": "no JSON object", b"": "", b"[" * 9000: "", b'{"event": "x"}': "event is of another kind than int"}
    for n, more in enumerate(malformed):
        (tmp_path / f"bad{n}.h2u").write_bytes(body(key, more, 9).content)
        names.append(f"bad{n}.h2u")
    script = tmp_path / "script.py"
    script.write_text(f"FOLDER, KEY, PACKAGES = {str(tmp_path)!r}, {key.modulus!r}, {names!r}\n{SCRIPT}")
    rows = [json.loads(line) for line in emulator.run(script, [], places.RUNTIME.parent).splitlines() if line.startswith("{")]
    assert [(row["program"], row["version"]) for row in rows[:3]] == list(zip(digests, (1, 2, 3)))
    assert all(row["said"].startswith("kept") for row in rows[:3])
    for row, why in zip(rows[3:-1], malformed.values()):
        assert row["why"] and why in row["why"]
    assert (
        len(rows) == 8 and rows[-1]["said"] == "back: its files cannot be used: they are damaged: the checksum does not match"
    )
