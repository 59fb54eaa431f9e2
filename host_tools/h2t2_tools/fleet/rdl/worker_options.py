"""The options of an RDL worker."""

from typing import Annotated

from pydantic import Field

from ...common.fields import DAY_S, Count, Duration, Options, option

HANG_S = 10.0  # beyond four times the expected time of a batch


class WorkerOptions(Options):
    """The options that `h2t2 rdl` hands to each of its workers."""

    batch: Annotated[int, Field(ge=1, le=65536)] = option(16, "largest number of requests in a micro-batch", metavar="N")
    batch_wait: Annotated[Duration, Field(ge=0, le=60)] = option(0.0, "how long a batch waits for more requests")
    queue: Count = option(256, "largest number of waiting requests; more get status busy", metavar="N")
    hang_after: Annotated[Duration, Field(gt=0, le=DAY_S)] = option(
        HANG_S, "a worker is replaced when its model takes so much longer than expected"
    )
    keep: str | None = option(
        None, "keep the answered samples and their labels, for `h2t2 samples`", unset="nothing is kept", metavar="DIR"
    )
    keep_mb: Count = option(1000, "room for them in MB; then the oldest are thinned out", metavar="MB")
    no_watch: bool = option(False, "reload the model on SIGHUP only, not when its file changes")
