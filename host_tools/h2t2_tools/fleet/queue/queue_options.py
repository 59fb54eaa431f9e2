"""The options of whatever queues samples."""

from typing import Annotated

from pydantic import Field

from ...common.fields import DAY_S, Count, Duration, Options, option


class QueueOptions(Options):
    """The options of whatever keeps samples for a remote model that is away."""

    queue_mb: Count = option(200, "room for samples that wait for the remote model, MB; the oldest go", group="operation")
    queue_age: Annotated[Duration, Field(ge=1, le=365 * DAY_S)] = option(7.0 * DAY_S, "age at which they go", group="operation")
    patience: Annotated[Duration, Field(ge=1, le=7 * DAY_S)] = option(
        60.0,
        "time for an answer that teaches; then the sample may be asked about again. For a person: hours",
        group="operation",
    )
