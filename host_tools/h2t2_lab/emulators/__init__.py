"""Emulated boards that no package has: how to build the firmware of each, and those that only tests and benchmarks run."""
