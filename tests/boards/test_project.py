"""Projects: what `h2t2 new` writes runs and can be flashed as it is; what would be of no use on a board is refused first."""

import json

import pytest
from cryptography.hazmat.primitives import serialization
from support import need

from h2t2_tools.boards import app_files, flash, kinds, project
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.microbit import microbit_program
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, toml_file
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.update import keys
from h2t2_tools.model import bundle


def new(folder, board="unix", pair="breast_cancer"):
    loaded = pairs.load(pair)
    written = project.write(folder, loaded, bundle=bundle.from_tflite(loaded.ldl), board=board)
    assert len(set(written)) == len(written) and all((folder / name).exists() for name in written)
    return project.load(folder)


@pytest.mark.parametrize("board", kinds.KINDS)
def test_a_new_project_is_what_that_board_takes(tmp_path, board):
    made = new(tmp_path / "mine", board)
    config = made.contents.config
    assert (config.device, config.remote_shape, config.model_id, config.beta) == ("mine", [30], 1, 0.2)
    files = kinds.payload(kinds.KINDS[board], made.contents)
    if board == "microbit":
        assert len(files["samples"]) % made.contents.record_size == 0 and not made.contents.own
        assert 8000 < sum(map(len, files.values())) <= microbit_program.MAX_BYTES
    else:
        assert files["app.py"].startswith(b"# An app") and files["samples.csv"].count(b"\n") == 228
        assert json.loads(files["config.json"])["app"] == "app"
    assert "h2t2 flash" in (tmp_path / "mine/README.md").read_text()


def test_an_emulated_board_stands_in_for_a_section(tmp_path):
    new(tmp_path / "mine")
    assert project.load(tmp_path / "mine", "arm32", stands_in=True).contents.config.device == "mine"


def test_a_project_is_read_once_and_its_samples_stay_closed(tmp_path, monkeypatch):
    new(tmp_path / "mine")
    reads, read_entries = [], toml_file.read_entries
    monkeypatch.setattr(toml_file, "read_entries", lambda path: reads.append(path.name) or read_entries(path))
    monkeypatch.setattr(pairs, "load", lambda name: pytest.fail("its test samples are read"))
    kinds.payload(kinds.KINDS["unix"], project.load(tmp_path / "mine").contents)
    assert reads == ["h2t2.toml"]


def test_a_folder_of_any_name_makes_a_device(tmp_path):
    assert new(tmp_path / "my porch (new)").contents.config.device == "my-porch-new-"


def test_comments_stay_beside_the_entries(tmp_path):
    new(tmp_path / "mine")
    line = next(line for line in (tmp_path / "mine/h2t2.toml").read_text().splitlines() if line.startswith("app ="))
    assert line.startswith('app = "app.py"  ') and "# your own program" in line


APP = """
import machine, driver
from parts.display import screen
FILE = "table.bin"
def sense():
    table = open(FILE, "rb")
    return [float(x) for x in open("samples.csv", mode="r").readline().split(",")]
def act(decision):
    open("decided.txt", "a").write(decision.name)
"""


def test_a_board_gets_what_the_app_imports_or_opens_and_what_the_project_names(tmp_path):
    folder = new(tmp_path / "mine").folder
    (folder / "app.py").write_text(APP)
    (folder / "parts").mkdir()
    texts = {
        "driver.py": "from pins import PIN", "pins.py": "PIN = 3", "notes.py": "", "decided.txt": "", "wifi.txt": "secret",
        "table.bin": "7", "parts/__init__.py": "", "parts/display.py": "from . import font", "parts/font.py": "",
        "more.bin": "8",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    entries = (folder / "h2t2.toml").read_text()
    (folder / "h2t2.toml").write_text(entries.replace("[boards.unix]", 'files = ["more.bin"]\n[boards.unix]'))
    loaded = project.load(folder)
    parts = {"parts/__init__.py", "parts/display.py", "parts/font.py"}
    assert set(loaded.contents.own) == {"driver.py", "pins.py", "table.bin", "samples.csv", "more.bin", *parts}
    assert loaded.unsent == ["decided.txt", "notes.py", "wifi.txt"]
    (folder / "samples.csv").write_bytes(bytes(app_files.LARGEST + 1))
    with pytest.raises(UserError, match=r"samples\.csv: more than 1,048,576 bytes"):
        project.load(folder)


@pytest.mark.parametrize("name", ["../outside.txt", "missing.txt"])
def test_a_named_file_is_in_the_project(tmp_path, name):
    folder = new(tmp_path / "mine").folder
    (tmp_path / "outside.txt").touch()
    (folder / "h2t2.toml").write_text((folder / "h2t2.toml").read_text() + f'files = ["{name}"]\n')
    with pytest.raises(UserError, match=f"files: .*{name}: no such file in the project"):
        project.load(folder)


def test_a_key_beside_the_app_stays_at_home_and_flash_says_what_goes(tmp_path, capsys):
    """The private key that signs updates went onto every board, and a file of passwords did."""
    folder = new(tmp_path / "mine").folder
    keys.make(folder / "fleet")
    (folder / "password").write_text("of the broker")
    (folder / "password").chmod(0o600)
    entries = (folder / "h2t2.toml").read_text()
    (folder / "h2t2.toml").write_text(entries.replace("[boards.unix]", 'update_key = "fleet.pub"\n[boards.unix]'))
    assert main(["flash", str(folder), "--dry-run", "--json", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    paths = {row["path"] for row in report["files"]}
    assert "samples.csv" in paths and not paths & {"fleet.key", "fleet.pub", "password"}
    assert report["unsent"] == ["fleet.key", "password"]
    shown = capsys.readouterr().out
    assert "samples.csv" in shown and "not for the board: fleet.key, password" in shown


def _pem(folder):
    return keys.make(folder / "made")[0].read_bytes()


def _der(folder):
    key = serialization.load_pem_private_key(_pem(folder), None)
    return key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


@pytest.mark.parametrize("way", ["files", "import", "open"])
@pytest.mark.parametrize(
    "content, mode, words",
    [
        (_pem, 0o644, "secret.py: a private key, which never goes onto a board"),
        (_der, 0o644, "secret.py: a private key, which never goes onto a board"),
        (lambda folder: b"PASSWORD = 1", 0o600, "secret.py: only its owner may read it"),
    ],
)
def test_a_secret_is_refused_wherever_it_is_named(tmp_path, way, content, mode, words):
    folder = new(tmp_path / "mine").folder
    (folder / "secret.py").write_bytes(content(tmp_path))
    (folder / "secret.py").chmod(mode)
    app = (folder / "app.py").read_text()
    if way == "files":
        (folder / "h2t2.toml").write_text((folder / "h2t2.toml").read_text() + 'files = ["secret.py"]\n')
    (folder / "app.py").write_text(app + {"files": "", "import": "import secret\n", "open": "open('secret.py')\n"}[way])
    with pytest.raises(UserError, match=words):
        project.load(folder)


def test_secret_records_and_a_secret_app_are_refused(tmp_path):
    folder = new(tmp_path / "mine", "microbit").folder
    (folder / project.RECORDS).chmod(0o600)
    with pytest.raises(UserError, match=r"samples\.bin: only its owner may read it"):
        kinds.payload(kinds.KINDS["microbit"], project.load(folder).contents)
    folder = new(tmp_path / "other").folder
    (folder / "app.py").chmod(0o600)
    with pytest.raises(UserError, match=r"app\.py: only its owner may read it"):
        project.load(folder)


def test_nothing_is_written_over(tmp_path, capsys):
    new(tmp_path / "mine")
    before = (tmp_path / "mine/app.py").read_text()
    assert main(["new", str(tmp_path / "mine")]) == 2
    assert "--board KIND adds a board to it" in capsys.readouterr().err and (tmp_path / "mine/app.py").read_text() == before


def test_files_of_an_app_are_not_written_over_on_a_board(tmp_path):
    need(catalogue.UNIX)
    made, device = new(tmp_path / "mine"), tmp_path / "device"
    device.mkdir()
    put = lambda **options: flash.flash(  # noqa: E731
        kinds.KINDS["unix"], str(device), project.load(made.folder).contents, False, lambda *_: None, **options
    )
    put()
    assert put()["copied"] == 0
    (made.folder / "samples.csv").write_text("1,2\n")
    with pytest.raises(UserError, match=r"another samples\.csv; .* --replace-app"):
        put()
    assert put(replace_app=True)["copied"] == 1 and (device / "samples.csv").read_text() == "1,2\n"


@pytest.mark.parametrize(
    "board, change, words",
    [
        ("pico_w", {}, "wifi_name = 'network' in the configuration"),
        ("unix", {"app": ""}, "the node has no samples: set app"),
        ("unix", {"remote_shape": [29]}, r"its remote model takes 30 numbers, remote_shape = \[29\] is 29"),
        ("unix", {"pair": "digits"}, r"its local model takes 64 numbers, .*ldl\.h2m "),
        ("unix", {"pair": ""}, "app: also give `pair`"),
    ],
)
def test_what_would_be_of_no_use_on_a_board_is_refused(tmp_path, board, change, words):
    contents = new(tmp_path / "mine", board).contents
    if change.get("pair"):
        change = {"pair": str(pairs.load("digits").folder)}
    config = contents.config.model_copy(update=change)
    with pytest.raises(UserError, match=words):
        flash.flash(kinds.KINDS[board], str(tmp_path), kinds.Contents(contents.model, config), False, lambda *_: None)


@pytest.mark.parametrize(
    "words, said",
    [
        (["flash", "{}/none", "--board", "unix"], "not a project; h2t2 new makes one"),
        (["flash", "{}/mine", "--board", "esp32"], "no section [boards.esp32]; this adds one: h2t2 new"),
        (["new", "{}/other", "--from", "nowhere"], "shipped pairs"),
        (["run", "{}/none"], "not a project"),
        (["run", "{}/mine", "--board", "microbit"], "no section [boards.microbit]"),
    ],
)
def test_what_is_no_project_is_said(tmp_path, capsys, words, said):
    new(tmp_path / "mine")
    assert main([word.format(tmp_path) for word in words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.whole
def test_an_app_that_never_measures_ends_the_run_with_its_reason(tmp_path, capsys):
    need(catalogue.UNIX)
    assert main(["new", str(tmp_path / "mine"), "--from", "breast_cancer"]) == 0
    app = (tmp_path / "mine/app.py").read_text()
    (tmp_path / "mine/app.py").write_text(app.replace("line = lines.readline()", "return [1, 2]"))
    assert main(["run", str(tmp_path / "mine")]) == 1
    assert "gives nothing that can be decided about: ValueError: a sample of 2 numbers" in capsys.readouterr().err
