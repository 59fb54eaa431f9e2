"""The commands about boards: emulators, emulate, boards, new, flash, mip, gateway."""

from __future__ import annotations

import json
import logging
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from ..boards.kinds import KINDS, Contents
from ..common.errors import Failure, UserError
from ..common.fields import OneOf, Seconds, file, option
from ..common.report import Table
from .options import Command, Connected, Daemon, Reporting
from .output import progress, show

Kind = Annotated[str, AfterValidator(OneOf(tuple(KINDS)))]


class Emulators(Reporting):
    examples = (
        "h2t2 emulators",
        "h2t2 emulators --install   # fetch or build what is missing, into ~/.cache/h2t2; no root needed",
        "h2t2 emulators unix arm32 --install",
    )

    board: list[str] = option([], "these alone", unset="all", positional=True, metavar="NAME")
    install: bool = option(False, "fetch what is missing, and build what no package has")
    needs: bool = option(False, "print only the Debian packages that are still needed to build them")

    def run(self) -> None:
        from ..boards.emulators import built, catalogue

        chosen = [board for board in catalogue.EMULATORS if not self.board or board.name in self.board]
        if self.needs:
            absent = [board for board in chosen if isinstance(board, built.Built) and not board.firmware().exists()]
            print(" ".join(dict.fromkeys(package for board in absent for package in board.packages())))
            return
        trouble: dict[str, str] = {}
        if self.install:
            with progress() as bar:
                task = bar.add_task("looking", total=len(catalogue.FETCHED) + built.STEPS)
                trouble = catalogue.install(chosen, lambda text: bar.update(task, description=text, advance=1))
        rows: list[dict[str, Any]] = []
        for board in chosen:
            missing = board.missing()
            rows.append({"name": board.name, "about": board.about, "missing": missing and trouble.get(board.name, missing)})
        self.report(rows)
        if not self.quiet:
            for row in rows:
                print(f"{row['name']:12} {row['about']}: {row['missing'] or 'ready'}")
        names = [row["name"] for row in rows if row["missing"]]
        if self.install and names:
            raise Failure(f"not there after --install: {', '.join(names)}; the list above says why")


class Emulate(Command):
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

        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        out = session.Out(
            lambda text: print(f"h2t2 emulate: {text}", file=sys.stderr, flush=True),
            lambda event: print(json.dumps(event), flush=True),
        )
        flash = Path(self.flash) if self.flash else None
        link = Path(self.link) if self.link else None
        session.run(flash, link, [session.analogue(text) for text in self.adc], self.watch, sys.stdin, out)


class Boards(Reporting):
    examples = ("h2t2 boards --json -",)

    def run(self) -> None:
        from ..boards import flash

        rows = flash.ports()
        self.report(rows)
        if self.quiet:
            return
        for row in rows:
            print(f"{row['port']}  {row['usb'] or '-'}  {row['about']}")
        if not rows:
            print("no board is plugged in; emulated ones: h2t2 emulators")


class Mip(Reporting):
    examples = ("h2t2 mip packages && python3 -m http.server --directory packages 8000",)

    folder: str = option(..., "a new or empty folder, to be served as it is", positional=True)

    def run(self) -> None:
        from ..boards import packages

        names = packages.write_index(Path(self.folder))
        self.report({"folder": self.folder, "packages": names})
        if not self.quiet:
            install = f'import mip; mip.install("{names[1]}", index="http://YOUR-SERVER", target="/")'
            print(f"{self.folder}: {', '.join(names)}")
            print(f"serve the folder; then on a board: {install}")


class New(Reporting):
    examples = ("h2t2 new mine --from mypair", "h2t2 new porch --from mypair --board pico_w")

    folder: str = option(..., "where; its name becomes the device's", positional=True)
    pair: str = option("breast_cancer", "a pair's folder or name", flag="--from", metavar="PAIR")
    board: Kind = option("unix", "kind of the board that the configuration is for")

    def run(self) -> None:
        from ..boards import project
        from ..common import pairs
        from ..model import bundle

        pair = pairs.load(self.pair)
        folder = Path(self.folder)
        files = project.new(folder, pair, self.board, bundle.from_tflite(pair.ldl))
        self.report({"folder": str(folder), "files": files, "pair": str(pair.folder), "board": self.board})
        if not self.quiet:
            print(f"{folder}: {', '.join(files)}")
            if pair.info.remote.dtype == "raw":
                print(project.unsent(pair))
            print(f"next: h2t2 run {folder}" + ("" if KINDS[self.board].app else f" --board {self.board}"))


class Flash(Reporting):
    examples = (
        "h2t2 flash mine --board pico_w --port auto   # a project, of h2t2 new",
        "h2t2 flash --board pico_w --port auto --model ldl.h2m --config config.toml --records samples.bin",
        "h2t2 flash mine --board esp32 --dry-run   # no board needed",
        "h2t2 flash --board unix --port ./device --model ldl.h2m --config config.toml --records samples.bin",
        "h2t2 flash --board unix --port ./device --model mypair/ldl.h2m --config mypair/unix.toml --app app.py",
    )

    project: str | None = option(
        None, "folder of app, configuration, model (h2t2 new)", unset="give --model and --config", positional=True
    )
    board: Kind = option(..., "its kind")
    port: str = option("auto", "serial port, pty, socket://host:port, or the unix port's folder", metavar="P")
    model: str | None = file(None, "the local model's bundle (.h2m)")
    config: str | None = file(None, "config.toml; a commented one is in firmware/boards/BOARD")
    records: str | None = file(None, "recorded samples: LDL input and remote tensor, int8, one after the other")
    app: str | None = file(None, "your own program, sense() and act(decision); needs `pair` in the configuration")
    replace_app: bool = option(False, "put it and its files over others on the board")
    source: bool = option(False, "copy the runtime as .py: the board compiles it, and needs more memory")
    dry_run: bool = option(False, "say what would be copied and what it takes, and change nothing")

    def run(self) -> None:
        from ..boards import flash
        from ..model.footprint import on_a_board

        kind = KINDS[self.board]
        contents = self._contents()
        with progress() as bar:
            task = bar.add_task("checking", total=None)
            report = flash.flash(
                kind, self.port, contents, self.dry_run,
                lambda path, n, total: bar.update(task, description=path, completed=n, total=total),
                replace_app=self.replace_app,
            )  # fmt: skip
        report["model"] = on_a_board(bytes(contents.ldl.blob))
        self.report(report)
        if not self.quiet:
            self._show(report)

    def _contents(self) -> Contents:
        """What goes onto the board: a project, or parts that are named one by one."""
        from ..boards import project
        from ..fleet import config as board_config

        if self.project:
            if self.config or self.model or self.app or self.records:
                options = "--config, --model, --app, --records"
                raise UserError(f"a project has its own configuration, model and app: leave {options} out")
            return replace(project.load(Path(self.project)).contents, mpy=not self.source)
        if not self.config or not self.model:
            raise UserError("name a project (h2t2 new makes one), or give --model and --config")
        config = board_config.load(Path(self.config))
        if self.app:
            config = config.model_copy(update={"app": str(Path(self.app).resolve())})
        model = Path(self.model)
        if not model.is_file():
            raise UserError(f"{model}: no such file; make one: h2t2 bundle MODEL.tflite")
        return Contents(model, config, Path(self.records) if self.records else None, mpy=not self.source)

    def _show(self, report: dict[str, Any]) -> None:
        from ..boards import flash
        from ..model.footprint import in_words

        kind = KINDS[self.board]
        verb = "would copy" if self.dry_run else "copied"
        title = f"{kind.name}: {verb} {report['copied']} of {len(report['files'])} files, {report['bytes']:,} bytes"
        columns = {"file": "left", "bytes": "right", "changed": "left"}
        rows = [[row["path"], f"{row['bytes']:,}", "yes" if row["changed"] else "no"] for row in report["files"]]
        show([Table(title, columns, rows)])
        print(f"flash: {report['flash_bytes']:,} bytes in all; the model: {in_words(report['model'])}")
        if report["heap_bytes"] is not None:
            measured = f"{flash.in_parts(report['heap_parts'])}, measured on emulated 32-bit ARM"
            print(f"heap: {measured}; a {kind.name} usually has {report['usual_heap']:,} free")
        if "hello" in report:
            print(f"{report['hello']} is up")


class Gateway(Connected, Reporting, Daemon):
    examples = ("h2t2 gateway --port /dev/ttyACM0=kitchen --port /dev/ttyACM1=hall --broker mqtt://localhost",)

    port: list[str] = option(
        ..., "a serial line and its device's name; may be given again", repeat=True, metavar="LINE[=DEVICE]"
    )
    baud: Annotated[int, Field(ge=300, le=10**7)] = option(115200, "speed of the lines")
    fast: bool = option(False, "write without pauses: for lines with flow control")
    restart: bool = option(False, "restart the boards first, so that nothing they say is missed")
    seconds: Seconds | None = option(None, "stop after so long", unset="never")

    def run(self) -> None:
        from ..boards import gateway

        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.begin_log("gateway")

        def show_line(line: Any) -> None:
            print(json.dumps(line), flush=True)

        out = gateway.Out(logging.getLogger(gateway.__name__).info, show_line, show_line)
        settings = gateway.LineOptions(self.baud, not self.fast, self.restart)
        counters = gateway.relay(self.port, self.connection(), settings, self.seconds, out)
        for device, counts in counters.items():
            out.log(f"{device}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
        self.report(counters)
