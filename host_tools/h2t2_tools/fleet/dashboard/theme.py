"""Colours of the pages in both themes, as CSS variables, and sizes for fingers.

Text has a contrast of 4.5 or more on each background, lines have 3. tests/fleet/test_accessibility.py measures them.
"""

from nicegui import ui

from ...common import places

LIGHT = {
    "page": "#ffffff", "card": "#ffffff", "text": "#1d1d1f", "quiet": "#5a5d64", "line": "#767b84", "own": "#0067a3",
    "pale": "#bcdcf0", "always": "#a84300",
    "never": "#7e22ce", "bad": "#b3261e", "warn": "#855000", "good": "#1b6e3a", "link": "#0b5cad",
}  # fmt: skip
DARK = {
    "page": "#121212", "card": "#1d1d1d", "text": "#ececec", "quiet": "#b3b6bd", "line": "#8f949d", "own": "#56b4e9",
    "pale": "#1f4a63", "always": "#f0a04b",
    "never": "#c9a0ff", "bad": "#ff8a80", "warn": "#ffc46b", "good": "#7bd88f", "link": "#8ab4f8",
}  # fmt: skip
PRIMARY = "#1565c0"  # of the header and of buttons, under white text
FINGER_PX = 44  # the smallest side of what a finger touches


def _variables(colours: dict[str, str]) -> str:
    return "; ".join(f"--{name}: {colour}" for name, colour in colours.items())


CSS = f"""
:root {{ {_variables(LIGHT)}; --finger: {FINGER_PX}px }}
body.body--dark {{ {_variables(DARK)} }}
{places.text("fleet/dashboard/theme.css")}"""
# Quasar's heads of columns react to a mouse alone, and do not tell the order
SCRIPT = places.text("fleet/dashboard/theme.js")


def apply() -> None:
    """Give the page that is being built its colours and sizes, and make its tables usable by keyboard."""
    ui.colors(primary=PRIMARY)
    ui.add_css(CSS)
    ui.add_head_html(f"<script>{SCRIPT}</script>")
