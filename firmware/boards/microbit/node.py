# The micro:bit's node: recorded samples, local model, policy, offloads as frames over its UART, a snapshot in its files.
# `h2t2 flash` replaces the constants by the values of a configuration. Frames are those of h2t2/link/frames.py, payloads those
# of h2t2/link/wire.py.

from microbit import uart
from micropython import kbd_intr
from utime import ticks_diff, ticks_ms

LOCAL = 30  # bytes of the local model's input in a record
RECORD = 60  # bytes of a record: the inputs of both models
DEADLINE = 2000  # ms until the node stops waiting for an answer
EVERY = 250  # labels between two snapshots; 0: no snapshot
DEVICE = b"microbit"
MODEL = b"\0\0\0\0"  # the local model's checksum; the node ignores snapshots of another model
HEAD = b"\2\0\1\0"  # first bytes of a request: version, flags, model_id
TIME = b"\xd0\7\0\0\0\0"  # its bytes after boot and ticket: the deadline, no probability
SHAPE = b"\0\1\x1e\0"  # its bytes after the bin: dtype and shape of the tensor


def word(x):
    """Return 16 bits, little-endian."""
    return bytes([x & 255, x >> 8 & 255])


def crc16(data, crc=65535):
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc <<= 1
            if crc & 65536:
                crc ^= 69665
    return crc


def send(data):
    data += word(crc16(data)) + b"\0"
    uart.write(b"\0")
    start = 0
    while start < len(data):  # COBS: for each run without zeros its length plus one, then the run
        end = data.find(b"\0", start) + 1
        uart.write(bytes([end - start]))
        uart.write(data[start : end - 1])
        start = end
    uart.write(b"\0")


def reply(tag):
    """Return the label in the reply to `tag` (boot and ticket, 8 bytes), or -1 if none comes in time.

    While a reply may come, Ctrl-C does not stop the program, because a frame may contain this byte. Nineteen in a row stop it.
    """
    label = -1
    start = ticks_ms()
    block = bytearray()
    while label < 0 and ticks_diff(ticks_ms(), start) < DEADLINE:
        byte = uart.read(1)
        if byte == b"\0":
            if len(block) == 18:  # a COBS code, kind, version, status, boot and ticket, label, score, checksum
                at = 0
                while at < 18:
                    run = block[at]
                    block[at] = 0
                    at += run
                if block[4:12] == tag and block[16:] == word(crc16(block[1:16])) and block[1:3] == b"A\2":
                    kbd_intr(3)
                    if block[3]:  # an error: busy, failed, no worker
                        break
                    if block[12] < 2:
                        label = block[12]
            block = bytearray()
        elif byte and len(block) < 20:
            block += byte
            if len(block) == 19 and sum(block) == 57:
                raise KeyboardInterrupt
    return label


def start():
    """Count this start in a file. Return four bytes that no other start has."""
    try:
        boot = int(open("boot").read()) + 1
    except (OSError, ValueError):
        boot = 1
    with open("boot", "w") as file:
        file.write(str(boot))
    return word(boot) + word(boot >> 16)


def write_snapshot(policy, number):
    """Write snapshot `number` over the older of the two; a power cut leaves the newer one. It copies no array."""
    tail = MODEL + word(number)
    crc = 65535
    with open("learned%d" % (number & 1), "wb") as file:
        for integers in (policy.state, policy.losses):
            file.write(integers)
            for integer in integers:
                crc = crc16(word(integer) + word(integer >> 16), crc)
        file.write(tail + word(crc16(tail, crc)))


def read_snapshot(policy):
    """Continue from the newer snapshot of this model. Return its number, or 0."""
    newest = 0
    for name in ("learned0", "learned1"):
        try:
            with open(name, "rb") as file:
                crc = 65535
                for _ in range(53):
                    crc = crc16(file.read(4), crc)
                tail = file.read(6)
                check = file.read(2)
            number = tail[4] | tail[5] << 8
            if check == word(crc16(tail, crc)) and tail[:4] == MODEL and not (newest and number - newest & 32768):
                newest = number
                with open(name, "rb") as file:
                    file.readinto(policy.state)
                    file.readinto(policy.losses)
        except (OSError, IndexError, ValueError):
            pass
    return newest


def run(policy, classify, model, boot, number):
    """Decide the samples. boot: what start() returned; number: of the snapshot that the policy continues from."""
    send(b"H" + DEVICE)
    file = open("samples", "rb")
    n = labels = 0
    due = 1  # labels until the next snapshot: after 1, 2, 4, 8 ... of them, then every EVERY
    while True:
        record = file.read(RECORD)
        if len(record) < RECORD:
            break
        k = classify(model, record[:LOCAL])
        action = policy.decide(k)
        source = 0
        if action < 0:
            ticket = policy.ticket
            tag = boot + word(ticket) + word(ticket >> 16)
            kbd_intr(-1)  # before the request leaves, because the reply may follow at once
            send(b"Q" + HEAD + tag + TIME + bytes([k]) + SHAPE + record[LOCAL:])
            action = reply(tag)
            source = 1
            if action < 0:
                action = policy.local
                source = 2
            else:
                policy.learn(ticket, action)
                labels += 1
        send(b"D" + word(n) + bytes([k, action, source]))
        n += 1
        if EVERY and labels == due:
            number = number % 65535 + 1
            file.close()  # a write into a full file system moves files; an open one would then read from another place
            write_snapshot(policy, number)
            due += min(due, EVERY)
            file = open("samples", "rb")
            for _ in range(n):
                file.read(RECORD)
    if EVERY:
        write_snapshot(policy, number % 65535 + 1)
