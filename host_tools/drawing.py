"""Writes docs/images/overview.svg, the README's drawing of a sample's way: python host_tools/drawing.py"""

from html import escape
from pathlib import Path

OUT = Path(__file__).parents[1] / "docs/images/overview.svg"
WIDTH, HEIGHT = 960, 262
BOX_WIDTH, BOX_HEIGHT = 128, 58
INK, DEVICE, REMOTE, LINE = "#1d2b33", "#e3f1ef", "#eee7f6", "#3c6e71"
# name -> (left edge, top edge, colour, title, second line)
BOXES = {
    "sensor": (30, 60, "#ffffff", "sensor", "a sample"),
    "small": (194, 60, "#ffffff", "small model", "a score, 0 to 1"),
    "policy": (358, 60, "#ffffff", "ask?", "the policy learns"),
    "actuator": (358, 176, "#ffffff", "actuator", "acts in time"),
    "broker": (600, 60, "#ffffff", "MQTT broker", "for all devices"),
    "big": (790, 60, "#ffffff", "big model", "workers, 1 to n"),
}


def box(name: str) -> str:
    """A box with its two lines of text."""
    left, top, colour, title, line = BOXES[name]
    middle = left + BOX_WIDTH // 2
    return (
        f'<rect x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8" fill="{colour}" stroke="{LINE}"/>'
        f'<text x="{middle}" y="{top + 25}" font-weight="bold">{escape(title)}</text>'
        f'<text x="{middle}" y="{top + 45}" font-size="12">{escape(line)}</text>'
    )


def arrow(start: tuple[int, int], end: tuple[int, int], text: str, above: int = 8) -> str:
    """An arrow with its text, which stands that far above the middle."""
    x, y = (start[0] + end[0]) // 2, (start[1] + end[1]) // 2 - above
    line = f'<line x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" stroke="{LINE}" marker-end="url(#tip)"/>'
    return f'{line}<text x="{x}" y="{y}" font-size="12">{escape(text)}</text>'


def right(name: str, down: int = 29) -> tuple[int, int]:
    """A point on the right edge of a box."""
    return BOXES[name][0] + BOX_WIDTH, BOXES[name][1] + down


def left(name: str, down: int = 29) -> tuple[int, int]:
    """A point on the left edge of a box."""
    return BOXES[name][0], BOXES[name][1] + down


def drawing() -> str:
    """The picture."""
    area = '<rect x="{}" y="14" width="{}" height="234" rx="14" fill="{}"/><text x="{}" y="38" font-weight="bold">{}</text>'
    middle = BOXES["policy"][0] + BOX_WIDTH // 2
    parts = [
        area.format(14, 488, DEVICE, 258, "device: microcontroller or Pi"),
        area.format(584, 362, REMOTE, 765, "anywhere: one machine or many"),
        *(box(name) for name in BOXES),
        arrow(right("sensor"), left("small"), ""),
        arrow(right("small"), left("policy"), ""),
        arrow(right("policy", 18), left("broker", 18), "yes: the sample"),
        arrow(left("broker", 42), right("policy", 42), "label, late or never", -20),
        arrow(right("broker", 18), left("big", 18), ""),
        arrow(left("big", 42), right("broker", 42), ""),
        arrow((middle, 118), (middle, 176), ""),
        f'<text x="{middle - 58}" y="152" font-size="12">decision: 0 or 1</text>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="14" text-anchor="middle" fill="{INK}">'
        "<title>A device scores a sample with its small model. Its policy decides alone or asks a big model through an MQTT "
        "broker, and learns from the label.</title>"
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>' + "".join(parts) + "</svg>\n"
    )


if __name__ == "__main__":
    OUT.write_text(drawing(), encoding="utf-8")
