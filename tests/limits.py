"""Policies with a limit for missed events, as a configuration makes them."""

from h2t2.core import policies


def limited(**options):
    """The adaptive policy with `miss_rate` and perhaps `confidence`; what else is given names which one."""
    return policies.make("adaptive", options)
