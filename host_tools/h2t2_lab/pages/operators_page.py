"""docs/operators.md, from the code: `make pages`."""

from h2t2_tools.model.footprint import MACHINE_CODE
from h2t2_tools.model.operators import INSTEAD, SUPPORTED
from h2t2_tools.model.plan import SIGNED

from .. import material

# operators that are no steps of their own
_DILATED = "around one convolution, which becomes a dilated one"
NO_STEP = dict.fromkeys(("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), _DILATED)
NO_STEP |= {"ARG_MAX": "the last operator: a board's output is the scores before it"}


def page() -> str:
    """The page."""
    rows = []
    for name, supported in sorted(SUPPORTED.items()):
        fast = {"": "nothing to do", **dict.fromkeys(MACHINE_CODE, "yes")}.get(supported.kernel, "no")
        types = "int8" if name in SIGNED else "int8, uint8"
        inputs = f"one picture (height, width, channels): {supported.inputs}" if supported.picture else supported.inputs
        rows.append(f"| {name} | {inputs} | {types} | {fast} |\n")
    rows += [f"| {name} | {inputs} | int8, uint8 | nothing to do |\n" for name, inputs in NO_STEP.items()]
    advice = [f"| {name} | {instead} |\n" for name, instead in sorted(INSTEAD.items()) if name not in SUPPORTED]
    page = material.text("pages/operators_page.md")
    return page.format(operators="".join(sorted(rows)), instead="".join(advice))


if __name__ == "__main__":
    print(page(), end="")
