"""Locks for one process at a time. The system frees a lock when its process ends, however it ends."""

import errno
import fcntl
import logging
import os
from contextlib import suppress
from pathlib import Path

from .errors import UserError

LOG = logging.getLogger(__name__)
# Errors of a place where no file can be made by this user. Others pass: a full disk is freed, and then two processes write.
UNWRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR}


class Held(Exception):
    """Another process holds the lock. process: its number and its command, as far as it has said them."""

    def __init__(self, process: str) -> None:
        super().__init__(f"process {process or 'unknown'} holds it")
        self.process = process


class Lock:
    """A lock on a file, from its creation to release() or the end of the process. Children that fork keep it, too.

    Args:
        path: the file, which is made where there is none, and stays.
        holder: what the process calls itself; its number is written before.

    Raises:
        Held: another process, or another Lock of this one, has locked the file.
        OSError: the file cannot be opened.
    """

    _file = -1

    def __init__(self, path: Path, holder: str = "") -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            try:  # on a read-only file system one that is there can be locked, too
                self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                raise error from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process = os.read(self._file, 200).decode(errors="replace")
            self.release()
            raise Held(process) from None
        with suppress(OSError):  # the disk is full: then nobody is named
            os.ftruncate(self._file, 0)
            os.write(self._file, f"{os.getpid()} {holder}".strip().encode())

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Free the lock. A second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def hold(path: Path, holder: str, remedy: str) -> Lock | None:
    """Lock a folder (its file `lock`), or a file (FILE.lock), for this process alone.

    Args:
        path: the folder or the file.
        holder: as Lock's.
        remedy: what the user can do, for the message.

    Returns:
        The lock; None where this user can make no file, so that this process does not write there.

    Raises:
        UserError: another process has it, which the message names; or the file cannot be made now: the disk is full.
    """
    try:
        return Lock(path / "lock" if path.is_dir() else Path(f"{path}.lock"), holder)
    except Held as error:
        raise UserError(f"{path}: process {error.process} uses it; {remedy}") from None
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise UserError(f"{path}: it cannot be locked: {error.strerror}; it would be written by two processes") from None
        LOG.warning("%s: it cannot be locked: %s", path, error.strerror)
        return None
