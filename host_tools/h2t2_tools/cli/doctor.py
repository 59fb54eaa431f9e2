"""`h2t2 doctor`: what is installed and what answers, and for each gap the command that closes it."""

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec

import h2t2

from ..common.errors import Failure
from ..common.extras import EXTRAS, install_command
from .options import Connected, Reporting

NEWEST, OLDEST = (3, 14), (3, 10)
CHECKED_EXTRAS = ("litert", "boards", "fleet", "dashboard", "convert", "onnx", "lab")
RELEASED = 1_790_000_000  # seconds since 1970; a clock before this has never been set


@dataclass(frozen=True)
class Finding:
    """A line of the report.

    Attributes:
        subject: what was looked at.
        about: what was found.
        mend: the command or the deed that closes the gap; "": there is none.
    """

    subject: str
    about: str
    mend: str = ""


class Doctor(Connected, Reporting):
    """It looks at Python, extras, broker, emulators, boards and clock; each gap comes with the command that closes it."""

    examples = ("h2t2 doctor", "h2t2 doctor --broker mqtts://broker.lan --ca fleet/ca.crt --user porch --json -")

    def run(self) -> None:
        findings = [*_python(), *_extras(), *self._broker(), *_emulators(), *_ports(), *_clock()]
        if not self.report([asdict(finding) for finding in findings]):
            return
        for finding in findings:
            print(f"{'-' if finding.mend else '+'} {finding.subject:22} {finding.about}")
            if finding.mend:
                print(f"  {'':22} {finding.mend}")

    def _broker(self) -> Iterator[Finding]:
        from ..fleet import broker, connection

        program = broker.mosquitto()
        yield Finding("Mosquitto", program or "not here; `h2t2 demo` and `h2t2 run` bring a broker of their own",
                      "" if program else "for a fleet: sudo apt-get install mosquitto")  # fmt: skip
        to = self.connection()
        try:
            connection.connect(to, ["h2t2/doctor"], lambda _: None).close()
        except Failure as error:
            yield Finding("broker", str(error), f"start it, or name yours: h2t2 doctor --broker mqtt://HOST (asked {self.url})")
        else:
            yield Finding("broker", f"{self.url} answers")


def _python() -> Iterator[Finding]:
    good = OLDEST <= sys.version_info[:2] <= NEWEST
    mend = "" if good else f"install Python {'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
    yield Finding("h2t2-edge", f"{h2t2.__version__} in {sys.prefix}")
    yield Finding("Python", f"{platform.python_version()} on {platform.machine()}", mend)


def _extras() -> Iterator[Finding]:
    for extra in CHECKED_EXTRAS:
        modules = [module for module, name in EXTRAS.items() if name == extra]
        missing = [module for module in modules if find_spec(module) is None]
        about = f"missing: {', '.join(missing)}" if missing else ", ".join(_with_version(module) for module in modules)
        yield Finding(f"extra {extra}", about, install_command(extra) if missing else "")


def _with_version(module: str) -> str:
    names = metadata.packages_distributions().get(module, [])
    return f"{names[0]} {metadata.version(names[0])}" if names else module


def _emulators() -> Iterator[Finding]:
    if find_spec("serial") is None:
        return  # the extra `boards` is missing, which a line above says
    from ..boards.emulators import catalogue

    for board in catalogue.EMULATORS:
        missing = board.missing()
        yield Finding(f"emulator {board.name}", missing or "ready", f"h2t2 boards {board.name} --install" if missing else "")


def _ports() -> Iterator[Finding]:
    if find_spec("serial") is None:
        return
    from ..boards import flash

    rows = flash.ports()
    for row in rows:
        mine = os.access(row["port"], os.R_OK | os.W_OK)
        about = row["about"] if mine else f"{row['about']}; this user may not open it"
        yield Finding(f"board {row['port']}", about, "" if mine else "sudo usermod -aG dialout $USER, then log in again")
    if not rows:
        yield Finding("boards", "none is plugged in; an emulated one does for a start: h2t2 run PROJECT")


def _clock() -> Iterator[Finding]:
    utc = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    mend = "sudo timedatectl set-ntp true"
    if time.time() < RELEASED:
        yield Finding("clock", f"{utc}: it has not been set; certificates and commands will be refused", mend)
        return
    program = shutil.which("timedatectl")
    answer = program and subprocess.run(
        [program, "show", "-p", "NTPSynchronized", "--value"], capture_output=True, text=True, timeout=10, check=False
    )
    if answer and answer.stdout.strip() == "no":
        yield Finding("clock", f"{utc}, not set by a time server", mend)
    else:
        yield Finding("clock", utc)
