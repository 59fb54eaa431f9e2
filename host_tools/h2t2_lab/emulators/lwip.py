"""The lwip port: MicroPython's unix port with a Pico W's network stack, TLS and heap, on a network that slirp carries.

Its source is in lwip_port/. It reaches a broker on this machine's 127.0.0.1 as 10.0.2.2.
"""

import os
import platform
import shutil
import sys
from pathlib import Path

from h2t2_tools.boards.emulators import debian, scripts
from h2t2_tools.boards.emulators.catalogue import ARCHITECTURES, BUILD, DEBIAN_13, Interpreter
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.common.places import cache

from . import source

HOST = "10.0.2.2"  # this machine's address for the port
HEAP = 2 * KINDS["pico_w"].heap  # bytes; 64-bit objects are twice as large
FOLDER = Path(__file__).parent


def slirp() -> Path:
    """Return slirp without a speed limit: the installed program, or the fetched one."""
    installed = shutil.which("slirp-fullbolt")
    return Path(installed) if installed else cache() / "slirp/usr/bin/slirp-fullbolt"


class Port(Interpreter):
    """The port."""

    def content(self) -> Path:
        return source.firmware(self.name)

    def missing(self) -> str | None:
        return super().missing() or (None if slirp().exists() else f"no slirp; run: {self.installer} {self.name}")

    def fetch(self) -> None:
        """Fetch slirp."""
        if not slirp().exists():
            debian.unpack((DEBIAN_13,), ARCHITECTURES.get(platform.machine(), ""), ["slirp"], cache() / "slirp")

    def command(self, script: Path, files: list[Path], heap: int = 0) -> list[str]:
        """Return the command that runs a script. heap: bytes; 0: those of a Pico W."""
        program = self.content()
        starter = [sys.executable, str(FOLDER / "slirp_line.py"), str(slirp()), str(program.with_name("nodelay.so"))]
        return [*starter, str(program), "-X", f"heapsize={heap or HEAP}", str(script)]

    def node(self, script: Path, free: int = 0) -> list[str]:
        """Return the command that runs a node's main.py with a Pico W's heap."""
        return self.command(script, [])

    def environment(self, *paths: Path, dns: str = "", web: int | None = None) -> dict[str, str]:
        """Return the environment variables for command().

        Args:
            paths: folders of imports.
            dns: ADDRESS:PORT of its DNS server.
            web: a free port of this machine, which leads to its port 80.
        """
        door = {"H2T2_WEB": str(web)} if web else {}
        return {**os.environ, "MICROPYPATH": scripts.import_path(paths), "H2T2_DNS": dns, **door}


LWIP = Port(
    source.LWIP, "MicroPython 1.25 with a Pico W's network stack (lwIP) and TLS, 64-bit objects, on slirp", installer=BUILD
)
