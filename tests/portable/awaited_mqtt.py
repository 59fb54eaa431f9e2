# The node of config.json in a program with asyncio, on MQTT; beside it a task that is due every 50 ms. It prints for each
# decision how long after its slot it came, and at the end the gaps between the task's runs.
import asyncio
import json

from awaited_task import moment, since, task

from h2t2.node import start
from h2t2.node.service import show

slots = {}


def decided(tag, k, decision, source):
    show(tag, k, decision, source)
    print("T", tag, since(slots.pop(tag)))


async def main():
    with open("config.json") as file:
        config = json.load(file)
    link = start.mqtt_link(config)
    node = start.service(dict(config, awaitable=True), link, decided)
    sense = node.sensing.sensor

    def sensed():
        sample = sense()
        slots[sample[2]] = moment()
        return sample

    node.sensing.sensor = sensed
    gaps = []
    other = asyncio.create_task(task(gaps))
    await node.arun()
    other.cancel()
    link.close()
    print("G", json.dumps(gaps))
    print("E", node.errors, node.node.replies, link.connections, node.sensing.skipped, moment()[2])


asyncio.run(main())
