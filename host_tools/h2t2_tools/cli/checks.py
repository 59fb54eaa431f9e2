"""The commands that show that it works: demo, run, validate, ldl-check, hil."""

import json
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from ..boards.kinds import KINDS
from ..common.errors import Failure, UserError, as_user_error
from ..common.fields import Count, LocalPort, NotNegative, OneOf, Seconds, file, option
from ..common.report import Table
from .options import Reporting
from .output import show, working
from .policy_choice import PolicyChoice

UNLIMITED = "any"  # --heap: not that of a board
HEAPS = (*(kind.name for kind in KINDS.values() if kind.build), UNLIMITED)
FLEET_PAIR = "breast_cancer"


class Demo(PolicyChoice, Reporting):
    """The node classifies, offloads and learns; the report states what each policy costs."""

    examples = (
        "h2t2 demo",
        "h2t2 demo --pair digits --beta 0.1 --json -",
        "h2t2 demo --fleet 20 --dashboard   # twenty nodes, three in trouble, one wasteful, one updated, and a page to look at",
        "h2t2 demo --broker mosquitto --policy h2t2 --feedback explored --exploration epsilon   # Algorithm 1",
    )

    pair: str = option("airport", "shipped pair or folder of one", unset=f"airport; of a fleet {FLEET_PAIR}", metavar="PAIR")
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

    judges_by_truth: ClassVar[bool] = False

    @classmethod
    def parsed(cls, words: dict[str, Any]) -> "Demo":
        """As PolicyChoice.parsed(). The nodes of a fleet meet the same samples, so these come in no order."""
        return super().parsed({"pair": FLEET_PAIR, **words} if words.get("fleet") else words)

    def run(self) -> None:
        from ..common import extras, policies

        extras.require("demo")
        if self.fleet:
            self._show_fleet(self.fleet)
            return
        if self.dashboard:
            raise UserError("--dashboard: of a fleet; also give --fleet 20")
        from ..demo import demo

        numbers = self.policy_numbers()
        with as_user_error():  # before anything starts
            policies.make(self.policy, numbers)
        with working("starting", self.samples) as bar:
            report = demo.demonstrate(
                self._pair, self.policy, numbers,
                samples=self.samples, broker_kind=self.broker, in_flight=self.in_flight, out=Path(self.out),
                progress=lambda completed, text: bar.update(completed=completed, description=text),
            )  # fmt: skip
        if self.report(report):
            show(demo.tables(report))

    def _show_fleet(self, count: int) -> None:
        from ..demo import fleet_demo
        from ..fleet.monitoring import fleet_report as seen

        info = self._pair.info
        if info.classes > 2:
            raise UserError(f"--fleet: a pair of two classes, not {info.name}")

        def say(text: str) -> None:
            print(f"h2t2 demo: {text}", file=sys.stderr, flush=True)

        signal.signal(signal.SIGTERM, signal.default_int_handler)
        report = fleet_demo.demonstrate(self._pair, count, self.broker, self.dashboard, self.seconds, say)
        if self.report(report):
            show(seen.table(report, time.time()))


class Run(Reporting):
    """The board is flashed like a real one; broker and remote model run beside it. Prints a JSON line for each decision."""

    examples = (
        "h2t2 run mine",
        "h2t2 run mine --board arm32 --fresh --json report.json",
        "h2t2 run mine --broker mqtt://broker.lan   # a broker and a remote model of your own",
    )
    project: str = option(..., "folder of a project (h2t2 new)", positional=True)
    board: Literal["unix", "arm32", "pico", "microbit"] = option("unix", "the emulated board")
    broker: str = option("", "a broker that a remote model serves", unset="both are started here", metavar="URL")
    fresh: bool = option(False, "delete what the board learned and wrote in earlier runs")
    samples: Count | None = option(None, "end after so many samples", unset="when its sensor ends", metavar="N")
    heap: Annotated[str, AfterValidator(OneOf(HEAPS))] = option(
        "pico_w",
        f"give unix or arm32 the heap that such a board usually has free; {UNLIMITED}: all that it takes",
        metavar="KIND",
    )

    def run(self) -> None:
        from ..boards import project, run_emulated
        from ..fleet.monitoring import savings

        def show_line(line: dict[str, Any]) -> None:
            if not self.quiet:
                print(json.dumps(line), flush=True)

        heap = 0 if self.heap == UNLIMITED else KINDS[self.heap].heap
        loaded = project.load(Path(self.project), self.board, stands_in=True, usual_broker=bool(self.broker))
        report = run_emulated.run(loaded, self.broker, self.fresh, show_line, heap, samples=self.samples or 0)
        if self.report(report):
            decisions = ", ".join(f"{n} {source}" for source, n in report["decisions"].items())
            print(f"decisions: {decisions}; files: {report['folder'] or 'none'}", file=sys.stderr)
            if "accuracy" in report:
                labelled = f"{report['labelled']} labelled samples"
                print(f"accuracy {report['accuracy']:.1%}, mean cost {report['cost']:.3f} ({labelled})", file=sys.stderr)
            if report["saved"]:
                print(f"saved so far: {savings.in_words(report['saved'])}", file=sys.stderr)
        if report["trouble"]:
            raise Failure(f"the run was not in order: {'; '.join(report['trouble'])}; what the board said stands above")


def _mode(text: str) -> str:
    """Check that a text is a mode of the policies; "every" means all of them."""
    from ..checks.validate import EVERY

    return OneOf((*EVERY, "every"))(text)


class Validate(Reporting):
    """Both use the same draws; it counts the decisions that differ."""

    examples = (
        "h2t2 validate --bits 4 6 8 --rounds 10000",
        "h2t2 validate --mode every --bits 4 6 8 10 --rounds 20000 --json validation.json",
    )
    bits: list[Annotated[int, Field(ge=1, le=12)]] = option([4, 6, 8], "score bits", metavar="b")
    rounds: Count = option(10000, "rounds of each row")
    seed: NotNegative = option(1, "seed of the draws and the stream")
    mode: list[Annotated[str, AfterValidator(_mode)]] = option(
        ["paper"], "policy options; one-page: Algorithm 1 on one page, whose b is 4; every: all of them"
    )

    def run(self) -> None:
        from ..checks import validate

        cases = [
            (mode, bits) for mode in validate.chosen(self.mode) for bits in ([4] if mode in validate.ONE_PAGE else self.bits)
        ]
        rows = []
        with working("comparing", len(cases) * self.rounds) as bar:
            for mode, bits in cases:
                bar.describe(f"b = {bits}, {mode}")
                rows.append(validate.compare(bits, self.rounds, self.seed, mode, partial(bar.update, advance=1)))
        if self.report(rows):
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
    """TFLite's reference kernels are the oracle."""

    examples = (
        "h2t2 ldl-check models/digits/ldl.tflite --layers",
        "h2t2 ldl-check my.tflite --inputs my_int8.npz --samples 20 --json -",
    )
    model: str = option(..., "a full-int8 .tflite, or a pair's folder", positional=True)
    samples: Count = option(100, "random inputs")
    inputs: str | None = file(None, "an .npz whose x holds int8 inputs, instead of random ones")
    layers: bool = option(False, "compare every step's output, and name the first that differs")
    seed: NotNegative = option(1, "seed of the random inputs")

    def run(self) -> None:
        from ..checks import ldl_check
        from ..common.pairs import local_model

        with working("comparing") as bar:
            model, _ = local_model(Path(self.model))
            report = ldl_check.compare(model, self._inputs(), self.samples, self.seed, self.layers, bar.count)
        if self.report(report):
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
        from ..common.npz import arrays

        inputs = arrays(Path(self.inputs), "x")[0]
        if inputs.dtype != "int8":
            raise UserError(f"{self.inputs}: x is {inputs.dtype}; want the model's own int8 inputs")
        return inputs


class Hil(Reporting):
    """They run on emulated or real boards; it prints a table and writes a JUnit file."""

    examples = ("h2t2 hil", "h2t2 hil --board unix -- -k broker", "h2t2 hil --board pico-desk --port /dev/ttyACM0")
    board: list[str] = option([], "ID of boards.toml, emulated or all; may be given again", unset="emulated", repeat=True)
    port: str | None = option(None, "serial line of a real board")
    hil: str = option("hil", "folder of the tests", metavar="DIR")
    out: str = option("results/hil", "folder for hil.xml and the boards' logs", metavar="DIR")
    pytest: list[str] = option([], "after --: more options for pytest", positional=True)

    def run(self) -> None:
        from ..checks import hil

        boards, out = self.board or ["emulated"], Path(self.out)
        status, rows = hil.run_tests(Path(self.hil), boards, self.port, self.pytest, out)
        if self.report(rows):
            texts, counts = ("board", "firmware"), ("passed", "failed", "skipped", "seconds")
            body = [
                [row["board"] + (" (emulated)" if row["emulated"] else ""), *(str(row[name]) for name in (*texts[1:], *counts))]
                for row in hil.summary(rows)
            ]
            columns = dict.fromkeys(texts, "left") | dict.fromkeys(counts, "right")
            show([Table("hardware in the loop", columns, body, ("seconds", "firmware", "skipped"))])
            print(out / "hil.xml")
        if status:
            raise Failure("some tests failed")
