# Freezes the modules of modules.txt into a firmware. The boards' own manifests include it. links: how the board reaches its
# remote model, as in h2t2_tools.boards.kinds.
def runtime(links):
    with open("modules.txt") as file:  # MicroPython runs a manifest in its own folder
        lines = [line.split() for line in file if line.strip() and line[0] != "#"]
    others = {"mqtt", "serial", "wifi"}.difference(links)
    names = [line[0][len("h2t2/") :] for line in lines if not others.intersection(line[1:])]
    package("h2t2", base_path="..", files=names)


runtime(options.links)
