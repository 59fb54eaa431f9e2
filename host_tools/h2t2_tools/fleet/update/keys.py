"""`h2t2 update keys`: the RSA key of 2048 bits that signs update packages, and its public part, which devices know.

A new key reaches devices by a package that the old key has signed.
"""

from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from h2t2.node.package import EXPONENT, KEY

from ...common.errors import UserError
from ..certs import write_file
from ..endpoint import secret


def make(out: Path) -> tuple[Path, Path]:
    """Write OUT.key, readable by its owner only, and OUT.pub, both PEM. UserError where one exists: devices trust it."""
    private, public = out.with_name(out.name + ".key"), out.with_name(out.name + ".pub")
    for path in (private, public):
        if path.exists():
            raise UserError(f"{path}: is there already; devices that know it would refuse packages of another key")
    out.parent.mkdir(parents=True, exist_ok=True)
    key = rsa.generate_private_key(EXPONENT, 8 * KEY)
    write_file(private, key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()), secret=True)
    write_file(public, key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def modulus(path: Path) -> str:
    """The modulus of a public key (PEM), hexadecimal, as a device's configuration has it. UserError for anything else."""
    try:
        key = form.load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path}: no public key (PEM); h2t2 update keys makes one, NAME.pub") from None
    if not isinstance(key, rsa.RSAPublicKey) or key.key_size != 8 * KEY or key.public_numbers().e != EXPONENT:
        raise UserError(f"{path}: want an RSA key of {8 * KEY} bits with the exponent {EXPONENT}")
    return key.public_numbers().n.to_bytes(KEY, "big").hex()


def sign(path: Path, data: bytes) -> bytes:
    """The signature, RSASSA-PKCS1-v1_5 with SHA-256, KEY bytes.

    UserError where the file is no such key, or others may read it.
    """
    try:
        key = form.load_pem_private_key(secret(path).read_bytes(), None)
    except (ValueError, TypeError):
        raise UserError(f"{path}: no private key (PEM, without a password); h2t2 update keys makes one, NAME.key") from None
    if not isinstance(key, rsa.RSAPrivateKey) or key.key_size != 8 * KEY:
        raise UserError(f"{path}: want an RSA key of {8 * KEY} bits")
    return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
