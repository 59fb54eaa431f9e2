# The radio of a board with Wi-Fi: a supervisor joins the network, sets the clock, lets MqttLink connect, and switches the radio
# off while the board sleeps. Nothing here waits: every call does only what is possible now. Ports with Wi-Fi: esp32, rp2.
from binascii import unhexlify
from time import sleep

import network

from ..clock import longest, remaining, ticks_add, ticks_diff, ticks_ms
from ..modules import forget
from .backoff import LONGEST_MS, Backoff
from .mqtt import DOWN, UP

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any, Callable
    from .mqtt import MqttLink
    from .ntp import TimeServer

OFF, RESTING, JOINING, JOINED = 0, 1, 2, 3
JOIN_MS = 20000  # for one attempt
SETTLE_MS = 200  # between disconnect() and connect(): an ESP32 refuses to connect while it still ends the last connection
STALE_MS = 8000  # until an attempt ends an ESP32 reports the status of the last one; it has ended by then
LOOK_MS = 100  # between two looks at the station
# attempts at the broker, or at a time server that TLS waits for, in a row without any sign of life: after each such number the
# network is joined again, and each second time the radio is switched off; after so many the board is reset. A radio may go on
# saying that it is connected when nothing passes any more (micropython issue 9455).
REJOIN, RESET = 6, 300  # the last after an hour
ANSWERED = "the "  # begins what mqtt.py and names.py say of a host that answers: "the connection is refused"
CONNECT_MS = 4000  # how long joining and connecting take, before the first measurement
SPARE_MS = 1000  # a sleeping board wakes so much earlier: joining may take longer, and the workers' presence comes last


class Station:
    """One wireless network, which it joins again whenever the connection is lost: no port does that reliably.

    Attributes:
        trouble: why the last attempt failed or the connection ended, "" before that and while joined.
    """

    def __init__(
        self, name: str, password: str, seed: int, power: int | None = None, log: "Callable[[str], object]" = print,
        options: "dict[str, Any] | None" = None, address: "tuple[str, ...] | None" = None
    ) -> None:  # fmt: skip
        """Leave the radio off until advance().

        Args:
            name, password: of the network.
            seed: of the waits between attempts.
            power: network.WLAN's number of a power saving mode, None: the port's default.
            log: takes each new reason why there is no connection.
            options: of WLAN.connect().
            address: address, mask, gateway and name server; None: DHCP gives them.
        """
        self.network = name, password
        self.power = power
        self.options = options or {}
        self.address = address
        self.log = log
        self.backoff = Backoff(seed)
        self.wlan: "Any" = None  # an ESP32's takes memory, which may not be free yet
        self.state = OFF
        self.trouble = ""
        self.since = ticks_ms()  # when the state began; of OFF and RESTING: when it ends
        self.looked_at = self.since
        self.stale: "int | None" = None  # status of the attempt before

    def is_joining(self) -> bool:
        """Whether an attempt is under way or about to begin: a device that sleeps now would never end it."""
        return self.state == JOINING or (self.state < JOINING and ticks_diff(self.since, ticks_ms()) <= SETTLE_MS)

    def advance(self) -> bool:
        """Do what is due. Returns whether there is a connection and an address."""
        now = ticks_ms()
        try:
            if self.state < JOINING:
                left_ms = ticks_diff(self.since, now)
                if left_ms <= 0 or left_ms > LONGEST_MS:  # longer than any wait: the clock has jumped
                    self._begin(now)
            elif not 0 <= ticks_diff(now, self.looked_at) < LOOK_MS:
                self.looked_at = now
                self._look(now)
        except (OSError, RuntimeError) as error:  # of an ESP32's radio, in words
            self._end(now, str(error))
        return self.state == JOINED

    def hold(self) -> None:
        """Leave the radio off for half a minute."""
        self.trouble = "Wi-Fi %s: not tried" % self.network[0]
        self.since = ticks_add(ticks_ms(), LONGEST_MS)

    def rejoin(self) -> None:
        """Leave the network and join it again: it passes nothing."""
        self._end(ticks_ms(), "nothing passes")

    def off(self) -> None:
        """Switch the radio off; advance() switches it on again, when an attempt is due."""
        if self.state == OFF:
            return
        self._tell("disconnect")
        self._tell("active", False)
        self._tell("deinit")  # cyw43: the chip itself
        if self.state != RESTING:  # otherwise the next attempt stays due when it was
            self.since = ticks_ms()
            self.trouble = ""
        self.state = OFF

    def _begin(self, now: int) -> None:
        """Switch the radio on, or begin an attempt."""
        if not self.wlan:
            self.wlan = network.WLAN(network.STA_IF)
        wlan = self.wlan
        if self.state == OFF:
            wlan.active(True)
            if self.address:
                self._tell("ifconfig", self.address)
            self._tell("config", pm=self.power)
            self._tell("config", reconnects=0)  # an ESP32 would try again by itself, and refuse connect()
            self._tell("disconnect")  # a connection from before a soft reset
            self.state = RESTING
            self.since = ticks_add(now, SETTLE_MS)
            return
        wlan.connect(*self.network, **self.options)
        self.state = JOINING
        self.since = self.looked_at = now
        self.stale = wlan.status()

    def _look(self, now: int) -> None:
        """Check whether the attempt or the connection has ended."""
        elapsed = ticks_diff(now, self.since)
        if self.wlan.isconnected():
            if self.state == JOINING:
                self.state = JOINED
                self.since = now
                self.trouble = ""
            return
        status = self.wlan.status()
        if status == network.STAT_NO_AP_FOUND:
            reason = "no such network"
        elif status in (network.STAT_WRONG_PASSWORD, 15, 204):  # esp_wifi_types.h: 4WAY_HANDSHAKE_TIMEOUT, HANDSHAKE_TIMEOUT
            reason = "wrong password"
        elif status in (210, 211):  # esp_wifi_types.h: NO_AP_FOUND_W_COMPATIBLE_SECURITY, NO_AP_FOUND_IN_AUTHMODE_THRESHOLD
            # it finds the name, but WPA alone, or WPA3 in a way that it does not know
            reason = "no network with a security that this board takes"
        else:
            reason = "status %d" % status
        if self.state == JOINED:
            self.backoff.after_connection(elapsed, False)
            self._end(now, "the connection is lost (%s)" % reason)
        elif status < network.STAT_IDLE and (status != self.stale or elapsed > STALE_MS):  # cyw43's IDLE is 0, an ESP32's 1000
            self._end(now, reason)
        elif not 0 <= elapsed < JOIN_MS:
            self._end(now, "no answer in %d s" % (JOIN_MS // 1000))

    def _end(self, now: int, reason: str) -> None:
        """Log the reason. The next attempt is due after a wait that doubles."""
        trouble = "Wi-Fi %s: %s" % (self.network[0], reason)
        if trouble != self.trouble:
            self.log(trouble)
        self.trouble = trouble
        self._tell("disconnect")
        if self.state != OFF:
            self.state = RESTING
        self.since = ticks_add(now, max(SETTLE_MS, self.backoff.draw()))

    def _tell(self, call: str, *arguments: "Any", **options: "Any") -> None:
        """Call a member of network.WLAN that a port may lack or refuse."""
        try:
            getattr(self.wlan, call)(*arguments, **options)
        except (AttributeError, OSError, RuntimeError, TypeError, ValueError):
            pass


class RadioLink:
    """The link on a wireless network: it connects once the network is joined and, for TLS, the clock is set.

    radio_class() puts it before the class that connects, which is its `parent`.
    """

    parent: "Any"
    # members of the parent
    state: int
    since: int
    keep_ms: int
    trouble: str
    host: str
    tls: "Any"
    backoff: Backoff

    def __init__(
        self, station: Station, open_server: "Callable[[], TimeServer | None]", *arguments: "Any", **options: "Any"
    ) -> None:  # fmt: skip
        """open_server: opens the TimeServer, whose module is in memory only while the clock is set. Others: MqttLink's."""
        self.parent.__init__(self, *arguments, **options)
        self.station = station
        self.open_server = open_server
        self.time_server = open_server()
        self.hold_ms = self.right_until = 0  # how long, and until when, the clock is right
        self.outlives_ms = self.keep_ms >> 1
        self.connect_ms = CONNECT_MS
        self.lead_ms = CONNECT_MS + SPARE_MS
        self.began: "int | None" = None  # when the radio was switched on; None: it is off, or its time is measured
        self.joined = False
        self.silent = 0  # attempts in a row without a sign of life
        self.server_failures = 0  # of the time server, that `silent` contains

    def is_deaf(self) -> bool:
        return self.silent >= RESET

    def is_connecting(self) -> bool:
        if self.station.is_joining() or DOWN < self.state < UP:
            return True
        return bool(self.joined and self.tls and self.time_server and self.time_server.is_asking())

    def hold(self) -> None:
        self.station.hold()

    def close(self) -> None:
        """Say farewell, and switch the radio off. The next call of another member switches it on again."""
        self.parent.close(self)
        self.station.off()
        self.joined = False
        self.began = None
        self.trouble = self.station.trouble

    def _drop(self, reason: str) -> None:
        was = self.state
        self.parent._drop(self, reason)
        if was == UP or reason.startswith(ANSWERED):
            self.silent = 0
        elif was != DOWN and self.state == DOWN and self.joined:
            self._count_silence()

    def _count_silence(self) -> None:
        """Count an attempt that heard nothing, though the radio is connected; begin anew with the radio now and then."""
        self.silent += 1
        if self.silent % (2 * REJOIN) == 0:
            self.station.log("Wi-Fi %s: nothing passes: the radio is switched off and on" % self.station.network[0])
            self.station.off()
        elif self.silent % REJOIN == 0:
            self.station.rejoin()

    def _advance(self, wait_ms: int) -> None:
        if self._is_ready():
            self.parent._advance(self, wait_ms)
            if self.state == UP and self.began is not None:
                self.connect_ms = longest(self.connect_ms, self.began)
                self.lead_ms = self.connect_ms + SPARE_MS
                self.began = None
            return
        if self.state != DOWN:
            self._drop(self.trouble)
        if wait_ms:
            sleep(min(wait_ms, 20) / 1000)

    def _is_ready(self) -> bool:
        """Whether MqttLink may connect. Otherwise `trouble` is the reason, "" while that may still change."""
        station = self.station
        if self.began is None and station.state == OFF:
            self.began = ticks_ms()
        joined = station.advance()
        if joined != self.joined:
            self.joined = joined
            self.trouble = ""
            self.backoff.reset()
            self.since = ticks_ms()
        if not joined:
            self.trouble = station.trouble
            return False
        server = self.time_server
        if not server:
            if self.hold_ms and not remaining(self.right_until, self.hold_ms):
                self.time_server = self.open_server()
        elif not server.advance():
            if self.tls:
                self.trouble = server.trouble
                if server.failures != self.server_failures:
                    self.server_failures = server.failures
                    self._count_silence()
                return False
        elif server.hold_ms:
            self.hold_ms = server.hold_ms
            self.right_until = ticks_add(ticks_ms(), self.hold_ms)
            self.time_server = None
            forget("link.ntp")
            if self.host < ":":
                forget("link.names")
        return True


def radio_class(base: "type[MqttLink]") -> "type":
    """The Radio that connects by `base`: mqtt.MqttLink, or the one of names."""

    return type("Radio", (RadioLink, base), {"parent": base})


def open_radio(
    base: "type[MqttLink]", config: "dict[str, Any]", arguments: "tuple[Any, ...]", options: "dict[str, Any]", *,
    after_sleep: bool, feed: "Callable[[], object]", log: "Callable[[str], object]"
) -> "MqttLink":  # fmt: skip
    """The Radio of a configuration.

    Args:
        base: as radio_class's.
        config: of the node.
        arguments, options: of MqttLink, by position and by name.
        after_sleep, feed, log: as TimeServer's.
    """
    seed = options["seed"]
    power = getattr(network.WLAN, "PM_" + config.get("wifi_power_save", "none").upper(), None)
    for name in ("country", "hostname"):  # before the radio is switched on
        if config.get("wifi_" + name):
            getattr(network, name)(config["wifi_" + name])
    join = {}
    if config.get("wifi_security"):
        join["security"] = getattr(network.WLAN, "SEC_" + config["wifi_security"].upper())
    if config.get("wifi_bssid"):
        join["bssid"] = unhexlify(config["wifi_bssid"].replace(":", ""))
    address = tuple(config["wifi_address"]) if config.get("wifi_address") else None
    station = Station(config["wifi_name"], config.get("wifi_password", ""), seed >> 1, power, log, join, address)

    def open_server() -> "TimeServer | None":
        if not config.get("ntp"):
            return None
        from .ntp import TimeServer

        return TimeServer(config["ntp"], seed >> 2, after_sleep, feed, log)

    link: "MqttLink" = radio_class(base)(station, open_server, *arguments, **options)
    return link
