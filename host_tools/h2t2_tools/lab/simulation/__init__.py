"""Policies over score traces, compiled: what every policy would have cost."""
