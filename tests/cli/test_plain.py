"""The house speaks plainly: host_tools/plain.py finds few vague names, no long functions and no crowded signatures."""

import pytest
from support import ROOT, program

plain = program(ROOT / "host_tools/plain.py")

PACKAGES = [str(ROOT / "firmware/h2t2"), str(ROOT / "host_tools/h2t2_tools")]
# loop nests of kernels, and machine code: a function a loop would cost a call in the innermost one
KERNELS = {"conv_2d", "depthwise_conv_2d", "fully_connected", "arithmetic", "batch_matmul", "pool_2d", "trees", "regions"}

PER_THOUSAND = 4


def findings(check):
    """What a check finds in both packages."""
    return [finding for path in plain.python_files(PACKAGES) for finding in check(path)]


def listed(found):
    return "\n".join(map(str, found))


def test_names_say_what_they_name():
    """At most 4 vague names per thousand lines, and none of a class, a function or an attribute."""
    vague = findings(plain.vague_names)
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in plain.python_files(PACKAGES))
    assert 1000 * len(vague) / lines <= PER_THOUSAND, listed(vague)
    lasting = [finding for finding in vague if finding.kind in ("class", "function", "attribute")]
    assert not lasting, listed(lasting)


def test_no_function_is_longer_than_a_screen():
    long = [finding for finding in findings(plain.long_functions) if finding.name.lstrip("_") not in KERNELS]
    assert not long, listed(long)


def test_no_call_passes_more_than_seven_values_by_position():
    crowded = findings(plain.crowded_signatures)
    assert not crowded, listed(crowded)


@pytest.mark.parametrize(
    "text, kinds",
    [
        (
            "class Other:\n    def found(self, rest): self.made = what = rest\n",
            {"class", "function", "argument", "attribute", "variable"},
        ),
        ("def total(rows, limit): return rows[:limit]\n", set()),
    ],
)
def test_the_counter_finds_every_kind_of_name(tmp_path, text, kinds):
    path = tmp_path / "module.py"
    path.write_text(text)
    assert {finding.kind for finding in plain.vague_names(path)} == kinds


def test_the_counter_measures_functions_and_signatures(tmp_path):
    path = tmp_path / "module.py"
    fields = "".join(f"    field_{n}: int\n" for n in range(8))
    path.write_text(
        "def long(a, b, c, d, e, f, g):\n" + "    a += 1\n" * 60
        + "class Policy:\n    def step(self, a, b, c, d, e, f, g, h): pass\n"
        + "    def named(self, *, a, b, c, d, e, f, g, h): pass\n"
        + f"@dataclass\nclass Row:\n{fields}@dataclass(kw_only=True)\nclass Named:\n{fields}class Pair(NamedTuple):\n{fields}"
        + f"@dataclass\nclass Mixed:\n    first: int\n    _: KW_ONLY\n{fields}"
    )  # fmt: skip
    assert [(finding.name, finding.number) for finding in plain.long_functions(path)] == [("long", 61)]
    crowded = [(finding.name, finding.number) for finding in plain.crowded_signatures(path)]
    assert sorted(crowded) == [("Pair", 8), ("Row", 8), ("step", 8)]


def test_the_counter_leaves_out_comments_and_docstrings(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""A module.\n\nIts text."""\n\n# a comment\nvalue = [\n    1,\n]  # counted\n')
    assert plain.code_lines(path) == 3
