"""The gate: the policy for scores that somebody else's detector publishes. `Gate` serves Python programs."""

from .config import GateConfig, load
from .detection import Decision, Detection, Payload
from .gate import Gate

__all__ = ["Decision", "Detection", "Gate", "GateConfig", "Payload", "load"]
