"""What tests read of the processes that they start."""

import subprocess
from concurrent.futures import ThreadPoolExecutor


def remaining_output(process: subprocess.Popen[str], seconds: float) -> tuple[str, str]:
    """Return the remaining output of a process after some of its lines were read; "" for a stream without a pipe.

    `communicate` would read from the pipes themselves and lose what `readline` has already buffered.

    Raises:
        subprocess.TimeoutExpired: The process did not end within `seconds`; it was killed.
    """
    with ThreadPoolExecutor(2) as readers:
        outputs = [readers.submit(pipe.read) if pipe else None for pipe in (process.stdout, process.stderr)]
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    stdout, stderr = (output.result() if output else "" for output in outputs)
    return stdout, stderr
