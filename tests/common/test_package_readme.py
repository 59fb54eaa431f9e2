"""README.md as package indexes show it: every link leads to a file of the repository, by its whole address."""

import re

from support import ROOT, program

package_readme = program(ROOT / "host_tools/package_readme.py")
SOURCE = "https://forge.example/us/edge"


def test_every_link_becomes_absolute_and_leads_to_a_file():
    text = package_readme.absolute((ROOT / "README.md").read_text(), SOURCE + "/", "1.2.3")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    ours = [target for target in targets if target.startswith(SOURCE)]
    assert len(ours) > 15 and all(target.startswith("https://") for target in targets)
    for target in ours:
        kind, tag, path = target.removeprefix(SOURCE + "/").split("/", 2)
        assert (kind, tag) in (("blob", "v1.2.3"), ("raw", "v1.2.3")) and (ROOT / path.split("#")[0]).exists(), target
        assert (kind == "raw") == path.endswith((".png", ".svg"))


def test_addresses_and_anchors_stay_as_they_are():
    text = "[a](https://a.example/b) [b](#part) ![c](c.svg)"
    want = f"[a](https://a.example/b) [b](#part) ![c]({SOURCE}/raw/v1/c.svg)"
    assert package_readme.absolute(text, SOURCE, "1") == want
