# Freezes the runtime's modules of modules.txt; included by the boards' own manifests. wifi: with what joins a wireless network.
def runtime(wifi):
    with open("modules.txt") as file:  # the manifest's own folder is the current one while it runs
        lines = [line.split() for line in file if line.strip() and line[0] != "#"]
    names = [line[0][len("h2t2/") :] for line in lines if wifi or "wifi" not in line[1:]]
    package("h2t2", base_path="..", files=names)


runtime(options.wifi)
