"""Samples that wait for a remote model that is away: a bounded SQLite file, and what their labels will teach."""
