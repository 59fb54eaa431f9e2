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


@pytest.mark.parametrize("text", [b"0", b"0\n1\n0\n", b"0" * 300, b"0\x81", b"0\x82\x01"])
def test_text_that_begins_with_0_goes_and_needs_no_library(text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)  # as if it were not installed
    (tmp_path / "labels.txt").write_bytes(text)
    assert sendable(tmp_path / "labels.txt") == text
