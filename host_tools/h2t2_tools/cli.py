"""The command line: what `h2t2` accepts. What a command does is in the module it names."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from . import __version__, cli_boards, cli_int8, cli_link, cli_simulation
from .cli_parts import command, json_option, positive, progress, table, write_json
from .cli_policy import add_policy_options, policy_numbers
from .errors import Failure, UserError


def _demo(args: argparse.Namespace) -> None:
    from . import demo, pairs, policies

    pair = pairs.load(args.model)
    numbers = policy_numbers(args, pair.about.beta)
    policies.make(args.policy, numbers)  # refuses what is wrong before anything starts
    report = demo.run(pair, args.policy, numbers, args.samples, args.broker, args.window, Path(args.out))
    write_json(args.json, report)
    if args.json != "-":
        demo.show(report)


def _validate(args: argparse.Namespace) -> None:
    from . import validate

    rows = []
    with progress() as bar:
        modes = validate.EVERY if "every" in args.mode else args.mode
        for mode in modes:
            for bits in args.bits:
                task = bar.add_task(f"b = {bits}, {mode}", total=args.rounds)
                rows.append(validate.compare(bits, args.rounds, args.seed, mode, partial(bar.advance, task)))
    write_json(args.json, rows)
    if args.json != "-":
        names = ("b", "mode", "rounds", "decisions that differ", "worst probability error", "farthest margin")
        cells = [
            [row["bits"], row["mode"], row["rounds"], row["differ"], f"{row['worst_error']:.1e}", f"{row['margin']:.1e}"]
            for row in rows
        ]
        table(
            f"integer core against float64 reference, seed {args.seed}",
            {name: "left" if name == "mode" else "right" for name in names},
            [[str(cell) for cell in row[:5]] + [row[5] if row[3] else "-"] for row in cells],
        )
    bad = [r for r in rows if r["worst_error"] > 2e-4 or r["margin"] > 1e-4]
    if bad:
        raise Failure(f"{len(bad)} of {len(rows)} rows are outside the bounds (error 2e-4, margin 1e-4)")


def _emulators(args: argparse.Namespace) -> None:
    from . import emulators

    rows = []
    for emulator in emulators.ALL:
        trouble = None
        if args.install:
            try:
                emulator.install()
            except Failure as error:
                trouble = str(error)
        missing = emulator.missing()
        rows.append({"name": emulator.name, "about": emulator.about, "missing": missing and (trouble or missing)})
    write_json(args.json, rows)
    if args.json != "-":
        for row in rows:
            print(f"{row['name']:9} {row['about']}: {row['missing'] or 'ready'}")


def _bench_policy(args: argparse.Namespace) -> None:
    from . import bench

    with progress() as bar:
        task = bar.add_task("measuring", total=None)
        rows = bench.policy(lambda what: bar.update(task, description=what))
    lines = bench.ratios(rows)
    write_json(args.json, {"rows": rows, "ratios": lines})
    if args.json != "-":
        table(
            "one step (decide + learn)",
            {"where": "left", "what": "left", "b": "right", "microseconds": "right", "CRC of the actions": "right"},
            [[row["where"], row["kind"], str(row["bits"]), f"{row['us']:.1f}", f"{row['crc']:08x}"] for row in rows],
        )
        print("\n".join(lines))


def _bench_device(args: argparse.Namespace) -> None:
    from . import bench

    rows = bench.device(args.rounds)
    write_json(args.json, rows)
    if args.json != "-":
        for row in rows:
            print(
                f"emulated micro:bit, MicroPython 1.9.2, b = 4, {row['mode']}: decide + learn {row['instructions_mean']:,.0f} "
                f"instructions on average, {row['instructions_worst']:,.0f} at worst over {row['rounds']} rounds with the heap "
                f"locked; code and state {row['heap_bytes']:,} bytes of heap; actions "
                f"{'equal to' if row['same_as_host'] else 'DIFFERENT from'} the host's"
            )
    if not all(row["same_as_host"] for row in rows):
        raise Failure("the emulated board's actions differ from the host's")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = argparse.ArgumentParser(
        prog="h2t2",
        description="H2T2 Edge: learns online, with integers only, which samples an edge classifier should offload.",
        epilog="h2t2 COMMAND --help shows examples.",
    )
    root.add_argument("--version", action="version", version=f"h2t2 {__version__}")
    commands = root.add_subparsers(metavar="COMMAND", required=True)

    p = command(
        commands,
        "demo",
        _demo,
        "Broker, RDL worker and node on this machine: classify, offload, learn, and show what it cost.",
        "h2t2 demo",
        "h2t2 demo --model digits --beta 0.1 --json -",
        "h2t2 demo --broker mosquitto --feedback explored --exploration epsilon   # the paper's setting",
    )
    p.add_argument("--model", default="breast_cancer", help="shipped pair or folder of one (breast_cancer)")
    p.add_argument("--samples", type=positive, default=2000, help="how many (2000)")
    p.add_argument("--broker", default="amqtt", help="amqtt (in process), mosquitto, or mqtt://host:port (amqtt)")
    p.add_argument("--out", default="results/demo", help="folder for the CSV and the pictures (results/demo)")
    json_option(p)
    add_policy_options(p)

    p = command(
        commands,
        "validate",
        _validate,
        "Drive the integer core and the float64 reference with the same draws and count what differs.",
        "h2t2 validate --bits 4 6 8 --rounds 10000",
        "h2t2 validate --mode every --bits 4 6 8 10 --rounds 20000 --json validation.json",
    )
    from .validate import EVERY

    p.add_argument("--bits", type=int, nargs="+", choices=range(1, 13), default=[4, 6, 8], metavar="b", help="(4 6 8)")
    p.add_argument("--rounds", type=positive, default=10000, help="of each row (10000)")
    p.add_argument("--seed", type=int, default=1, help="of the draws and the stream (1)")
    p.add_argument("--mode", nargs="+", choices=[*EVERY, "every"], default=["paper"], help="policy options (paper)")
    json_option(p)

    p = command(
        commands,
        "emulators",
        _emulators,
        "The MicroPython builds this machine can run in place of a board, and why one cannot.",
        "h2t2 emulators",
        "h2t2 emulators --install   # fetch what needs no root, into ~/.cache/h2t2",
    )
    p.add_argument("--install", action="store_true", help="fetch what is missing")
    json_option(p)

    bench = commands.add_parser("bench", help="Measure both sides of a claim in one run.").add_subparsers(
        metavar="WHAT", required=True
    )
    cli_simulation.add(commands, bench)
    cli_int8.add(commands, bench)
    cli_boards.add(commands)
    cli_link.add(commands, bench)
    p = command(
        bench,
        "policy",
        _bench_policy,
        "Time a step of the dense matrix, the O(2^b) form and the tree core, here and on MicroPython.",
        "h2t2 bench policy --json bench.json",
    )
    json_option(p)
    p = command(
        bench,
        "device",
        _bench_device,
        "Count instructions and heap bytes of the core on an emulated micro:bit (a Cortex-M0 with 16 KB of RAM).",
        "h2t2 bench device --rounds 200",
    )
    p.add_argument("--rounds", type=positive, default=100, help="steps to count (100)")
    json_option(p)
    return root


def main(argv: list[str] | None = None) -> int:
    """Run a command line; the exit status: 0, 1 for a failure, 2 for wrong use, 130 after Ctrl-C."""
    args = parser().parse_args(argv)
    try:
        args.run(args)
    except (UserError, ValueError) as error:
        print(f"h2t2: {error}", file=sys.stderr)
        return 2
    except (Failure, OSError) as error:
        print(f"h2t2: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("h2t2: interrupted", file=sys.stderr)
        return 130
    return 0
