"""Runs the command line in a process of its own."""

import subprocess
import sys
from contextlib import contextmanager

from h2t2_lab.processes import remaining_output

H2T2 = (sys.executable, "-m", "h2t2_tools")
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def h2t2(*arguments, **options):
    """Run a command to its end."""
    return subprocess.run([*H2T2, *map(str, arguments)], capture_output=True, text=True, timeout=280, **options)


def ran(command, **options):
    """Run any program to its end, which must be a good one."""
    run = subprocess.run([*map(str, command)], **{"capture_output": True, "text": True, "timeout": 280, **options})
    assert run.returncode == 0, run.stderr[-2000:]
    return run


@contextmanager
def started(*arguments, ready="", program=H2T2, **streams):
    """Run a command beside a test, which begins once the command logs the word `ready`; at the end it terminates in order.

    Yield its process; `log` is what it wrote after that, once it has ended. Its output goes nowhere unless `streams` say so.
    """
    process = subprocess.Popen([*map(str, (*program, *arguments))], **{**PIPES, "stdout": subprocess.DEVNULL, **streams})
    try:
        if ready:
            line_with(ready, process.stderr)
        yield process
    finally:
        process.terminate()
        process.output, process.log = remaining_output(process, 60)


def line_with(word, stream):
    """The next line of a process that has a word. A busy machine may bring warnings before it."""
    said = []
    while word not in (line := stream.readline()):
        assert line, said
        said.append(line)
    return line
