# For `h2t2-lab chaos`: a board's node (config.json) with a jumping clock and an oracle. Argument: samples a second.
import json
import sys

import chaos_clock

chaos_clock.install()

from chaos_oracle import Oracle  # noqa: E402

from h2t2.node import start  # noqa: E402
from h2t2.node.service import SOURCES, summary  # noqa: E402


def act(tag, k, decision, source):
    print(json.dumps({"n": tag, "bin": k, "decision": decision, "source": SOURCES[source]}))


with open("config.json") as file:
    config = json.load(file)
link = start.mqtt_link(config)
running = start.service(config, link, act)
Oracle(running, int(sys.argv[1]), lambda tag: tag)
restored = running.keeper.restored
print(json.dumps({"start": {"boot": link.boot, "restored": restored, "taught": running.node.policy.lessons}}))
try:
    running.run()
except KeyboardInterrupt:
    print()  # the signal may have interrupted a line
    running.end()
link.close()
print(json.dumps({"summary": summary(running)}))
