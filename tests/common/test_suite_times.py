"""`make times` renews its parts of docs/testing.md and leaves the rest alone."""

import json
import os

from support import ROOT, program

suite_times = program(ROOT / "host_tools/suite_times.py")

SUITE = """<testsuites><testsuite tests="3" failures="1" errors="0" skipped="1" time="90" timestamp="2026-11-26T01:02:03">
<testcase/><testcase><failure/></testcase><testcase><skipped message="no npm; run: apt"/></testcase></testsuite></testsuites>"""


def test_both_tables_are_renewed(tmp_path, monkeypatch):
    page, suites, bare = tmp_path / "testing.md", tmp_path / "suites", tmp_path / "bare"
    page.write_text("a\n<!-- times: make times -->\nold\n<!-- end -->\nb\n<!-- bare: make times -->\nold\n<!-- end -->\nc\n")
    suites.mkdir()
    bare.mkdir()
    (suites / "quick on a bare Debian as guest-3.13.xml").write_text(SUITE)
    (bare / "Debian 13, guest, demo.txt").write_text("\x1b[32mcheap\x1b[0m\nexit 0 after 1009 s\n")
    os.utime(bare / "Debian 13, guest, demo.txt", (0, 0))
    absent = tmp_path / "test-all.json"
    for name, path in {"PAGE": page, "RESULTS": suites, "BARE": bare, "TEST_ALL": absent}.items():
        monkeypatch.setattr(suite_times, name, path)
    assert suite_times.main() == 0
    text = page.read_text()
    assert "| quick on a bare Debian as guest | 3.13 | 1 | 1 | 1 | 1.5 | 2026-11-26 |\n<!-- end -->\nb\n" in text
    assert "|---|---|---|---|---|---|\n| Debian 13 | guest | demo | 0 | 1,009 | 1970-01-01 |\n<!-- end -->\nc\n" in text
    assert text.endswith("<!-- end -->\nc\n") and "old" not in text


def test_what_another_machine_measured_stays_until_a_later_day(tmp_path, monkeypatch):
    page, suites = tmp_path / "testing.md", tmp_path / "suites"
    head = "| suite | Python | day |\n|---|---|---|\n"
    old, new = "3.10 | theirs | 2026-11-25 |\n", "3.10 | theirs | 2026-11-27 |\n"
    rows = f"| fuzz | {old}| quick | {old}| whole | {new}"
    suites_part = f"<!-- test-all: make times -->\n<!-- end -->\n<!-- times: make times -->\n{head}{rows}<!-- end -->\n"
    demo = "| Debian 12 | root | demo | 0 | 9 | 2026-11-25 |"
    page.write_text(f"{suites_part}<!-- bare: make times -->\n{head}{demo}\n<!-- end -->\n")
    suites.mkdir()
    for name in ("quick-3.13.xml", "whole-3.13.xml"):
        (suites / name).write_text(SUITE)
    table = tmp_path / "test-all.json"
    counts = {"passed": 4000, "failed": 1, "skipped": 0}
    whole = {"part": "whole", "status": 2, **counts, "seconds": 1500}
    docs = {"part": "docs", "status": 0, **dict.fromkeys(counts, 0), "seconds": 9}
    table.write_text(json.dumps({"day": "2026-11-29", "parts": [whole, docs]}))
    for name, path in {"PAGE": page, "RESULTS": suites, "BARE": tmp_path / "none", "TEST_ALL": table}.items():
        monkeypatch.setattr(suite_times, name, path)
    assert suite_times.main() == 0
    text = page.read_text()
    assert f"| fuzz | {old}| quick | 3.13 | 1 | 1 | 1 | 1.5 | 2026-11-26 |\n| whole | {new}" in text
    assert f"|\n{demo}\n<!-- end -->\n" in text and text.count("3.13") == 1
    assert "| whole | failed | 4,000 | 1 | 0 | 1,500 |\n| docs | passed |  |  |  | 9 |\n<!-- end -->" in text
