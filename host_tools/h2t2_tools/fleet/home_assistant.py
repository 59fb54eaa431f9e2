"""What a user says to have a node seen in Home Assistant: the device class of its event, or the names of its classes."""

from __future__ import annotations

from h2t2.node.assistant import NONE

from ..common.errors import UserError

# of a binary sensor: https://www.home-assistant.io/integrations/binary_sensor/#device-class
DEVICE_CLASSES = (
    "battery", "battery_charging", "carbon_monoxide", "cold", "connectivity", "door", "garage_door", "gas", "heat", "light",
    "lock", "moisture", "motion", "moving", "occupancy", "opening", "plug", "power", "presence", "problem", "running", "safety",
    "smoke", "sound", "tamper", "update", "vibration", "window",
)  # fmt: skip
LONGEST = 40  # characters of a class's name


def names(text: str, classes: int | None = None) -> list[str]:
    """What h2t2.node.assistant wants, of "motion", "none" or "cat, dog, bird". classes: how many there are, where it is known.
    UserError, saying what it wants."""
    made = [name.strip() for name in text.split(",")]
    if len(made) == 1 and classes in (None, 2):
        if made[0] not in (NONE, *DEVICE_CLASSES):
            wanted = f"want {NONE} or a device class of a binary sensor"
            raise UserError(f"home_assistant: {made[0]!r}: {wanted}: {', '.join(DEVICE_CLASSES)}")
    elif classes == 2:
        raise UserError(f"home_assistant: {len(made)} names; of two classes give the device class of class 1, such as motion")
    elif classes is not None and len(made) != classes:
        raise UserError(f"home_assistant: {len(made)} names, with commas between them; there are {classes} classes")
    elif len({*made}) != len(made) or not all(0 < len(name) <= LONGEST and name.isprintable() for name in made):
        raise UserError(f"home_assistant: want names of 1 to {LONGEST} characters, each another")
    return made
