# TLS for a link: a context that verifies the broker, on CPython and on MicroPython 1.25 or newer.
import sys

BOARD = sys.implementation.name == "micropython"
if BOARD:
    import tls as ssl  # its own module; `ssl` is a wrapper that not every port has
else:
    import ssl


def context(ca: str | None = None, cert: str | None = None, key: str | None = None, verify: bool = True) -> "ssl.SSLContext":
    """A TLS client context. ca: file of the authority's certificate (DER; CPython: None for the system's own).

    cert, key: files of the device's certificate and key (DER; CPython: PEM), where the broker wants one.
    verify=False: encrypt, but believe any broker. Raises ValueError naming the file that cannot be used.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not verify:
        if not BOARD:
            made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    else:
        made.verify_mode = ssl.CERT_REQUIRED
    name = ca
    try:
        if ca:
            with open(ca, "rb") as file:
                data = file.read()
            if BOARD:
                made.load_verify_locations(data)
            else:  # CPython tells PEM from DER by the type
                made.load_verify_locations(cadata=data.decode() if data[:5] == b"-----" else data)
        elif not BOARD:
            made.load_default_certs()
        if cert:
            name = cert
            if not BOARD:
                made.load_cert_chain(cert, key)
            else:
                with open(cert, "rb") as one, open(key or "", "rb") as other:
                    made.load_cert_chain(one.read(), other.read())
    except (OSError, ValueError) as error:
        raise ValueError("%s: not a certificate or key that can be used: %s" % (name, error)) from None
    return made
