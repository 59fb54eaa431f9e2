"""The gate: the policy for scores that somebody else's detector publishes. `Gate` serves Python programs."""

from .detection import Decision, Detection, Payload
from .gate import Gate
from .gate_config import GateConfig, load

__all__ = ["Decision", "Detection", "Gate", "GateConfig", "Payload", "load"]
