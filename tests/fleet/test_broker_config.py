"""What `h2t2 broker-config` and `h2t2 certs` write."""

import datetime
import json
import subprocess
from pathlib import Path

from cryptography import x509

from h2t2.link import presence, wire
from h2t2_tools.cli.main import main
from h2t2_tools.fleet import broker_config, certs


def test_what_broker_config_writes(tmp_path, capsys):
    """Passwords are kept when it runs again, secrets are their owner's alone, and no password is in the report."""
    out = tmp_path / "b"
    assert main(["broker-config", "--out", str(out), "--device", "a", "b", "--json", "-"]) == 0
    first = capsys.readouterr()
    assert main(["broker-config", "--out", str(out), "--device", "a", "b", "c"]) == 0
    again = capsys.readouterr()
    passwords = {path.name: path.read_text().strip() for path in (out / "secrets").iterdir()}
    assert set(passwords) == {"a", "b", "c", "rdl", "operator"} and len(set(passwords.values())) == 5
    assert not [word for word in passwords.values() if word in first.out + first.err + again.out + again.err]
    assert all(Path(path).stat().st_mode & 0o077 == 0 for path in json.loads(first.out)["secrets"])
    assert min(len(word) for word in passwords.values()) >= 32 and "certs" in again.err
    assert not [word for word in passwords.values() if word in (out / "devices.passwd").read_text()]
    config = (out / "mosquitto.conf").read_text()
    assert config.count("127.0.0.1") == 2 and "0.0.0.0" not in config and config.count("use_username_as_clientid true") == 2
    for text in ("allow_anonymous false", "max_packet_size", "max_connections", "use_username_as_clientid true"):
        assert text in (out / "mosquitto.conf").read_text()


def test_the_access_list_names_the_models_that_devices_ask(tmp_path, capsys):
    """A number, a pair, or by default the shipped pairs. The broker's memory has a limit."""
    words = ["broker-config", "--out", str(tmp_path), "--device", "a", "--json", str(tmp_path / "report")]
    for more, models in ([], [1, 2, 3, 6]), (["--model", "7", "digits", "7"], [2, 7]):
        assert main([*words, *more]) == 0
        rules = (tmp_path / "devices.acl").read_text().splitlines()
        asked = [rule for rule in rules if "/request/" in rule]
        assert (
            asked == [f"topic write {wire.topic('a', presence.request_leaf(n))}" for n in models] and "+/request" not in rules
        )
        assert json.loads((tmp_path / "report").read_text())["models"] == models
    assert (
        f"memory_limit {broker_config.MEMORY + broker_config.MEMORY_OF_DEVICE}\n" in (tmp_path / "mosquitto.conf").read_text()
    )
    for wrong in "65536", "no-such-pair":
        assert main([*words, "--model", wrong]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_workers_may_be_numbered(tmp_path, capsys):
    out = tmp_path / "b"
    words = ["broker-config", "--out", str(out), "--device", "a", "--bind", "0.0.0.0", "--worker", "rdl:3", "big"]
    assert main([*words, "--operator", "ann", "bob"]) == 0
    assert {path.name for path in (out / "secrets").iterdir()} == {"a", "rdl-1", "rdl-2", "rdl-3", "big", "ann", "bob"}
    assert main(["broker-config", "--out", str(out), "--device", "a", "--worker", "rdl:0"]) == 2
    assert "1 to 256" in capsys.readouterr().err


def test_a_revoked_name_must_have_been_issued(tmp_path, capsys):
    out = tmp_path / "c"
    assert main(["certs", "--out", str(out), "--name", "a", "b"]) == 0
    assert main(["certs", "--out", str(out), "--revoke", "nobody"]) == 2
    assert main(["certs", "--out", str(out), "--revoke", "a"]) == 0
    index = json.loads((out / "index.json").read_text())
    assert {one["name"]: one["revoked"] for one in index} == {"a": True, "b": False}
    assert "1 certificates revoked" in capsys.readouterr().out
    (out / "index.json").write_text("[1]")
    assert main(["certs", "--out", str(out), "--revoke", "a"]) == 2
    other = tmp_path / "other"
    other.mkdir()
    for name in ("ca.crt", "server.crt", "server.key"):
        (other / name).write_text("x")
    words = ["broker-config", "--out", str(tmp_path / "b"), "--device", "a", "--certs", str(other), "--client-certs"]
    assert main(words) == 2 and "index.json" in capsys.readouterr().err


def test_certs_keep_their_authority(tmp_path, capsys):
    out = tmp_path / "c"
    assert main(["certs", "--out", str(out), "--host", "broker.lan", "192.168.1.9", "--name", "a"]) == 0
    authority = (out / "ca.crt").read_bytes()
    assert main(["certs", "--out", str(out), "--name", "b"]) == 0
    assert (out / "ca.crt").read_bytes() == authority
    assert all(path.stat().st_mode & 0o077 == 0 for path in out.glob("*.key"))
    done = subprocess.run(
        ["openssl", "verify", "-CAfile", out / "ca.crt", out / "a.crt", out / "b.crt", out / "server.crt"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 or "not found" in done.stderr, done.stderr
    assert main(["certs", "--out", str(out), "--name", "x/y"]) == 2
    (out / "ca.key").write_text("nonsense")
    assert main(["certs", "--out", str(out), "--name", "z"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_revocation_list_is_valid_for_ten_years(tmp_path):
    """A broker refuses every client once the list has expired, and `h2t2 broker-config` writes a new one only when it runs."""
    certs.make(tmp_path, ["localhost"], ["a", "b"], 30)
    certs.revoke(tmp_path, ["a"])
    issued = {entry["name"]: int(entry["serial"], 16) for entry in json.loads((tmp_path / "index.json").read_text())}
    parsed = x509.load_pem_x509_crl(certs.revocation_list(tmp_path, ["a", "b"]))
    now = datetime.datetime.now(datetime.timezone.utc)
    assert parsed.last_update_utc < now and parsed.next_update_utc > now + datetime.timedelta(days=3649)
    assert issued["a"] in [entry.serial_number for entry in parsed] and issued["b"] not in [
        entry.serial_number for entry in parsed
    ]
