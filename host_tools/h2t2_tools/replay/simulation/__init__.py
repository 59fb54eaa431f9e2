"""The compiled simulation: plays policies on score traces and computes their costs."""
