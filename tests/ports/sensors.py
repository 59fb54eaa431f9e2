# Sensors at a board of world.py, with the rules of its port, in virtual time; pretend.py puts them into `machine`.
# Runs on MicroPython's unix port; the signals also on CPython, which trains models on them.
#
# The rules are read from MicroPython 1.28 (docs/library, extmod, ports) and from what is named at each class.
from array import array
from struct import pack, pack_into

EIO, EINVAL = 5, 22


def noise(n, width):
    """Noise of reading n, -width to width."""
    n = n * 7919 % 65521
    return n * n % 65521 % (2 * width + 1) - width


def sound(n, rate=16000):
    """Frame n of a microphone, 16 bits: noise, in which a tone of another loudness begins each second, none in some."""
    loudness = n // rate * 37 % 11 * 40
    return noise(n, 50) + (loudness if n & 8 else -loudness)


def acceleration(n, rate=100):
    """Reading n of an accelerometer, x, y and z in 16384ths of g: a machine that shakes more or less each second."""
    shake = n // rate * 37 % 11 * 60
    return noise(n, 400) + (shake if n & 4 else -shake), noise(n + 7, 300), 16384 + noise(n + 13, 300)


def current(n, rate=10000):
    """Reading n of a current clamp, 12 bits: the mains' hum, and a motor that takes another current each second."""
    return 2048 + noise(n, 60) + (n // rate * 37 % 11 * 50 if n % 200 < 100 else 0)


def picture(n):
    """Picture n of a camera, 96 by 96 greys: a wall, and before it a box of another brightness in each."""
    bright = 90 + n * 37 % 11 * 15
    return bytes([bright if 30 <= x < 66 and 30 <= y < 66 else 90 + (x * y + n) % 7 for y in range(96) for x in range(96)])


class Sensor:
    """What the world tells that time has passed. faults: (from, to) pairs of milliseconds in which the sensor fails."""

    def __init__(self, world, faults):
        self.world = world
        self.faults = faults
        self.count = 0  # of readings since the world began
        world.sensors.append(self)

    def is_faulty(self):
        return any(start <= self.world.now < end for start, end in self.faults)

    def due(self, rate):
        """Readings that the sensor has made by now."""
        return self.world.now * rate // 1000


class Pin:
    """machine.Pin. Levels that a program writes are kept in `levels` by the pin's number."""

    IN, OUT = 0, 1
    PULL_DOWN = 2
    IRQ_FALLING, IRQ_RISING = 4, 8
    levels = {}
    handlers = {}

    def __init__(self, number, mode=-1, pull=-1):
        self.number = number

    def value(self, level=None):
        if level is None:
            return self.levels.get(self.number, 0)
        self.levels[self.number] = level

    def irq(self, handler=None, trigger=12):
        self.handlers[self.number] = handler


class I2S:
    """machine.I2S (docs/library/machine.I2S.rst, extmod/machine_i2s.c, ports/rp2/machine_i2s.c).

    * DMA fills a ring of `ibuf` bytes in halves of 16 frames; a frame has 8 bytes of both channels, whatever the format.
    * A half for which the ring has no room is dropped, and nothing says so.
    * With irq(), readinto() returns the size at once. With each half that DMA has filled, the port copies four from the ring to
      the buffer; once that is full, it calls the handler with the I2S. A second
      readinto() replaces the first. A buffer that is no whole number of samples raises OSError(EINVAL).
    * MONO is the left channel. Samples are little-endian; a microphone's 24 bits are the upper ones of 32.
    * On RP2, `ws` is the pin after `sck`. Nothing is said of a microphone that is not there: its line is 0.
    * deinit() stops it and empties the ring.
    * The scheduler's queue has room for a few callbacks (micropython.schedule); one that finds it full is lost: `faults`.
    """

    RX, TX = 0, 1
    STEREO, MONO = 0, 1
    HALF = 16  # frames
    world = faults = None
    unplugged = ()

    def __init__(self, id, *, sck, ws, sd, mode, bits, format, rate, ibuf):
        if self.world.chip != "esp32" and ws.number != sck.number + 1:
            raise ValueError("invalid ws (must be sck+1)")
        if bits not in (16, 32):
            raise ValueError("invalid bits")
        if mode != self.RX or format not in (self.MONO, self.STEREO) or ibuf <= 0:
            raise ValueError("invalid mode, format or ibuf")
        self.sensor = Sensor(self.world, self.faults)
        self.sensor.catch_up = self.catch_up
        self.size = bits // 8
        self.channels = 1 if format == self.MONO else 2
        self.rate = rate
        self.room = (ibuf - 1) // (8 * self.HALF)
        self.frame = self.sensor.due(rate)
        self.ring = []  # first frames of the halves that it holds
        self.buffer = self.handler = None
        self.done = 0  # bytes of the buffer

    def deinit(self):
        self.world.sensors.remove(self.sensor)
        self.sensor = None  # it cannot be used any more

    def irq(self, handler):
        self.handler = handler

    def readinto(self, buffer):
        size = len(bytes(buffer))
        if size % (self.size * self.channels):
            raise OSError(EINVAL)
        assert self.sensor
        self.buffer, self.bytes, self.done = buffer, size, 0
        if self.handler is None:
            while self.buffer is not None:
                self.world.pass_ms(1)
        return size

    def catch_up(self):
        due = self.sensor.due(self.rate)
        while self.frame + self.HALF <= due:
            if len(self.ring) < self.room:
                self.ring.append(self.frame)
            self.frame += self.HALF
            for _ in range(4 if self.handler else len(self.ring)):
                if self.buffer is not None and self.ring:
                    self._copy(self.ring.pop(0))

    def _copy(self, first):
        there = not any(start <= self.world.now < end for start, end in self.unplugged)
        for n in range(first, first + self.HALF):
            sample = sound(n, self.rate) * 65536 + 0x5A00 if there else 0
            for _ in range(self.channels):
                pack_into("<i" if self.size == 4 else "<h", self.buffer, self.done, sample >> 8 * (4 - self.size))
                self.done += self.size
        if self.done >= self.bytes:
            self.buffer = None
            if self.handler and not self.sensor.is_faulty():
                self.handler(self)

    @staticmethod
    def shift(*, buf, bits, shift):
        for i in range(len(buf)):
            buf[i] = buf[i] << shift if shift >= 0 else buf[i] >> -shift


class I2C:
    """machine.I2C (docs/library/machine.I2C.rst, ports/rp2/machine_i2c.c): OSError(EIO) where no device answers."""

    device = None

    def __init__(self, id, *, scl, sda, freq=400000):
        pass

    def readfrom_mem(self, address, register, size):
        return bytes([self._device(address).read(register + n if register != Mpu6050.FIFO else register) for n in range(size)])

    def writeto_mem(self, address, register, data):
        for n in range(len(data)):
            self._device(address).write(register + n, data[n])

    def _device(self, address):
        if address != 0x68 or self.device.is_faulty():
            raise OSError(EIO)
        return self.device


class Mpu6050(Sensor):
    """An accelerometer (MPU-6000 and MPU-6050 Register Map and Descriptions, revision 4.2, and their Product Specification).

    * It begins asleep. What takes its power takes its settings: `faults`.
    * With bit 6 of USER_CTRL and bit 3 of FIFO_EN, each reading appends six bytes to the FIFO, big-endian, x first.
    * A full FIFO (1024 bytes) loses its oldest bytes, so that it begins within a reading; bit 4 of INT_STATUS says so.
    * Reading INT_STATUS clears it. A reading makes a pulse at the pin INT while bit 0 of INT_ENABLE is set.
    * An empty FIFO reads as its last byte. The high byte of FIFO_COUNT is read first, and holds the low one.
    """

    FIFO, HOLDS, INTERRUPT = 0x74, 1024, 6

    def __init__(self, world, faults):
        Sensor.__init__(self, world, faults)
        self.power_on()

    def power_on(self):
        self.registers = {0x6B: 0x40, 0x75: 0x68}
        self.fifo = bytearray()
        self.status = self.low = self.last = 0
        self.began = None

    def read(self, register):
        if register == 0x3A:
            status, self.status = self.status, 0
            return status
        if register == 0x72:
            self.low = len(self.fifo) & 255
            return len(self.fifo) >> 8
        if register == 0x73:
            return self.low
        if register == self.FIFO:
            if self.fifo:
                self.last = self.fifo[0]
                self.fifo = self.fifo[1:]
            return self.last
        return self.registers.get(register, 0)

    def write(self, register, value):
        if register == 0x6A and value & 4:
            self.fifo = bytearray()
            value &= ~4
        self.registers[register] = value

    def catch_up(self):
        if self.is_faulty():
            self.power_on()
            return
        get = self.registers.get
        rate = (1000 if get(0x1A, 0) % 8 in range(1, 7) else 8000) // (1 + get(0x19, 0))
        if get(0x6B) & 0x40:
            self.began = None
            return
        if self.began is None or self.began[0] != rate:
            self.began = rate, self.due(rate)
        for n in range(self.began[1], self.due(rate)):
            if get(0x6A, 0) & 64 and get(0x23, 0) & 8:
                self.fifo += pack(">3h", *acceleration(n))
                if len(self.fifo) > self.HOLDS:
                    self.fifo = self.fifo[-self.HOLDS :]
                    self.status |= 16
            self.status |= 1
            handler = Pin.handlers.get(self.INTERRUPT)
            if get(0x38, 0) & 1 and handler:
                handler(None)
        self.began = rate, self.due(rate)


class Adc(Sensor):
    """The converter of an RP2040 and DMA that takes its readings (RP2040 Datasheet, 4.9 and 2.5; rp2.DMA: since MicroPython
    1.22, docs/library/rp2.DMA.rst, ports/rp2/rp2_dma.c).

    * CS: bit 0 on, bit 3 again and again. DIV: bits 8 to 23 are the cycles of 48 MHz between two readings, less one.
    * FCS: bit 0 on, bit 3 requests DMA, bits 10 and 11 say underflow and overflow and are cleared by writing 1, bits 16 to 19
      are the level. The FIFO holds 4; a reading that finds it full is lost. `faults`: DMA has no turn.
    * A ring keeps the upper bits of the address that is written to: one that does not begin there writes elsewhere.
    * `count` is the number of transfers that remain; at 0 the channel stops.
    """

    BASE, REQUEST = 0x4004C000, 36

    def __init__(self, world, faults):
        Sensor.__init__(self, world, faults)
        self.registers = {0: 0, 8: 0, 16: 0}
        self.fifo = []
        self.channel = None
        self.made = 0

    def rate(self):
        return 48000000 // (1 + (self.registers[16] >> 8))

    def __getitem__(self, address):
        offset = address - self.BASE
        if offset == 12:
            if not self.fifo:
                self.registers[8] |= 1 << 10
            return self.fifo.pop(0) if self.fifo else 0
        return self.registers[offset] | (len(self.fifo) << 16 if offset == 8 else 0)

    def __setitem__(self, address, value):
        offset = address - self.BASE
        if offset == 8:
            value = value & ~0xF0C00 | self.registers[8] & ~value & 0xC00
        self.registers[offset] = value
        self.made = self.due(self.rate())

    def catch_up(self):
        due = self.due(self.rate())
        if self.registers[0] & 9 == 9 and self.registers[8] & 1:
            for n in range(self.made, due):
                if len(self.fifo) == 4:
                    self.registers[8] |= 1 << 11
                else:
                    self.fifo.append(current(n, self.rate()))
                channel = self.channel
                if self.registers[8] & 8 and channel and channel.request == self.REQUEST and not self.is_faulty():
                    while self.fifo and channel.count:
                        channel.put(self.fifo.pop(0))
        self.made = due


class Dma:
    """rp2.DMA, as far as it reads the converter."""

    adc = None

    def __init__(self):
        self.count = self.target = 0
        self.request = None

    def pack_ctrl(self, **fields):
        wanted = {"size": 1, "inc_read": False, "ring_sel": True}
        assert all(fields.pop(name) == value for name, value in wanted.items()), fields
        return fields["ring_size"] | fields["treq_sel"] << 8

    def config(self, *, read, write, count, ctrl, trigger):
        assert read == self.adc.BASE + 12 and trigger
        self.size = 1 << (ctrl & 255)
        assert write % self.size == 0, "it would write outside of the ring"
        from uctypes import bytearray_at  # MicroPython's

        self.memory = bytearray_at(write, self.size)
        self.target = 0
        self.count, self.request = count, ctrl >> 8
        self.adc.channel = self

    def active(self, on=None):
        if on is not None:
            self.adc.channel = self if on else None
        return int(self.adc.channel is self and self.count > 0)

    def put(self, reading):
        pack_into("<H", self.memory, self.target, reading)
        self.target = (self.target + 2) % self.size
        self.count -= 1


class Pir(Sensor):
    """A PIR sensor at pin 27: it is high while it sees something (`faults`, for want of a better word)."""

    def catch_up(self):
        Pin.levels[27] = int(self.is_faulty())


def wake_on(world):
    """esp32.wake_on_ext0 (docs/library/esp32.rst, ports/esp32/modesp32.c): a level at one of the pins of the RTC."""

    def wake_on_ext0(pin, level):
        if pin.number not in (0, 2, 4, 12, 13, 14, 15, 25, 26, 27, 32, 33, 34, 35, 36, 37, 38, 39):
            raise ValueError("invalid pin")
        world.ext0 = pin.number, int(level)

    return wake_on_ext0


class Camera(Sensor):
    """camera.Camera of github.com/cnadler86/micropython-camera-API 0.6.2 (README.md, src/modcamera.c), 96 by 96 greys.

    * capture() gives a memoryview of signed bytes, which the next capture() overwrites; None where it fails.
    * The constructor takes a picture, and raises OSError where that fails.
    * After deinit() the object cannot be used.
    """

    world = failing = ()

    def __init__(self, *, frame_size, pixel_format, grab_mode, fb_count):
        assert (frame_size, pixel_format, grab_mode) == (0, 3, 1)
        self.faults = self.failing
        self.buffer = memoryview(array("b", bytes(96 * 96)))
        if self.capture() is None:
            raise OSError("Failed to capture initial frame. Construct a new object with appropriate configuration.")

    def capture(self):
        if self.is_faulty():
            return None
        pixels = picture(self.world.now // 1000)
        for n in range(len(pixels)):
            self.buffer[n] = pixels[n] - 256 if pixels[n] > 127 else pixels[n]
        return self.buffer

    def free_buffer(self):
        pass

    def deinit(self):
        self.buffer = None


def attach(world, faults):
    """Attach every sensor to a board, and give the modules beside `machine`. faults: a list of (from, to) by sensor."""
    machine = world.machine
    machine.Pin, machine.I2S, machine.I2C = Pin, I2S, I2C
    I2S.world, I2S.faults, I2S.unplugged = world, faults.get("i2s", ()), faults.get("unplugged", ())
    I2C.device = Mpu6050(world, faults.get("imu", ()))
    Dma.adc = machine.adc = Adc(world, faults.get("adc", ()))
    machine.ADC = lambda pin: None
    Pir(world, faults.get("pir", ())).catch_up()
    Camera.world, Camera.failing = world, faults.get("camera", ())
    kinds = {"FrameSize": Module(R96X96=0), "PixelFormat": Module(GRAYSCALE=3), "GrabMode": Module(LATEST=1)}
    return {
        "rp2": Module(DMA=Dma),
        "esp32": Module(wake_on_ext0=wake_on(world), WAKEUP_ANY_HIGH=True, WAKEUP_ALL_LOW=False),
        "camera": Module(Camera=Camera, **kinds),
    }


class Module:
    """A module of these members."""

    def __init__(self, **members):
        for name, value in members.items():
            setattr(self, name, value)
