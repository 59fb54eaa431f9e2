"""MicroPython's package manager and HTTP client as source, for boards whose firmware has neither: those of Debian's port."""

import re

from h2t2_lab.emulators.source import DEBIAN_13, SOURCE
from h2t2_tools.boards.emulators import debian
from h2t2_tools.common.places import cache

MODULES = "mip", "requests"
ADDED = r"^\+\+\+ b/lib/micropython-lib/\S+/({name})/__init__\.py\n@@ .*\n((?:\+.*\n)+)"  # a new file in a patch


def modules():
    """Name -> source. Debian's source package adds both as a patch; the cache keeps them."""
    folder = cache() / "mip"
    if not folder.exists():
        with debian.apt(DEBIAN_13, "amd64") as (get, downloads):
            get("source", "--download-only", "--diff-only", SOURCE)
            (archive,) = downloads.glob(f"{SOURCE}_*.debian.tar.xz")
            debian.run(["tar", "-xf", str(archive)], downloads)
            patch = (downloads / "debian/patches/mip.patch").read_text()
        folder.mkdir(parents=True)
        for name in MODULES:
            (added,) = re.finditer(ADDED.format(name=name), patch, re.M)
            (folder / f"{name}.py").write_text(re.sub(r"^\+", "", added[2], flags=re.M))
    return {name: (folder / f"{name}.py").read_bytes() for name in MODULES}
