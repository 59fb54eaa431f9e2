"""`make quick`: which tests belong to a changed file."""

import pytest
from support import ROOT, program

changed_tests = program(ROOT / "host_tools/changed_tests.py")


@pytest.mark.parametrize(
    "path, tests",
    [
        ("firmware/h2t2/core/head.py", "tests/core"),
        ("host_tools/h2t2_tools/fleet/rdl/worker.py", "tests/fleet"),
        ("host_tools/h2t2_tools/__init__.py", "tests/cli"),
        ("tests/node/test_node.py", "tests/node/test_node.py"),
        ("tests/fleet/conftest.py", "tests/fleet"),
        ("firmware/boards/esp32/main.py", "tests/boards"),
        ("docs/head.md", "tests/cli"),
        ("LICENSE", None),
    ],
)
def test_the_tests_of_a_file(path, tests):
    assert changed_tests.tests_of(path) == tests


def test_every_package_has_a_folder_of_tests():
    for package in changed_tests.PACKAGES:
        for folder in (ROOT / package).iterdir():
            if folder.is_dir() and folder.name != "__pycache__":
                assert changed_tests.tests_of(f"{package}/{folder.name}/some.py").startswith("tests/")
