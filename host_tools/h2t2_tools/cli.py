"""The command line: what `h2t2` accepts. What a command does is in the module it names."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

from . import __version__, cli_boards, cli_int8, cli_simulation, units
from .cli_parts import command, json_option, positive, progress, table, write_json
from .errors import Failure, UserError


def _endpoint_options(parser: argparse.ArgumentParser) -> None:
    """What a node and a worker have in common."""
    parser.add_argument("--pair", default="breast_cancer", help="shipped pair or folder of one (breast_cancer)")
    parser.add_argument("--broker", default="mqtt://localhost:1883", help="mqtt://host:port (mqtt://localhost:1883)")
    parser.add_argument(
        "--resolver", choices=["reference", "optimised"], default="reference", help="TFLite kernels (reference)"
    )


def _policy_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("policy")
    group.add_argument("--window", type=int, choices=range(1, 9), default=1, metavar="W", help="offloads in flight, 1..8 (1)")
    group.add_argument("--policy", choices=["h2t2", "calibrating"], default="h2t2", help="which one decides (h2t2)")
    group.add_argument("--bits", type=int, choices=range(1, 9), default=4, metavar="b", help="score bits, 1..8 (4)")
    group.add_argument("--beta", type=float, help="cost of an offload, 0..1 (the pair's)")
    group.add_argument("--delta-fp", type=float, default=0.7, help="cost of a false alarm, 0..1 (0.7)")
    group.add_argument("--delta-fn", type=float, default=1.0, help="cost of a missed event, 0..1 (1)")
    group.add_argument("--eta", type=float, default=1.0, help="learning rate, to 5.5 (1)")
    group.add_argument("--epsilon", type=float, default=0.0625, help="fixed exploration rate (0.0625)")
    group.add_argument("--feedback", choices=["all", "explored"], default="all", help="which offloads teach (all)")
    group.add_argument(
        "--exploration", choices=["anytime", "epsilon"], default="anytime", help="falling or fixed rate (anytime)"
    )
    group.add_argument(
        "--corollary",
        type=positive,
        metavar="T",
        help="epsilon* and eta* of the paper's Corollary 1 for T rounds, with its fixed exploration and explored feedback",
    )
    group.add_argument("--half-life", type=int, default=0, help="rounds after which losses are halved (0: never)")
    group.add_argument("--seed", type=int, default=1, help="of the policy's draws and of the sample stream (1)")


def _numbers(args: argparse.Namespace, beta: float) -> dict[str, Any]:
    names = ("bits", "delta_fp", "delta_fn", "eta", "epsilon", "feedback", "exploration", "half_life", "seed")
    numbers = {"beta": beta if args.beta is None else args.beta, **{name: getattr(args, name) for name in names}}
    if args.corollary:
        if not 0 < numbers["beta"] <= 1:
            raise UserError(f"--corollary needs a beta in (0, 1], not {numbers['beta']:g}")
        epsilon, eta = units.corollary(args.bits, args.corollary, numbers["beta"])
        numbers.update(epsilon=epsilon, eta=eta, feedback="explored", exploration="epsilon")
    return numbers


def _demo(args: argparse.Namespace) -> None:
    from . import demo, pairs, policies

    pair = pairs.load(args.model)
    numbers = _numbers(args, pair.about.beta)
    policies.make(args.policy, numbers)  # refuses what is wrong before anything starts
    report = demo.run(pair, args.policy, numbers, args.samples, args.broker, args.window, Path(args.out))
    write_json(args.json, report)
    if args.json != "-":
        demo.show(report)


def _node(args: argparse.Namespace) -> None:
    from . import broker, edge, pairs, policies

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pair = pairs.load(args.pair)
    policy = policies.make(args.policy, _numbers(args, pair.about.beta), max(8, args.window))
    host, port = broker.parse(args.broker)
    stream = (args.samples, args.seed, args.device, args.window, args.deadline, args.resolver)
    kept = (args.ldl, args.snapshot, args.snapshot_every)
    with edge.open_out(args.out) as out:
        summary = edge.run(pair, policy, edge.Options(host, port, args.bits, *stream, *kept), out)
        print(json.dumps({"summary": summary}), file=out, flush=True)


def _rdl(args: argparse.Namespace) -> None:
    from . import broker, pairs, rdl

    pair = pairs.load(args.pair)
    host, port = broker.parse(args.broker)
    counts = rdl.serve(pair.rdl, pair.about.event_index["rdl"], pair.about.model_id, host, port, args.resolver)
    print("h2t2 rdl: answered: " + (", ".join(f"{n} {what}" for what, n in counts.items()) or "nothing"), file=sys.stderr)
    write_json(args.json, counts)


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
    _policy_options(p)

    p = command(
        commands,
        "node",
        _node,
        "An edge node on this machine: LDL, policy and MQTT link; prints one JSON line a decision.",
        "h2t2 node --pair breast_cancer --broker mqtt://localhost --device kitchen",
        "h2t2 node --pair digits --ldl digits.h2m   # the bundle, by the integer interpreter",
    )
    _endpoint_options(p)
    p.add_argument("--ldl", metavar="FILE", help="an LDL .tflite or .h2m bundle in place of the pair's own")
    p.add_argument("--device", default="node", type=_device, help="name in the topics (node)")
    p.add_argument("--samples", type=positive, default=2000, help="how many test samples to stream (2000)")
    p.add_argument("--deadline", type=positive, default=2000, metavar="MS", help="wait for a label at most (2000 ms)")
    p.add_argument("--out", default="-", metavar="FILE", help="where the JSON lines go (-: standard output)")
    p.add_argument("--snapshot", metavar="PATH", help="keep what is learned in PATH.0 and PATH.1, and go on from there")
    p.add_argument("--snapshot-every", type=positive, default=500, metavar="N", help="samples between two saves (500)")
    _policy_options(p)

    p = command(
        commands,
        "rdl",
        _rdl,
        "The remote model's worker: answers offloaded samples until SIGTERM or Ctrl-C.",
        "h2t2 rdl --pair digits --broker mqtt://localhost:1883 --resolver optimised",
    )
    _endpoint_options(p)
    json_option(p)

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


def _device(text: str) -> str:
    if not text or len(text) > 64 or set(text) & set("/+#\0"):
        raise argparse.ArgumentTypeError(f"{text!r}: want 1 to 64 characters without / + #")
    return text


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
