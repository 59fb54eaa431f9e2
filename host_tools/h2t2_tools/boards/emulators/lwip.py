"""The lwip port: MicroPython's unix port with a Pico W's network stack, TLS and heap, on a network that slirp carries.

Its source is in lwip_port/. It reaches a broker on this machine's 127.0.0.1 as 10.0.2.2.
"""

import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from ...common.places import cache
from ..kinds import KINDS
from . import debian, scripts, source
from .built import Built

HOST = "10.0.2.2"  # this machine's address for the port
HEAP = 2 * KINDS["pico_w"].heap  # bytes; 64-bit objects are twice as large
FOLDER = Path(__file__).parent


def slirp() -> Path:
    """Return slirp without a speed limit: the installed program, or the fetched one."""
    installed = shutil.which("slirp-fullbolt")
    return Path(installed) if installed else cache() / "slirp/usr/bin/slirp-fullbolt"


class Port(Built):
    """The port. It runs scripts as an Emulator does."""

    def missing(self) -> str | None:
        if not self.firmware().exists():
            return source.lacking(self.name) or "not built; run: h2t2 boards --install"
        return None if slirp().exists() else "no slirp; run: h2t2 boards --install"

    def fetch(self, progress: Callable[[str], None]) -> None:
        """Fetch slirp."""
        if not slirp().exists():
            progress("slirp")
            architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
            debian.unpack((source.DEBIAN_13,), architecture, ["slirp"], cache() / "slirp")

    def command(self, script: Path, files: list[Path], heap: int = HEAP) -> list[str]:
        """Return the command that runs a script. files: unused, because the port sees this machine's files. heap: bytes."""
        starter = [sys.executable, str(FOLDER / "slirp_line.py"), str(slirp()), str(self.firmware().with_name("nodelay.so"))]
        return [*starter, str(self.firmware()), "-X", f"heapsize={heap}", str(script)]

    def node(self, script: Path) -> list[str]:
        """Return the command that runs a node's main.py."""
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

    def run(self, script: Path, files: list[Path], path: Path, timeout: float = 240) -> str:
        """Return the output of a script with `path` as MICROPYPATH. Raise Failure with its output if it fails."""
        return scripts.output(self.name, script, self.command(script, files), self.environment(path), timeout)


LWIP = Port(source.LWIP, "MicroPython 1.25 with a Pico W's network stack (lwIP) and TLS, 64-bit objects, on slirp", "", "")
