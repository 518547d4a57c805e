"""Coupled graphs, shared by the tests of passivity."""

import pytest

import fsm_dyn
from fsm_dyn.live.device_map import add_couplers


@pytest.fixture(scope="session")
def held():
    """Return a function that gives the coupled graph of a shipped model, or of a mapping."""
    known = {}

    def graph(source, **parameters):
        key = (str(source), tuple(parameters.items()))
        if key not in known:
            known[key] = fsm_dyn.compile(add_couplers(fsm_dyn.load(source)), parameters)
        return known[key]

    return graph
