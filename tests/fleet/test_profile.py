"""The profile: what ~/.config/h2t2.toml and the environment say of the broker, and what overrides them."""

import pytest
from support import need

from h2t2_tools.boards import project
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.cli.execute import parsed
from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import broker, config, profile


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder of configurations with a profile, and a project without a broker."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    profile.path().write_text('broker = "mqtts://broker.lan"\nca = "ca.crt"\nuser = "ann"\n')
    (tmp_path / "porch").mkdir()
    (tmp_path / "porch/h2t2.toml").write_text('device = "porch"\npair = "breast_cancer"\n')
    return tmp_path


def test_the_order_is_command_line_project_environment_profile_default(home, monkeypatch):
    porch = home / "porch/h2t2.toml"

    def users(*words):
        return parsed(["node", str(porch.parent), *words]).user, config.load(porch, network=True).user

    monkeypatch.setattr(config.NodeConfig, "certificates", lambda _: {})
    assert users() == ("ann", "ann")
    monkeypatch.setenv("H2T2_USER", "bob")
    assert users() == ("bob", "bob")
    with porch.open("a") as file:
        file.write('user = "carl"\n')
    assert users() == ("carl", "carl")
    assert users("--user", "dora") == ("dora", "carl")
    profile.path().unlink()
    monkeypatch.delenv("H2T2_USER")
    porch.write_text('pair = "breast_cancer"\n')
    assert users() == ("", "")


def test_commands_that_connect_take_the_profile(home):
    rdl = parsed(["rdl"])
    assert (rdl.broker, rdl.ca, rdl.user) == ("mqtts://broker.lan", str(home / "ca.crt"), "ann")
    plain = parsed(["rdl", "--broker", "mqtt://localhost:1883"])
    assert (plain.broker, plain.ca, plain.user) == ("mqtt://localhost:1883", "", "ann")
    node = parsed(["node", str(home / "porch")])
    assert (node.url, node.ca) == ("mqtts://broker.lan", str(home / "ca.crt"))
    assert parsed(["run", str(home / "porch")]).broker == ""


def test_a_worker_of_several_gets_the_broker_that_was_chosen(home):
    from h2t2_tools.cli.options import words

    chosen = parsed(["rdl", "--broker", "mqtt://localhost:1883"])
    assert "--broker=mqtt://localhost:1883" in words(chosen)
    assert parsed(["rdl", *words(chosen)]).url == "mqtt://localhost:1883"


def test_a_password_goes_with_its_user(home, monkeypatch):
    (home / "secret").write_text("hidden-word\n")
    (home / "secret").chmod(0o600)
    with profile.path().open("a") as file:
        file.write('password_file = "secret"\n')
    monkeypatch.setattr(config.NodeConfig, "certificates", lambda _: {})
    porch = home / "porch/h2t2.toml"
    assert config.load(porch).content()["password"] == "hidden-word"
    assert parsed(["rdl"]).password_file == str(home / "secret")
    assert parsed(["rdl", "--user", "bob"]).password_file == ""
    with porch.open("a") as file:
        file.write('user = "bob"\n')
    assert "password" not in config.load(porch).content()


def test_a_board_without_a_network_ignores_it(home):
    serial = config.load(home / "porch/h2t2.toml", network=False)
    assert (serial.user, serial.broker) == ("", "localhost")


@pytest.mark.parametrize(
    "text, why",
    [
        ('broker = "http://broker.lan"\n', "h2t2.toml: broker 'http://broker.lan': broker http://broker.lan: want mqtt://host"),
        ("colour = 1\n", "h2t2.toml: colour: "),
    ],
)
def test_a_wrong_profile_is_refused_by_its_name(home, capsys, text, why):
    profile.path().write_text(text)
    assert main(["rdl"]) == 2
    error = capsys.readouterr().err
    assert why in error and str(home) in error and error.count("\n") == 1


def test_a_wrong_variable_is_refused_by_its_name(home, monkeypatch):
    monkeypatch.setenv("H2T2_BROKER", "ftp://broker.lan")
    with pytest.raises(UserError, match=r"\$H2T2_BROKER: broker"):
        profile.read()


def test_a_path_in_a_variable_is_one_of_the_working_directory(home, monkeypatch):
    """As the same option is, and not one of the project's folder."""
    monkeypatch.setenv("H2T2_CA", "mine.crt")
    (home / "mine.crt").touch()
    monkeypatch.chdir(home)
    monkeypatch.setattr(config.NodeConfig, "certificates", lambda _: {})
    assert config.load(home / "porch/h2t2.toml", network=True).ca == str(home / "mine.crt")


def test_a_run_with_a_broker_of_its_own_reads_no_profile(home):
    """Its certificate is missing, and the run does not need it."""
    assert main(["new", str(home / "shed")]) == 0
    with pytest.raises(UserError, match=r"ca\.crt: no such file"):
        project.load(home / "shed", "unix", stands_in=True)
    assert project.load(home / "shed", "unix", stands_in=True, usual_broker=False).contents.config.ca == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["amqtt", "mosquitto"])
def test_a_run_with_a_broker_of_its_own_takes_no_login_along(kind, home, monkeypatch):
    """Neither name nor password of the usual broker is on the emulated board, nor does the worker log in with it."""
    need(catalogue.UNIX)
    if kind == "amqtt":
        monkeypatch.setattr(broker, "mosquitto", lambda: None)
    monkeypatch.setenv("H2T2_PASSWORD", "hidden-word")
    profile.path().write_text('broker = "mqtt://broker.lan"\nuser = "ann"\n')
    assert main(["new", str(home / "shed")]) == 0
    lines = (home / "shed/samples.csv").read_text().splitlines(True)[:5]
    (home / "shed/samples.csv").write_text("".join(lines))
    assert main(["run", str(home / "shed")]) == 0
    written = (home / "shed/run-unix/config.json").read_text()
    assert "hidden-word" not in written and "ann" not in written and "broker.lan" not in written
