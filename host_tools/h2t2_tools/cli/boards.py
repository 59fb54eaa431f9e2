"""The commands about boards: boards, emulate, new, flash, firmware, mip, gateway."""

import json
import logging
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from ..boards.kinds import BAUD, KINDS, SECTIONS
from ..boards.kinds import Kind as KindOfBoard
from ..common.errors import Failure, UserError
from ..common.fields import Device, OneOf, Seconds, file, option
from ..common.report import Table
from ..fleet.config import PI
from .options import Command, Connected, Daemon, Reporting
from .output import show, show_next, working

if TYPE_CHECKING:
    from ..common.pairs import Pair

Kind = Annotated[str, AfterValidator(OneOf(tuple(KINDS)))]
DEFAULT_PAIR = "breast_cancer"


class Boards(Reporting):
    """An emulator takes the place of a board."""

    examples = (
        "h2t2 boards",
        "h2t2 boards --install   # fetch what is missing, into ~/.cache/h2t2; no root needed",
        "h2t2 boards unix arm32 --install",
    )
    emulator: list[str] = option([], "these emulators alone", unset="all", positional=True, metavar="NAME")
    install: bool = option(False, "fetch the emulators that are missing")

    def run(self) -> None:
        from ..boards import flash
        from ..boards.emulators import catalogue

        names = [board.name for board in catalogue.EMULATORS]
        unknown = [name for name in self.emulator if name not in names]
        if unknown:
            raise UserError(f"{', '.join(unknown)}: no such emulator; want one of {', '.join(names)}")
        chosen = [board for board in catalogue.EMULATORS if not self.emulator or board.name in self.emulator]
        trouble: dict[str, str] = {}
        if self.install:
            with working("looking") as bar:
                trouble = catalogue.install(chosen, bar.describe)
        ports = flash.ports()
        rows: list[dict[str, Any]] = []
        for board in chosen:
            missing = board.missing()
            rows.append({"name": board.name, "about": board.about, "missing": missing and trouble.get(board.name, missing)})
        if self.report({"boards": ports, "emulators": rows}):
            print("boards that are plugged in:" if ports else "no board is plugged in")
            for port in ports:
                print(f"  {port['port']}  {port['usb'] or '-'}  {port['about']}")
            print("emulators, in place of a board:")
            for row in rows:
                print(f"  {row['name']:12} {row['about']}: {row['missing'] or 'ready'}")
        names = [row["name"] for row in rows if row["missing"]]
        if self.install and names:
            raise Failure(f"not there after --install: {', '.join(names)}; the list above says why")


class Emulate(Command):
    """It is a device on a serial port of this machine and prints a JSON line for each event."""

    examples = (
        "h2t2 emulate pico --link ./pico --flash pico.flash",
        "h2t2 emulate pico --link ./pico --adc 26=light.csv --watch 15   # then: pin 14 1, reset, cut 3 middle, power on, time",
        "h2t2 flash mine --board pico --port ./pico   # meanwhile",
    )
    board: Literal["pico"] = option(..., "which board", positional=True)
    flash: str | None = file(None, "file that keeps the content of its flash chip", unset="one that is deleted at the end")
    link: str | None = option(None, "a symbolic link to its port, so that the port has the same name each time", metavar="PATH")
    adc: list[str] = option(
        [], "what pins 26 to 29 measure: 0 to 4095, one per line; may be given again", repeat=True, metavar="PIN=FILE"
    )
    watch: list[Annotated[int, Field(ge=0, le=29)]] = option(
        [], "tell when this pin changes; may be given again", repeat=True, metavar="PIN"
    )

    def run(self) -> None:
        from ..boards.emulators import session

        out = session.Out(
            lambda text: print(f"h2t2 emulate: {text}", file=sys.stderr, flush=True),
            lambda event: print(json.dumps(event), flush=True),
        )
        flash = Path(self.flash) if self.flash else None
        link = Path(self.link) if self.link else None
        session.run(flash, link, [session.analogue(text) for text in self.adc], self.watch, sys.stdin, out)


class Mip(Reporting):
    """Boards install them by themselves, from any web server."""

    examples = ("h2t2 mip packages && python3 -m http.server --directory packages 8000",)
    folder: str = option(..., "a new or empty folder, to be served as it is", positional=True)

    def run(self) -> None:
        from ..boards import packages

        names = packages.write_index(Path(self.folder))
        if self.report({"folder": self.folder, "packages": names}):
            install = f'import mip; mip.install("{names[1]}", index="http://YOUR-SERVER", target="/")'
            print(f"{self.folder}: {', '.join(names)}")
            print(f"serve the folder; then on a board: {install}")


class New(Reporting):
    """It holds app, configuration, model and data."""

    examples = (
        "h2t2 new porch --from mypair",
        "h2t2 new porch --board pico_w   # add a board to the project: app.py and everything else stay as they are",
        "h2t2 new shed --from mypair --board esp32",
    )
    folder: str = option(..., "where; its name becomes the device's", positional=True)
    pair: str | None = option(None, "a pair's folder or name", unset="breast_cancer", flag="--from", metavar="PAIR")
    board: Annotated[str, AfterValidator(OneOf(SECTIONS))] | None = option(
        None, "kind of a board, or pi, that gets a section in h2t2.toml", unset="none: h2t2 run and h2t2 node need none"
    )

    def run(self) -> None:
        from ..boards import project
        from ..common import pairs
        from ..fleet import config
        from ..model import bundle

        folder = Path(self.folder)
        if (folder / config.FILE).is_file():
            files, pair = self._add(folder)
            for_boards = (pair.folder / project.MODEL).is_file()
        else:
            pair = pairs.load(self.pair or DEFAULT_PAIR)
            model = bundle.for_board(pair, self.board or "")
            files = project.write(folder, pair, bundle=model, board=self.board or "")
            for_boards = model is not None
        if not self.report({"folder": str(folder), "files": files, "pair": str(pair.folder), "board": self.board}):
            return
        print(f"{folder}: {', '.join(files)}")
        if pair.info.remote.dtype == "raw":
            print(project.remote_to_write(pair))
        if self.board == PI or not for_boards:
            show_next({"run it on this machine": ["h2t2", "node", str(folder)]})
            return
        board = [] if self.board is None or KINDS[self.board].app else ["--board", self.board]
        show_next({"run it on an emulated board": ["h2t2", "run", str(folder), *board]})

    def _add(self, folder: Path) -> tuple[list[str], "Pair"]:
        """Add a board to a project: the files that were written, and the project's pair."""
        from ..boards import project
        from ..model import bundle

        if not self.board:
            raise UserError(f"{folder}: there is a project in it; --board KIND adds a board to it")
        pair = project.pair_of(folder)
        if self.pair:
            raise UserError(f"--from: {folder} has its pair, {os.path.relpath(pair.folder, folder)}: leave this option out")
        return project.add_board(folder, self.board, pair, bundle.for_board(pair, self.board)), pair


class Flash(Reporting):
    """It checks, copies what changed, reads it back and restarts the board."""

    examples = (
        "h2t2 flash porch   # its only board, at the only line",
        "h2t2 flash porch --board pico_w --port /dev/ttyACM0 --device porch-2   # one of several",
        "h2t2 flash porch --board esp32 --dry-run   # no board needed",
        "h2t2 flash porch --board unix --port ./device",
        "h2t2 flash porch --frozen   # the runtime is in the board's firmware: h2t2 firmware",
    )
    project: str = option(..., "folder of a project (h2t2 new)", positional=True)
    board: Kind | None = option(None, "its kind", unset="the project's only one")
    port: str = option("auto", "serial port, pty, socket://host:port, or the unix port's folder", metavar="P")
    device: Device | None = option(None, "name of this one of several boards", unset="as h2t2.toml says")
    replace_app: bool = option(False, "put it, its files and main.py over others on the board")
    source: bool = option(False, "copy the runtime as .py: the board compiles it, and needs more memory")
    frozen: bool = option(
        False, "copy no runtime: the board has the firmware of h2t2 firmware, and needs a third of the memory"
    )
    reset_updates: bool = option(
        False, "forget the packages and keys that came by update, and their counters: after one of a wrong clock"
    )
    dry_run: bool = option(False, "say what would be copied and what it takes, and change nothing")

    def run(self) -> None:
        from ..boards import flash, project
        from ..model.footprint import on_a_board

        loaded = project.load(Path(self.project), self.board or "")
        kind, contents = KINDS[loaded.board], replace(loaded.contents, mpy=not self.source, frozen=self.frozen)
        if self.device:
            contents = replace(contents, config=contents.config.model_copy(update={"device": self.device}))
        with working("checking") as bar:
            report = flash.flash(
                kind, self.port, contents, self.dry_run,
                lambda path, n, total: bar.update(description=path, completed=n, total=total),
                replace_app=self.replace_app, reset_updates=self.reset_updates,
            )  # fmt: skip
        report["model"] = on_a_board(bytes(contents.ldl.blob))
        report["unsent"] = loaded.unsent
        if self.report(report):
            self._show(kind, report)

    def _show(self, kind: KindOfBoard, report: dict[str, Any]) -> None:
        from ..boards import node_heap
        from ..model.footprint import in_words

        verb = "would copy" if self.dry_run else "copied"
        title = f"{kind.name}: {verb} {report['copied']} of {len(report['files'])} files, {report['bytes']:,} bytes"
        columns = {"file": "left", "bytes": "right", "changed": "left"}
        rows = [[row["path"], f"{row['bytes']:,}", "yes" if row["changed"] else "no"] for row in report["files"]]
        show([Table(title, columns, rows)])
        print(f"flash: {report['flash_bytes']:,} bytes in all; the model: {in_words(report['model'])}")
        if report["heap_bytes"] is not None:
            measured = f"{node_heap.in_parts(report['heap_parts'])}, measured on emulated 32-bit ARM"
            print(f"heap: {measured}; {kind.with_article} usually has {report['usual_heap']:,} free")
        if report["past_left_out"]:
            print("the policy does not read its past: with it the node would take more; ordered = true in h2t2.toml insists")
        if report["unsent"]:
            names = ", ".join(report["unsent"])
            print(f"not for the board: {names}; the app neither imports nor opens them: `files` in h2t2.toml sends more")
        if report["access_point"]:
            print(f"no network: join {report['access_point']} with its provision_password, and open http://192.168.4.1 there")
            print("the alternative: write wifi_name and wifi_password into h2t2.toml, and flash again")
        if "hello" in report:
            print(f"{report['hello']} is up")


class Firmware(Reporting):
    """The node then takes a third of the memory. A release has a Pico's UF2; for other boards it prints the command for your
    checkout of MicroPython.
    """

    examples = (
        "h2t2 firmware pico   # firmware-pico/firmware.uf2, of this release",
        "h2t2 firmware pico_w --micropython ~/micropython   # manifest, command, and what is missing",
    )
    board: Annotated[str, AfterValidator(OneOf(tuple(name for name, kind in KINDS.items() if kind.build)))] = option(
        ..., "its kind", positional=True
    )
    micropython: str | None = option(
        None, "a checkout of MicroPython for the build", unset="the release's UF2, of a pico alone", metavar="DIR"
    )
    out: str | None = option(
        None, "folder for the modules, their manifest and a pico's UF2", unset="firmware-BOARD", metavar="DIR"
    )

    def run(self) -> None:
        from ..boards import frozen

        kind = KINDS[self.board]
        folder = Path(self.out or f"firmware-{kind.name}")
        if self.micropython is None and kind.name != "pico":
            raise UserError(
                f"--micropython: name a checkout of MicroPython, because a release has the firmware of a pico alone; "
                f"get one: {frozen.CLONE}"
            )
        runtime = frozen.runtime(kind)
        entries = {"board": kind.name, "version": runtime.version, "digest": runtime.digest}
        if self.micropython is None:
            uf2 = self._fetch(kind, folder)
            if self.report({**entries, "firmware": str(uf2)}):
                print(f"{uf2}: {uf2.stat().st_size:,} bytes, MicroPython 1.25 with the runtime {runtime}")
                print("hold BOOTSEL while you plug the board in, and copy this file onto the drive that appears")
                show_next({"put a project onto the board": ["h2t2", "flash", "FOLDER", "--board", kind.name, "--frozen"]})
            return
        checkout = Path(self.micropython).expanduser()
        missing = frozen.missing(kind, checkout)
        manifest = frozen.write(kind, folder)
        command = frozen.command(kind, checkout, manifest)
        if self.report({**entries, "manifest": str(manifest), "command": command, "missing": missing}):
            print(f"{manifest}, which freezes the runtime {runtime}:\n\n{manifest.read_text()}")
            show_next({f"build {frozen.image(kind, checkout)}": command})
        if missing:
            raise Failure("the build still needs: " + "; ".join(missing))

    def _fetch(self, kind: KindOfBoard, folder: Path) -> Path:
        """Write the modules and the release's UF2 file for a Pico into the folder, and return the file."""
        from ..boards import frozen
        from ..boards.emulators import catalogue, download

        uf2, target = frozen.pico_uf2(), folder / "firmware.uf2"
        if not uf2.exists():
            download.of_release("pico.uf2", uf2, f"{catalogue.BUILD} pico-frozen")
        frozen.write(kind, folder, frozen.ASYNCIO)
        shutil.copy(uf2, target)
        return target


class Gateway(Connected, Reporting, Daemon):
    """It serves many boards at once and prints a JSON line for each decision."""

    examples = (
        "h2t2 gateway --port /dev/ttyACM0=kitchen --port /dev/ttyACM1=hall --broker mqtt://localhost",
        "h2t2 gateway --port 24:0a:c4:00:00:01@/dev/ttyUSB0=porch   # ESP-NOW, through the gateway board on that line",
    )
    port: list[str] = option(
        ...,
        "a serial line and its device's name, or ADDRESS@LINE: a board by radio, through the gateway board on that line; "
        "may be given again",
        repeat=True,
        metavar="LINE[=DEVICE]",
    )
    baud: Annotated[int, Field(ge=300, le=10**7)] = option(BAUD, "speed of the lines")
    fast: bool = option(False, "write without pauses: for lines with flow control")
    restart: bool = option(False, "restart the boards first, so that nothing they say is missed")
    seconds: Seconds | None = option(None, "stop after so long", unset="never")

    def run(self) -> None:
        from ..boards import gateway

        self.begin_log("gateway")

        def show_line(line: Any) -> None:
            print(json.dumps(line), flush=True)

        out = gateway.Out(logging.getLogger(gateway.__name__).info, show_line, show_line)
        settings = gateway.LineOptions(self.baud, not self.fast, self.restart)
        counters = gateway.relay(self.port, self.connection(), settings, self.seconds, out)
        for device, counts in counters.items():
            out.log(f"{device}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
        self.report(counters)
