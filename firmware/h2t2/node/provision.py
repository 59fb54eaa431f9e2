# Tells a board its network: one page of an access point of its own, whose answers are stored in config.json. A board forgets
# this module at once. Ports with an access point: rp2 (Pico W), esp32.
import json
import socket

import network

from ..clock import Stopwatch
from . import board

if 0:  # for type checkers
    from ..annotations import Any, Config, Feed, Log

PORT = 80
OPEN_S = 600  # the page is there for so long
JOIN_S = 30  # for the first attempt at the network that the page was told
REQUEST_S = 5  # for a whole request
LARGEST = 4096  # bytes of a request; a phone's has some 700
STARTS = "pwron", "hard", "soft", board.UPDATED  # causes of starts after which a page may open, and no sample is missed
FIELDS = "wifi_name", "wifi_password", "broker", "device"
HOST = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
PAGE = """HTTP/1.0 200 OK\r
Content-Type: text/html; charset=utf-8\r
Cache-Control: no-store\r
Connection: close\r
\r
<!doctype html><html lang=en><meta name=viewport content="width=device-width"><title>H2T2</title>
<h1>Network of this device</h1><p>%s<form method=post action=/ autocomplete=off>
<p><label>Name of the network<br><input name=wifi_name maxlength=32 required></label>
<p><label>Its password<br><input name=wifi_password type=password maxlength=63></label>
<p><label>MQTT broker (empty: as configured)<br><input name=broker maxlength=64></label>
<p><label>Name of the device (empty: as configured)<br><input name=device maxlength=64></label>
<p><button>Store</button></form>
"""
STORED = "Stored. The device joins the network now. If it cannot, this access point comes back."


def provision(config: "Config", cause: str, feed: "Feed", log: "Log") -> None:
    """Open the page if the board knows no network, or cannot join the one that the page was told.

    Returns after OPEN_S at the latest; what the page is told is stored, and ends in a reset.

    Args:
        config: As config.json. `provision` is the password of the access point, 8 to 63 characters; `untried` says that its
            network was never joined.
        cause: Of the start; a board that wakes or that an exception started again opens no page.
        feed: Feeds the watchdog.
    """
    if cause not in STARTS or config.get("wifi_name") and not config.get("untried"):
        return
    if config.get("wifi_country"):
        network.country(config["wifi_country"])
    if config.get("wifi_name"):
        if _joins(config, feed, log):
            store({name: value for name, value in config.items() if name != "untried"})
            board.restart(board.UPDATED)
        log("Wi-Fi %s: not joined in %d s" % (config["wifi_name"], JOIN_S))
    access_point = network.WLAN(network.AP_IF)
    try:
        if _open(access_point, config):
            log(
                "no network: for %d minutes %s has a page at http://%s"
                % (OPEN_S // 60, _name(config), access_point.ifconfig()[0])
            )
            _serve(config, feed)
    except (OSError, RuntimeError) as error:  # the radio's; the node decides without a network
        log("no access point: %s" % error)
    access_point.active(False)


def _joins(config: "Config", feed: "Feed", log: "Log") -> bool:
    """Return whether the board joins its network within JOIN_S."""
    from ..link.wifi import Station

    options = {}
    if config.get("wifi_security"):
        options["security"] = getattr(network.WLAN, "SEC_" + config["wifi_security"].upper())
    station = Station(config["wifi_name"], config["wifi_password"], 1, None, log, options)
    watch = Stopwatch()
    joined = False
    while watch.seconds() < JOIN_S and not joined:
        feed()
        board.pause(100)
        joined = station.advance()
    station.off()
    return joined


def _name(config: "Config") -> str:
    name: str = config["device"]
    return ("h2t2-" + name)[:32]


def _open(access_point: "Any", config: "Config") -> bool:
    """Open the access point with WPA2, and return whether it has it: without it the page would hear secrets in the clear."""
    wlan = network.WLAN
    security = getattr(wlan, "SEC_WPA2", wlan.SEC_WPA_WPA2)
    options = {"ssid": _name(config), "key": config["provision"], "security": security}
    try:
        access_point.config(**options)  # a Pico W takes them before it is active
    except (OSError, RuntimeError):  # an ESP32 takes them afterwards
        pass
    access_point.active(True)
    access_point.config(**options)
    has_password: bool = access_point.config("security") != wlan.SEC_OPEN
    return has_password


def _serve(config: "Config", feed: "Feed") -> None:
    """Serve the page to one client after another, until one has told a network."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(socket.getaddrinfo("0.0.0.0", PORT)[0][-1])
    server.listen(2)
    server.setblocking(False)
    watch = Stopwatch()
    try:
        while watch.seconds() < OPEN_S:
            feed()
            try:
                client, _ = server.accept()
            except OSError:
                board.pause(50)
                continue
            told = None
            try:
                told = _answer(client, config, feed)
            except OSError:  # it has gone
                pass
            finally:
                client.close()
            if told:
                board.pause(500)  # the answer leaves
                store(told)
                board.restart(board.UPDATED)
                return
    finally:
        server.close()


def _answer(client: "Any", config: "Config", feed: "Feed") -> "Config | None":
    """Answer a request; return the configuration that it makes, or None."""
    client.setblocking(False)
    request = _request(client, feed)
    told, text = None, ""
    if request is None:
        return None
    if request.startswith(b"POST "):
        try:
            told = entries(request[request.find(b"\r\n\r\n") + 4 :], config)
            text = STORED
        except ValueError as error:
            text = str(error)
    client.setblocking(True)
    client.settimeout(REQUEST_S)
    page = memoryview((PAGE % text).encode())
    while page:
        page = page[client.write(page) :]
    return told


def _request(client: "Any", feed: "Feed") -> bytes | None:
    """Return a request; None for one that is too long, takes too long, or is none."""
    buffer = memoryview(bytearray(LARGEST))
    size = total = 0
    watch = Stopwatch()
    while watch.seconds() < REQUEST_S and size < LARGEST:
        feed()
        count = client.readinto(buffer[size:])
        if count is None:
            board.pause(20)
            continue
        if not count:
            return None
        size += count
        if not total:
            head = bytes(buffer[:size])
            end = head.find(b"\r\n\r\n") + 4
            total = end + _length(head[:end]) if end > 3 else 0
        if total and size >= total:
            return bytes(buffer[:total])
    return None


def _length(head: bytes) -> int:
    """Return the length of a request's body; of one that does not say, or says nonsense, more than any has."""
    if not head.startswith(b"POST "):
        return 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:") and len(line) < 21 and line[15:].strip().isdigit():
            return int(line[15:])
    return LARGEST


def entries(body: bytes, config: "Config") -> "Config":
    """Return a configuration with what a form says.

    Args:
        body: As application/x-www-form-urlencoded: wifi_name, wifi_password, broker, device, each at most once.
        config: As config.json.

    Raises:
        ValueError: An entry is missing, too long, or has characters that it cannot have; the text names it.
    """
    told = {}
    for pair in body.split(b"&"):
        key, _, value = pair.partition(b"=")
        for field in FIELDS:
            if key == field.encode():
                told[field] = _decoded(value, field)
    name, password, broker, device = [told.get(field, "") for field in FIELDS]
    if not 1 <= len(name.encode()) <= 32:
        raise ValueError("The name of a network has 1 to 32 bytes.")
    if password and not 8 <= len(password.encode()) <= 63:
        raise ValueError("The password of a network has 8 to 63 characters.")
    if len(broker) > 64 or [c for c in broker if c not in HOST]:
        raise ValueError("The broker is a name or an address, such as broker.lan.")
    if len(device.encode()) > 64 or [c for c in device if c in "/+#"]:
        raise ValueError("The name of a device has at most 64 bytes, without / + #.")
    changed = dict(config, wifi_name=name, wifi_password=password, untried=1)
    if broker:
        changed["broker"] = broker
    if device:
        changed["device"] = device
    return changed


def _decoded(value: bytes, field: str) -> str:
    """Return the text of a value in a form. ValueError where it is none."""
    parts = value.replace(b"+", b" ").split(b"%")
    data = parts[0]
    try:
        for part in parts[1:]:
            data += bytes([int(part[:2].decode(), 16)]) + part[2:]
            if len(part) < 2 or len(data) > 3 * 64:
                raise ValueError
        text = data.decode()
    except ValueError:
        raise ValueError("%s: no text" % field) from None
    if [c for c in text if c < " " or c == "\x7f"]:
        raise ValueError("%s: a character that no name has" % field)
    return text


def store(config: "Config") -> None:
    """Store config.json for the next start, as `h2t2 flash` does: until flash.todo is written, the old one holds."""
    with open("config.json.new", "w") as file:
        json.dump(config, file)
    with open("flash.todo", "w") as file:
        file.write("config.json")
