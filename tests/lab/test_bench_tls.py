"""`h2t2-lab bench tls`."""

import ssl

import pytest
from support import need

from h2t2_lab.bench import tls
from h2t2_lab.emulators.built import PICO_TLS
from h2t2_tools.fleet import certs


@pytest.mark.parametrize("kind", [tls.EC, tls.RSA])
@pytest.mark.parametrize("client", [False, True])
def test_its_broker_shakes_hands_with_cpython(tmp_path, kind, client):
    """The host's side alone: certificates of both kinds that a client verifies."""
    folder = tmp_path / "issued"
    if kind == tls.EC:
        certs.make(folder, ["broker"], ["device"], 30)
    else:
        tls.rsa_certificates(folder)
    broker = tls.Broker(folder, client)
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    if client:
        context.load_cert_chain(folder / "device.crt", folder / "device.key")
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    device = context.wrap_bio(came, goes, server_hostname="broker")
    for _ in range(4):
        try:
            device.do_handshake()
            break
        except ssl.SSLWantReadError:
            broker.receive(goes.read())
            came.write(broker.send(1 << 20))
    assert device.version() == "TLSv1.2" and device.getpeercert()["subject"] == ((("commonName", "broker"),),)


@pytest.mark.whole
@pytest.mark.timeout(1200)
def test_a_handshake_with_our_keys_leaves_a_watchdog_its_time(monkeypatch):
    """Both sides with keys of `h2t2 certs`, on the emulated Pico: chip time, not this machine's."""
    need(PICO_TLS)
    monkeypatch.setattr(tls, "ROWS", ((tls.EC, tls.EC),))
    (row,) = tls.measure(lambda _: None)["rows"]
    assert 0.2 < row["longest_s"] < 2 and row["longest_s"] < row["seconds"] < 4
    assert 20_000 < row["heap_peak"] < 50_000 and 0 < row["heap_kept"] <= row["heap_peak"]
