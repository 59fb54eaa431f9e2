"""A policy between two models in a Python program or a notebook: `from h2t2_tools import Router`."""

from .router import Decision, Router

__all__ = ["Decision", "Router"]
