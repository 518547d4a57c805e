"""Sliding where the friction force makes the reduced equations unsymmetric: hand solutions, and charts.

A negative or vanishing ``SᵀMT`` is no Painlevé paradox by itself; a vanishing ``G_D`` is a bad chart.
"""

import numpy as np
import pytest

from fsm_dyn.derive.embedding import ActiveSet, embed
from fsm_dyn.programs.program import Program

LIMIT = 1e-12
SLIDE = 2


def ramp(name="ramp", **changes):
    """A point mass on a ramp, its speeds along N's axes, so that either may be the dependent one."""
    model = {
        "fsm_dyn": 1,
        "name": name,
        "parameters": {"mx": 2, "my": 2, "g": 9.81, "alpha": "pi/4", "mu": 1.01},
        "coordinates": ["x", "y"],
        "frames": {"S": {"parent": "N", "rotate": {"z": "alpha"}}},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}, "Q": {"from": "O", "at": "x*N.x"}},
        # the mass on the rail Q moves with x only: mx is the sum, my = m
        "bodies": {"mass": {"center": "P", "mass": "my"}, "rail": {"center": "Q", "mass": "mx - my"}},
        "speeds": {"vx": "dot(vel(P), N.x)", "vy": "dot(vel(P), N.y)"},
        "contacts": {
            "ramp": {
                "gap": "dot(pos(P), S.y)",
                "slip": "dot(vel(P), S.x)",
                "friction": {"static": "mu", "kinetic": "mu"},
            }
        },
        "loads": [{"force": "-my*g*N.y", "at": "P"}],
    }
    return model | changes


def by_hand(p, sigma):
    """u', normal force and friction: sliding along the ramp, two equations of motion and the row."""
    s, c = np.sin(p["alpha"]), np.cos(p["alpha"])
    left = np.array(
        [
            [p["mx"], 0, s + p["mu"] * sigma * c],
            [0, p["my"], -c + p["mu"] * sigma * s],
            [-s, c, 0],
        ]
    )
    ax, ay, normal = np.linalg.solve(left, [0, -p["my"] * p["g"], 0])
    return np.array([ax, ay]), np.array([normal, -p["mu"] * sigma * normal])


def context(graph, sigma):
    layout = graph.automaton.terms.layout
    c = np.zeros(layout.n_c)
    c[layout.p_slice], c[layout.sigma_slice] = graph.parameters, sigma
    return c


@pytest.mark.parametrize("sigma", [1, -1])
@pytest.mark.parametrize("dependent", [0, 1], ids=["vx dependent", "vy dependent"])
@pytest.mark.parametrize("mu", [1.01, 0.99, 0.5, 1.5])
def test_point_mass_in_both_charts(mode_graph, errors, mu, dependent, sigma):
    """A ramp of 45°: ``u' = -g/2 (1 + mu sigma)`` along it and ``N = m g cos 45°``, in either chart.

    With mu = 1.01 the reduced mass of one chart is 2 m/(1 - 1.01) = -200 m, and the motion is plain.
    """
    graph = mode_graph(ramp(), mu=mu)
    automaton, c = graph.automaton, context(graph, sigma)
    x = np.array([0, 0, sigma, sigma], dtype=float)
    system = automaton.system
    normal_row = automaton.contacts[0].normal_row
    samples = automaton.samples((SLIDE,), 0.0, x, c)
    with system.graph.scratch():
        embedded = embed(system, ActiveSet.of(system, (SLIDE,)), samples, [(normal_row, dependent)])
        names = {"u_dot": embedded.accelerations, "force": embedded.multipliers, "mass": embedded.reduced_mass}
        values = Program.from_nodes(system.layout, names).evaluate(0.0, x, c)
    assert embedded.independent == (1 - dependent,)
    a = 9.81 / 2 * (-1 - mu * sigma)
    errors.compare("u'", values["u_dot"], [a, a], scale=9.81)
    normal = 2 * 9.81 * np.sqrt(0.5)
    errors.compare("force", values["force"], [normal, -mu * sigma * normal])
    sign = -1 if dependent else 1
    errors.compare("reduced mass", values["mass"], [[2 * 2 / (1 + sign * sigma * mu)]])
    errors.check(LIMIT)
    if mu == 1.01 and sign * sigma < 0:
        assert values["mass"][0, 0] == pytest.approx(-400.0)


@pytest.mark.parametrize("sigma", [1, -1])
def test_a_chart_in_which_the_friction_cancels_is_left(mode_graph, errors, sigma):
    """mu = 1 on 45°: for each slip direction one of the two charts divides by G_D = 0, and its pivot says so."""
    graph = mode_graph(ramp(), mu=1)
    automaton, c = graph.automaton, context(graph, sigma)
    x = np.array([0, 0, sigma, sigma], dtype=float)
    mode = automaton.derive((SLIDE,), 0.0, x, c)
    assert mode.programs.full.evaluate(0.0, x, c)["pivot"][0] > 0.5
    assert mode.programs.full.evaluate(0.0, -x, context(graph, -sigma))["pivot"][0] < 1e-12
    # the mode as users have it takes the right chart by itself
    view = graph.modes["ramp_slide"]
    u_dot, forces = by_hand({"mx": 2, "my": 2, "g": 9.81, "alpha": np.pi / 4, "mu": 1.0}, sigma)
    errors.compare("u'", view.derivatives(0.0, x[:2], x[2:])[1], u_dot, scale=9.81)
    errors.compare("force", view.contact_forces(0.0, x[:2], x[2:])["ramp"], forces)
    errors.check(LIMIT)


def test_unequal_masses_at_random(mode_graph, errors):
    rng = np.random.default_rng(5)
    for _ in range(40):
        my = rng.uniform(0.5, 3)
        p = {"mx": my + rng.uniform(0, 3), "my": my, "g": 9.81}
        p |= {"alpha": rng.uniform(-1.4, 1.4), "mu": rng.uniform(0, 2)}
        view = mode_graph(ramp(), **p).modes["ramp_slide"]
        for sigma in (1, -1):
            s, c = np.sin(p["alpha"]), np.cos(p["alpha"])
            inverse = s**2 / p["mx"] + c**2 / my + p["mu"] * sigma * s * c * (1 / p["mx"] - 1 / my)
            if abs(inverse) < 0.05:  # K = A_n M^-1 G, the paradox itself
                continue
            at = (0.0, [0, 0], [sigma * c, sigma * s])
            u_dot, forces = by_hand(p, sigma)
            errors.compare("u'", view.derivatives(*at)[1], u_dot)
            errors.compare("force", view.contact_forces(*at)["ramp"], forces)
    errors.check(1e-11)
