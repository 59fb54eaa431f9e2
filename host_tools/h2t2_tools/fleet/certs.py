"""`h2t2 certs`: a certificate authority for development, a certificate of the broker, and one for each device or worker."""

import datetime
import ipaddress
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from h2t2.cpython import device_names

from ..common.errors import UserError, as_user_error
from ..common.untrusted import parse_json

LONGEST_NAME = 64  # characters of a common name (RFC 5280)
INDEX = "index.json"  # of the certificates that were issued, so that they can be revoked


@dataclass(frozen=True)
class Authority:
    """A certificate authority: certificate and key (P-256, which the TLS of every board supports)."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def write_file(path: Path, content: bytes, secret: bool = False) -> Path:
    """Write a file. Others can never read a secret one, not even while it is written."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return path


def make(out: Path, hosts: list[str], names: list[str], days: float, day: datetime.datetime | None = None) -> list[Path]:
    """Write ca.crt and ca.key, unless they exist, server.crt, server.key, and NAME.crt, NAME.key for every name.

    Args:
        hosts: host names and addresses of the broker.
        days: for which the new certificates are valid, from `day` (now) on.

    Returns:
        The files.
    """
    alternatives = x509.SubjectAlternativeName([_name_of(host) for host in hosts])
    out.mkdir(parents=True, exist_ok=True)
    start = day or datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=5)
    end = start + datetime.timedelta(days=days)
    authority, written = _authority(out, start)
    issued = _issued(out)
    _, files = _issue(
        out, hosts[0], authority, (start, end), use=ExtendedKeyUsageOID.SERVER_AUTH, stem="server", alternatives=alternatives
    )
    written += files
    for name in names:
        if not device_names.is_device(name) or name in ("ca", "server"):
            raise UserError(f"name {name!r}: want a device's name, without / + #, and neither ca nor server")
        serial, files = _issue(out, name, authority, (start, end), use=ExtendedKeyUsageOID.CLIENT_AUTH)
        written += files
        issued.append(Issued(name, serial, end.date().isoformat()))
        _write_index(out, issued)
    return written


def revoke(out: Path, names: list[str]) -> int:
    """Revoke every certificate of these names; how many. UserError for a name without one."""
    issued = _issued(out)
    for name in names:
        if not any(entry.name == name for entry in issued):
            raise UserError(f"{out}: no certificate of {name!r} was ever made here")
    revoked = [entry for entry in issued if entry.name in names and not entry.revoked]
    _write_index(out, [replace(entry, revoked=entry.revoked or entry.name in names) for entry in issued])
    return len(revoked)


def revocation_list(out: Path, allowed: list[str]) -> bytes:
    """The revocation list (PEM) that admits only these names. It is valid for ten years.

    UserError where this is no folder of `h2t2 certs` with its authority's key.
    """
    if not (out / INDEX).is_file() or not (out / "ca.key").is_file():
        raise UserError(f"{out}: no {INDEX} or no ca.key: want the folder of h2t2 certs, which knows who may connect")
    utc_now = datetime.datetime.now(datetime.timezone.utc)
    authority, _ = _authority(out, utc_now)
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.certificate.subject)
    builder = builder.last_update(utc_now - datetime.timedelta(days=1)).next_update(utc_now + datetime.timedelta(days=3650))
    for entry in _issued(out):
        if entry.revoked or entry.name not in allowed:
            gone = x509.RevokedCertificateBuilder().serial_number(int(entry.serial, 16)).revocation_date(utc_now)
            builder = builder.add_revoked_certificate(gone.build())
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(Encoding.PEM)


@dataclass(frozen=True)
class Issued:
    """An entry of the index: a certificate. serial: hexadecimal; until: its last day."""

    name: str
    serial: str
    until: str
    revoked: bool = False


def _issued(out: Path) -> list[Issued]:
    path = out / INDEX
    try:
        return [Issued(**entry) for entry in parse_json(path.read_text())] if path.is_file() else []
    except (ValueError, TypeError):
        raise UserError(f"{path}: not the index that h2t2 certs writes") from None


def _write_index(out: Path, issued: list[Issued]) -> None:
    write_file(out / INDEX, (json.dumps([asdict(entry) for entry in issued], indent=1) + "\n").encode())


def _name_of(host: str) -> x509.GeneralName:
    """The host in a certificate: an address, or a name, outside ASCII as DNS has it. UserError for anything else."""
    with suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(host))
    with as_user_error(f"--host {host}: want a host name or an address"):
        name = host.encode("idna").decode()
    if not name:
        raise UserError("--host: want a host name or an address")
    return x509.DNSName(name)


def _subject(name: str) -> x509.Name:
    """The subject of a certificate. Clients compare a server's alternative names, so that a long one may be cut off here."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:LONGEST_NAME])])


def _authority(out: Path, start: datetime.datetime) -> tuple[Authority, list[Path]]:
    """(the authority of this folder, the files of a new one)."""
    certificate, key = out / "ca.crt", out / "ca.key"
    if certificate.exists() and key.exists():
        try:
            loaded = load_pem_private_key(key.read_bytes(), None)
            assert isinstance(loaded, ec.EllipticCurvePrivateKey)
            return Authority(x509.load_pem_x509_certificate(certificate.read_bytes()), loaded), []
        except (ValueError, AssertionError):
            raise UserError(f"{certificate}, {key}: not an authority of h2t2 certs; give another --out") from None
    new_key = ec.generate_private_key(ec.SECP256R1())
    name = _subject("H2T2 development CA")
    builder = _builder(name, name, new_key, start, start + datetime.timedelta(days=3650))
    signed = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(sign=True), critical=True)
        .sign(new_key, hashes.SHA256())
    )
    return Authority(signed, new_key), _write(out, "ca", signed, new_key)


def _issue(
    out: Path,
    name: str,
    authority: Authority,
    valid: tuple[datetime.datetime, datetime.datetime],
    *,
    use: x509.ObjectIdentifier,
    stem: str = "",
    alternatives: x509.SubjectAlternativeName | None = None,
) -> tuple[str, list[Path]]:
    """(serial number, files) of a new certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_subject(name), authority.certificate.subject, key, *valid)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(usage(sign=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
    if alternatives:
        builder = builder.add_extension(alternatives, critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    certificate = builder.sign(authority.key, hashes.SHA256())
    return f"{certificate.serial_number:x}", _write(out, stem or name, certificate, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, start: datetime.datetime, end: datetime.datetime
) -> x509.CertificateBuilder:
    public = key.public_key()
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)


def usage(sign: bool) -> x509.KeyUsage:
    """The usage of a key. sign: it is an authority's."""
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=sign, crl_sign=sign, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _write(out: Path, stem: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> list[Path]:
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return [
        write_file(out / f"{stem}.crt", certificate.public_bytes(Encoding.PEM)),
        write_file(out / f"{stem}.key", private, secret=True),
    ]
