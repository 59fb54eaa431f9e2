# A node and a web page that shows its last decision, side by side in one program: on a board, a Pi or a desktop.
import asyncio

from h2t2 import MqttLink, service
from h2t2.node.start import boot_number

BROKER = "192.168.1.5", 1883
WEB_PORT = 8080
CONFIG = {"policy": "adaptive", "arguments": {"bits": 4, "beta": 6554}, "ldl": "ldl.h2m", "event": 0, "remote_shape": [30]}
CONFIG.update(model_id=1, in_flight=1, deadline_ms=2000, every_ms=250, awaitable=True)
SOURCES = "the device", "the remote model", "the device, as no answer came"
PAGE = "<!doctype html><title>H2T2</title><meta http-equiv=refresh content=1><p>Sample %d: class %d, says %s.</p>"
last = 0, 0, 0


async def measure():
    """Your sensor: return the int8 numbers of the local model, the bytes of an offload, and a tag. Here they are made up."""
    await asyncio.sleep(0.01)
    n = last[0] + 1
    return [(37 * n + 11 * i) % 256 - 128 for i in range(5)], bytes(30), n


def act(n, k, decision, source):
    """Your actuator."""
    global last
    last = n, decision, source


def page():
    return PAGE % (last[0], last[1], SOURCES[last[2]])


async def answer(reader, writer):
    """Answer a request with the page, without microdot."""
    try:
        while (await asyncio.wait_for(reader.readline(), 5)).strip():
            pass
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + page().encode())
        await writer.drain()
    except (OSError, asyncio.TimeoutError):  # the browser has gone
        pass
    writer.close()
    await writer.wait_closed()


async def serve():
    """Serve the page, by microdot where it is installed."""
    try:
        from microdot import Microdot
    except ImportError:
        await asyncio.start_server(answer, "0.0.0.0", WEB_PORT)
        return
    app = Microdot()

    @app.get("/")
    async def index(request):
        return page(), {"Content-Type": "text/html"}

    await app.start_server(port=WEB_PORT)


async def main():
    node = service(CONFIG, MqttLink(*BROKER, "porch", CONFIG["model_id"], boot_number()), act, sensor=measure)
    await asyncio.gather(node.arun(), serve())


asyncio.run(main())
