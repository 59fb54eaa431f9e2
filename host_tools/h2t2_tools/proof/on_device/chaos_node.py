# For `h2t2 chaos`: a board's node (config.json) whose clock jumps, with paced samples; prints how long each decision took.
# Argument: samples a second.
import json
import sys
import time

import chaos_clock

chaos_clock.install()

from h2t2.node import start  # noqa: E402
from h2t2.node.recorded import Recorded  # noqa: E402

rate = int(sys.argv[1])
with open("config.json") as file:
    config = json.load(file)
link = start.mqtt_link(config)
handed = {}
began = time.ticks_us()


def act(tag, k, decision, source):
    ms = time.ticks_diff(time.ticks_us(), handed.pop(tag)) / 1000
    line = {"n": tag, "bin": k, "decision": decision, "source": start.SOURCES[source], "ms": ms}
    line["taught"] = running.node.policy.taught
    line["strangers"] = running.node.strangers
    print(json.dumps(line))


class Paced(Recorded):
    def __call__(self):
        time.sleep_us(max(0, self.n * 1000000 // rate - time.ticks_diff(time.ticks_us(), began)))
        handed[self.n] = time.ticks_us()
        return Recorded.__call__(self)


start.Recorded = Paced
running = start.service(config, link, act)
print(json.dumps({"start": {"boot": running.node.boot, "restored": running.restored, "taught": running.node.policy.taught}}))
running.run()
link.close()
print(json.dumps({"summary": start.telemetry(running.node)}))
