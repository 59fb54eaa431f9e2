"""Samples that were offloaded, kept with the remote model's answers."""
