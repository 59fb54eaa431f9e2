# The micro:bit's node: recorded samples, LDL, policy, offloads as frames over its UART. `h2t2 flash` makes this small and puts
# it beside the core: p (the policy), ldl (int8 bytes to bin). Constants it adds: LOCAL and RECORD (bytes of a record's LDL
# input, and of all of it), HEAD, LEFT and SHAPE (of a request), DEVICE, DEADLINE (ms). Frames: h2t2/link/frames.py, payloads:
# h2t2/link/wire.py.
# ruff: noqa: F821
from microbit import uart
from micropython import kbd_intr
from utime import ticks_diff, ticks_ms


def crc16(data):
    crc = 65535
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc <<= 1
            if crc & 65536:
                crc ^= 69665
    return bytes([crc & 255, crc >> 8])


def send(data):
    data += crc16(data) + b"\0"
    uart.write(b"\0")
    start = 0
    while start < len(data):  # COBS: the length of each run without zeros, one more, and the run
        end = data.find(b"\0", start) + 1
        uart.write(bytes([end - start]))
        uart.write(data[start : end - 1])
        start = end
    uart.write(b"\0")


def reply(tag):
    """The label in the reply to `tag` (boot and ticket, 8 bytes), or -1 when none will come, or came in time.

    While a reply may come, Ctrl-C does not stop the program, for a frame may hold that byte: nineteen of it in a row do.
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
                if block[4:12] == tag and block[16:] == crc16(block[1:16]) and block[1:3] == b"A\2":
                    kbd_intr(3)
                    if block[3]:  # not answered: busy, failed, nobody there
                        break
                    if block[12] < 2:
                        label = block[12]
            block = bytearray()
        elif byte and len(block) < 20:
            block += byte
            if len(block) == 19 and sum(block) == 57:
                raise KeyboardInterrupt
    return label


def node():
    send(b"H" + DEVICE)
    file = open("samples", "rb")
    n = 0
    while True:
        record = file.read(RECORD)
        if len(record) < RECORD:
            break
        k = ldl(record[:LOCAL])
        action = p.decide(k)
        source = 0
        if action < 0:
            ticket = p.ticket
            tag = BOOT + bytes([ticket & 255, ticket >> 8 & 255, ticket >> 16 & 255, ticket >> 24])
            kbd_intr(-1)  # before it is sent: the reply may be here at once
            send(b"Q" + HEAD + tag + LEFT + bytes([k]) + SHAPE + record[LOCAL:])
            action = reply(tag)
            source = 1
            if action < 0:
                action = p.local  # its ticket makes room for the next by itself
                source = 2
            else:
                p.learn(ticket, action, -1)
        send(b"D" + bytes([n & 255, n >> 8 & 255, k, action, source]))
        n += 1


# how often this board has started: never the same number twice. Runs before anything else is there
try:
    BOOT = int(open("boot").read()) + 1
except (OSError, ValueError):
    BOOT = 1
with open("boot", "w") as file:
    file.write(str(BOOT))
BOOT = bytes([BOOT & 255, BOOT >> 8 & 255, BOOT >> 16, 0])
