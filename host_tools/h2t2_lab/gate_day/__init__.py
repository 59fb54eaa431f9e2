"""A simulated day of a detector that somebody else runs: its messages through a broker into `h2t2 gate`, and what they cost.

`h2t2-lab bench presets` plays a day for each preset of the gate and writes the measured parts of the presets' pages.
"""

from .days import DAYS, Day
from .play import Played, play

__all__ = ["DAYS", "Day", "Played", "play"]
