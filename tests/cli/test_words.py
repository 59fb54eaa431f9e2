"""The pages use one word for a thing: docs/concepts.md explains the words, and this table has what no page writes instead."""

import re

import pytest
from support import ROOT

FOLDERS = ("*.md", "docs/*.md", "firmware/**/*.md", "models/*/README.md")
# the history, and how a measurement names the policies
LEFT_OUT = {"CHANGELOG.md", "benchmarks.md"}
PAGES = [path for folder in FOLDERS for path in sorted(ROOT.glob(folder)) if path.name not in LEFT_OUT]

WORDS = [
    ("thresholds, not a pair: a pair is of models", r"pairs? of thresholds|\b(best|fixed|every|cheapest) (recent )?pairs?\b"),
    ("a false alarm", r"\b[Ff]alse positives?\b|\bdelta_1\b|\bFPR?\b"),
    ("a miss", r"\b[Ff]alse negatives?\b|\bdelta_-1|\bFNR?\b"),
    ("H2T2 Edge, or the paper's policy", r"\bH2T2\b(?! Edge|, AAAI)"),
    (
        "a statistic of a window, a column of a table",
        r"[Ff]eatures? (of (its|a|the) (measurement|window)|that the model reads)",
    ),
]


def prose(text):
    """A page without code, and without what a command writes into it."""
    text = re.sub(r"<!-- [^\n]*: [^\n]* -->\n.*?<!-- end -->", "", text, flags=re.S)
    return re.sub(r"^```.*?^```|^ {4}[^\n]*|`[^`\n]*`|^::: .*?$", "", text, flags=re.S | re.M)


@pytest.mark.parametrize("word, instead", WORDS, ids=[word for word, _ in WORDS])
def test_the_pages_use_one_word_for_a_thing(word, instead):
    assert len(PAGES) > 80
    used = [
        f"{path.relative_to(ROOT)}: {match[0]}" for path in PAGES for match in re.finditer(instead, prose(path.read_text()))
    ]
    assert not used, f"want: {word}\n" + "\n".join(used)
