# An app that reads samples from a CSV file and writes decisions to another. The same file runs on a Pi, a board, the unix port.
# `h2t2 new FOLDER` writes a project with it; h2t2 node, h2t2 run and h2t2 flash run it.

patient = True  # the node may wait for an answer before it reads the next line


def setup(config):
    """Prepare, once before the first sample. config: the node's config.json."""
    global lines, out
    lines = open("samples.csv")
    out = open("decisions.csv", "w")


def sense():
    """Return the numbers of one sample as measured, or None if there is none now."""
    line = lines.readline()
    if not line:
        raise StopIteration  # ends the node
    return [int(x) if x.lstrip("-").isdigit() else float(x) for x in line.strip().split(",")]


def act(decision):
    """Act on decision.label; see also .source (local, remote, fallback), .score, .tag (the result of sense()), .late."""
    out.write("%d,%s,%s\n" % (decision.label, decision.source, decision.score))
    out.flush()
