"""Colours of the pages in both themes, as CSS variables, and sizes for fingers.

Text has a contrast of 4.5 or more on each background, lines have 3. tests/fleet/test_theme.py measures them.
"""

from __future__ import annotations

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
BACKGROUNDS = ("page", "card")
AREAS = ("pale",)  # under text
LINES = ("line",)
PRIMARY = "#1565c0"  # of the header and of buttons, under white text
FINGER_PX = 44  # the smallest side of what a finger touches


def _variables(colours: dict[str, str]) -> str:
    return "; ".join(f"--{name}: {colour}" for name, colour in colours.items())


CSS = f"""
:root {{ {_variables(LIGHT)} }}
body.body--dark {{ {_variables(DARK)} }}
body {{ color: var(--text) }}
.text-negative {{ --q-negative: var(--bad) }}
.text-warning {{ --q-warning: var(--warn) }}
.text-positive {{ --q-positive: var(--good) }}
.text-primary {{ --q-primary: var(--link) }}
.quiet {{ color: var(--quiet) }}
.pill {{ border: 1px solid currentColor; border-radius: 1em; padding: 0 .6em; white-space: nowrap; font-weight: 600 }}
.facts {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .25rem 1.5rem; margin: 0 }}
.facts dt {{ color: var(--quiet); font-size: .85rem }}
.facts dd {{ margin: 0 0 .4rem; overflow-wrap: anywhere }}
.data th, .data td {{ text-align: right; padding: .1rem .6rem; font-variant-numeric: tabular-nums }}
.data th:first-child, .data td:first-child {{ text-align: left }}
h2 {{ font-size: 1.15rem; font-weight: 600; line-height: 1.4; margin: 0 }}
summary {{ cursor: pointer; color: var(--link); min-height: {FINGER_PX}px; display: list-item; padding-top: .7rem }}
:focus-visible {{ outline: 3px solid var(--link); outline-offset: 2px }}
"""
