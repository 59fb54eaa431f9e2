"""Milliseconds and millijoules of a model on a board, and of an offload, from measured cycles and the numbers of power.toml."""

from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from h2t2.ldl.bundle import Int8Model

from ..common import places, toml_file
from ..common.errors import UserError
from . import cycles


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Power(_Strict):
    """A board's consumption in one state: milliwatts, and the source of the number. checked: the source was read."""

    mw: float
    checked: bool
    source: str


class Assumed(_Strict):
    """What no data sheet says: times of the network in milliseconds, rates in kilobits per second, frames of an offload."""

    answer_ms: float
    connect_ms: float
    wifi_kbps: float
    wifi_frame_ms: float
    wifi_frames: int
    line_kbps: float


class BoardPower(_Strict):
    """A board: its processor, clock in MHz, whether its cycles are the chip's own, its link, and its consumption."""

    chip: str
    clock_mhz: int
    cycles: Literal["measured", "derived"]
    link: Literal["wifi", "line"]
    active: Power
    sleep: Power
    transmit: Power | None = None
    receive: Power | None = None


class Powers(_Strict):
    """The content of power.toml."""

    assumed: Assumed
    boards: dict[str, BoardPower]


@lru_cache(maxsize=1)
def powers() -> Powers:
    """Return the content of power.toml."""
    return toml_file.load(places.PACKAGE / "model/power.toml", Powers)


def board_power(name: str) -> BoardPower:
    """Return the numbers of a board. Raise UserError, which names the boards that have some, for another one."""
    boards = powers().boards
    if name not in boards:
        raise UserError(f"--board {name}: nobody has entered its consumption; want one of {', '.join(boards)}")
    return boards[name]


def inference(model: Int8Model, name: str, way: str = cycles.WAYS[0]) -> dict[str, Any]:
    """Predict one inference on a board.

    Args:
        model: An open bundle.
        name: The board, as in power.toml.
        way: One of cycles.WAYS.

    Returns:
        {"board", "way", "cycles_are", "clock_mhz", "milliwatts", "operators", "ms", "mj", "not_measured"}. operators: rows
        {"operator", "products", "cycles", "ms", "mj"}, None for an operator whose cycles nobody has measured; ms, mj: their
        sum, None where one is not measured. not_measured: names of such operators.

    Raises:
        UserError: No such board.
    """
    board = board_power(name)
    rows = cycles.predict(model, way)
    for row in rows:
        row["ms"] = None if row["cycles"] is None else row["cycles"] / board.clock_mhz / 1000
        row["mj"] = None if row["ms"] is None else row["ms"] * board.active.mw / 1000
    return {
        "board": name,
        "way": way,
        "cycles_are": board.cycles,
        "clock_mhz": board.clock_mhz,
        "milliwatts": board.active.mw,
        "operators": rows,
        "ms": _sum([row["ms"] for row in rows]),
        "mj": _sum([row["mj"] for row in rows]),
        "not_measured": sorted({row["operator"] for row in rows if row["cycles"] is None}),
    }


def _sum(numbers: list[float | None]) -> float | None:
    """The sum of numbers; None where one is None: an LSTM is most of its model's work."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def offload(name: str, size: int) -> dict[str, float]:
    """Estimate the energy of an offload of `size` bytes, in millijoules.

    Returns:
        {"send", "listen", "wake"}. send: the request, and the acknowledgement of its answer. listen: until the answer. wake:
        joining the network again, which only a board that has slept does; 0 for a board at a line.
    """
    board, assumed = board_power(name), powers().assumed
    if board.link == "line" or not (board.transmit and board.receive):
        send_ms = 8 * size / assumed.line_kbps
        return {"send": send_ms * board.active.mw / 1000, "listen": assumed.answer_ms * board.active.mw / 1000, "wake": 0.0}
    send_ms = assumed.wifi_frames * assumed.wifi_frame_ms + 8 * size / assumed.wifi_kbps
    return {
        "send": send_ms * board.transmit.mw / 1000,
        "listen": assumed.answer_ms * board.receive.mw / 1000,
        "wake": assumed.connect_ms * board.receive.mw / 1000,
    }
