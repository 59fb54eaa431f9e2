# The first inferences of an unknown .tflite, in a process of its own: what crashes TFLite although the file passed every check
# (tflite_check.py) ends that process, and is an error here.
from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import warnings
from hashlib import sha256
from importlib import import_module
from typing import Any

import numpy as np

from .interpreter import python
from .tflite_meaning import with_axes_inside

WAIT_S = 180  # for a trial; a process that hangs is killed
LONGEST = 2000  # bytes of an error's text
INSTEAD = {"ethos-u": "Vela compiled the model for an Ethos-U: take the .tflite from before Vela"}  # custom operator -> advice
ENDED = "the interpreter ends on it (%s): the file is damaged, or its kernels cannot compute this model"
_passed: set[tuple[bytes, str]] = set()  # digests and kernels of the models that passed in this process


def open_interpreter(content: bytes, resolver: str) -> Any:
    """An interpreter of one thread, its tensors allocated. resolver: the name of an OpResolverType."""
    from .tflite_library import Interpreter, OpResolverType

    content = with_axes_inside(content)
    kind = OpResolverType[resolver]
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kind, num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def try_first(content: bytes, resolver: str) -> None:
    """Run a model, the first time it is seen, in another process. Arguments as open_interpreter()'s.

    Raises ValueError, saying why, where the interpreter refuses it, fails, ends or hangs; ModuleNotFoundError without any.
    """
    import_module(".tflite_library", __package__)  # in this process: the child could not say that it is missing

    digest = sha256(content).digest(), resolver
    if digest in _passed:
        return
    # a process of several threads cannot be forked safely; one under an emulator may not be able to start another program
    if threading.active_count() > 1:
        try:
            reason = _started(content, resolver)
        except OSError:
            reason = _forked(content, resolver)
    else:
        reason = _forked(content, resolver)
    if reason:
        raise ValueError(reason)
    _passed.add(digest)


def _trial(content: bytes, resolver: str) -> str:
    """Two inferences, on numbers at random and on the greatest there are; what the interpreter says against it, or ""."""
    try:
        interpreter = open_interpreter(content, resolver)
        rng = np.random.default_rng(1)
        for greatest in (False, True):
            for detail in interpreter.get_input_details():
                interpreter.set_tensor(detail["index"], _numbers(rng, detail["shape"], np.dtype(detail["dtype"]), greatest))
            interpreter.reset_all_variables()
            interpreter.invoke()
            for detail in interpreter.get_output_details():
                interpreter.get_tensor(detail["index"])
    except (ValueError, RuntimeError, MemoryError, TypeError) as error:
        reason = (str(error).strip() or type(error).__name__).split("\n")[0]
        return next((text for name, text in INSTEAD.items() if name in reason), "the interpreter refuses it: %s" % reason)
    return ""


def _numbers(rng: Any, shape: Any, dtype: Any, greatest: bool) -> Any:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if greatest:
            return np.full(shape, limits.max, dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    if dtype.kind == "f":
        return np.ones(shape, dtype) if greatest else rng.uniform(-1, 1, shape).astype(dtype)
    return np.zeros(shape, dtype)


def _confine() -> None:
    """In the child: no words on the terminal, no core dump, no more memory than the machine has."""
    import faulthandler

    faulthandler.disable()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        limit = (pages + os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, OSError, ValueError):  # not Linux, or limits of its own
        pass


def _forked(content: bytes, resolver: str) -> str:
    """The trial in a fork of this process; why the model cannot be used, or ""."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: those of libraries for matrices wait for work
        child = os.fork()
    if not child:
        status = 1
        try:
            os.close(reader)
            _confine()
            reason = _trial(content, resolver)
            os.write(writer, reason.encode()[:LONGEST])
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    text = None
    try:
        text = _read(reader)
    finally:
        os.close(reader)
        if text is None:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    return _reason(text, -(status & 127) or status >> 8)


def _read(reader: int) -> bytes | None:
    """What the child writes until it ends; None where it does not within WAIT_S."""
    text = b""
    while select.select([reader], [], [], WAIT_S)[0]:
        chunk = os.read(reader, LONGEST)
        if not chunk:
            return text
        text += chunk
    return None


def _started(content: bytes, resolver: str) -> str:
    """The trial in a new Python interpreter; why the model cannot be used, or "". OSError where none can be started."""
    if not sys.executable:
        raise OSError("this process does not know its Python")
    start = "import sys; sys.path[:] = sys.argv[2:]; from h2t2.cpython.tflite_trial import main; main()"
    command = python("-c", start, resolver, *filter(None, sys.path))
    try:
        run = subprocess.run(command, input=content, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        return _reason(None, 0)
    return _reason(run.stdout, run.returncode)


def _reason(text: bytes | None, status: int) -> str:
    if text is None:
        return ENDED % ("no answer in %d s" % WAIT_S)
    if status < 0:
        return ENDED % signal.Signals(-status).name
    if status:
        return ENDED % ("status %d" % status)
    return text.decode("utf-8", "replace")


def main() -> None:
    """The child that _started() starts: the model on standard input, why it cannot be used on standard output."""
    content = sys.stdin.buffer.read()
    writer = os.dup(1)
    _confine()
    os.write(writer, _trial(content, sys.argv[1]).encode()[:LONGEST])
