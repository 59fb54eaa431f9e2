"""What the compiler made of the runtime's modules stays in the cache of the user."""

import pytest

from h2t2_tools.boards import cross
from h2t2_tools.common import places

PATH = "h2t2/core/policy.py"
SOURCE = (places.RUNTIME.parent / PATH).read_bytes()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of this user, which every call looks at as a new process would."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cross._folder.cache_clear()
    yield tmp_path / "h2t2/compiled"
    cross._folder.cache_clear()


def _compiled(path=PATH, source=SOURCE):
    """Compile as a new process does."""
    cross.compiled.cache_clear()
    cross.translated.cache_clear()
    return cross.compiled(path, source, "armv6m")


def test_a_second_process_reads_it(cache, monkeypatch):
    first = _compiled()
    monkeypatch.setattr(cross, "shortened", None)
    monkeypatch.setattr(cross, "folded", None)
    assert _compiled() == first


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-9], lambda data: b"x" + data[1:]])
def test_a_damaged_one_is_compiled_again(cache, damage):
    first = _compiled()
    kept = [*cache.glob("*/*")]
    for path in kept:
        path.write_bytes(damage(path.read_bytes()))
    assert _compiled() == first


def test_another_source_and_another_processor_have_their_own(cache):
    assert _compiled() != _compiled(source=SOURCE + b"\n\nADDED = [1]\n")
    assert cross.compiled(PATH, SOURCE, "rv32imc") != _compiled()


def test_a_users_module_is_not_kept(cache):
    _compiled(path="app.py", source=b"def sense():\n    return 1\n")
    assert not cache.exists()


def test_of_older_runtimes_the_newest_stay(cache):
    for n in range(12):
        (cache / f"{n:02}").mkdir(parents=True)
    _compiled()
    assert len([*cache.iterdir()]) == cross.KEPT_RUNTIMES + 1


def test_a_cache_that_nobody_may_write_is_left_alone(tmp_path, monkeypatch, cache):
    (tmp_path / "h2t2").write_text("a file where the folder should be")
    assert _compiled() == _compiled()
