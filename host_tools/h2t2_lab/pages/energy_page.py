"""The tables of docs/energy.md, from cycles.json and power.toml: `make pages`."""

from collections.abc import Callable, Iterable
from pathlib import Path

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.common import pairs, places
from h2t2_tools.model import cycles, energy
from h2t2_tools.model.bundle import from_tflite

from . import page_parts

MODELS = ("breast_cancer", "phishing", "digits", "ten_digits", "chest_xray")
CONVOLUTIONAL = "chest_xray"  # its cycles per multiply-accumulate stand for a convolutional model's
EXAMPLE = "pico_w"
OFFLOAD_SHARE = 0.2  # share of the samples in the example of a decision
HEADER = 60  # bytes that MQTT, TCP and IP add to a request


def cost_table(name: str) -> dict[str, float]:
    """Return the numbers of a board for [offload_cost] of an h2t2.toml; fleet/config.py explains them."""
    board = energy.board_power(name)
    empty, kilobyte = energy.offload(name, 0), energy.offload(name, 1024)
    return {
        "wake_mj": empty["wake"] + empty["send"],
        "send_mj_per_kb": kilobyte["send"] - empty["send"],
        "listen_mj_per_s": (board.receive or board.active).mw,
        "awake_mw": board.active.mw,
        "asleep_mw": board.sleep.mw,
    }


def _markdown(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown, whose first column holds words and the others numbers."""
    return page_parts.markdown_table(list(columns), rows, "--:")


def _rounded(number: float) -> str:
    """Return two significant digits, since an estimate has no more."""
    return f"{float(f'{number:.2g}'):,.0f}"


def _model(name: str) -> Int8Model:
    return Int8Model(from_tflite(places.models() / name / "ldl.tflite"), 0)


def _request(name: str) -> int:
    """Bytes of an offload, with what the network adds: of a pair what it sends, of a model alone a byte for each number."""
    size = len(pairs.load(name).test_payload(0)) if name in pairs.shipped_names() else _model(name).input_size
    return size + HEADER


def boards() -> str:
    """Return what each board consumes."""
    rows = []
    for name, board in energy.powers().boards.items():
        states = (board.active, board.sleep, board.transmit, board.receive)
        numbers = ["-" if state is None else f"{state.mw:,.4g}{'' if state.checked else '*'}" for state in states]
        rows.append([f"`{name}`", f"{board.chip}, {board.clock_mhz} MHz", board.cycles, *numbers])
    names = ("computing, mW", "asleep, mW", "sending, mW", "receiving, mW")
    return _markdown(("board", "processor", "cycles are", *names), rows)


def operators() -> str:
    """Return the cycles of each operator."""
    content = cycles.table()
    rows = [[f"`{operator}`", way, cycles.in_words(terms)] for way in cycles.WAYS for operator, terms in content[way].items()]
    return _markdown(("operator", "way", "cycles"), rows)


def models() -> str:
    """Return milliseconds and millijoules of an inference of each shipped model on each board."""
    rows = []
    for name in MODELS:
        model = _model(name)
        predicted = [energy.inference(model, board) for board in energy.powers().boards]
        products = sum(row["products"] for row in predicted[0]["operators"])
        rows.append([name, f"{products:,}", *(f"{p['ms']:,.3g} ms, {p['mj']:,.3g} mJ" for p in predicted)])
    return _markdown(("model", "multiply-accumulates", *energy.powers().boards), rows)


def decisions() -> str:
    """Return for each model and board the energy of thinking, of asking, and of a decision."""
    rows = []
    for name in MODELS:
        model, size = _model(name), _request(name)
        for board in energy.powers().boards:
            local = energy.inference(model, board)["mj"]
            ask = energy.offload(board, size)
            connected = ask["send"] + ask["listen"]
            cheaper = "thinking" if local < connected else "asking"
            numbers = [local, connected, connected + ask["wake"], local + OFFLOAD_SHARE * connected]
            rows.append([name, board, f"{size:,}", *(f"{number:,.3g}" for number in numbers), cheaper])
    columns = (
        "model",
        "board",
        "bytes",
        "thinking, mJ",
        "asking, mJ",
        "asking after a sleep, mJ",
        f"a decision, {OFFLOAD_SHARE:.0%} asked, mJ",
    )
    return _markdown((*columns, "cheaper"), rows)


def break_even() -> str:
    """Return for each board the multiply-accumulates that take as much energy as an offload."""
    model, size = _model(CONVOLUTIONAL), _request(CONVOLUTIONAL)
    rows = []
    for name, board in energy.powers().boards.items():
        ask = energy.offload(name, size)
        connected = ask["send"] + ask["listen"]
        predicted = energy.inference(model, name)
        each = predicted["mj"] / sum(row["products"] for row in predicted["operators"])
        asleep = _rounded((connected + ask["wake"]) / each) if board.link == "wifi" else "-"
        rows.append([f"`{name}`", f"{1000 * connected / board.active.mw:,.0f}", _rounded(connected / each), asleep])
    columns = ("board", "an offload is as much as computing for, ms", "multiply-accumulates, connected", "after a sleep")
    return _markdown(columns, rows)


def entries() -> str:
    """Return the entries of [offload_cost] for each board."""
    tables = {name: cost_table(name) for name in energy.powers().boards}
    rows = [[f"`{name}`", *(f"{number:,.4g}" for number in table.values())] for name, table in tables.items()]
    return _markdown(("board", *(f"`{entry}`" for entry in tables["pico"])), rows)


def example() -> str:
    """Return the section of an h2t2.toml for EXAMPLE."""
    lines = [f"{name} = {float(f'{number:.4g}')}" for name, number in cost_table(EXAMPLE).items()]
    return "\n".join(["```toml", "[offload_cost]", "millijoules = 500.0   # so much costs 1: your choice", *lines, "```"])


def assumptions() -> str:
    """Return what power.toml assumes of networks."""
    words = {
        "answer_ms": "milliseconds until an answer",
        "connect_ms": "milliseconds to join Wi-Fi and the broker after a sleep",
        "wifi_kbps": "kilobits per second over Wi-Fi",
        "wifi_frame_ms": "milliseconds that each frame takes beside its bytes",
        "wifi_frames": "frames that a board sends for an offload",
        "line_kbps": "kilobits per second over a serial line",
    }
    return _markdown(("assumption", "value"), ([words[n], f"{v:g}"] for n, v in energy.powers().assumed.model_dump().items()))


def sources() -> str:
    """Return the source of every number."""
    states = ("active", "sleep", "transmit", "receive")
    powers = [(name, state, getattr(board, state)) for name, board in energy.powers().boards.items() for state in states]
    return "\n".join(
        f"- `{name}`, {state}: {power.mw:g} mW{'' if power.checked else '*'}. {power.source}."
        for name, state, power in powers
        if power
    )


PARTS: dict[str, Callable[[], str]] = {
    table.__name__: table
    for table in (boards, operators, models, decisions, break_even, example, entries, assumptions, sources)
}


def page(text: str) -> str:
    """Return the page's text with its tables written anew."""
    for name, content in PARTS.items():
        text = page_parts.between(text, f"<!-- {name}: make pages -->", content())
    return text


def write(path: Path) -> None:
    """Write the tables of a page anew."""
    path.write_text(page(path.read_text()))


if __name__ == "__main__":
    write(places.SOURCE_TREE / "docs/energy.md")
