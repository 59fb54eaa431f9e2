# The address of a broker, as every option, entry and argument takes it: [mqtt[s]://]HOST[:PORT].
from urllib.parse import urlsplit

PORT, TLS_PORT = 1883, 8883


def parse(text: str, port: int = 0) -> tuple[str, int, bool]:
    """Return the host, the port, and whether it is reached by TLS.

    Args:
        text: [mqtt[s]://]HOST[:PORT]; an IPv6 address that has a port stands in brackets.
        port: Where the text names none; 0: 1883, with TLS 8883.

    Raises:
        ValueError: It is none.
    """
    if "@" in text:
        raise ValueError("no user or password in its address")
    if "://" not in text:
        text = "mqtt://[%s]" % text if text.count(":") > 1 and "[" not in text else "mqtt://" + text
    parts = urlsplit(text)
    tls = parts.scheme == "mqtts"
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise ValueError("want mqtt://host or mqtt://host:port")
    return parts.hostname, parts.port or port or (TLS_PORT if tls else PORT), tls
