"""`h2t2-lab bench tls`: chip time and heap of a TLS handshake on an emulated Pico, with elliptic-curve and RSA keys."""

import binascii
import datetime
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from h2t2_tools.boards.emulators import flash_image
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.folding import folded
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.common import places
from h2t2_tools.common.errors import Failure
from h2t2_tools.common.report import Report
from h2t2_tools.fleet import certs, config

from .. import material
from ..emulators.built import PICO_TLS
from . import Progress, Row, cell, table

TITLE = "TLS on a Pico"
EC, RSA = "EC P-256", "RSA-2048"
ROWS = ((EC, None), (EC, EC), (RSA, None), (RSA, RSA))  # keys of the broker and the device
DAY = datetime.datetime(2026, 11, 25, tzinfo=datetime.timezone.utc)
LONGEST_S = 600  # longest handshake in this machine's time, which is far slower than the chip's


def measure(progress: Progress) -> dict[str, Any]:
    """Measure a TLS handshake on an emulated Pico. It shows chip time, the longest step and heap, with EC and with RSA keys.

    Returns:
        {"rows": {"broker", "device" (None: no certificate), "seconds" and "longest_s" of chip time, "heap_peak", "heap_kept" in
        bytes}, "missing": why nothing could be measured, or None}.
    """
    reason = PICO_TLS.missing()
    if reason:
        return {"rows": [], "missing": f"{PICO_TLS.name}: {reason}"}
    rows = []
    with tempfile.TemporaryDirectory(prefix="h2t2-tls-") as name:
        issued = {EC: Path(name) / "ec", RSA: Path(name) / "rsa"}
        certs.make(issued[EC], ["broker"], ["device"], 30, DAY)
        rsa_certificates(issued[RSA])
        for broker, device in ROWS:
            progress(f"broker {broker}, device {device or 'without a certificate'}")
            rows.append({"broker": broker, "device": device, **_handshake(issued[broker], bool(device))})
    return {"rows": rows, "missing": None}


def broken(measured: dict[str, Any]) -> list[str]:
    """Return why nothing was measured."""
    return [measured["missing"]] if measured["missing"] else []


def report(measured: dict[str, Any]) -> Report:
    """Return a table with a line for each pair of keys."""
    columns = {
        "broker's key": cell("broker"),
        "device's key": lambda row: row["device"] or "none",
        "handshake s": cell("seconds", ".2f"),
        "longest step s": cell("longest_s", ".2f"),
        "heap peak": cell("heap_peak", ","),
        "heap kept": cell("heap_kept", ","),
    }
    title = "chip time of an emulated Pico (RP2040, 125 MHz), MicroPython 1.25, TLS 1.2; nothing else runs during a step"
    return [table(title, measured["rows"], columns, words=2), *broken(measured)]


def rsa_certificates(folder: Path) -> None:
    """Write the same files as certs.make(), with RSA-2048 keys: ca, server, device."""
    folder.mkdir()
    authority: tuple[x509.Name, rsa.RSAPrivateKey] | None = None
    for stem, name in (("ca", "RSA CA"), ("server", "broker"), ("device", "device")):
        key = rsa.generate_private_key(65537, 2048)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer, signs = authority or (subject, key)
        builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(DAY).not_valid_after(DAY + datetime.timedelta(days=30))
        builder = builder.add_extension(x509.BasicConstraints(ca=stem == "ca", path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        if stem == "ca":  # Python 3.13 and newer require it of an authority
            builder = builder.add_extension(certs.usage(sign=True), critical=True)
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signs.public_key())
        certificate = builder.add_extension(by, critical=False).sign(signs, hashes.SHA256())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        certs.write_file(folder / f"{stem}.crt", certificate.public_bytes(Encoding.PEM))
        certs.write_file(folder / f"{stem}.key", private, secret=True)
        authority = authority or (subject, key)


class Broker:
    """The other end of a handshake, in memory."""

    def __init__(self, folder: Path, client: bool) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        if client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(folder / "ca.crt")
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._waiting = b""

    def receive(self, data: bytes) -> None:
        """Receive bytes from the device. Raise Failure if the broker refuses them."""
        self._incoming.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            raise Failure(f"the handshake failed: {error}") from None
        self._waiting += self._outgoing.read()

    def send(self, size: int) -> bytes:
        """Send at most `size` bytes to the device."""
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        return data


def _handshake(folder: Path, client: bool) -> Row:
    """Return chip time and heap of one handshake."""
    script = f"CERT = {client}\nDAY = {DAY.timetuple()[:3]}\n" + (material.ON_DEVICE / "tls_handshake.py").read_text()
    broker = Broker(folder, client)
    with tempfile.TemporaryDirectory(prefix="h2t2-pico-") as name:
        flash = Path(name) / "flash.bin"
        flash_image.runtime_on_a_pico(flash)
        with Pico(flash, board=PICO_TLS) as pico, RawRepl(pico.port, pace=False) as repl:
            for file, stem, private in (("ca", "ca.crt", False), ("cert", "device.crt", False), ("key", "device.key", True)):
                repl.write_file(f"{file}.der", config.certificate(folder / stem, private), check=False)
            source = folded("h2t2/link/tls.py", (places.RUNTIME / "link/tls.py").read_bytes())
            repl.write_file("h2t2/link/tls.py", source, check=False)
            repl.start(script)
            unread, words, end = b"", b"", time.monotonic() + LONGEST_S
            while time.monotonic() < end:
                unread += repl.read()
                *lines, unread = unread.split(b"\n")
                for line in map(bytes.strip, lines):
                    if line.startswith(b"W"):
                        broker.receive(binascii.unhexlify(line[1:]))
                    elif line.startswith(b"R"):
                        repl.line.write(binascii.hexlify(broker.send(int(line[1:]))) + b"\n")
                    elif line.startswith(b"DONE"):
                        us, longest, peak, remaining = map(int, line.split()[1:])
                        return {"seconds": us / 1e6, "longest_s": longest / 1e6, "heap_peak": peak, "heap_kept": remaining}
                    else:
                        words += line + b" "
                if b"\x04>" in unread:
                    raise Failure(f"the emulated Pico: {words.decode(errors='replace').strip()[-400:]}")
    raise Failure(f"the emulated Pico completed no handshake in {LONGEST_S} s")
