"""The commands that show that it works: demo, run, validate, ldl-check, hil, chaos, proxy."""

import json
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from ..boards.kinds import KINDS
from ..common.errors import Failure, UserError
from ..common.fields import Count, Duration, NotNegative, OneOf, Seconds, Share, file, option
from ..common.report import Table
from .options import Reporting
from .output import progress, show, working
from .policy_choice import PolicyChoice

UNLIMITED = "any"  # --heap: not that of a board
HEAPS = (*(kind.name for kind in KINDS.values() if kind.chip), UNLIMITED)
LocalPort = Annotated[int, Field(ge=0, le=65535)]


class Demo(PolicyChoice, Reporting):
    renamed = {"--model": "--pair", "--window": "--in-flight", "--costs": "--class-costs"}

    samples: Count = option(2000, "samples to stream")
    broker: str = option("amqtt", "amqtt (in this process), mosquitto, or mqtt://HOST:PORT")
    out: str = option("results/demo", "folder for the CSV and the pictures")
    fleet: Annotated[int, Field(ge=7, le=10000)] | None = option(
        None, "run so many nodes in place of one, until Ctrl-C", metavar="N"
    )
    dashboard: LocalPort = option(
        0, "of a fleet: port of the dashboard beside it; bare: 8080", unset="no dashboard", metavar="PORT", const="8080"
    )
    seconds: Seconds = option(0.0, "of a fleet: end after so long", unset="Ctrl-C")

    def run(self) -> None:
        from ..common import extras, policies

        extras.require("demo")
        if self.fleet:
            self._show_fleet(self.fleet)
            return
        if self.dashboard:
            raise UserError("--dashboard: of a fleet; also give --fleet 20")
        from ..proof import demo

        numbers = self.policy_numbers()
        policies.make(self.policy, numbers)  # refuses wrong options before anything starts
        with progress() as bar:
            task = bar.add_task("starting", total=self.samples)
            report = demo.demonstrate(
                self._pair, self.policy, numbers,
                samples=self.samples, broker_kind=self.broker, in_flight=self.in_flight, out=Path(self.out),
                progress=lambda completed, text: bar.update(task, completed=completed, description=text),
            )  # fmt: skip
        self.report(report)
        if not self.quiet:
            show(demo.tables(report))

    def _show_fleet(self, count: int) -> None:
        from ..fleet.monitoring import report as seen
        from ..proof import fleet_demo

        info = self._pair.info
        if info.classes > 2:
            raise UserError(f"--fleet: a pair of two classes, not {info.name}")

        def say(text: str) -> None:
            print(f"h2t2 demo: {text}", file=sys.stderr, flush=True)

        signal.signal(signal.SIGTERM, signal.default_int_handler)
        report = fleet_demo.demonstrate(self._pair, count, self.broker, self.dashboard, self.seconds, say)
        self.report(report)
        if not self.quiet:
            show(seen.table(report, time.time()))


class Run(Reporting):
    project: str = option(..., "folder of a project (h2t2 new)", positional=True)
    board: Literal["unix", "arm32", "pico", "microbit"] = option("unix", "the emulated board")
    broker: str = option("", "a broker that a remote model serves", unset="both are started here", metavar="URL")
    fresh: bool = option(False, "delete what the board learned and wrote in earlier runs")
    heap: Annotated[str, AfterValidator(OneOf(HEAPS))] = option(
        "pico_w",
        f"give unix or arm32 the heap that such a board usually has free; {UNLIMITED}: all that it takes",
        metavar="KIND",
    )

    def run(self) -> None:
        from ..boards import project
        from ..proof import run

        def show_line(line: dict[str, Any]) -> None:
            if not self.quiet:
                print(json.dumps(line), flush=True)

        heap = 0 if self.heap == UNLIMITED else KINDS[self.heap].heap
        loaded = project.load(Path(self.project), self.board, stands_in=True, usual_broker=bool(self.broker))
        report = run.run(loaded, self.broker, self.fresh, show_line, heap)
        self.report(report)
        if not self.quiet:
            decisions = ", ".join(f"{n} {source}" for source, n in report["decisions"].items())
            print(f"decisions: {decisions}; files: {report['folder'] or 'none'}", file=sys.stderr)
            if "accuracy" in report:
                labelled = f"{report['labelled']} labelled samples"
                print(f"accuracy {report['accuracy']:.1%}, mean cost {report['cost']:.3f} ({labelled})", file=sys.stderr)
        if report["trouble"]:
            raise Failure(f"the run was not in order: {'; '.join(report['trouble'])}; what the board said stands above")


def _mode(text: str) -> str:
    """Check that a text is a mode of the policies; "every" means all of them."""
    from ..proof.validate import EVERY

    return OneOf((*EVERY, "every"))(text)


class Validate(Reporting):
    bits: list[Annotated[int, Field(ge=1, le=12)]] = option([4, 6, 8], "score bits", metavar="b")
    rounds: Count = option(10000, "rounds of each row")
    seed: NotNegative = option(1, "seed of the draws and the stream")
    mode: list[Annotated[str, AfterValidator(_mode)]] = option(
        ["paper"],
        "policy options; head: with features, b up to 8; class-head: of three classes, b up to 6; "
        "one-page: H2T2 on one page, whose b is 4; every: all of them",
    )

    def run(self) -> None:
        from ..proof import validate

        rows = []
        with progress() as bar:
            for mode in validate.chosen(self.mode):
                for bits in validate.bits_of(mode, self.bits):
                    task = bar.add_task(f"b = {bits}, {mode}", total=self.rounds)
                    rows.append(validate.compare(bits, self.rounds, self.seed, mode, partial(bar.advance, task)))
        if not rows:
            raise UserError("--bits: mode head takes 8 at most")
        self.report(rows)
        if not self.quiet:
            names = ("b", "mode", "rounds", "decisions that differ", "worst probability error", "farthest margin")
            cells = [
                [
                    str(row["bits"]), row["mode"], str(row["rounds"]), str(row["differ"]), f"{row['worst_error']:.1e}",
                    f"{row['margin']:.1e}" if row["differ"] else "-",
                ]
                for row in rows
            ]  # fmt: skip
            columns = {name: "left" if name == "mode" else "right" for name in names}
            title = f"integer core against float64 reference, seed {self.seed}"
            show([Table(title, columns, cells, ("farthest margin", "rounds"))])
        failures = [row for row in rows if not row["within"]]
        if failures:
            raise Failure(f"{len(failures)} of {len(rows)} rows are outside the bounds")


class LdlCheck(Reporting):
    model: str = option(..., "a full-int8 .tflite", positional=True)
    samples: Count = option(100, "random inputs")
    inputs: str | None = file(None, "an .npz whose x holds int8 inputs, instead of random ones")
    layers: bool = option(False, "compare every step's output, and name the first that differs")
    seed: NotNegative = option(1, "seed of the random inputs")

    def run(self) -> None:
        from ..proof import ldl_check

        with working("comparing") as bar:
            report = ldl_check.compare(Path(self.model), self._inputs(), self.samples, self.seed, self.layers, bar.count)
        self.report(report)
        if not self.quiet:
            compared = "bytes of all layers" if self.layers else "output bytes"
            print(
                f"{report['model']}: {report['samples']} samples, {report['differ']} of {report['bytes']:,} {compared} differ "
                f"from {report['oracle']}'s reference kernels; {report['bins']} policy bins (b = 4) differ from its "
                "optimised ones"
            )
        if report["differ"]:
            raise Failure(f"the integer interpreter differs, first at {report['first'] or 'the output'}")

    def _inputs(self) -> Any:
        if not self.inputs:
            return None
        from ..lab.datasets.data import arrays

        inputs = arrays(Path(self.inputs), "x")[0]
        if inputs.dtype != "int8":
            raise UserError(f"{self.inputs}: x is {inputs.dtype}; want the model's own int8 inputs")
        return inputs


class Hil(Reporting):
    board: list[str] = option([], "ID of boards.toml, emulated or all; may be given again", unset="emulated", repeat=True)
    port: str | None = option(None, "serial line of a real board")
    hil: str = option("hil", "folder of the tests", metavar="DIR")
    out: str = option("results/hil", "folder for hil.jsonl and hil.html", metavar="DIR")
    pytest: list[str] = option([], "after --: more options for pytest", positional=True)

    def run(self) -> None:
        from ..proof import hil

        boards, out = self.board or ["emulated"], Path(self.out)
        with working("looking") as bar:
            hil.prepare(Path(self.hil), boards, bar.describe)
        status, rows = hil.run_tests(Path(self.hil), boards, self.port, self.pytest, out)
        self.report(rows)
        if not self.quiet:
            texts, counts = ("board", "firmware"), ("passed", "failed", "skipped", "seconds")
            body = [
                [row["board"] + (" (emulated)" if row["emulated"] else ""), *(str(row[name]) for name in (*texts[1:], *counts))]
                for row in hil.summary(rows)
            ]
            columns = dict.fromkeys(texts, "left") | dict.fromkeys(counts, "right")
            show([Table("hardware in the loop", columns, body, ("seconds", "firmware", "skipped"))])
            print(out / "hil.html")
        if status:
            raise Failure("some tests failed")


class Chaos(Reporting):
    renamed = {"--deadline-ms": "--deadline"}

    node: list[Literal["pi", "unix"]] = option(["pi", "unix"], "which nodes")
    samples: Count = option(10000, "samples through each node")
    deadline: Annotated[Duration, Field(ge=0.01, le=3600)] = option(2.0, "reply deadline of the nodes")
    seed: NotNegative = option(1, "seed of the faults")
    hours: Annotated[float, Field(ge=0, le=8760)] = option(
        0.0, "a soak: so long, instead of so many samples", unset="no soak", metavar="H"
    )
    figure: str | None = file(None, "draw what a soak's processes used (.png)")

    def run(self) -> None:
        from ..proof import chaos

        with progress() as bar:
            tasks: dict[str, Any] = {}

            def advance(name: str, completed: int, total: int, doing: str) -> None:
                if name not in tasks:
                    tasks[name] = bar.add_task(name, total=total)
                bar.update(tasks[name], completed=completed, description=f"{name}: {doing}")

            report = chaos.unleash([*self.node], self.samples, round(self.deadline * 1000), self.seed, advance, self.hours)
            report["field"] = [] if self.hours else chaos.field.go_through(lambda text: advance("field", 0, 1, text))
        self.report(report)
        if self.figure:
            from ..common import plots

            plots.soak(Path(self.figure), report["soak"])
        if not self.quiet:
            _show_chaos(report)
        trouble = chaos.broken(report) + chaos.field.broken(report["field"])
        if trouble:
            raise Failure("; ".join(trouble))


def _show_chaos(report: dict[str, Any]) -> None:
    from ..proof import chaos

    rows = [[name, *(f"{row[name]:,}" for row in report["nodes"])] for name in chaos.FIGURES]
    show([Table("chaos", {"": "left", **{row["node"]: "right" for row in report["nodes"]}}, rows)])
    if report["watch"]:
        watched = [[name, str(value)] for name, value in report["watch"].items()]
        show([Table("the dashboard that watched", {"": "left", "dashboard": "right"}, watched)])
    print("faults: " + ", ".join(f"{n} {name}" for name, n in report["faults"].items()))
    for row in report["field"]:
        print(f"{row['node']}: {row['quiet']['seconds']:,} s with a quiet hour; an update whose sensor dies: ", end="")
        print(f"{row['update']['outcome']} {row['update']['why']}".strip())
    print(f"{report['seconds']:.0f} s on {report['machine']}")


class Proxy(Reporting):
    listen: LocalPort = option(0, "local port", unset="any free one", metavar="PORT")
    broker: str = option("mqtt://localhost:1883", "mqtt://HOST:PORT")
    drop: Share = option(0.0, "chance that a message to a client is lost")
    double: Share = option(0.0, "chance that a message comes twice")
    corrupt: Share = option(0.0, "chance that a bit of a message is turned")
    delay: tuple[Annotated[int, Field(ge=0, le=3600000)], Annotated[int, Field(ge=0, le=3600000)]] = option(
        (0, 0), "shortest and longest delay of each message", metavar="MS MS"
    )
    late: Share = option(0.0, "chance that a message comes up to 30 s later")
    both: bool = option(False, "messages to the broker as well")
    seed: NotNegative = option(1, "seed of the chances")
    seconds: Seconds | None = option(None, "stop after so long", unset="never")

    def run(self) -> None:
        from dataclasses import asdict

        from ..fleet import broker
        from ..proof import proxy

        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        faults = proxy.Faults(
            drop=self.drop,
            double=self.double,
            corrupt=self.corrupt,
            delay_ms=self.delay,
            late=self.late,
            up=self.both,
            seed=self.seed,
        )
        running = proxy.Proxy(*broker.parse(self.broker), faults, self.listen)
        print(f"h2t2 proxy: mqtt://127.0.0.1:{running.port} leads to {self.broker}", file=sys.stderr, flush=True)
        try:
            threading.Event().wait(self.seconds)
        except (KeyboardInterrupt, SystemExit):
            pass
        finally:
            running.stop()
        self.report(asdict(faults))
