"""Runs of small models in each way there is."""

import pytest

import fsm_dyn

#: methods of running a model, with the error of their instants (s)
METHODS = {
    "dopri5": ({}, 1e-9),
    "online": ({"strategy": "online"}, 1e-9),
    "rk4": ({"method": "rk4", "step": 0.01}, 1e-9),
    "radau": ({"method": "radau"}, 1e-9),
    "moreau_jean": ({"method": "moreau_jean", "step": 1e-3}, 2.5e-3),
}


@pytest.fixture(params=METHODS)
def run(request):
    """Return a function to run a model by one of the methods, and the error of its instants (s)."""
    options, off = METHODS[request.param]

    def simulate(model, until, **more):
        return fsm_dyn.simulate(fsm_dyn.compile(model), until=until, **options, **more)

    simulate.off = off
    return simulate
