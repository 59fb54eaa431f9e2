"""Writes a bundle (.h2m), which h2t2.ldl.bundle runs: header, steps, score table, constants; little-endian, 4-byte aligned."""

from pathlib import Path
from struct import pack
from zlib import crc32

from h2t2.cpython.quantise import score_table
from h2t2.ldl.bounds import CHECKED, MAGIC, OPERATORS, VERSION
from h2t2.ldl.bundle import ENDS, Int8Model
from h2t2.ldl.steps import HEADER_SIZE, STEP, STEP_SIZE

from ..common.errors import UserError
from ..common.pairs import Pair
from ..fleet.config import PI
from .operators.step import SEVENTH
from .plan import CODES, Plan, place
from .plan import plan as plan_steps
from .tflite import load


def from_tflite(path: Path) -> bytes:
    """The bundle of an int8 .tflite. UserError with the reason for a model that no board can run or open."""
    content = write(plan_steps(load(path)))
    try:
        Int8Model(content, 0)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return content


def write(plan: Plan) -> bytes:
    """The bundle of a plan."""
    graph = plan.graph
    x, y = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    lengths = [len(step.p) for step in plan.steps] + [OPERATORS["variable"][0]] * len(plan.states)
    lengths += [OPERATORS["features"][0]] * (plan.features >= 0)
    start = HEADER_SIZE + sum(STEP_SIZE + 4 * length for length in lengths)
    constants = bytearray(score_table(float(y.scale[0]), int(y.zero[0])))
    places: dict[bytes, int] = {b"": 0}

    def append(data: bytes) -> int:
        """Append constants, unless they are there already, as in each step of a GRU; their offset in the bundle, 0 for none."""
        if data not in places:
            constants.extend(bytes(-len(constants) % 4))
            constants.extend(data)
            places[data] = start + len(constants) - len(data)
        return places[data]

    table = b""
    for step in plan.steps:
        p = place(plan, step)
        if step.weights:
            p[SEVENTH] = append(step.weights)
        bias = append(step.bias.astype("<i4").tobytes()) if step.bias is not None else 0
        limbs, shifts = b"", b""
        for m, exponent in step.multipliers:
            if exponent < -30:  # it gives 0 for every accumulator of a board, and 2^30 is no small int
                m = exponent = 0
            limbs += pack("<HHH", m >> 20, m >> 10 & 1023, m & 1023)
            shifts += bytes([max(0, exponent), max(0, -exponent)])
        at = append(limbs + shifts)
        channels = len(step.bias) if step.bias is not None else 0
        after = at + len(limbs) if at else 0
        table += pack(STEP, CODES[step.kernel], len(p), bias, at, after, channels) + pack(f"<{len(p)}i", *p)
    for tensor, first in plan.states.items():
        size = len(first) if len(set(first)) > 1 else 1  # one byte stands for equal ones
        p = [0, plan.offsets[tensor], 0, 0, 0, 255, append(first[:size]), size, len(first) // size]
        table += pack(STEP, CODES["variable"], len(p), 0, 0, 0, 0) + pack(f"<{len(p)}i", *p)
    offsets = plan.offsets
    if plan.features >= 0:
        p = [0, offsets[plan.features], 0, 0, 0, 255, 0, graph.tensors[plan.features].size]
        table += pack(STEP, CODES["features"], len(p), 0, 0, 0, 0) + pack(f"<{len(p)}i", *p)
    body = pack("<IIIIII", plan.arena, offsets[x.index], x.size, offsets[y.index], y.size, start)
    body += pack(ENDS, float(x.scale[0]), int(x.zero[0]))
    body += table + bytes(constants)
    size = CHECKED + len(body)
    return pack("<4sHHII", MAGIC, VERSION, len(lengths), size, crc32(body)) + body


def for_board(pair: Pair, board: str) -> bytes | None:
    """Return the bundle of a pair's local model, or None where only a Pi runs it. UserError if the board needs it.

    board: A section of h2t2.toml, "" for none.
    """
    try:
        return from_tflite(pair.ldl)
    except UserError:
        if board in ("", PI):
            return None
        raise
