"""Reads what an offload costs by time, bytes and energy, and makes the integers of h2t2.link.cost."""

from __future__ import annotations

from pathlib import Path

from pydantic import model_validator

from h2t2.core.numbers import ONE
from h2t2.units import q15

from .fields import Options, option
from .toml_file import load


class CostTable(Options):
    """Time, bytes and energy that cost 1, as much as a missed event. An offload costs the sum of the given parts."""

    seconds: float | None = option(None, "seconds of waiting that cost 1", example=4.0, gt=0)
    kilobytes: float | None = option(None, "KiB sent that cost 1", example=64.0, gt=0)
    millijoules: float | None = option(
        None, "energy that costs 1, of wake_mj + send_mj_per_kb * KiB + listen_mj_per_s * seconds", example=500.0, gt=0
    )
    wake_mj: float = option(0.0, "energy of waking the radio", example=20.0, ge=0)
    send_mj_per_kb: float = option(0.0, "energy of sending a KiB", example=5.0, ge=0)
    listen_mj_per_s: float = option(0.0, "energy of a second of listening", example=80.0, ge=0)
    expected: float = option(0.3, "beta before anything is measured", example=0.3, ge=0, le=1)
    awake_mw: float = option(
        0.0, "power of a sleeping board when it is awake: for `energy_mj` in its state", example=150.0, ge=0, le=10000
    )
    asleep_mw: float = option(0.0, "and when it sleeps", example=1.0, ge=0, le=10000)

    @model_validator(mode="after")
    def _one_scale(self) -> CostTable:
        if not (self.seconds or self.kilobytes or self.millijoules):
            raise ValueError("want a scale: seconds, kilobytes or millijoules")
        return self

    def arguments(self) -> dict[str, int]:
        """Make the arguments of h2t2.link.cost.LinkCost.

        Raises:
            ValueError: a wake-up costs more than 1, or a second or a KiB more than 1000.
        """
        joules = 1 / self.millijoules if self.millijoules else 0.0
        per_s = (1 / self.seconds if self.seconds else 0.0) + self.listen_mj_per_s * joules
        per_kb = (1 / self.kilobytes if self.kilobytes else 0.0) + self.send_mj_per_kb * joules
        for name, value in (("second", per_s), ("KiB", per_kb)):
            if value > 1000:
                raise ValueError(f"cost of one {name} {value:g} is above 1000")
        fixed, expected = q15(self.wake_mj * joules, "cost of one wake-up"), q15(self.expected, "expected")
        return {"fixed": fixed, "per_s": round(per_s * ONE), "per_kb": round(per_kb * ONE), "expected": expected}

    def power_arguments(self, size: int) -> list[int]:
        """Make the arguments of h2t2.node.sleep.Sleep.

        Args:
            size: bytes of an offload.

        Returns:
            Microwatts awake, microwatts asleep, microjoules of an offload.
        """
        offload = self.wake_mj + self.send_mj_per_kb * size / 1024
        return [round(1000 * self.awake_mw), round(1000 * self.asleep_mw), round(1000 * offload)]


def read(path: Path) -> CostTable:
    """Read the table in a .toml file. UserError names a wrong entry."""
    return load(path, CostTable)


def of_file(value: object) -> object:
    """Read the table of a file if `value` is its path; return every other value unchanged."""
    return read(Path(value)) if isinstance(value, str) else value
