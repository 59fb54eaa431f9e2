"""Whose fault a failure is: the sample's, the server's or the set-up's. The only place that decides it.

Pictures, language models, KServe, workers, the wire and both queues ask here. docs/architecture.md has the table.
"""

from collections.abc import Callable
from enum import Enum

from h2t2.link import wire

from ..common.errors import UserError


class Cause(Enum):
    """What a failure belongs to.

    Attributes:
        SAMPLE: nobody answers about this sample: it is not asked about again.
        SERVER: the server may answer later: the sample waits.
        SETUP: nobody's answer comes until the operator changes something: the sample waits, and the operator is told.
    """

    SAMPLE = "sample"
    SERVER = "server"
    SETUP = "set-up"

    @property
    def waits(self) -> bool:
        """Whether the sample is asked about again."""
        return self is not Cause.SAMPLE


class Refused(ValueError):
    """Nobody answers about this sample: the server cannot read it, or its answer is invalid."""

    cause = Cause.SAMPLE


class Misconfigured(ValueError):
    """The set-up is wrong: the token, the name of a model, what a model is told to answer.

    Attributes:
        of_sample: as of Later.
    """

    cause = Cause.SETUP
    of_sample = False


class Later(OSError):
    """The server may answer later.

    Attributes:
        retry_s: seconds after which it wants to be asked again; 0: it does not say.
        of_sample: it failed on this sample, so others may be asked about meanwhile.
        untaken: the server has not begun with the request: a repetition is not paid twice, and the sample is not to blame.
    """

    cause = Cause.SERVER

    def __init__(self, why: str, retry_s: float = 0.0, *, of_sample: bool = False, untaken: bool = False) -> None:
        super().__init__(why)
        self.retry_s, self.of_sample, self.untaken = retry_s, of_sample, untaken


class Partial(Exception):
    """A model has answered about some samples of a batch only.

    Attributes:
        scores: as Model.scores() returns them; NaN for samples without an answer.
        errors: the failure of each of those, by its place in the batch.
    """

    def __init__(self, scores: object, errors: dict[int, Exception]) -> None:
        super().__init__(f"{len(errors)} samples without an answer: {next(iter(errors.values()))}")
        self.scores, self.errors = scores, errors


UNTAKEN = (425, 429, 503, 529)  # statuses of a server that has not begun with the request
TEMPORARY = (408, *UNTAKEN)  # beside 500 and more
PERMANENT = (501, 505)  # of 500 and more
OF_THE_SETUP = (401, 402, 403, 404, 405, 407, 421, 426)
OF_ONE_SAMPLE = (500,)  # of a server that fails on one picture, and goes on


def of_status(status: int) -> Cause:
    """The cause behind a model server's HTTP status other than 2xx. A redirect is the set-up's: nobody follows it."""
    if status in TEMPORARY or (status >= 500 and status not in PERMANENT):
        return Cause.SERVER
    return Cause.SETUP if status < 400 or status in OF_THE_SETUP or status in PERMANENT else Cause.SAMPLE


def of_picture_status(status: int) -> Cause:
    """As of_status() for a detector's picture, which may appear after its message: 404 passes."""
    return Cause.SERVER if status == 404 else of_status(status)


def of_error(error: BaseException) -> Cause:
    """The cause behind an exception of a model, a picture's client or a user's function."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Cause):
        return cause
    if isinstance(error, (UserError, ImportError, FileNotFoundError, PermissionError)):
        return Cause.SETUP
    return Cause.SERVER if isinstance(error, (OSError, MemoryError)) else Cause.SAMPLE


def is_of_sample(error: BaseException) -> bool:
    """Whether a failure is of one sample, so that others may be asked about meanwhile."""
    return of_error(error) is Cause.SAMPLE or bool(getattr(error, "of_sample", False))


def describe(error: BaseException) -> str:
    """The reason in an exception; with the exception's type, unless it is ours."""
    return str(error) if isinstance(error, (Later, Misconfigured, Refused, UserError)) else f"{type(error).__name__}: {error}"


def of_reply(status: int) -> Cause:
    """The cause behind the status of a worker's reply other than wire.OK."""
    if status in (wire.BUSY, wire.NOBODY, wire.LATER):
        return Cause.SERVER
    return Cause.SETUP if status in (wire.WRONG_MODEL, wire.OTHER_VERSION) else Cause.SAMPLE


def reply_status(cause: Cause) -> int:
    """The status of a reply about a sample, of which this is the cause that there is no label."""
    return wire.LATER if cause.waits else wire.FAILED


def status_error(status: int, why: str, retry_s: float = 0.0, cause_of: Callable[[int], Cause] = of_status) -> Exception:
    """The exception for an HTTP status other than 2xx. cause_of: of_status or of_picture_status."""
    cause = cause_of(status)
    if cause is Cause.SERVER:
        return Later(why, retry_s, of_sample=status in OF_ONE_SAMPLE, untaken=status in UNTAKEN)
    return Misconfigured(why) if cause is Cause.SETUP else Refused(why)
