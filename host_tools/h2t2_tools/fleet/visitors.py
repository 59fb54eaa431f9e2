"""Who may visit a web server of ours: names of this machine, and the token of everybody else."""

import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from ..common.errors import UserError
from .endpoint import secret

LOCAL = "127.0.0.1", "localhost", "::1"
FREE, LONGEST_S = 5, 60.0  # wrong guesses of an address without a wait; then the wait doubles from a second to this
ADDRESSES = 1000  # whose wrong guesses are counted
SHORTEST = 16  # the shortest token has so many characters


def read_token(path: Path) -> str:
    """The token in a file that only its owner can read. UserError for another file or a short token."""
    token = secret(path).read_text().strip()
    if len(token) < SHORTEST:
        short = f"a token of {len(token)} characters, which can be guessed" if token else "it is empty"
        raise UserError(f"{path}: {short}; want {SHORTEST} or more: openssl rand -hex 16 > {path}")
    return token


def host_of(address: str) -> str:
    """The host in an address, such as //localhost:8080; "" without one."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


class Guesses:
    """Delays guesses of the token: after FREE wrong ones an address waits for each, up to a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # address -> wrong guesses, when the next may come

    def wait(self, address: str) -> float:
        """Seconds until the next guess of an address is read."""
        return max(0.0, self._wrong.get(address, (0, 0.0))[1] - self._clock())

    def add_wrong(self, address: str) -> None:
        """Count a wrong guess."""
        count = self._wrong.pop(address, (0, 0.0))[0] + 1
        wait = min(LONGEST_S, 2.0 ** min(count - FREE, 10)) if count >= FREE else 0.0
        self._wrong[address] = count, self._clock() + wait
        if len(self._wrong) > ADDRESSES:
            self._wrong.popitem(last=False)

    def clear(self, address: str) -> None:
        """The guess was right."""
        self._wrong.pop(address, None)
