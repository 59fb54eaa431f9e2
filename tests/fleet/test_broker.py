"""The broker in this process, as demo and tests have it."""

import itertools
import os
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from support import open_to_readers

import h2t2.cpython.paho
from h2t2.cpython.paho import PahoLink
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import broker


@pytest.mark.slow
def test_clients_that_come_at_once_are_all_taken(monkeypatch):
    """Each connects while the others subscribe: amqtt by itself loses most of them."""
    monkeypatch.setattr(h2t2.cpython.paho, "MEET_S", 0)
    lost = []

    def come(host, port, name):
        for boot in range(6):
            link = PahoLink(host, port, name, 1, boot + 1)
            try:
                link.open(20000)
            except OSError as error:
                lost.append(str(error))
            finally:
                link.close()

    with broker.running("amqtt") as url:
        there = [PahoLink(*broker.parse(url), f"there-{n}", 1, 1) for n in range(30)]
        coming = [Thread(target=come, args=(*broker.parse(url), f"coming-{n}")) for n in range(12)]
        for thread in coming:
            thread.start()
        for thread in coming:
            thread.join()
        for link in there:
            link.close()
    assert lost == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's Mosquitto is another user")
def test_a_brokers_folder_is_readable_and_the_one_for_temporary_files_stays_everybodys(tmp_path):
    everybodys = tmp_path / "tmp"
    folder = everybodys / "of-root/test"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    folder.parent.chmod(0o700)
    everybodys.chmod(0o1777)
    open_to_readers(folder)
    modes = [place.stat().st_mode & 0o7777 for place in (folder, folder.parent, everybodys)]
    assert modes == [0o755, 0o755, 0o1777]


def test_the_number_of_mosquittos_process(broker):
    assert Path(f"/proc/{broker.pid}/comm").read_text().strip() == "mosquitto"


def test_an_address_with_tls_is_refused_where_there_is_none():
    with pytest.raises(UserError, match="no TLS here"):
        broker.parse("mqtts://pi")
    assert broker.parse("mqtts://pi", tls=True) == ("pi", 8883)


def test_an_open_port_is_no_broker_yet():
    """A SIGTERM between the two was lost: Mosquitto 2.0 sets its `run` after its signal handlers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not broker.wait_for_broker("127.0.0.1", port, 0.2)
        thread = Thread(target=lambda: server.accept()[0].close())
        server.accept()[0].close()  # of the attempt above
        thread.start()
        assert broker.wait_for_broker("127.0.0.1", port, 10)
        thread.join()


def test_two_processes_choose_no_port_twice(monkeypatch):
    """Both ask before a server listens: the other process has chosen the port that is drawn first."""
    program = "from h2t2_tools.fleet.broker import free_port; print(free_port(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        taken = int(other.stdout.readline())
        draws = itertools.count(taken)
        monkeypatch.setattr(broker.random, "SystemRandom", lambda: SimpleNamespace(randrange=lambda *_: next(draws)))
        monkeypatch.setattr(broker, "free", lambda *_: True)
        assert (broker.free_port() > taken) == (sys.platform == "linux")
        other.communicate(b"\n")
