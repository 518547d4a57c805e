"""Runs of small models in each way there is."""

import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError

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


@pytest.fixture
def message_of_block(tmp_path):
    """Return a function from a wrong contact, on the eighth line of a file, to the message of reading it."""

    def message(contact):
        path = tmp_path / "block.yaml"
        path.write_text(
            "fsm_dyn: 1\nname: block\ncoordinates: {x: m}\npoints: {P: {from: O, at: x*N.x}}\n"
            "bodies: {block: {center: P, mass: 1 kg}}\nspeeds: {v: rate(x)}\n"
            f"contacts:\n  {contact}\ninitial: {{x: 0 m}}\n"
        )
        with pytest.raises(ModelError) as told:
            fsm_dyn.compile(path)
        assert "block.yaml:8:" in str(told.value)
        return str(told.value)

    return message
