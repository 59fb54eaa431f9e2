# Measures round trips of MqttLink with one offload in flight for MS milliseconds. Prints the microseconds of each and of all.
# The host defines FOLDER, HOST, PORT, MODEL, SHAPE, MS, and writes a file of tensors.
# ruff: noqa: F821, UP031
from time import ticks_diff, ticks_us

from h2t2.link import wire
from h2t2.link.mqtt import MqttLink
from h2t2.link.statuses import STATUS

SIZE = wire.size_of(wire.INT8, SHAPE)
with open(FOLDER + "tensors", "rb") as file:
    tensors = file.read()
link = MqttLink(HOST, PORT, "bench-lwip", MODEL, 7)
link.open()


def trip(n):
    at = n * SIZE % len(tensors)
    began = ticks_us()
    if not link.send(wire.encode_request(MODEL, 7, n, SHAPE, tensors[at : at + SIZE], remaining_ms=5000)):
        raise OSError("refused: %s" % link.trouble)
    reply = link.receive(5000)
    if reply is None:
        raise OSError("no reply within 5 s")
    status, _, sequence, _, _ = wire.decode_reply(reply)
    if status != wire.OK or sequence != n:
        raise OSError("reply %d: %s" % (sequence, STATUS[status]))
    return ticks_diff(ticks_us(), began)


for n in range(20):
    trip(n)
began = ticks_us()
while ticks_diff(ticks_us(), began) < 1000 * MS:
    n += 1
    print(trip(n))
print("all", ticks_diff(ticks_us(), began))
link.close()
