# TLS for a link: a context that verifies the broker, on CPython and on MicroPython 1.25 or newer.
from ..modules import IS_BOARD

if IS_BOARD:
    import tls as ssl  # its own module; `ssl` is a wrapper that not every port has
else:
    import ssl


def context(ca: str | None = None, cert: str | None = None, key: str | None = None, verify: bool = True) -> "ssl.SSLContext":
    """A TLS client context.

    Args:
        ca: file of the authority's certificate (DER; CPython: None for the system's own).
        cert, key: files of the device's certificate and key (DER; CPython: PEM), where the broker wants one.
        verify: False: encrypt, but accept any broker.

    Raises:
        ValueError: a file cannot be used; the message names it.
    """
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not verify:
        if not IS_BOARD:
            tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    else:
        tls.verify_mode = ssl.CERT_REQUIRED
    name = ca
    try:
        if ca:
            with open(ca, "rb") as file:
                data = file.read()
            if IS_BOARD:
                tls.load_verify_locations(data)
            else:  # CPython tells PEM from DER by the type
                tls.load_verify_locations(cadata=data.decode() if data[:5] == b"-----" else data)
        elif not IS_BOARD:
            tls.load_default_certs()
        if cert:
            name = cert
            if not IS_BOARD:
                tls.load_cert_chain(cert, key)
            else:
                with open(cert, "rb") as cert_file, open(key or "", "rb") as key_file:
                    tls.load_cert_chain(cert_file.read(), key_file.read())
    except (OSError, ValueError) as error:
        raise ValueError("%s: not a certificate or key that can be used: %s" % (name, error)) from None
    return tls
