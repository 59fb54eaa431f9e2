"""The MicroPython builds a desktop can run, fetched once into a cache folder: how to get each and how to start it.

unix: Debian 13's x86-64 `micropython` with its own libraries (an installed `micropython` serves as well). arm32: the armhf
one under qemu-arm, 32-bit objects. microbit: Debian's firmware on QEMU's nRF51822. wasm: npm's build, in node.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..common.errors import Failure
from ..common.places import cache

# the Debian releases packages are taken from, whatever this machine runs
RELEASE, FIRMWARE_RELEASE = "trixie", "bookworm"
LIBRARIES = ["libc6", "libffi8", "libmbedcrypto16", "libmbedtls21", "libmbedx509-7", "libgcc-s1"]
FIRMWARE = "firmware-microbit-micropython"
PYTHON = [
    "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libgcc-s1", "libstdc++6", "libssl3",
    "zlib1g", "libexpat1", "libffi8", "liblzma5", "libbz2-1.0", "libsqlite3-0", "libuuid1", "libcrypt1", "libgomp1",
]  # fmt: skip
# what `h2t2 node` imports on a Pi, as aarch64 wheels for its Python 3.11
WHEELS = ["numpy==1.26.4", "tflite-runtime==2.14.0", "paho-mqtt>=2.1", "pydantic>=2.9"]
WASM_PACKAGE = "@micropython/micropython-webassembly-pyscript@1.27.0"


def microbit_firmware() -> Path:
    """The micro:bit's MicroPython 1.9.2 as an Intel HEX file: the installed package's, or the fetched one."""
    installed = Path("/usr/share", FIRMWARE, "firmware.hex")
    return installed if installed.exists() else cache() / "microbit/usr/share" / FIRMWARE / "firmware.hex"


@dataclass(frozen=True)
class Emulator:
    """One build. `missing()` says why it cannot run here, or None; `install()` fetches what a user may fetch without root."""

    name: str
    about: str

    def missing(self) -> str | None:
        return _MISSING[self.name]()

    def install(self) -> None:
        if self.missing():
            target = cache() / self.name
            if self.name == "unix":
                architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
                _debian(RELEASE, architecture, ["micropython", *LIBRARIES], target)
            elif self.name == "arm32":
                _debian(RELEASE, "armhf", ["micropython", *LIBRARIES], target)
            elif self.name == "pi":
                _debian(FIRMWARE_RELEASE, "arm64", PYTHON, target)
                _wheels(target / "site")
            elif self.name == "microbit":
                _debian(FIRMWARE_RELEASE, "amd64", [FIRMWARE], target)
            else:
                _npm(target)

    def command(self, script: Path, files: list[Path]) -> list[str]:
        """The command that runs a script; files: what it imports (the wasm build has no file system of ours)."""
        folder = cache() / self.name
        program = str(folder / "usr/bin/micropython")
        if self.name == "arm32":
            return ["qemu-arm", "-L", str(folder), program, str(script)]
        if self.name == "pi":
            return ["qemu-aarch64", "-L", str(folder), str(folder / "usr/bin/python3.11"), str(script)]
        if self.name == "wasm":
            module = next(folder.glob("package/micropython.mjs"))
            return ["node", str(Path(__file__).parent / "wasm.mjs"), str(module), str(script), *map(str, files)]
        installed = shutil.which("micropython")
        if installed:
            return [installed, str(script)]
        loader = next(folder.glob("usr/lib*/ld-linux-*"))
        libraries = next(folder.glob("usr/lib/*-linux-gnu"))
        return [str(loader), "--library-path", str(libraries), program, str(script)]

    def environment(self, *paths: Path) -> dict[str, str]:
        """Environment variables for command(); paths: where imports are looked for."""
        where = {"MICROPYPATH": ":".join(map(str, paths))}
        if self.name == "pi":
            folder = cache() / "pi"
            where = {"PYTHONHOME": str(folder / "usr"), "PYTHONPATH": ":".join(map(str, (folder / "site", *paths)))}
        return {**os.environ, **where}

    def run(self, script: Path, files: list[Path], path: Path, timeout: float = 240) -> str:
        """Standard output of a script with `path` as MICROPYPATH. Failure, with its words, when it ends badly."""
        result = subprocess.run(
            self.command(script, files),
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.environment(path),
        )
        if result.returncode:
            raise Failure(f"{self.name} MicroPython: {script.name}: {(result.stdout + result.stderr).strip()[-800:]}")
        return result.stdout


UNIX = Emulator("unix", "MicroPython unix port, 64-bit objects")
ARM32 = Emulator("arm32", "MicroPython unix port for 32-bit ARM, under qemu-arm")
WASM = Emulator("wasm", "MicroPython WebAssembly build in node, 32-bit objects")
MICROBIT = Emulator("microbit", "BBC micro:bit (nRF51822, Cortex-M0, 16 KB RAM) under qemu-system-arm, MicroPython 1.9.2")
PI = Emulator("pi", "64-bit Raspberry Pi OS's CPython 3.11 with the aarch64 wheels, under qemu-aarch64")
ALL = [UNIX, ARM32, WASM, MICROBIT, PI]


def _unix_missing() -> str | None:
    if shutil.which("micropython") or (cache() / "unix/usr/bin/micropython").exists():
        return None
    return "no micropython here; run: h2t2 emulators --install"


def _arm32_missing() -> str | None:
    if not shutil.which("qemu-arm"):
        return "no qemu-arm; run: sudo apt-get install qemu-user"
    if not (cache() / "arm32/usr/bin/micropython").exists():
        return "not fetched; run: h2t2 emulators --install"
    return None


def _wasm_missing() -> str | None:
    if not shutil.which("node"):
        return "no node; run: sudo apt-get install nodejs npm"
    if not (cache() / "wasm/package/micropython.mjs").exists():
        return "not fetched; run: h2t2 emulators --install"
    return None


def _microbit_missing() -> str | None:
    if not shutil.which("qemu-system-arm"):
        return "no qemu-system-arm; run: sudo apt-get install qemu-system-arm"
    if not microbit_firmware().exists():
        return "no firmware; run: h2t2 emulators --install"
    return None


def _pi_missing() -> str | None:
    if not shutil.which("qemu-aarch64"):
        return "no qemu-aarch64; run: sudo apt-get install qemu-user"
    if not (cache() / "pi/site/tflite_runtime").exists():
        return "not fetched; run: h2t2 emulators --install"
    return None


_MISSING = {
    "unix": _unix_missing, "arm32": _arm32_missing, "wasm": _wasm_missing, "microbit": _microbit_missing, "pi": _pi_missing,
}  # fmt: skip


def _wheels(target: Path) -> None:
    """The Python packages of a Pi, unpacked by pip for that platform."""
    platforms = [word for tag in ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")
                 for word in ("--platform", f"{tag}_aarch64")]  # fmt: skip
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(target), "--python-version", "3.11", *platforms]
    _run([*command, "--implementation", "cp", "--only-binary=:all:", *WHEELS], Path("/"))


def _run(command: list[str], cwd: Path) -> str:
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"{' '.join(command[:1] + command[-2:])}: {(result.stderr or result.stdout).strip()[-300:]}")
    return result.stdout


def _debian(release: str, architecture: str, packages: list[str], target: Path) -> None:
    """Unpack packages of a Debian release into `target`, through a private apt configuration."""
    if not architecture:
        raise Failure(f"no Debian micropython for {platform.machine()}")
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise Failure("fetching MicroPython needs apt-get and dpkg (Debian or a relative)")
    # the mirror this machine already uses for Debian's main packages
    listed = _run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(COMPONENT)"], Path("/"))
    mirrors = [line.split()[0] for line in listed.splitlines() if line.endswith(" Debian main")]
    mirrors += [u for u in (line.split()[0] for line in listed.splitlines()) if u.rstrip("/").endswith("/debian")]
    mirrors = [uri for uri in mirrors if "security" not in uri]
    if not mirrors:
        raise Failure("no Debian mirror among this machine's apt sources")
    keys = [p for p in Path("/usr/share/keyrings").glob("debian-archive-keyring.*") if p.suffix in (".gpg", ".pgp")]
    if not keys:
        raise Failure("no Debian archive keyring; run: sudo apt-get install debian-archive-keyring")
    with tempfile.TemporaryDirectory(prefix="h2t2-apt-") as name:
        folder = Path(name)
        (folder / "lists/partial").mkdir(parents=True)
        (folder / "archives/partial").mkdir(parents=True)
        (folder / "status").touch()
        source = f"deb [signed-by={sorted(keys)[0]} arch={architecture}] {mirrors[0]} {release} main\n"
        (folder / "sources.list").write_text(source)
        options = [
            f"Dir::Etc::sourcelist={folder}/sources.list",
            "Dir::Etc::sourceparts=-",
            f"Dir::State::Lists={folder}/lists",
            f"Dir::State::status={folder}/status",
            f"Dir::Cache={folder}",
            f"APT::Architecture={architecture}",
            f"APT::Architectures::={architecture}",
            "APT::Sandbox::User=",
        ]
        apt = ["apt-get", *(word for option in options for word in ("-o", option)), "-q"]
        _run([*apt, "update"], folder)
        _run([*apt, "download", *packages], folder)
        part = target.with_name(target.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        for package in sorted(folder.glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(part)], folder)
        if (part / "usr/lib").exists() and not (part / "lib").exists():
            (part / "lib").symlink_to("usr/lib")
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)


def _npm(target: Path) -> None:
    if not shutil.which("npm"):
        raise Failure("fetching the WebAssembly build needs npm; run: sudo apt-get install nodejs npm")
    with tempfile.TemporaryDirectory(prefix="h2t2-npm-") as name:
        packed = _run(["npm", "pack", "--silent", WASM_PACKAGE], Path(name)).split()[-1]
        target.mkdir(parents=True, exist_ok=True)
        _run(["tar", "-xzf", packed, "-C", str(target)], Path(name))
