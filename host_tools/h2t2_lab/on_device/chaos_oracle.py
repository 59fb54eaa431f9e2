# For `h2t2-lab chaos`: an observer inside a node's process that prints JSON lines of its own, so that the account does not
# depend on the node's. CPython and MicroPython. Its clock is the true one, which does not jump.
import json
import time

SLOW_EACH, SLOW_S = 97, 0.1  # each 97th call of the sensor takes this long, less than the deadline allows
RAISES_EACH = 131  # each 131st call fails

if hasattr(time, "ticks_us"):

    def micros():
        return time.ticks_us()  # type: ignore[attr-defined]

    def since(start):
        return time.ticks_diff(micros(), start)  # type: ignore[attr-defined]

    def say(row):
        print(json.dumps(row))

else:

    def micros():
        return time.monotonic_ns() // 1000

    def since(start):
        return micros() - start

    def say(row):
        print(json.dumps(row), flush=True)


class Oracle:
    """Observes one service. rate: samples a second of its sensor; number(tag): the sample of a tag."""

    def __init__(self, running, rate, number):
        self.node = running.node
        self.period = 1000000 // rate
        self.number = number
        self.calls = 0
        self.start = 0
        self.want = -1  # the policy's class for the current sample
        self.due = {}  # sample -> time of its slot, in microseconds of the true clock
        self.wants = {}
        self.tickets = {}  # ticket -> sample
        self.lessons = {}  # sample that is about to be decided -> its label
        self.sample = -1
        policy = self.node.policy
        self.inner = {"decide": policy.decide, "likely": policy.likely, "learn": policy.learn}
        policy.decide = self.decide
        policy.likely = self.likely
        policy.learn = self.learn
        self.sensor = running.sensing.sensor
        running.sensing.sensor = self.sense
        self.actuate = self.node.actuate
        self.node.actuate = self.act

    def sense(self):
        self.calls += 1
        arrival_us = micros()
        if self.calls == 1:
            self.start = arrival_us
        if self.calls % RAISES_EACH == 0:
            raise OSError("the sensor fails, on purpose")
        late = since(self.start) % self.period  # since the latest slot
        if self.calls % SLOW_EACH == 0:
            time.sleep(SLOW_S)
        sample_parts = self.sensor()
        n = self.sample = self.number(sample_parts[2])
        self.due[n] = arrival_us, late
        self.wants[n] = -1
        return sample_parts

    def decide(self, k):
        policy = self.node.policy
        action = self.inner["decide"](k)
        self.wants[self.sample] = policy.local if action < 0 else action
        if action < 0:
            self.tickets[policy.ticket] = self.sample
            if len(self.tickets) > 600:
                del self.tickets[min(self.tickets)]
        return action

    def likely(self, k):
        self.wants[self.sample] = self.inner["likely"](k)
        return self.wants[self.sample]

    def learn(self, ticket, label, beta=-1):
        taught = self.inner["learn"](ticket, label, beta)
        if taught:
            n = self.tickets.pop(ticket, -1)
            if n in self.due:
                self.lessons[n] = label  # printed with its decision, which comes next
            else:
                say({"late": n, "label": label})
        return taught

    def act(self, tag, k, decision, source):
        n = self.number(tag)
        due, late = self.due.pop(n)
        ms = (since(due) + late) / 1000
        row = {"seen": n, "decision": decision, "source": source, "want": self.wants.pop(n), "ms": ms}
        row["lesson"] = self.lessons.pop(n, -1)
        say(row)
        self.actuate(tag, k, decision, source)
