# A microcontroller's `machine`, `network` and `time` with the rules of its port, in virtual time: no friendly emulation has
# them. Runs on CPython (ports/played.py) and on MicroPython's unix port (ports/pretend.py).
#
# The rules are read from MicroPython 1.22 to 1.28 and the cyw43 driver:
# * cyw43 (rp2): a join that ends in NONET, FAIL or BADAUTH stays so, and nothing joins again after a connection is lost.
# * ESP32: connect() while connecting or connected raises OSError("Wifi Internal Error"). The status of a failed attempt stays
#   until the next success, so that it says nothing about the attempt under way.
# * A watchdog cannot be stopped. On an RP2040 it counts on in sleep; one that ends there locks an RP2040 up (micropython issue
#   17228).
# * WDT(timeout) beyond the port's limit raises ValueError: 8,388 ms on RP2040 and, though its counter is wider, on RP2350.
# * The time of day of rp2 stands still in a light sleep from 1.25 to 1.28 (issue 16519), and a RP2350's watchdog in any sleep.
# * With 1.25 a Pico W wakes after some 27 ms, always (issues 16181 and 17204): `insomniac`.
# * rp2 has no DEEPSLEEP_RESET and forgets the time of day at every reset; a deep sleep there is a light one and a reset.
# * network.WLAN() of an ESP32 takes memory of the pool into which Python's heap grows, and raises RuntimeError without it. The
#   heap consists of areas; a further one is as large as all of them together (py/gc.c, gc_try_add_heap).
# * A radio may go on saying isconnected() when nothing passes any more (micropython issues 9455 and 9505, pico-sdk 2316): until
#   disconnect(), until it was switched off, or until a reset.
# * lightsleep() may return at once (rp2: while the radio wants to be polled). ESP32's radio is off in it.
# * The clock is not set: an ESP32 starts in 2000, an RP2 in 2021.

RP2040, RP2350, ESP32 = "rp2040", "rp2350", "esp32"
LIMIT_MS = {RP2040: 8388, RP2350: 8388, ESP32: 1 << 31}
REGISTERS = {RP2040: 0x40058000, RP2350: 0x400D8000}  # of the watchdog; its reason stands at +8, scratch register 0 at +12
TIMER, FORCE = 1, 2  # bits of the reason
NAMES = {
    RP2040: ("rp2", "Raspberry Pi Pico W with RP2040"),
    RP2350: ("rp2", "Raspberry Pi Pico 2 W with RP2350"),
    ESP32: ("esp32", "Generic ESP32 module with ESP32"),
}
UNSET = {RP2040: 1609459200, RP2350: 1609459200, ESP32: 946684800}  # Unix seconds that a chip starts with
LONG = 1 << 40
RADIO = 40 << 10  # bytes that an ESP32's radio takes
POOL = 94656  # bytes of an ESP32 that its radio and further areas of its heap share
FIRST_AREA = 56 << 10  # bytes of Python's heap at the start (MICROPY_GC_INITIAL_HEAP_SIZE)
PERIOD = 1 << 30
SCAN_MS, AUTH_MS, DHCP_MS = 2500, 3000, 1500  # until it is known: no such network; a wrong password; an address


class Reset(BaseException):
    """The chip starts anew: RAM is gone, and nothing that the program does happens after it."""


class LockedUp(BaseException):
    """The chip hangs until it loses power."""


class World:
    """One board and what is around it.

    chip: RP2040, RP2350 or ESP32. utc: Unix milliseconds at its first start. up: (from, to) pairs of milliseconds in which its
    access point is there. name, password: of the access point. is_set: the board's clock is set.
    deaf_from, deaf_until: milliseconds from which on nothing passes, and the call that ends it: "disconnect", "off", "reset".
    boot_takes: bytes of an ESP32's heap that the user's boot.py holds, as `boot_block`.
    early: how many times lightsleep() returns at once. asked: what its radio was asked for, as (milliseconds, call). slept:
    milliseconds of sleep. resets: their causes.
    """

    def __init__(self, chip=RP2040, utc=1800000000000, up=((0, LONG),), is_set=False, boot_takes=0):
        self.chip = chip
        self.utc = utc
        self.now = self.boot = 1000
        self.up = up
        self.name = "home"
        self.password = "secret"
        self.security = "wpa2"
        self.memory = POOL  # bytes that an ESP32's radio or its heap may still take
        self.heap = Heap(self)
        self.boot_block = self.heap.take(boot_takes)
        self.deaf_from = LONG
        self.deaf_until = "disconnect"
        self.early = 0
        self.insomniac = False
        self.calls = 0
        self.sensors = []  # of sensors.py
        self.woken_by = 0  # what ended the last deep sleep
        self.ext0 = None  # pin and level that end one
        self.asked = []
        self.resets = []
        self.slept = 0
        self.scratch = 0
        self.power_on()
        if is_set:
            self.clock = utc

    def power_on(self):
        """Power comes: nothing is left but the flash."""
        self.scratch = 0
        self._start("pwron")

    def _start(self, cause):
        self.boot = self.now
        self.cause = cause
        self.limit = 0  # of the watchdog, 0: it does not run
        self.fed = self.now
        if self.chip != ESP32 or cause == "pwron":
            self.clock = UNSET[self.chip] * 1000 - self.now  # Unix ms = now + clock
        self.machine = Machine(self)
        self.network = Network(self)

    def reset(self, cause):
        """The chip starts anew."""
        self.hear("reset")
        self.resets.append(cause)
        self._start(cause)
        raise Reset(cause)

    def locked_up(self):
        """The chip hangs."""
        self.resets.append("locked up")
        raise LockedUp("the watchdog ended in sleep")

    def pass_ms(self, ms, asleep=False):
        """Let time pass; a watchdog that nobody feeds ends it."""
        if asleep and self.chip != RP2040:  # its watchdog stands still
            self.fed += ms
        elif self.limit and self.now + ms >= self.fed + self.limit:
            self.now = max(self.now, self.fed + self.limit)
            if asleep:
                self.locked_up()
            self.reset("wdt")
        self.now += ms
        for sensor in self.sensors:
            sensor.catch_up()
        if asleep:
            self.slept += ms
            if self.chip != ESP32:
                self.clock -= ms

    def ticks(self):
        """ticks_ms() of the chip; a program that only looks at it makes time pass too."""
        self.calls += 1
        if self.calls % 16 == 0:
            self.pass_ms(1)
        return (self.now - self.boot) % PERIOD

    def unix_ms(self):
        """What its own clock says."""
        return self.now + self.clock

    def passes(self):
        """Whether packets pass while the radio says that it is connected."""
        return self.now < self.deaf_from

    def hear(self, call):
        """A call that may end deafness."""
        if not self.passes() and call in (self.deaf_until, "reset"):
            self.deaf_from = LONG

    def there(self):
        """Whether the access point is there now."""
        return any(start <= self.now < end for start, end in self.up)


class Heap:
    """Python's heap of an ESP32. It holds what a test takes; the objects of the program that runs here lie elsewhere."""

    def __init__(self, world):
        self._world = world
        self._areas = [[FIRST_AREA, 0]]  # bytes, and those in use

    def take(self, size):
        """A block. MemoryError where it fits into no area, and the pool has no room for a new one."""
        for area in self._areas:
            if area[0] - area[1] >= size:
                break
        else:
            needed = size + max(2048, size * 13 // 512)
            if self._world.memory < needed:
                raise MemoryError("memory allocation failed, allocating " + str(size) + " bytes")
            area = [min(self._world.memory, max(needed, sum([area[0] for area in self._areas]))), 0]
            self._world.memory -= area[0]
            self._areas.append(area)
        area[1] += size
        return area, size

    def give(self, block):
        """Free a block, and collect garbage: an empty area beside the first one returns to the pool."""
        area, size = block
        area[1] -= size
        if not area[1] and area is not self._areas[0]:
            self._areas.remove(area)
            self._world.memory += area[0]

    def mem_free(self):
        """gc.mem_free(): what is free in the areas, and the largest area that it may still take."""
        return self._world.memory + sum([size - used for size, used in self._areas])


class Machine:
    """Module `machine`."""

    def __init__(self, world):
        self._world = world
        self.PWRON_RESET, self.WDT_RESET = 1, 3
        if world.chip == ESP32:
            self.HARD_RESET, self.DEEPSLEEP_RESET, self.SOFT_RESET = 2, 4, 5
            self.PIN_WAKE, self.TIMER_WAKE = 2, 4
        else:
            self.mem32 = Registers(world)

        class WDT:
            def __init__(self, id=0, timeout=5000):
                if timeout > LIMIT_MS[world.chip]:
                    raise ValueError("timeout exceeds " + str(LIMIT_MS[world.chip]))
                if timeout <= 0:
                    raise ValueError("WDT timeout too short")
                world.limit = timeout
                world.fed = world.now

            def feed(self):
                world.fed = world.now

        class RTC:
            def datetime(self, fields=None):
                if fields is None:
                    raise NotImplementedError("the tests only set it")
                year, month, day, _, hour, minute, second, _ = fields
                world.clock = unix_seconds(year, month, day, hour, minute, second) * 1000 - world.now

        self.WDT = WDT
        self.RTC = RTC

    def reset_cause(self):
        world = self._world
        if world.chip == ESP32:
            return {"pwron": 1, "hard": 2, "wdt": 3, "deepsleep": 4}[world.cause]
        return 1 if world.cause == "pwron" else 3

    def reset(self):
        self._world.reset("hard")

    def _sleep(self, ms):
        """Let a deep sleep pass; return what ends it: the timer, or the level of a pin (ports/esp32/modesp32.c)."""
        end = self._world.now + ms
        while self._world.now < end:
            if self._world.ext0 and self.Pin(self._world.ext0[0]).value() == self._world.ext0[1]:
                return self.PIN_WAKE
            self._world.pass_ms(min(50, end - self._world.now), True)
        return self.TIMER_WAKE

    def wake_reason(self):
        """0 if no sleep has ended."""
        return self._world.woken_by if self._world.cause == "deepsleep" else 0

    def lightsleep(self, ms):
        world = self._world
        if world.early:
            world.early -= 1
            return
        if world.insomniac:
            world.pass_ms(27)
            return
        if world.chip == ESP32:
            world.network.lost()
        world.pass_ms(ms, True)

    def deepsleep(self, ms=LONG):
        world = self._world
        if world.chip == ESP32:
            world.limit = 0
            world.woken_by = self._sleep(ms)
            world.reset("deepsleep")
        self.lightsleep(ms)
        self.reset()


class Registers:
    """machine.mem32, of the watchdog and the converter (sensors.py)."""

    def __init__(self, world):
        self._world = world

    def __getitem__(self, address):
        world = self._world
        if address < REGISTERS[world.chip]:
            return world.machine.adc[address]
        offset = address - REGISTERS[world.chip]
        if offset == 8:
            return {"pwron": 0, "wdt": TIMER, "hard": FORCE}[world.cause]
        assert offset == 12, hex(address)
        return world.scratch

    def __setitem__(self, address, value):
        world = self._world
        if address < REGISTERS[world.chip]:
            world.machine.adc[address] = value
            return
        offset = address - REGISTERS[world.chip]
        if offset == 0x3000:  # clears bits of its control register
            assert value == 1 << 30, hex(value)
            world.limit = 0
        else:
            assert offset == 12, hex(address)
            world.scratch = value


def unix_seconds(year, month, day, hour, minute, second):
    """Seconds since 1970 of a date."""
    if month < 3:
        year -= 1
        month += 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719469
    return ((days * 24 + hour) * 60 + minute) * 60 + second


def date(seconds):
    """(year, month, day, hour, minute, second, weekday, day of the year, which is left out) of Unix seconds."""
    days, rest = divmod(seconds, 86400)
    year = 1970 + days // 366
    while unix_seconds(year + 1, 1, 1, 0, 0, 0) <= seconds:
        year += 1
    month = 1
    while month < 12 and unix_seconds(year, month + 1, 1, 0, 0, 0) <= seconds:
        month += 1
    day = (seconds - unix_seconds(year, month, 1, 0, 0, 0)) // 86400 + 1
    return (year, month, day, rest // 3600, rest // 60 % 60, rest % 60, (days + 3) % 7, 0)


class Wlan:
    """network.WLAN."""

    PM_NONE, PM_PERFORMANCE, PM_POWERSAVE = 16, 10555714, 17

    SEC_OPEN, SEC_WPA_WPA2, SEC_WPA3, SEC_WPA2_WPA3 = 0, 4194310, 16777220, 20971524

    def __init__(self, station):
        self.station = station
        self.access_point = AccessPoint(station.world)
        self.has_memory = station.world.chip != ESP32
        if station.world.chip == ESP32:
            self.SEC_WPA2, self.SEC_WPA_WPA2 = 3, 4

    def __call__(self, interface=0):
        if not self.has_memory:
            if self.station.world.memory < RADIO:
                raise RuntimeError("Wifi Unknown Error 0x0101")
            self.station.world.memory -= RADIO
            self.has_memory = True
        return self.access_point if interface == 1 else self.station


class AccessPoint:
    """network.WLAN(AP_IF) (extmod/network_cyw43.c, ports/rp2/main.c; ports/esp32/network_wlan.c and ESP-IDF's esp_wifi.h).

    * cyw43: it has a name, a password and WPA2 of the port's own. What config() says holds from the next active(True) on.
    * ESP32: it is open. config() raises while it is not active, and of a password shorter than 8 characters. A password alone
      leaves it open.

    air: what a phone sees: ssid, key, security. stays_open: a port that ignores `security`.
    """

    def __init__(self, world):
        self.world = world
        self.told = {"ssid": "PICO", "key": "picoW123", "security": 4194308}
        if world.chip == ESP32:
            self.told = {"ssid": "ESP_0", "key": "", "security": 0}
        self.air = None
        self.stays_open = False

    def active(self, on):
        self.air = dict(self.told) if on else None

    def config(self, name=None, **options):
        if name:
            return (self.air or self.told)[name]
        if self.stays_open:
            options["security"] = 0
        if self.world.chip == ESP32:
            if not self.air:
                raise OSError("Wifi Invalid Mode")
            if options.get("security") and len(options.get("key", "")) < 8:
                raise OSError("Wifi Invalid Password")
            self.air.update(options)
        self.told.update(options)

    def ifconfig(self):
        return ("192.168.4.1", "255.255.255.0", "192.168.4.1", "0.0.0.0")


class Network:
    """Module `network`: one station, one access point."""

    STA_IF, AP_IF = 0, 1

    def __init__(self, world):
        station = Esp32(world) if world.chip == ESP32 else Cyw43(world)
        self.station = station
        for name, value in station.STATUS.items():
            setattr(self, "STAT_" + name, value)

        self.WLAN = Wlan(station)
        self.told = {}  # what it was told before the radio was switched on
        self.country = lambda code: self._tell("country", code)
        self.hostname = lambda name: self._tell("hostname", name)

    def _tell(self, name, value):
        assert not self.station.powered
        self.told[name] = value

    def lost(self):
        """The radio was off for a while."""
        self.station.lost()


class Station:
    """What both radios have in common. Of an attempt it keeps the begin; its outcome is worked out when it is asked for."""

    def __init__(self, world):
        self.world = world
        self.powered = False
        self.began = None  # of the attempt under way, or of the connection
        self.credentials = None
        self.options = {}
        self.failed = 0  # status of the attempt that ended last
        self.is_up = False
        self.address = self.joined_by = None

    def active(self, on=None):
        if on is None:
            return self.powered
        self.world.asked.append((self.world.now, "active" if on else "off"))
        self.powered = on
        if not on:
            self.world.hear("off")
            self.began = None
            self.is_up = False

    def config(self, name=None, **options):
        for key in options:
            if key not in self.OPTIONS:
                raise ValueError("unknown config param")
        self.options.update(options)

    def ifconfig(self, address):
        assert self.powered
        self.address = address

    def lost(self):
        self.began = None
        self.is_up = False

    def isconnected(self):
        self._work_out()
        return self.is_up

    def _suits(self, security):
        """Whether the radio joins a network of that security with what connect() was told."""
        return True

    def _outcome(self):
        """What the attempt came to so far: "", "up", "nonet", "badauth"."""
        world = self.world
        passed = world.now - self.began
        if passed < SCAN_MS and not world.there():
            return ""
        if not world.there() or self.credentials[0] != world.name:
            return "nonet" if passed >= SCAN_MS else ""
        if self.credentials[1] != world.password or not self._suits(world.security):
            return "badauth" if passed >= AUTH_MS else ""
        return "up" if passed >= DHCP_MS else ""


class Cyw43(Station):
    STATUS = {"IDLE": 0, "CONNECTING": 1, "GOT_IP": 3, "CONNECT_FAIL": -1, "NO_AP_FOUND": -2, "WRONG_PASSWORD": -3}
    OPTIONS = ("pm",)

    def _suits(self, security):
        told = self.joined_by["security"]
        return security in {-1: ("wpa2",), 4194310: ("wpa2",), 16777220: ("wpa3",), 20971524: ("wpa2", "wpa3")}.get(told, ())

    def connect(self, name, key=None, *, security=-1, bssid=None):
        if not self.powered:
            raise OSError(1, "EPERM")
        self.joined_by = {"security": security, "bssid": bssid}
        self.world.asked.append((self.world.now, "connect"))
        self.credentials = (name, key)
        self.began = self.world.now
        self.is_up = False
        self.failed = 0

    def disconnect(self):
        self.world.asked.append((self.world.now, "disconnect"))
        self.world.hear("disconnect")
        self.began = None
        self.is_up = False
        self.failed = 0

    def deinit(self):
        self.powered = False

    def _work_out(self):
        if self.is_up:
            if not self.world.there():  # for good
                self.lost()
        elif self.began is not None and not self.failed:
            outcome = self._outcome()
            self.is_up = outcome == "up"
            self.failed = {"nonet": -2, "badauth": -3}.get(outcome, 0)

    def status(self):
        self._work_out()
        if self.is_up:
            return 3
        return self.failed or (1 if self.began is not None else 0)


class Esp32(Station):
    STATUS = {
        "IDLE": 1000, "CONNECTING": 1001, "GOT_IP": 1010, "NO_AP_FOUND": 201, "WRONG_PASSWORD": 202, "BEACON_TIMEOUT": 200,
        "ASSOC_FAIL": 203, "HANDSHAKE_TIMEOUT": 204,
    }  # fmt: skip
    OPTIONS = ("pm", "reconnects")

    def connect(self, name, key=None, *, bssid=None):
        if not self.powered:
            raise OSError("Wifi Not Started")
        self.joined_by = {"bssid": bssid}
        self._work_out()
        self.world.asked.append((self.world.now, "connect"))
        if self.began is not None:
            raise OSError("Wifi Internal Error")
        self.credentials = (name, key)
        self.began = self.world.now

    def disconnect(self):
        if not self.powered:
            raise OSError("Wifi Not Started")
        self.world.asked.append((self.world.now, "disconnect"))
        self.world.hear("disconnect")
        if self.began is not None:
            self.failed = 8  # ASSOC_LEAVE, which status() tells as idle
        self.began = None
        self.is_up = False

    def _work_out(self):
        if self.is_up:
            if not self.world.there():
                self.is_up = False
                self._ended(200)
        elif self.began is not None:
            outcome = self._outcome()
            if outcome == "up":
                self.is_up = True
                self.failed = 0
            elif outcome:
                self._ended({"nonet": 201, "badauth": 202}[outcome])

    def _ended(self, code):
        """Unless it is told otherwise it goes on trying, for ever."""
        self.failed = code
        self.began = None if self.options.get("reconnects", -1) == 0 else self.world.now

    def status(self):
        self._work_out()
        if self.is_up:
            return 1010
        if self.failed == 8:
            return 1000
        if self.failed in (200, 201, 202):
            return self.failed
        return 1001 if self.began is not None else 1000
