"""Along the motion without constraints, energy changes by the power of the loads without a potential."""

from dataclasses import replace

import numpy as np
import pytest

from fsm_dyn.language.expression_tree import Text
from fsm_dyn.programs.traversal import evaluate, tangent

EVERYTHING = {
    "fsm_dyn": 1,
    "name": "everything",
    "parameters": {"m": 1.2, "J": 0.3, "k": 40, "g": 9.81, "c": 0.4},
    "coordinates": ["x", "y", "a", "b"],
    "frames": {"A": {"parent": "N", "rotate": {"z": "a"}}, "B": {"parent": "A", "rotate": {"x": "b"}}},
    "points": {
        "P": {"from": "O", "at": "x*N.x + y*N.y"},
        "Q": {"from": "P", "at": "0.4*A.x + 0.1*A.y"},
        "R": {"from": "Q", "at": "0.3*B.y"},
        "K": {"from": "O", "at": "2*N.x + N.z"},
    },
    "bodies": {
        "first": {"center": "Q", "frame": "A", "mass": "m", "inertia": {"zz": "J", "xx": "J/2"}},
        "second": {"center": "R", "frame": "B", "mass": "m/2", "inertia": {"xx": "J", "yy": "2*J", "xy": "J/10"}},
    },
    "speeds": {
        "u": "dot(vel(Q), A.x)",
        "v": "dot(vel(Q), A.y)",
        "w": "dot(omega(A), N.z)",
        "s": "rate(b)",
    },
    "inputs": {"push": None, "lift": None},
    "loads": [
        {"gravity": "-g*N.y + 0.2*N.z", "name": "weight"},
        {"force": "push*A.x - c*vel(R)", "at": "R", "name": "drag"},
        {"torque": "lift*B.x + N.z", "on": "second", "reaction": "first", "name": "motor"},
        {"spring": {"between": ["R", "K"], "stiffness": "k", "free": 0.5, "damping": "c"}, "name": "stay"},
        {"spring": {"between": ["P", "K"], "stiffness": "k"}, "name": "rubber"},
        {"spring": {"between": ["Q", "K"], "stiffness": "k", "free": 0.5}, "name": "muscle"},
        {"damper": {"between": ["P", "R"], "damping": "c"}, "name": "dashpot"},
        {"torsion_spring": {"coordinate": "a + 2*b", "stiffness": "k", "free": "0.1", "damping": "c"}, "name": "twist"},
        {"law": "-k*x**3 + rate(y)", "coordinate": "x + sin(y)", "name": "cubic"},
        {"law": "2 + push", "between": ["Q", "O"], "name": "jack"},
    ],
}


def varied(load):
    """The model with a spring whose free length an input sets: its energy is no function of the state."""
    loads = list(load(EVERYTHING).loads)
    at = next(i for i, item in enumerate(loads) if item.name == "muscle")
    loads[at] = replace(loads[at], free=Text("0.5 + 0.1*push"))
    return load(EVERYTHING, loads=tuple(loads))


def energy_rate(model, state):
    """d/dt(T + V) along the unconstrained motion, from the expression itself."""
    terms = model.terms
    symbols = [terms.graph.symbol(name) for name in model.layout.x]
    rates = [terms.graph.symbol(f"rate{i}") for i in range(len(symbols))]
    (slope,) = tangent([terms.kinetic_energy + terms.potential_energy], dict(zip(symbols, rates, strict=True)))
    x_dot = model.accelerations(state)
    return evaluate([slope], model.values(state) | {f"rate{i}": r for i, r in enumerate(x_dot)})[0]


def test_powers_close_the_balance(model, load):
    everything = model(varied(load))
    powers = everything.terms.load_powers
    assert set(powers) == {"drag", "motor", "stay", "muscle", "dashpot", "twist", "cubic", "jack"}
    for _ in range(20):
        state = everything.state()
        out = everything.evaluate({**powers}, state)
        scale = sum(abs(power) for power in out.values())
        assert energy_rate(everything, state) == pytest.approx(sum(out.values()), rel=1e-11, abs=1e-12 * scale)


def test_dampers_take_energy(model):
    everything = model(EVERYTHING)
    for _ in range(20):
        out = everything.evaluate(dict(everything.terms.load_powers), everything.state())
        assert out["dashpot"] <= 0
        assert out["stay"] <= 0
        assert out["twist"] <= 0


def test_gravity_that_varies_is_a_power(model, load):
    weight = replace(load(EVERYTHING).loads[0], value=Text("-push*N.y"))
    shaken = model(load(EVERYTHING, loads=(weight,)))
    assert set(shaken.terms.load_powers) == {"weight"}
    assert shaken.terms.potential_energy.is_zero
    state = shaken.state()
    power = shaken.evaluate(dict(shaken.terms.load_powers), state)["weight"]
    assert energy_rate(shaken, state) == pytest.approx(power, rel=1e-11)


def test_springs_of_no_length_give_no_nan(model):
    """At zero length the direction is arbitrary: no force, no NaN; without a free length nothing is divided."""
    source = {
        "fsm_dyn": 1,
        "name": "zero",
        "coordinates": ["x", "y"],
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"bob": {"center": "P", "mass": 1}},
        "loads": [
            {"spring": {"between": ["P", "O"], "stiffness": 3, "free": 0.5, "damping": 1}},
            {"spring": {"between": ["P", "O"], "stiffness": 3}},
        ],
    }
    bob = model(source)
    out = bob.evaluate(["f", "potential_energy"], (0, [0, 0, 1, 2], []))
    np.testing.assert_array_equal(out["f"], 0)
    assert out["potential_energy"] == pytest.approx(0.5 * 3 * 0.25)
    rubber = model({**source, "loads": source["loads"][1:]})
    assert rubber.terms.program(["f"]).counts()[2:] == (0, 0, 0, 2)
