"""The bounds of the history of a dashboard."""

from typing import Annotated

from pydantic import Field

from ...common.fields import Options, option


class Bounds(Options):
    """The most that is kept: days, and megabytes of the file."""

    days: Annotated[float, Field(gt=0, le=36500)] = option(30.0, "days that the history goes back")
    megabytes: Annotated[float, Field(gt=0, le=10**6)] = option(256.0, "size of the history at most", metavar="MB")
