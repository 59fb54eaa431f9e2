# What a service logs now and then. A board has this module in memory only while it does.
SATURATED, GAPS, NAMESAKE, TORN, DEAF = 4, 5, 6, 7, 8  # remarks; the first four are of what Node.standing() returns
TEXTS = (
    "from now on: the remote model answers",
    "from now on: the workers are there and do not answer",
    "from now on: no worker serves the model",
    "from now on: the broker is away",
    "a number far outside what the models were calibrated with",
    "measurements were missed: the window begins anew",
    "another device bears this name: each takes the other's connection away; rename one",
    "policy half changed: starting again from what was saved",
    "the radio says that it is connected, and nothing passes: starting again",
)
