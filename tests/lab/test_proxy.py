"""`h2t2-lab proxy`'s options."""

import socket
import subprocess
import sys

import pytest

from h2t2_lab.proxy import Faults, Proxy
from h2t2_tools.common.errors import UserError


def test_proxy_faults_are_checked():
    with pytest.raises(UserError, match="--drop 2"):
        Faults(drop=2.0).check()
    with pytest.raises(UserError, match="shorter delay first"):
        Faults(delay_ms=(5, 1)).check()


def test_stop_ends_connections_tasks_and_thread():
    """No task is left for the interpreter to complain of; clients and a broker that wait are told at once, also a client whose
    connection the broker has not accepted."""
    script = """
import asyncio, gc, socket
from h2t2_lab.proxy import Faults, Proxy
listener = socket.create_server(("127.0.0.1", 0))
proxy = Proxy("127.0.0.1", listener.getsockname()[1], Faults(delay_ms=(10000, 10000)))
client = socket.create_connection(("127.0.0.1", proxy.port))
broker, _ = listener.accept()
client.sendall(b"\\xc0\\x00")
assert broker.recv(2) == b"\\xc0\\x00"
broker.sendall(b"\\x30\\x01x")  # delayed, and never passed on
asyncio.open_connection = lambda *address: asyncio.sleep(600)
early = socket.create_connection(("127.0.0.1", proxy.port))
while proxy.faults.connections < 2:
    pass
proxy.stop()
assert not proxy._thread.is_alive()
for end in (client, broker, early):
    end.settimeout(20)
    try:
        assert end.recv(1) == b""
    except ConnectionResetError:
        pass
proxy.stop()  # twice is as good
gc.collect()
print("ended")
"""
    process = subprocess.run([sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True, timeout=60)
    assert process.returncode == 0 and process.stdout == "ended\n", process.stderr
    assert "Task was destroyed" not in process.stderr and "never retrieved" not in process.stderr
    assert "CancelledError" not in process.stderr


def test_a_port_that_is_taken_is_refused_by_name():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port}: "):
            Proxy("127.0.0.1", 1, Faults(), port)
