"""Secrets stay out of logs, and files that others may read are refused."""

import subprocess
import sys

import pytest
from secured import NAMES, options

from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import config as board_config
from h2t2_tools.fleet.endpoint import PASSWORD, secret


@pytest.mark.slow
def test_secrets_are_absent_from_every_log_at_debug_level(fleet, tmp_path):
    """Root logger at DEBUG, paho's own log, Mosquitto's log, what node, worker and board configuration print and represent."""
    script = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
from h2t2.cpython import mqtt_session
make = mqtt_session.make_client
def logged(*arguments, **options):
    client = make(*arguments, **options)
    client.enable_logger(logging.getLogger("paho"))
    return client
mqtt_session.make_client = logged
from h2t2_tools.fleet import endpoint
resolve = endpoint.resolve
def shown(*arguments, **options):
    made = resolve(*arguments, **options)
    logging.debug("%r %s", made, made)
    return made
endpoint.resolve = shown
from h2t2_tools.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
    words = [
        "node",
        "--broker",
        f"mqtts://localhost:{fleet.devices}",
        "--device",
        "dev-a",
        "--samples",
        "20",
        "--beta",
        "0",
        "--deadline",
        "200ms",
    ]
    done = subprocess.run(
        [sys.executable, "-c", script, *words, *map(str, options(fleet, "dev-a"))], capture_output=True, text=True, timeout=280
    )
    said = done.stdout + done.stderr + (fleet.folder / "log").read_text()
    assert done.returncode == 0 and "Sending CONNECT" in said and "DEBUG" in said
    for name in NAMES:
        key = (fleet.folder / f"certs/{name}.key").read_text().split("\n")[1]
        assert key not in said and (fleet.client_certs or fleet.password(name) not in said)
    path = tmp_path / "c.toml"
    for line in ('password = "hidden-word"\nbeta = 7', 'password = "hidden-word"\nwifi_password = "hidden-word"\nport = 99999'):
        path.write_text(f"remote_shape = [30]\nmodel_id = 1\n{line}\n")
        with pytest.raises(UserError) as error:
            board_config.load(path)
        assert "hidden-word" not in str(error.value)


def test_secrets_that_others_may_read_are_refused(tmp_path, capfd):
    path = tmp_path / "password"
    path.write_text("hidden-word\n")
    for mode in (0o644, 0o640, 0o604):
        path.chmod(mode)
        with pytest.raises(UserError, match="chmod 600"):
            secret(path)
    assert main(["node", "--user", "a", "--password-file", str(path)]) == 2
    path.chmod(0o600)
    assert secret(path) == path and "hidden-word" not in capfd.readouterr().err


def test_a_board_configuration_with_a_secret_is_its_owners_alone(tmp_path, monkeypatch):
    path = tmp_path / "c.toml"
    path.write_text('remote_shape = [30]\nmodel_id = 1\npassword = "hidden-word"\n')
    path.chmod(0o644)
    with pytest.raises(UserError, match="chmod 600 .* H2T2_PASSWORD") as error:
        board_config.load(path)
    assert "hidden-word" not in str(error.value)
    path.chmod(0o600)
    assert board_config.load(path).content()["password"] == "hidden-word"
    path.write_text("remote_shape = [30]\nmodel_id = 1\n")
    path.chmod(0o644)
    monkeypatch.setenv(PASSWORD, "from-outside")
    assert board_config.load(path).content()["password"] == "from-outside"
