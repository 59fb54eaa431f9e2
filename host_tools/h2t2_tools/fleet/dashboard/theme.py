"""Colours of the pages in both themes, as CSS variables, and sizes for fingers.

Text has a contrast of 4.5 or more on each background, lines have 3. tests/fleet/test_accessibility.py measures them.
"""

from __future__ import annotations

from nicegui import ui

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
h1 {{ font-size: 1.25rem; font-weight: 500; line-height: 1.6; margin: 0; overflow-wrap: anywhere }}
h2 {{ font-size: 1.15rem; font-weight: 600; line-height: 1.4; margin: 0 }}
summary {{ cursor: pointer; color: var(--link); min-height: {FINGER_PX}px; display: list-item; padding-top: .7rem }}
:focus-visible {{ outline: 3px solid var(--link) !important; outline-offset: 2px }}
header :focus-visible {{ outline-color: #ffffff !important }}
body.body--dark .q-btn.text-primary {{ color: var(--link) }}
@media (pointer: coarse), (max-width: 1023px) {{
    .q-btn, .q-field__control, nav a, main a {{ min-height: {FINGER_PX}px !important; min-width: {FINGER_PX}px !important }}
    nav a, main a {{ display: inline-flex; align-items: center }}
}}
"""
# Quasar's heads of columns react to a mouse alone, and do not tell the order
SCRIPT = """
const describeOrder = head => {
    const sorted = head.classList.contains("sorted");
    const order = !sorted ? "none" : head.classList.contains("sort-desc") ? "descending" : "ascending";
    if (head.getAttribute("aria-sort") != order) head.setAttribute("aria-sort", order);
    if (head.tabIndex != 0) head.tabIndex = 0;
};
const describeOrders = () => document.querySelectorAll("th.sortable").forEach(describeOrder);
document.addEventListener("keydown", event => {
    if ((event.key == "Enter" || event.key == " ") && event.target.matches("th.sortable")) {
        event.preventDefault();
        event.target.click();
    }
});
document.addEventListener("DOMContentLoaded", () => {
    const options = {subtree: true, childList: true, attributes: true, attributeFilter: ["class"]};
    new MutationObserver(describeOrders).observe(document.body, options);
    describeOrders();
});
"""


def apply() -> None:
    """Give the page that is being built its colours and sizes, and make its tables usable by keyboard."""
    ui.colors(primary=PRIMARY)
    ui.add_css(CSS)
    ui.add_head_html(f"<script>{SCRIPT}</script>")
