"""Emulated boards: the MicroPython builds that stand in for boards, and how to fetch and start each."""
