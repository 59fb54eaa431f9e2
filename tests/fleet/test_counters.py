"""The counter of a package comes from a clock: signing compares that clock with others before devices believe it."""

import os
import time

import pytest
from node_updates import made_key

from h2t2_tools.cli.main import main
from h2t2_tools.fleet.update import counters, signed_package

IN_2040, DAY_S = 2208988800, 86400


@pytest.fixture
def sign(tmp_path, monkeypatch, capsys):
    """Sign a package in a folder of its own, with a key that was made today. Return the error, "" for none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(counters, "_kept_time", lambda: 0.0)
    sign.key = made_key(tmp_path)

    def signed(*options):
        status = main(["update", "sign", "breast_cancer", "--key", "fleet.key", "--out", "new.h2u", *options])
        trouble = capsys.readouterr().err
        assert status == (2 if trouble else 0)
        return trouble

    return signed


@pytest.mark.parametrize("options", [[], ["--counter", "4294967295"]])
def test_a_counter_far_ahead_of_all_clocks_is_refused_unless_told(sign, tmp_path, monkeypatch, options):
    monkeypatch.setattr(time, "time", lambda: IN_2040)
    trouble = sign(*options)
    assert "days ahead of the newest file of this package" in trouble and "--ahead" in trouble
    assert not (tmp_path / "new.h2u").exists()
    assert not sign(*options, "--ahead")
    assert signed_package.read(tmp_path / "new.h2u").head.counter == int(options[-1] if options else IN_2040)


def test_a_clock_that_a_time_server_keeps_needs_no_files(sign, tmp_path, monkeypatch):
    past = time.time() - 30 * DAY_S
    for path in tmp_path.iterdir():
        os.utime(path, (past, past))
    assert "29 days ahead" in sign()
    monkeypatch.setattr(counters, "_kept_time", time.time)
    assert not sign()


def test_another_system_keeps_no_time(monkeypatch):
    monkeypatch.setattr(counters.ctypes, "CDLL", lambda _name: object())
    assert counters._kept_time() == 0.0


def test_the_last_package_is_a_clock(sign, monkeypatch):
    """The clock of a board without a battery is behind; and after one package of 2040 the next one must be higher."""
    assert not sign("--counter", str(IN_2040), "--ahead")
    assert not sign("--counter", str(IN_2040 + 1)) and "days ahead" in sign("--counter", str(IN_2040 + 3 * DAY_S))


def test_a_key_with_such_a_counter_is_refused_before_it_is_written(sign, tmp_path, capsys):
    words = ["update", "keys", "--out", "next", "--replaces", "fleet.key", "--counter", "4294967295"]
    assert main(words) == 2 and "--ahead" in capsys.readouterr().err and not list(tmp_path.glob("next*"))
    assert main([*words, "--ahead"]) == 0 and signed_package.read(tmp_path / "next.h2u").head.counter == 2**32 - 1
