"""What `h2t2 flash` refuses: a configuration that would be useless, and a board that cannot run the node."""

import secrets
from math import prod
from pathlib import PurePosixPath
from typing import Any

from h2t2.node.ports import PORTS

from ..common.errors import UserError
from ..fleet.config import NodeConfig
from . import frozen
from .kinds import Contents, Kind
from .node_heap import in_parts
from .targets import MPY_FORMAT, BoardInfo

SLEEPS_FROM = (1, 26)  # MicroPython with which a board with a cyw43 radio sleeps
PLACEHOLDER = "network"  # the network's name in a new section of an h2t2.toml
SMALLER = (
    "leave the weights in flash (stream = true), do without a head (features = 0), the past (ordered = false) or the policy's "
    "machine code (machine_code = false), use a smaller model, or another board"
)


def refuse(kind: Kind, contents: Contents) -> None:
    """Refuse a configuration that would start but be useless.

    Raises:
        UserError: The node has no samples to decide about, no network, a watchdog that its chip does not support, or an app for
            another model.
    """
    config = contents.config
    if contents.frozen and not kind.build:
        raise UserError(f"--frozen: nobody freezes a runtime for {kind.with_article}, only for {', '.join(frozen.freezable())}")
    if contents.frozen and not contents.mpy:
        raise UserError("--frozen and --source exclude each other: a frozen runtime is compiled")
    if not config.app and contents.records is None:
        raise UserError('the node has no samples: set app = "app.py" in h2t2.toml, or put recorded samples beside that file')
    port = PORTS.get(kind.platform)
    if port and config.watchdog_ms > port.watchdog_ms:
        raise UserError(
            f'watchdog = "{config.watchdog_ms}ms": the watchdog of {kind.with_article} takes at most {port.watchdog_ms} ms; '
            "the board would not start"
        )
    if config.sleep == "deep" and not config.app:
        raise UserError('sleep = "deep": each waking starts the recorded samples anew: set `app`')
    if config.provision:
        _refuse_provision(kind, config)
    elif "wifi" in kind.links and config.wifi_name in ("", PLACEHOLDER) and "link" not in config.content():
        raise UserError(f"wifi_name = {config.wifi_name!r} in the configuration: replace it with your network's name")
    if config.wifi_security != "none" and kind.platform != "rp2":
        raise UserError(f"wifi_security: {kind.with_article} takes the security of the access point: remove this entry")
    if config.app:
        sizes = {"local": contents.ldl.input_size, "remote": prod(config.remote_shape)}
        measured = config.content()["measured"]
        for name, size in sizes.items():
            count = len(measured[name]["multipliers"])
            if count != size:
                raise UserError(
                    f"pair = {config.pair!r}: its {name} model takes {count} numbers, "
                    + (f"{contents.model} {size}" if name == "local" else f"remote_shape = {config.remote_shape} is {size}")
                )


def _refuse_provision(kind: Kind, config: NodeConfig) -> None:
    """Refuse an access point that cannot be, or that would hear a password in the clear."""
    if "wifi" not in kind.links:
        raise UserError(f"provision: {kind.with_article} has no Wi-Fi, so no access point: remove this entry")
    if config.wifi_name == PLACEHOLDER:
        raise UserError(f'wifi_name = {config.wifi_name!r}: write wifi_name = "", which the page then asks for')
    if not config.provision_password:
        random = secrets.token_hex(5)
        raise UserError(
            f'provision: the access point needs a password: add provision_password = "{random}" (random; 8 to 63 characters)'
        )


def check(
    kind: Kind, info: BoardInfo, port: str, rows: list[dict[str, Any]], heap: dict[str, int] | None, contents: Contents
) -> None:
    """Check that a board can run the node, before anything on it changes.

    Raises:
        UserError: It is another board, its MicroPython is too old, its firmware holds another runtime than `--frozen` needs, or
            it has too little flash or heap.
    """
    if info.platform != kind.platform:
        raise UserError(f"{port}: this board reports {info.platform!r}, but {kind.name} needs {kind.platform!r}")
    if info.version[:2] < kind.oldest:
        version = ".".join(map(str, info.version))
        raise UserError(f"{port}: MicroPython {version}; {kind.name} needs {'.'.join(map(str, kind.oldest))} or newer")
    if contents.frozen and info.frozen != frozen.runtime(kind):
        theirs = f"the runtime {info.frozen}" if info.frozen else "no runtime"
        raise UserError(
            f"{port}: its firmware holds {theirs}, but --frozen needs {frozen.runtime(kind)}: write the firmware of "
            f"`h2t2 firmware {kind.name}` onto the board, or leave --frozen out"
        )
    if compiled(kind, contents) and info.mpy_format != MPY_FORMAT:
        theirs, ours = (".".join(map(str, version)) for version in (info.mpy_format, MPY_FORMAT))
        raise UserError(f"{port}: its firmware loads .mpy format {theirs}, these files have {ours}: give --source")
    sleep = contents.config.sleep
    if sleep != "none" and info.platform == "rp2" and "wifi" in kind.links and info.version[:2] < SLEEPS_FROM:
        raise UserError(
            f"{port}: sleep = {sleep!r}: with MicroPython 1.25 the radio of {kind.with_article} ends every sleep at once "
            "(micropython issues 16181 and 17204): install 1.26 or newer"
        )
    if heap is not None and info.heap < sum(heap.values()):
        raise UserError(f"{port}: the node takes {in_parts(heap)} of heap, but {info.heap:,} are free: {SMALLER}")


def check_room(info: BoardInfo, port: str, sizes: dict[str, int], folders: set[str]) -> None:
    """Check that files have room beside those that they will replace.

    Args:
        info, port: The board and its name in the message.
        sizes: Bytes of each file to copy, by path.
        folders: The folders that the board has.

    Raises:
        UserError: The file system is too small. littlefs gives a file whole blocks, and a folder two.
    """
    new = {str(above) for path in sizes for above in PurePosixPath(path).parents} - folders - {"."}
    blocks = sum(max(1, -(-size // info.block)) for size in sizes.values()) + 2 * len(new)
    need = blocks * info.block
    if 0 <= info.flash < need:
        raise UserError(
            f"{port}: {sum(sizes.values()):,} bytes to copy take {need:,} in its file system, which has {info.flash:,} free; "
            "the present files stay until the new ones are complete"
        )


def compiled(kind: Kind, contents: Contents) -> bool:
    """Return whether .mpy files are copied. A micro:bit's program is one source file."""
    return contents.mpy and not contents.frozen and kind.name != "microbit"
