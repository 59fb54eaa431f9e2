# Freezes the runtime's modules of modules.txt; included by the boards' own manifests. links: how the board reaches its remote
# model, as h2t2_tools.boards.kinds has it.
def runtime(links):
    with open("modules.txt") as file:  # the manifest's own folder is the current one while it runs
        lines = [line.split() for line in file if line.strip() and line[0] != "#"]
    others = {"mqtt", "serial", "wifi"}.difference(links)
    names = [line[0][len("h2t2/") :] for line in lines if not others.intersection(line[1:])]
    package("h2t2", base_path="..", files=names)


runtime(options.links)
