"""Runs the command line in a process of its own."""

import subprocess
import sys


def h2t2(*arguments, **options):
    command = [sys.executable, "-m", "h2t2_tools", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, **options)
