"""The key that signs updates is replaced by a package that the old key signs, and none comes back."""

import json

import pytest
from node_updates import OTHER_BLOB, Device, made_key, service, signed

from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.update import signed_package

STRANGE = "the package is not signed with the key that this node trusts"


@pytest.fixture
def device(chain, tmp_path):
    """One that trusts the first of them."""
    return Device(tmp_path, chain[0])


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Three keys."""
    folder = tmp_path_factory.mktemp("keys")
    return [made_key(folder, name) for name in ("first", "second", "third")]


def replaced(device, new, old, counter):
    """Bring a device a key. Return the answer's reason, "" if it took the key."""
    answer, again = device.bring(signed_package.rotation(new.public, old.private, counter))
    assert not again
    return answer["why"]


def test_a_new_key_takes_the_place_of_the_one_that_signs_it(device, chain):
    first, second, _ = chain
    assert device.updates.report()["key"] == first.id
    assert replaced(device, second, first, 5) == ""
    assert device.updates.news()  # the state is reported at once
    for _ in range(2):
        report = device.updates.report()
        assert (report["key"], report["key_counter"], report["tried"]) == (second.id, 5, 0)
        assert device.bring(signed(first, 7))[0]["why"] == STRANGE
        device.start()
    assert device.bring(signed(second, 7))[1]


def test_old_keys_do_not_come_back(device, chain, tmp_path):
    """Neither by a replay, nor with the counter of another key, nor by flashing the project of before."""
    first, second, third = chain
    replay = signed_package.rotation(second.public, first.private, 5)
    device.bring(replay)
    assert device.bring(replay)[0]["why"] == STRANGE
    assert "key 5; this node has had 5 already" in replaced(device, third, second, 5)
    assert replaced(device, third, second, 6) == ""
    (tmp_path / "ldl.h2m").write_bytes(OTHER_BLOB)
    device.start()
    assert "flashed anew" in " ".join(device.log_lines) and device.updates.report()["key"] == third.id
    device.config["update"]["key"] = second.modulus  # flashed with a key that was replaced meanwhile
    device.start()
    assert device.updates.report()["key"] == third.id and device.updates.report()["key_counter"] == 6


def test_a_key_by_cable_is_trusted(device, chain):
    """A thief has replaced the key: one that the device has never had ends that."""
    first, second, third = chain
    assert replaced(device, second, first, 5) == ""
    device.config["update"]["key"] = third.modulus
    device.start()
    assert device.updates.report()["key"] == third.id
    assert device.bring(signed(second, 7))[0]["why"] == STRANGE and device.bring(signed(third, 7))[1]


def test_a_new_key_ends_the_counter_of_a_wrong_clock_and_one_of_before_does_not(device, chain):
    """A package of 2040 or of 2^32 - 1 refused all later ones. Those of a former key must not come back."""
    first, second, _ = chain
    device.live(signed(first, 2**32 - 1))
    answer = device.bring(signed(first, 7))[0]["why"]
    assert answer == "package 7; 4294967295 has been tried here already: sign again, or see updates.md, A wrong clock"
    assert replaced(device, second, first, 5) == ""
    device.install(signed(second, 7))
    assert not device.updates.look(service()) and device.updates.report()["counter"] == 7
    assert replaced(device, first, second, 6) == ""
    assert "7 has been tried here already" in device.bring(signed(first, 7))[0]["why"]


def test_a_damaged_record_does_not_bring_the_old_key_back(device, chain, tmp_path):
    first, second, _ = chain
    assert replaced(device, second, first, 5) == ""
    for slot in ("0", "1"):
        path = tmp_path / f"state.update.{slot}"
        content = path.read_bytes()
        path.write_bytes(content[:40])
        device.start()
        assert device.updates.report()["key"] == second.id
        path.write_bytes(content)


def test_a_key_comes_during_a_trial(device, chain):
    first, second, _ = chain
    device.install(signed(first, 7))
    assert replaced(device, second, first, 5) == ""
    device.updates.look(service())
    device.start()
    report = device.updates.report()
    assert (report["counter"], report["trial"], report["key"], report["tried"]) == (7, 0, second.id, 7)


def test_a_key_of_another_size_is_refused(device, chain):
    first, second, _ = chain
    made = signed_package._signed(first.private, signed_package.package.ROTATES, (0, 5, 255, 0), bytes(255))
    answer, _ = device.bring(signed_package.Package(made, signed_package.package.Head(made), {}))
    assert answer["why"] == "a key of 255 bytes, want 256"


def test_keys_writes_the_package_that_brings_it(chain, tmp_path, capsys):
    first = chain[0]
    assert main(["update", "keys", "--out", str(tmp_path / "next"), "--replaces", str(first.private), "--counter", "9"]) == 0
    assert "h2t2 update DEVICE" in capsys.readouterr().out
    made = signed_package.read(tmp_path / "next.h2u")
    assert made.head.rotates and made.head.counter == 9 and made.to_json()["key"] == made.new_key
    device = Device(tmp_path, first)
    assert device.bring(made)[0]["ok"] and device.updates.report()["key"] == made.new_key
    (tmp_path / "next.h2u").write_bytes(made.content[:-1])
    with pytest.raises(UserError, match=r"next\.h2u: the package is damaged"):
        signed_package.read(tmp_path / "next.h2u")


def test_keys_refuses_before_it_writes(tmp_path, capsys):
    (tmp_path / "none.key").write_text("none")
    (tmp_path / "none.key").chmod(0o600)
    assert main(["update", "keys", "--out", str(tmp_path / "next"), "--replaces", str(tmp_path / "none.key")]) == 2
    assert "no private key" in capsys.readouterr().err and not list(tmp_path.glob("next*"))


def test_a_record_of_before_has_no_keys(chain, tmp_path):
    """A node of 1.0.0 wrote it."""
    device = Device(tmp_path, chain[0])
    assert device.bring(signed(chain[0], 7))[1]
    record = {name: value for name, value in device.updates.record.items() if "key" not in name}
    device.updates.store.save(json.dumps(record).encode())
    device.start()
    assert device.updates.report()["key"] == chain[0].id and replaced(device, chain[1], chain[0], 5) == ""
