"""Checks that the system works: the core against floats, the interpreter against TFLite, hardware in the loop."""
