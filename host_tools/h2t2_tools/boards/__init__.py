"""Boards: the files of each, their way onto it, the serial line to it, and the emulators that stand in for one."""
