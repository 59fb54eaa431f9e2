"""What the command groups share: how a command is declared, its common options, and what its reports look like."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from h2t2.link import wire

from ..common import log, matrices, pairs, policies, prior_file
from ..common.corollary import optimal_rates
from ..common.errors import UserError
from ..common.report import Report, Table
from ..common.untrusted import parse_integer, printable
from ..fleet import endpoint


def command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], Any], summary: str, *examples: str
) -> argparse.ArgumentParser:
    """Declare a command, with examples under its help."""
    epilog = "examples:\n" + "\n".join("  " + line for line in examples)
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)  # as the root's
    parser.set_defaults(run=run, parser=parser)
    return parser


def words(args: argparse.Namespace, *without: str) -> list[str]:
    """The command line that gives these arguments, every option that is not at its default; without: options left out."""
    made = []
    for action in args.parser._actions:
        value = getattr(args, action.dest, None)
        if not action.option_strings or action.dest in without or action.dest == "help":
            continue
        if value is None or value is False or value == action.default:
            continue
        name = action.option_strings[-1]
        if action.nargs == 0:
            made.append(name)
        elif isinstance(value, list):
            made += [name, *map(str, value)]
        else:
            made.append(f"{name}={value}")
    return made


def json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON; - for standard output")


def log_options(parser: argparse.ArgumentParser) -> None:
    """What a command has that runs for long and logs."""
    group = parser.add_argument_group("log", "a line a record on standard error: time, level, command, text")
    group.add_argument("--log", choices=log.FORMATS, default=log.FORMATS[0], help="its form (%(default)s)")
    group.add_argument("--verbose", action="store_true", help="log details too")


def begin_log(command: str, args: argparse.Namespace) -> None:
    """Log as log_options() were told. command: whose records they are."""
    log.start(command, args.log, args.verbose)


def positive(text: str) -> int:
    """An argument that must be 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def share(text: str) -> float:
    """An argument that is a cost or a share, 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: want 0 to 1")
    return value


def model_number(text: str) -> int:
    """An argument that numbers a remote model in requests."""
    number = parse_integer(text, 65535)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text} is not in 0..65535")
    return number


def device_name(text: str) -> str:
    """An argument that is a device's name in topics."""
    try:
        return wire.checked_device(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def address(text: str, option: str) -> tuple[str, int]:
    """(host, port) of PORT or HOST:PORT, by default this machine. UserError, naming the option, for anything else."""
    host, _, port = text.rpartition(":")
    number = parse_integer(port, 65535)
    if not number:
        raise UserError(f"{option} {text}: want PORT or HOST:PORT")
    return host or "127.0.0.1", number


def write_json(path: str | None, content: Any) -> None:
    """Write a report where --json asks for it; "-" is standard output."""
    if path == "-":
        print(json.dumps(content, indent=1))
    elif path:
        Path(path).write_text(json.dumps(content, indent=1) + "\n")


class _NoBar:
    """A progress bar that shows nothing."""

    def add_task(self, *_: Any, **__: Any) -> int:
        return 0

    def update(self, *_: Any, **__: Any) -> None: ...

    def advance(self, *_: Any, **__: Any) -> None: ...


@contextmanager
def progress() -> Iterator[Any]:
    """A rich progress bar on standard error, quiet where that is no terminal or rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    except ImportError:
        yield _NoBar()
        return
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        yield bar


def show(report: Report) -> None:
    """Print tables and lines. What devices have said in them is shown, never obeyed."""
    for part in report:
        if isinstance(part, str):
            print(printable(part, "\n"))
        else:
            _print(part)


def _print(table: Table) -> None:
    from rich.console import Console

    console = Console()
    Console(width=None if console.is_terminal else 120).print(drawn(table))


def drawn(part: Table | str) -> Any:
    """A table or a line as rich draws it: its text is no markup, and commands no terminal."""
    from rich.table import Table as Rich
    from rich.text import Text

    if isinstance(part, str):
        return Text(printable(part, "\n"))
    made = Rich(title=Text(printable(part.title)))
    for name, side in part.columns.items():
        made.add_column(Text(printable(name)), justify="left" if side == "left" else "right", no_wrap=side == "left")
    for row in part.rows:
        made.add_row(*(Text(printable(cell)) for cell in row))
    return made


def add_endpoint_options(parser: argparse.ArgumentParser) -> None:
    """--broker and what goes with it."""
    parser.add_argument("--broker", default="mqtt://localhost:1883", help="mqtt[s]://host[:port] (mqtt://localhost:1883)")
    group = parser.add_argument_group("security", "mqtts:// means TLS; the broker's certificate is verified")
    group.add_argument("--ca", metavar="FILE", help="certificate of the authority that signed the broker's (the system's own)")
    group.add_argument("--cert", metavar="FILE", help="our certificate, where the broker wants one (PEM)")
    group.add_argument("--key", metavar="FILE", help="our private key (PEM); readable by its owner alone")
    group.add_argument("--no-verify", action="store_true", help="believe any broker: for a first try only")
    group.add_argument("--user", help="user name")
    group.add_argument(
        "--password-file",
        metavar="FILE",
        help=f"its password, readable by its owner alone (or the environment's {endpoint.PASSWORD})",
    )


def endpoint_of(args: argparse.Namespace) -> endpoint.Endpoint:
    """What add_endpoint_options() was told. UserError, naming the option, for what cannot be used; no secret is in it."""
    files = endpoint.Files(args.ca, args.cert, args.key, args.password_file)
    return endpoint.resolve(args.broker, files, args.user, not args.no_verify)


POLICY_OPTIONS = (
    "bits", "delta_fp", "delta_fn", "eta", "epsilon", "feedback", "exploration", "half_life", "rdl_fp", "rdl_fn",
    "miss_rate", "costs", "rdl_confusion", "seed",
)  # fmt: skip


def add_policy_options(parser: argparse.ArgumentParser) -> None:
    """What `demo` and `node` take for the policy; defaults are the core's."""
    usual = policies.DEFAULTS
    group = parser.add_argument_group("policy")
    group.add_argument("--window", type=int, choices=range(1, 9), default=1, metavar="W", help="offloads in flight, 1..8 (1)")
    group.add_argument("--policy", choices=policies.NAMES, default=policies.NAMES[0], help="which one decides (%(default)s)")
    group.add_argument(
        "--bits", type=int, choices=range(1, 9), default=usual["bits"], metavar="b", help="score bits, 1..8 (%(default)s)"
    )
    group.add_argument("--beta", type=float, help="cost of an offload, 0..1 (the pair's)")
    group.add_argument("--delta-fp", type=float, default=usual["delta_fp"], help="cost of a false alarm, 0..1 (%(default)s)")
    group.add_argument("--delta-fn", type=float, default=usual["delta_fn"], help="cost of a missed event, 0..1 (%(default)s)")
    group.add_argument("--rdl-fp", type=float, default=usual["rdl_fp"], help="how often the remote model says 1 for 0 (0)")
    group.add_argument("--rdl-fn", type=float, default=usual["rdl_fn"], help="how often it says 0 for 1 (0)")
    group.add_argument(
        "--miss-rate",
        type=float,
        default=usual["miss_rate"],
        metavar="M",
        help="adaptive: most of the events missed, 0..1 (any)",
    )
    group.add_argument(
        "--costs", metavar="FILE", help="many classes: .csv, a line each, of what saying each costs (the pair's)"
    )
    group.add_argument(
        "--rdl-confusion", metavar="FILE", help="many classes: .csv, a line each, of how often the RDL says each"
    )
    group.add_argument("--prior", metavar="FILE", help="adaptive: the table to start from, of `h2t2 prior`")
    group.add_argument("--eta", type=float, default=usual["eta"], help="h2t2: learning rate, to 5.5 (%(default)s)")
    group.add_argument("--epsilon", type=float, default=usual["epsilon"], help="h2t2: fixed exploration (%(default)s)")
    group.add_argument(
        "--feedback", choices=policies.FEEDBACK, default=usual["feedback"], help="h2t2: what teaches (%(default)s)"
    )
    group.add_argument(
        "--exploration",
        choices=policies.EXPLORATION,
        default=usual["exploration"],
        help="h2t2: falling, or fixed (%(default)s)",
    )
    group.add_argument(
        "--corollary",
        type=positive,
        metavar="T",
        help="h2t2: epsilon* and eta* of the paper's Corollary 1 for T rounds, with its fixed exploration, explored feedback",
    )
    group.add_argument(
        "--half-life", type=int, default=usual["half_life"], help="h2t2: rounds after which losses are halved (0: never)"
    )
    group.add_argument(
        "--seed", type=int, default=usual["seed"], help="of the policy's draws and of the sample stream (%(default)s)"
    )


def policy_numbers(args: argparse.Namespace, about: pairs.PairInfo) -> dict[str, Any]:
    """People's numbers of those options, as units.policy takes them. about: says what is not given.

    UserError for an option that the policy chosen has not.
    """
    many = about.classes > 2
    taken = policies.option_names(args.policy, many)
    usual = policies.DEFAULTS
    for name in (*POLICY_OPTIONS, "prior", "corollary"):
        needs = "eta" if name == "corollary" else name
        if needs not in taken and getattr(args, name) != usual.get(name):
            option = f"--{name.replace('_', '-')}"
            if many or name in ("costs", "rdl_confusion"):
                raise UserError(f"{option}: not of a pair of {about.classes} classes, as {about.name} is")
            other = next(known for known in policies.NAMES if needs in policies.option_names(known))
            raise UserError(f"{option} is an option of --policy {other}, not of {args.policy}")
    numbers = {"beta": about.beta if args.beta is None else args.beta, **{name: getattr(args, name) for name in POLICY_OPTIONS}}
    numbers["costs"] = matrices.read_costs(Path(args.costs), about.classes) if args.costs else about.costs
    if args.rdl_confusion:
        numbers["rdl_confusion"] = matrices.read_confusion(Path(args.rdl_confusion), about.classes)
    if args.corollary:
        if not 0 < numbers["beta"] <= 1:
            raise UserError(f"--corollary needs a beta in (0, 1], not {numbers['beta']:g}")
        epsilon, eta = optimal_rates(args.bits, args.corollary, numbers["beta"])
        numbers.update(policies.PAPER, epsilon=epsilon, eta=eta)
    if args.prior:
        numbers["prior"] = prior_file.read(Path(args.prior), args.bits)
    return numbers
