"""The commands about nodes, workers and the broker: node, rdl, command, certs, broker-config."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from h2t2.units import q15

from ..common import durations, prior_file
from ..common.errors import UserError
from ..common.untrusted import parse_integer
from .options import (
    add_endpoint_options,
    add_policy_options,
    address,
    begin_log,
    command,
    device_name,
    endpoint_of,
    json_option,
    log_options,
    model_number,
    policy_numbers,
    positive,
    share,
    words,
    write_json,
)

LOG = logging.getLogger(__name__)


def _time(text: str) -> str:
    """An argument that is a time."""
    try:
        return durations.check_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _node(args: argparse.Namespace) -> None:
    from ..common import cost_table, pairs
    from ..fleet import node
    from ..fleet.config import NodeConfig

    begin_log("node", args)
    pair, to = pairs.load(args.pair), endpoint_of(args)
    config = NodeConfig(
        device=args.device,
        broker=to.host,
        port=to.port,
        event=pair.info.event_output("ldl"),
        remote_shape=pair.info.remote.shape,
        remote_dtype=pair.info.remote.dtype,
        remote_media=pair.info.remote.media,
        remote_limit=pair.info.remote.limit,
        model_id=pair.info.model_id,
        policy=args.policy,
        in_flight=args.window,
        hold=args.hold,
        deadline_ms=args.deadline,
        every=args.every,
        when_down=args.when_down,
        offload_cost=cost_table.read(Path(args.cost)) if args.cost else None,
        budget=args.budget,
        app=args.app or "",
        pair=str(pair.folder.resolve()) if args.app else "",
        report_decisions=args.report_decisions,
        snapshot=args.snapshot or "",
        snapshot_every=args.snapshot_every,
        snapshot_ldl=args.snapshot_ldl,
        snapshot_mismatch=args.snapshot_mismatch,
        update_key=str(Path(args.update_key).resolve()) if args.update_key else "",
        update_app=args.update_app,
        **policy_numbers(args, pair.info),
    )
    drawn = pairs.draw_indices(pair, args.samples, args.seed).tolist()
    order = node.order(Path(args.order), len(pair.x)) if args.order else drawn
    samples = None if args.app else node.Samples(pair, order)
    with node.output(args.out) as out:
        runner = node.Runner(config, args.ldl or str(pair.ldl), args.resolver, samples, out, _opener(args.resolver))
        print(json.dumps({"summary": runner.stream(to)}), file=out, flush=True)


def _opener(resolver: str) -> Callable[..., Any]:
    """What opens the local model of a node."""
    from h2t2.ldl.open import open_ldl

    def exact(model: str, event: int, bits: int, *how: Any) -> Any:
        from ..model.exact import open_exact

        return open_exact(Path(model), event, bits) if model.endswith(".tflite") else open_ldl(model, event, bits, *how)

    return exact if resolver == "exact" else open_ldl


def _model_options(parser: argparse.ArgumentParser, *also: str) -> None:
    """What a node and a worker have in common. also: resolvers beside TFLite's."""
    parser.add_argument("--pair", default="breast_cancer", help="shipped pair or folder of one (breast_cancer)")
    exact = "; exact: the integer interpreter, bit for bit as boards" if also else ""
    parser.add_argument(
        "--resolver",
        choices=["reference", "optimised", *also],
        default="reference",
        help=f"TFLite's kernels (reference){exact}",
    )
    add_endpoint_options(parser)


def _add_node(commands: Any) -> None:
    p = command(
        commands,
        "node",
        _node,
        "An edge node on this machine: LDL, policy and MQTT link; prints one JSON line a decision.",
        "h2t2 node --pair breast_cancer --broker mqtt://localhost --device kitchen",
        "h2t2 node --pair digits --ldl digits.h2m   # the bundle, by the integer interpreter",
        "h2t2 node --broker mqtts://broker.lan --ca ca.crt --user kitchen --password-file kitchen.secret --device kitchen",
    )
    _model_options(p, "exact")
    p.add_argument("--ldl", metavar="FILE", help="an LDL .tflite or .h2m bundle in place of the pair's own")
    p.add_argument("--device", default="node", type=device_name, help="name in the topics (node)")
    p.add_argument("--samples", type=positive, default=2000, help="how many test samples to stream (2000)")
    p.add_argument("--order", metavar="FILE", help="stream these test samples instead: their numbers, one a line")
    p.add_argument(
        "--every", type=_time, default="", metavar="TIME", help="a sample every 2s, 500ms, 5min (as fast as it goes)"
    )
    p.add_argument("--deadline", type=positive, default=2000, metavar="MS", help="every decision is out by then (2000 ms)")
    p.add_argument("--out", default="-", metavar="FILE", help="where the JSON lines go (-: standard output)")
    p.add_argument("--snapshot", metavar="PATH", help="keep what is learned in PATH.0 and PATH.1, and go on from there")
    p.add_argument(
        "--snapshot-every",
        type=positive,
        default=250,
        metavar="N",
        help="labels between two saves, after the first ones, which are saved early (250)",
    )
    p.add_argument("--snapshot-ldl", action="store_true", help="keep what a streaming LDL has seen as well (PATH.ldl.0, .1)")
    p.add_argument(
        "--snapshot-mismatch",
        choices=["fresh", "stop"],
        default="fresh",
        help="a snapshot of another policy or version: keep it under another name and begin anew, or stop (fresh)",
    )
    p.add_argument(
        "--when-down",
        choices=["ask", "raise", "pause"],
        default="ask",
        help="while nobody answers: ask the policy and fall back, raise beta to 1, or pause the policy (ask)",
    )
    p.add_argument(
        "--hold", type=positive, default=256, metavar="N", help="offloads whose label, however late, still teaches (256)"
    )
    p.add_argument("--update-key", metavar="FILE", help="take update packages signed with it: the public key, of h2t2 keys")
    p.add_argument("--update-app", action="store_true", help="a package may bring a new app.py")
    p.add_argument("--app", metavar="FILE", help="your own program, sense() and act(decision), in place of the pair's samples")
    p.add_argument("--budget", default="", metavar="B", help="most that is offloaded: 10%%, 200/day, 500kB/day, 2000mJ/hour")
    p.add_argument(
        "--report-decisions",
        action="store_true",
        help="publish the state within a second after a changed decision, for `h2t2 home-assistant` (every ten seconds)",
    )
    p.add_argument("--cost", metavar="FILE", help="measure beta: a .toml with seconds, kilobytes, millijoules that count as 1")
    add_policy_options(p)
    log_options(p)


def _rdl(args: argparse.Namespace) -> None:
    from ..fleet.rdl import pool

    metrics = address(args.metrics, "--metrics") if args.metrics else None

    begin_log("rdl", args)
    if args.model == "human":
        counts = _person(args, metrics)
    elif os.environ.get(pool.PARENT):
        counts = _worker(args, metrics, int(os.environ[pool.PARENT]))
    else:
        # a password comes by file or environment, never here
        one = words(args, "workers", "metrics", "json", "keep_refused", "log")
        if args.workers > 1 and args.user and "{}" not in args.user:
            LOG.warning("a broker of h2t2 broker-config lets a user connect once: give --user NAME-{}")
        commands = []
        for n in range(args.workers):
            own = [f"--metrics={metrics[0]}:{metrics[1] + n}"] if metrics else []
            commands.append([word.replace("{}", str(n + 1)) for word in one] + own)
        counts = pool.supervise(commands, Path(args.keep_refused))
        LOG.info("answered: %s", ", ".join(f"{n} {what}" for what, n in counts.items()) or "nothing")
    write_json(args.json, counts)


def _person(args: argparse.Namespace, metrics: tuple[str, int] | None) -> dict[str, int]:
    """Somebody at this terminal answers; the counts of that."""
    from ..common import pairs
    from ..fleet.rdl import person
    from ..fleet.rdl.server import Options
    from .person import ask

    pair = pairs.load(args.pair)
    names = person.classes(pair, args.classes)
    model_id = pair.info.model_id if args.model_id is None else args.model_id
    options = Options(metrics=metrics, watch=False, keep=Path(args.keep) if args.keep else None, keep_mb=args.keep_mb)
    with person.by_a_person(pair, model_id, endpoint_of(args), options) as (server, desk):
        LOG.info("ready: you are model %d", model_id)
        ask(pair, desk, names, LOG.info)
    return dict(server.worker.counts)


def _output(text: str) -> str:
    """An argument that is an output of a model, or all of them."""
    if text != "all" and parse_integer(text, 65535) is None:
        raise argparse.ArgumentTypeError(f"{text!r}: want a number from 0, or all")
    return text


def _worker(args: argparse.Namespace, metrics: tuple[str, int] | None, whose: int) -> dict[str, int]:
    """One worker, which is its parent's: what it has answered."""
    from ..common import pairs, parent
    from ..fleet.rdl import models, server

    parent.end_with_parent()
    pair = pairs.load(args.pair)
    then = models.Then(args.then, args.then_beta, args.then_secret) if args.then else None
    source = models.of_pair(pair, args.model, args.event, args.resolver, args.model_secret, then)
    model_id = pair.info.model_id if args.model_id is None else args.model_id
    keep = Path(args.keep) if args.keep else None
    options = server.Options(
        args.batch, args.wait_ms, args.queue, metrics, not args.no_watch, whose, args.hang_after, keep, args.keep_mb
    )
    return server.serve(source, model_id, endpoint_of(args), options, LOG.info)


def _add_rdl(commands: Any) -> None:
    p = command(
        commands,
        "rdl",
        _rdl,
        "The remote model's worker: answers offloaded samples until SIGTERM or Ctrl-C; SIGHUP reloads the model.",
        "h2t2 rdl --pair digits --broker mqtt://localhost:1883 --resolver optimised",
        "h2t2 rdl --pair digits --workers 4 --metrics 9100   # /metrics and /healthz on ports 9100 to 9103",
        "h2t2 rdl --pair digits --workers 4 --user rdl-{} --password-file broker/secrets/rdl-{}   # each its own login",
        "h2t2 rdl --pair digits --model big.onnx",
        "h2t2 rdl --pair digits --model mine.py:scores   # int8 array (n, ...) in, n scores out",
        "h2t2 rdl --pair digits --model http://gpu.lan:8000/v2/models/digits#predict_proba",
        "h2t2 rdl --pair doorbell --model human --classes nobody person --keep kept   # you answer by key",
        "h2t2 rdl --pair doorbell --model small.onnx --then vision.toml --then-beta 0.3   # who is asked where it is unsure",
    )
    _model_options(p)
    p.add_argument(
        "--model",
        metavar="MODEL",
        help="in place of the pair's RDL: .tflite, .onnx, FILE.py:FUNCTION, a URL, http://HOST/v2/models/NAME (KServe, Triton, "
        "MLServer), .toml (a language model that sees pictures), or human: somebody at this terminal",
    )
    p.add_argument("--classes", nargs="+", metavar="NAME", help="what the classes are called, for --model human (0, 1, ...)")
    p.add_argument(
        "--model-secret", default="", metavar="FILE", help="the token of the model's server (else $H2T2_REMOTE_TOKEN)"
    )
    p.add_argument("--then", metavar="MODEL", help="a second model, asked where the first one is unsure")
    p.add_argument(
        "--then-beta", type=share, default=0.2, metavar="B", help="what asking the second costs, as beta does, 0 to 1 (0.2)"
    )
    p.add_argument(
        "--then-secret", default="", metavar="FILE", help="the token of the second model's server (else $H2T2_THEN_TOKEN)"
    )
    p.add_argument("--event", type=_output, metavar="N", help="which output is class 1, or all: each is a class (the pair's)")
    p.add_argument("--model-id", type=model_number, metavar="N", help="which requests are its own (the pair's)")
    p.add_argument("--workers", type=positive, default=1, metavar="N", help="processes on this machine (1)")
    p.add_argument("--batch", type=positive, default=16, metavar="N", help="requests a micro-batch at most (16)")
    p.add_argument("--wait-ms", type=float, default=0.0, metavar="MS", help="a batch waits so long for more requests (0)")
    p.add_argument(
        "--queue", type=positive, default=256, metavar="N", help="requests waiting at most; more get status busy (256)"
    )
    p.add_argument(
        "--hang-after",
        type=float,
        default=10.0,
        metavar="S",
        help="a worker whose model takes so long beyond what is expected is replaced (10)",
    )
    p.add_argument(
        "--keep-refused",
        default="h2t2-refused",
        metavar="DIR",
        help="where a request's data go that hung the model twice and is refused then (h2t2-refused)",
    )
    p.add_argument(
        "--keep",
        metavar="DIR",
        help="keep the answered samples and their labels, for `h2t2 samples` (nothing is kept)",
    )
    p.add_argument(
        "--keep-mb", type=positive, default=1000, metavar="MB", help="room for them; then the oldest are thinned out (1000)"
    )
    p.add_argument("--metrics", metavar="[HOST:]PORT", help="Prometheus and health check (none; the host is 127.0.0.1)")
    p.add_argument("--no-watch", action="store_true", help="reload the model on SIGHUP only, not when its file changes")
    json_option(p)
    log_options(p)


def _cost(true: str, said: str, cost: str) -> list[int]:
    """What the command bears of a --cost."""
    try:
        return [int(true), -1 if said == "any" else int(said), q15(float(cost), "cost")]
    except ValueError as error:
        raise UserError(f"--cost {true} {said} {cost}: {error}; want a class, a class or any, and a cost") from None


def _command(args: argparse.Namespace) -> None:
    from ..fleet import command as remote_command

    given = {name: getattr(args, name) for name in ("beta", "delta_fp", "delta_fn")}
    content: dict[str, Any] = {}
    costs: dict[str, Any] = {name: q15(value, name) for name, value in given.items() if value is not None}
    if args.cost:
        costs["costs"] = [_cost(*words) for words in args.cost]
    if costs:
        content["set"] = costs
    if args.pause is not None:
        content["pause"] = args.pause
    content.update({name: True for name in ("snapshot", "reset") if getattr(args, name)})
    if args.prior:
        content["prior"] = [q15(p, "prior") for p in prior_file.read(Path(args.prior))]
    if len(content) != 1:
        costs_are = "costs (--beta, --delta-fp, --delta-fn, --cost)"
        raise UserError(f"command: want one of {costs_are}, --prior, --pause, --snapshot, --reset")
    note = remote_command.send(endpoint_of(args), args.device, content, args.wait)
    write_json(args.json, {"device": args.device, "command": content, "note": note})
    if args.json != "-":
        print(f"done by {args.device}: {json.dumps(content)}{note and f'; it says: {note}'}")


def _add_command(commands: Any) -> None:
    p = command(
        commands,
        "command",
        _command,
        "Tell a device something (new costs, snapshot, reset, pause) and wait for its answer. "
        "It takes four at once, then one each 15 s.",
        "h2t2 command kitchen --beta 0.25",
        "h2t2 command sorter --cost 8 any 1 --cost 8 3 0.5   # many classes: a missed 8, and one taken for a 3",
        "h2t2 command kitchen --pause 600 --broker mqtts://broker.lan:8884 --ca ca.crt --user operator --password-file pw",
    )
    p.add_argument("device", type=device_name, help="its name")
    p.add_argument("--beta", type=float, help="cost of an offload from now on, 0..1")
    p.add_argument("--delta-fp", type=float, help="cost of a false alarm, 0..1")
    p.add_argument("--delta-fn", type=float, help="cost of a missed event, 0..1")
    p.add_argument(
        "--cost",
        nargs=3,
        action="append",
        metavar=("TRUE", "SAID", "C"),
        help="many classes: what saying SAID (any: whatever else) costs when it is TRUE, 0..1; again for more",
    )
    p.add_argument("--prior", metavar="FILE", help="a table of `h2t2 prior --bits 4`, until it starts again")
    p.add_argument("--pause", type=int, metavar="S", help="seconds without offloads, to 86400; 0 ends it")
    p.add_argument("--snapshot", action="store_true", help="save what it has learned now")
    p.add_argument("--reset", action="store_true", help="reset learning: drop what the device has learned")
    p.add_argument("--wait", type=float, default=10.0, metavar="S", help="seconds for its answer; it expires then (10)")
    add_endpoint_options(p)
    json_option(p)


def _certs(args: argparse.Namespace) -> None:
    from ..fleet import certs

    out = Path(args.out)
    if args.revoke:
        count = certs.revoke(out, args.revoke)
        write_json(args.json, {"revoked": args.revoke, "certificates": count})
        if args.json != "-":
            print(f"{count} certificates taken back; the broker learns it from: h2t2 broker-config, and a restart")
        return
    paths = [str(path) for path in certs.make(out, args.host, args.name, args.days)]
    write_json(args.json, {"files": paths})
    if args.json != "-":
        print("\n".join(paths))


def _add_certs(commands: Any) -> None:
    p = command(
        commands,
        "certs",
        _certs,
        "A development certificate authority, the broker's certificate, and one for each device or worker (EC P-256).",
        "h2t2 certs --out certs --host localhost 127.0.0.1 --name kitchen hall rdl operator",
        "h2t2 certs --out certs --revoke kitchen   # then broker-config again, and restart the broker",
    )
    p.add_argument("--out", default="certs", metavar="DIR", help="folder; the authority in it is used again (certs)")
    p.add_argument("--host", nargs="+", default=["localhost", "127.0.0.1"], help="the broker's names and addresses (localhost)")
    p.add_argument("--name", nargs="+", default=[], help="devices and workers")
    p.add_argument("--revoke", nargs="+", metavar="NAME", help="take back what was issued to these names, and make nothing")
    p.add_argument("--days", type=float, default=365, help="how long they hold (365)")
    json_option(p)


def _broker_config(args: argparse.Namespace) -> None:
    from ..fleet import broker_config

    certs = Path(args.certs) if args.certs else None
    ports = (args.port, args.worker_port)
    workers = broker_config.numbered(args.worker)
    plan = broker_config.Plan(args.device, workers, certs, args.client_certs, *ports, args.bind, tuple(args.operator))
    report = broker_config.write(Path(args.out), plan, args.owner)
    write_json(args.json, report)
    if args.json == "-":
        return
    print(f"mosquitto -c {report['config']}")
    print(f"devices: port {report['ports']['devices']}; workers and operator: port {report['ports']['workers']}")
    if report["secrets"]:
        print(f"passwords, a file each: {Path(report['secrets'][0]).parent}/")
    if not report["tls"]:
        print("without TLS names, passwords and samples can be read on the way: h2t2 certs, then --certs", file=sys.stderr)


def _add_broker_config(commands: Any) -> None:
    p = command(
        commands,
        "broker-config",
        _broker_config,
        "A ready Mosquitto configuration: a device reaches only its own topics, only workers may reply.",
        "h2t2 broker-config --out broker --device kitchen hall --certs certs",
        "h2t2 broker-config --out broker --device kitchen hall --certs certs --client-certs --bind 0.0.0.0",
        "h2t2 broker-config --out broker --device kitchen --worker rdl:4   # for: h2t2 rdl --workers 4 --user rdl-{}",
    )
    p.add_argument("--out", default="broker", metavar="DIR", help="folder (broker)")
    p.add_argument("--device", nargs="+", required=True, help="the devices' names, which are their user names")
    p.add_argument(
        "--worker", nargs="+", default=["rdl"], help="user names of RDL workers, a process each; NAME:4: NAME-1 to -4 (rdl)"
    )
    p.add_argument("--operator", nargs="+", default=["operator"], help="user names of those who send commands (operator)")
    p.add_argument("--certs", metavar="DIR", help="folder of h2t2 certs: TLS (none)")
    p.add_argument("--client-certs", action="store_true", help="certificates in place of passwords")
    p.add_argument("--port", type=int, default=0, help="for devices (8883; without TLS 1883)")
    p.add_argument("--worker-port", type=int, default=0, help="for workers and the operator (8884; without TLS 1884)")
    p.add_argument("--bind", default="127.0.0.1", help="address to listen on; 0.0.0.0: the network (127.0.0.1)")
    p.add_argument("--owner", metavar="USER", help="when root writes this: whose the files become (mosquitto)")
    json_option(p)


def add(commands: Any) -> None:
    """Declare them."""
    for declare in (_add_node, _add_rdl, _add_command, _add_certs, _add_broker_config):
        declare(commands)
