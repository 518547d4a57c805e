"""Coupled graphs, shared by the tests of passivity."""

import pytest

import fsm_dyn
from fsm_dyn.live.device_map import add_couplers


@pytest.fixture(scope="session")
def held():
    """Return a function from a shipped model, or a mapping, to its coupled graph."""
    known = {}

    def graph(source, **parameters):
        key = (str(source), tuple(parameters.items()))
        if key not in known:
            known[key] = fsm_dyn.compile(add_couplers(fsm_dyn.load(source)), parameters)
        return known[key]

    return graph
