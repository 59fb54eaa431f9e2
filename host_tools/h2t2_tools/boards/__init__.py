"""Boards as the host sees them: what is plugged in, how to talk to it, what goes onto it, `h2t2 flash`."""
