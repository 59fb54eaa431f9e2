"""Policies with a limit for missed events, as a configuration makes them."""

from h2t2.core import policies


def limited(**options):
    """The adaptive policy with `miss_rate` and perhaps `confidence`; with `features` or `ordered` the one that these name."""
    return policies.make("adaptive", options)
