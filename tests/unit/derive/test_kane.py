"""The ways to sum inertia agree, chains stay cheap, and energy is conserved without dissipation."""

import numpy as np
import pytest

from fsm_dyn.derive.derivation import flow_of
from fsm_dyn.derive.kane import Kane
from fsm_dyn.derive.kinematics import Vector
from fsm_dyn.derive.speeds import solve_speeds
from fsm_dyn.derive.symbols import build_system
from fsm_dyn.programs.traversal import evaluate, tangent


def chain(n, axes="z", *, absolute=False):
    """A chain of n links; each turns about an axis of the one before, or all about N's."""
    return {
        "fsm_dyn": 1,
        "name": "chain",
        "parameters": {"m": 1.0, "l": 0.5, "J": [0.1, 0.2, 0.3, 0.02], "g": 9.81},
        "coordinates": [f"q{i}" for i in range(n)],
        "frames": {
            f"F{i}": {
                "parent": "N" if absolute or i == 0 else f"F{i - 1}",
                "rotate": {axes[i % len(axes)]: f"q{i}"},
            }
            for i in range(n)
        },
        "points": {
            **{f"P{i}": {"from": "O" if i == 0 else f"P{i - 1}", "at": f"l*F{i}.x"} for i in range(n)},
            **{f"G{i}": {"from": "O" if i == 0 else f"P{i - 1}", "at": f"l/2*F{i}.x + l/9*F{i}.y"} for i in range(n)},
        },
        "bodies": {
            f"b{i}": {
                "frame": f"F{i}",
                "center": f"G{i}",
                "mass": "m",
                "inertia": {"xx": "J[0]", "yy": "J[1]", "zz": "J[2]", "xy": "J[3]"},
            }
            for i in range(n)
        },
        "loads": [{"gravity": "-g*N.y"}],
    }


CHAINS = {
    "planar, relative": chain(4),
    "planar, absolute": chain(4, absolute=True),
    "spatial": chain(4, "zyx"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_ways_agree(load, model, name):
    mechanism = load(CHAINS[name])
    system = build_system(mechanism)
    speeds = solve_speeds(system)
    kane = Kane(system, system.motion(speeds.rates), flow_of(system, speeds))
    gravity = Vector((("N", (system.graph.zero, -system.graph.symbol("g"), system.graph.constant(0.5))),))
    ways = list(kane.ways(kane.bodies, gravity))
    assert len(ways) == 3
    values = model(mechanism)
    state = values.values(values.state())
    results = [np.array(evaluate(share.nodes, state), dtype=float) for share in ways]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", CHAINS)
def test_energy_is_kept(model, name):
    swinging = model(CHAINS[name])
    terms = swinging.terms
    symbols = [terms.graph.symbol(symbol) for symbol in swinging.layout.x]
    rates = [terms.graph.symbol(f"rate{i}") for i in range(len(symbols))]
    energy = terms.kinetic_energy + terms.potential_energy
    (slope,) = tangent([energy], dict(zip(symbols, rates, strict=True)))
    for _ in range(5):
        state = swinging.state()
        x_dot = swinging.accelerations(state)
        values = swinging.values(state)
        rate = evaluate([slope], values | {f"rate{i}": r for i, r in enumerate(x_dot)})[0]
        scale = np.abs(x_dot).max() ** 2
        assert abs(rate) < 1e-12 * scale
        out = swinging.evaluate(["M", "kinetic_energy"], state)
        u = state[1][swinging.layout.u_slice]
        assert out["kinetic_energy"] == pytest.approx(0.5 * u @ out["M"] @ u, rel=1e-12)
        assert np.linalg.eigvalsh(out["M"]).min() > 0


@pytest.mark.parametrize(
    ("source", "most"),
    [(chain(10, absolute=True), 1000), (chain(10), 1900), (chain(20), 6500), (chain(6, "zyyxyx"), 2600)],
    ids=["absolute 10", "relative 10", "relative 20", "spatial 6"],
)
def test_chains_stay_cheap(model, source, most):
    """Operations of M and f: they grow with the square of the number of links, not with its fourth power."""
    assert model(source).terms.program(["M", "f"]).counts().total <= most
