"""Boards that are not there: the MicroPython builds that stand in for them, how each is got, started and driven."""
