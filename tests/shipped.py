"""Shipped models, each read once a process for all tests that choose among them."""

from functools import cache

import fsm_dyn


@cache
def mechanism(name):
    """Return the mechanism of a shipped model; it is frozen."""
    return fsm_dyn.load(name)
