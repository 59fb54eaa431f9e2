"""Which files may go onto a board as they are."""

import sys

import pytest

from h2t2_tools.common.errors import UserError
from h2t2_tools.common.sendable import sendable


def private_key(kind: str, password: bytes | None) -> bytes:
    """A new private key in DER."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    key = rsa.generate_private_key(65537, key_size=2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    hidden = form.BestAvailableEncryption(password) if password else form.NoEncryption()
    layout = form.PrivateFormat.PKCS8 if password else form.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(form.Encoding.DER, layout, hidden)


@pytest.mark.parametrize("kind", ["rsa", "ec"])
@pytest.mark.parametrize("password", [None, b"secret"])
def test_a_private_key_in_der_stays(kind, password, tmp_path):
    pytest.importorskip("cryptography")
    (tmp_path / "key").write_bytes(private_key(kind, password))
    with pytest.raises(UserError, match="a private key"):
        sendable(tmp_path / "key")


@pytest.mark.parametrize("password", [None, b"secret"])
def test_a_private_key_in_pkcs_12_stays(password, tmp_path):
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import pkcs12

    hidden = form.BestAvailableEncryption(password) if password else form.NoEncryption()
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "key").write_bytes(pkcs12.serialize_key_and_certificates(b"mine", key, None, None, hidden))
    with pytest.raises(UserError, match="a private key"):
        sendable(tmp_path / "key")


@pytest.mark.parametrize(
    "content",
    [
        b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
        b"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n",
        b"# created: 2026\nAGE-SECRET-KEY-1QQQ\n",
        "-----BEGIN PRIVATE KEY-----\n".encode("utf-16"),
    ],
    ids=["PGP", "PuTTY", "age", "UTF-16"],
)
def test_a_private_key_of_another_program_stays(content, tmp_path):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(UserError, match="a private key"):
        sendable(tmp_path / "key")


def test_a_private_key_in_der_with_a_line_end_stays(tmp_path):
    pytest.importorskip("cryptography")
    (tmp_path / "key").write_bytes(private_key("ec", None) + b"\n")
    with pytest.raises(UserError, match="a private key"):
        sendable(tmp_path / "key")


@pytest.mark.parametrize("text", [b"0", b"0\n1\n0\n", b"0" * 300, b"0\x81", b"0\x82\x01"])
def test_text_that_begins_with_0_goes_and_needs_no_library(text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)  # as if it were not installed
    (tmp_path / "labels.txt").write_bytes(text)
    assert sendable(tmp_path / "labels.txt") == text
