"""Boards: what goes onto each, how it gets there, the serial line to it, and the emulators that stand in for one."""
