"""Runs of small models in each way there is."""

import pytest

import fsm_dyn

#: ways to run a model, and what their instants are off by (s)
METHODS = {
    "dopri5": ({}, 1e-9),
    "online": ({"strategy": "online"}, 1e-9),
    "rk4": ({"method": "rk4", "step": 0.01}, 1e-9),
    "radau": ({"method": "radau"}, 1e-9),
    "moreau_jean": ({"method": "moreau_jean", "step": 1e-3}, 2.5e-3),
}


@pytest.fixture(params=METHODS)
def run(request):
    """Return a function that runs a model by one of the methods, and what its instants are off by (s)."""
    options, off = METHODS[request.param]

    def simulate(model, until, **more):
        return fsm_dyn.simulate(fsm_dyn.compile(model), until=until, **options, **more)

    simulate.off = off
    return simulate
