"""The benchmarks: each command measures both sides of a claim in one run."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ..common.errors import Failure, UserError
from ..common.fields import DAY_S, Count, Duration, file, option
from .gate import PresetName
from .options import Reporting
from .output import show, working

Time = Annotated[Duration, Field(gt=0, le=DAY_S)]


class Benchmark(Reporting):
    """A benchmark of proof/bench: its options are the arguments of that module's measure(). module: named as the class."""

    module: ClassVar[str]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.module = cls.__name__.lower()

    def run(self) -> None:
        self.measure(self.model_dump(exclude={"json_file"}), {})

    def measure(self, arguments: dict[str, Any], layout: dict[str, Any]) -> None:
        """Measure and report.

        Args:
            arguments: of the module's measure().
            layout: of the module's report().

        Raises:
            Failure: a goal was missed.
        """
        bench = import_module(f"..proof.bench.{self.module}", __package__)
        with working("measuring") as bar:
            measured = bench.measure(bar.describe, **arguments)
        self.report(measured)
        self.keep(measured)
        if not self.quiet:
            show(bench.report(measured, **layout))
        trouble = bench.broken(measured) if hasattr(bench, "broken") else None
        if trouble:
            raise Failure("; ".join(trouble))

    def keep(self, measured: Any) -> None:
        """Write a measurement into files, where options name some."""


class Policy(Benchmark): ...


class Simulate(Benchmark): ...


class Memory(Benchmark): ...


class Fidelity(Benchmark): ...


class Kernels(Benchmark): ...


class Signals(Benchmark): ...


class Tls(Benchmark): ...


class Install(Benchmark): ...


class Saving(Benchmark): ...


class Device(Benchmark):
    rounds: Count = option(100, "steps to count")


class Ldl(Benchmark):
    model: str = option(
        ..., "a full-int8 .tflite; or (extra convert) mobilenet_v1, resnet_8, ds_cnn, autoencoder", positional=True
    )
    runs: Count = option(3, "inputs")

    def run(self) -> None:
        from ..proof.bench.ldl import model_file

        with model_file(self.model) as path:
            self.measure({"path": path, "runs": self.runs}, {"name": self.model, "runs": self.runs})


class Trees(Benchmark):
    trees: Count = option(20, "trees of each forest")
    depth: Count = option(7, "depth of the trees at most")
    runs: Count = option(20, "samples that are timed")


class Operators(Benchmark):
    out: str | None = file(None, "write the table of cycles that h2t2 inspect --board reads", unset="nothing is written")


class Cuts(Benchmark):
    rounds: Count = option(30, "writes of each kind in memory, all operations of each cut")
    cuts: Count = option(4, "cuts of each kind on the Pico")
    full: bool = option(False, "on the Pico, too, cut before and in the middle of every operation")


class Offload(Benchmark):
    seconds: Time = option(4.0, "time of each measurement")
    devices: Count = option(50, "simulated devices")


class Overload(Benchmark):
    seconds: Time = option(8.0, "time of each measurement")
    devices: Count = option(50, "simulated devices")


class Gate(Benchmark):
    seconds: Time = option(5.0, "time of each measurement")


class Presets(Benchmark):
    only: list[PresetName] = option([], "play these presets alone", unset="all", metavar="PRESET")
    hours: Annotated[int, Field(ge=1, le=24)] = option(24, "hours of the day, from midnight")
    per_hour: Count = option(60, "messages of each stream in an hour")
    pages: str | None = file(None, "folder of the presets' pages, whose measured parts are written anew", unset="no page")

    def run(self) -> None:
        self.measure(self.model_dump(exclude={"json_file", "pages"}), {})

    def keep(self, measured: Any) -> None:
        if self.pages:
            from ..proof.gate_day import pages

            pages.write(Path(self.pages), measured)


class Dashboard(Benchmark):
    seconds: Time = option(60.0, "time of each measurement")
    devices: Count = option(500, "simulated devices")


class Fleet(Benchmark):
    seconds: Time = option(6.0, "time of each measurement")
    nodes: list[Count] = option([10, 100, 1000], "simulated nodes", metavar="N")
    workers: list[Count] = option([1, 2, 4], "worker processes", metavar="N")

    def run(self) -> None:
        nodes, workers = tuple(sorted({*self.nodes})), tuple(sorted({*self.workers}))
        self.measure({"seconds": self.seconds, "nodes": nodes, "workers": workers}, {})


class Everything(Reporting):
    only: list[str] | None = option(
        None, "run these alone; the page and the README keep the others' figures", unset="all", metavar="BENCH"
    )
    readme: str | None = file(None, "a README whose table of figures is written anew")
    out: str | None = file(None, "the page", unset="standard output")

    def run(self) -> None:
        from ..proof.bench import all as every

        names = [name for name in every.NAMES if self.only is None or name in self.only]
        if self.only:
            if not set(self.only) <= set(names):
                raise UserError(f"--only: want some of {', '.join(every.NAMES)}")
            if not (self.out and Path(self.out).is_file()):
                raise UserError("--only: needs the page whose other sections stay: --out docs/benchmarks.md")
        with working("measuring") as bar:
            measured = every.measure(bar.describe, names)
        self.report(measured)
        page = every.renew(Path(str(self.out)).read_text(), measured) if self.only else every.page(measured)
        if self.readme:
            Path(self.readme).write_text(every.quote(Path(self.readme).read_text(), measured))
        if self.out:
            Path(self.out).write_text(page)
        elif not self.quiet:
            print(page, end="")
