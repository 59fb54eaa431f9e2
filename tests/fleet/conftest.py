"""Fixtures of this folder."""

from secured import fleet

__all__ = ["fleet"]
