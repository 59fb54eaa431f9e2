# An app that measures from a CSV file and writes what was decided to another: the same file on a Pi, a board, the unix port.
# h2t2 new FOLDER writes a project with it; h2t2 node FOLDER, h2t2 run FOLDER and h2t2 flash FOLDER run it

patient = True  # the lines of a file can wait for an answer that is on its way


def setup(config):
    """Once, before the first sample. config: the node's, as config.json holds it."""
    global lines, out
    lines = open("samples.csv")
    out = open("decisions.csv", "w")


def sense():
    """The numbers of one sample, as they were measured; None for nothing now."""
    line = lines.readline()
    if not line:
        raise StopIteration  # the node ends
    return [int(x) if x.lstrip("-").isdigit() else float(x) for x in line.strip().split(",")]


def act(decision):
    """decision.label, .source (local, remote, fallback), .score, .tag (what sense() gave), .late"""
    out.write("%d,%s,%s\n" % (decision.label, decision.source, decision.score))
    out.flush()
