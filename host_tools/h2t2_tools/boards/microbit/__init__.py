"""The micro:bit: its emulation, and the runtime cut down to what its 16 KB hold."""
