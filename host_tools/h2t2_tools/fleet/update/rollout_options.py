"""The options of packages and of their rollout."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...common.fields import DAY_S, Count, Duration, Options, Seconds, file, option


class PackageOptions(Options):
    """How a package is made."""

    counter: Annotated[int, Field(ge=1, lt=2**32)] | None = option(
        None, "devices accept only packages with a higher counter than the last", unset="the time", metavar="N"
    )
    ahead: bool = option(False, "sign it although the counter is more than a day ahead of the files that it is made of")
    trial: Annotated[int, Field(ge=1, lt=2**20)] = option(
        500, "samples after which a device keeps the update, or not", metavar="N"
    )
    trial_time: Annotated[Duration, Field(ge=0, le=7 * DAY_S)] = option(600.0, "time that the trial lasts at least")
    tests: Count = option(4, "inputs of the self-test", metavar="N")
    app: Path | None = file(None, "a new app.py, for devices that allow it")


class RolloutOptions(Options):
    """How a package reaches devices."""

    at_once: bool = option(False, "to all of them, without the steps before")
    patience: Seconds = option(60.0, "time to wait for a device that is away or silent")
    wait: Seconds = option(86400.0, "time to wait for a device's trial")
    soak: Seconds = option(300.0, "time that updated devices are watched after each step")
