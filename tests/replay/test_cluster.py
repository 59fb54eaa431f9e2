"""`--dask`: simulations on a real Dask cluster give what this machine gives, and a missing one is named."""

import json

import pytest

from h2t2_tools.cli.main import main

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def scheduler():
    distributed = pytest.importorskip("distributed", reason="the test's cluster: pip install distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


def test_a_replay_is_the_same_on_a_cluster(scheduler, tmp_path):
    rows = []
    for options in ([], ["--dask", scheduler]):
        report = tmp_path / "report.json"
        policies = ["--policy", "offline-single", "h2t2-all"]
        words = ["replay", "phishing", "--beta", "0.2", *policies, "--runs", "2", "--samples", "500"]
        assert main([*words, *options, "--out", str(tmp_path), "--json", str(report)]) == 0
        rows.append(json.loads(report.read_text())["rows"])
    assert rows[0] == rows[1] and len(rows[0]) == 2


def test_a_cluster_without_a_worker_is_said(capsys):
    distributed = pytest.importorskip("distributed", reason="the test's cluster: pip install distributed")
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        assert main(["replay", "phishing", "--dask", cluster.scheduler_address]) == 1
    assert "has no worker; `dask worker" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x"])
def test_a_scheduler_that_is_not_there_is_named(address, capsys):
    assert main(["replay", "phishing", "--dask", address]) == 2
    assert f"--dask {address}: no scheduler answers there" in capsys.readouterr().err
