"""Gillespie (2003), Example 1: a disk on a ramp, against the printed equations and against Newton's laws.

(39) is printed ``F2 = Ff``; the couple is ``-r Ff a3``, hence ``F2 = -Ff``, and (40), (41), (47) agree with that.
"""

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.derive.embedding import ActiveSet, embed
from fsm_dyn.programs.program import Program

LIMIT = 1e-12
PUSH, LIFT = 30.0, 20.0


def disks(mode_graph, count):
    """Graphs with random parameters, and a generator for states."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        given = {"m": rng.uniform(0.5, 4), "r": rng.uniform(0.05, 0.5), "phi": rng.uniform(-0.5, 0.5)}
        given |= {"J": rng.uniform(0.005, 0.5), "mu": rng.uniform(0.05, 1.2), "g": rng.uniform(1, 12)}
        yield mode_graph("rolling_disk", **given), given, rng


def state(rng):
    w = {"push": rng.uniform(-PUSH, PUSH), "lift": rng.uniform(-LIFT, LIFT)}
    return rng.uniform(-2, 2, 3), rng.uniform(-3, 3, 3), w


def context(graph, w):
    layout = graph.automaton.terms.layout
    c = np.zeros(layout.n_c)
    c[layout.p_slice], c[layout.w_slice] = graph.parameters, [w[name] for name in layout.w]
    return c


def test_unconstrained_terms_are_equation_40(mode_graph, errors):
    """(40): ``-m g sin(phi) - Ff - m u1' = 0`` and ``-Ff - (J/r^2) u2' = 0``, with the push added to the first."""
    for graph, p, rng in disks(mode_graph, 5):
        for _ in range(20):
            q, u, w = state(rng)
            terms = graph.automaton.terms.evaluate(0.0, [*q, *u], context(graph, w))
            friction, u_dot = rng.normal(), rng.normal(size=3)
            tangent = terms["A"][graph.automaton.contacts[0].tangent_row]
            # friction Ff acts along -a1, so the multiplier of the slip u1 + u2 is -Ff
            left = terms["f"] - friction * tangent - terms["M"] @ u_dot
            expected = [
                w["push"] - p["m"] * p["g"] * np.sin(p["phi"]) - friction - p["m"] * u_dot[0],
                -friction - p["J"] / p["r"] ** 2 * u_dot[1],
            ]
            errors.compare("(40)", left[:2], expected, scale=p["m"] * p["g"])
    errors.check(LIMIT)


def test_rolling_is_equation_42(mode_graph, errors):
    """(42): ``-m g sin(phi) - (m + J/r^2) u1' = 0``; the dependent speed follows by the roll constraint (7)."""
    for graph, p, rng in disks(mode_graph, 10):
        for _ in range(20):
            q, u, w = state(rng)
            _, u_dot = graph.modes["rolling"].derivatives(0.0, q, u, w)
            expected = (w["push"] - p["m"] * p["g"] * np.sin(p["phi"])) / (p["m"] + p["J"] / p["r"] ** 2)
            errors.compare("(42)", u_dot, [expected, -expected, 0.0], scale=p["g"])
    errors.check(LIMIT)


def test_uniform_disk_rolls_with_two_thirds_of_the_slope(mode_graph):
    """A uniform disk: ``u1' = -(2/3) g sin(phi)``, and it sticks as long as ``tan(phi) <= 3 mu``."""
    phi, mu = 0.4, np.tan(0.4) / 3
    rolling = mode_graph("rolling_disk", phi=phi, mu=mu, g=9.81).modes["rolling"]
    _, u_dot = rolling.derivatives(0.0, [0, 0.1, 0], [0, 0, 0])
    np.testing.assert_allclose(u_dot[0], -2 / 3 * 9.81 * np.sin(phi), rtol=1e-14)
    limits = [value for text, value, _ in rolling.guards(0.0, [0, 0.1, 0], [0, 0, 0]) if "friction limit" in text]
    assert min(limits) == pytest.approx(0.0, abs=1e-14)
    assert max(limits) > 1


def test_recombination_of_equation_47(mode_graph, errors):
    """(44)-(47): with D = -1, ``F~1 = F1 - F2`` and ``F~1* = F1* - F2*``, from the unconstrained terms alone."""
    for graph, p, rng in disks(mode_graph, 5):
        automaton = graph.automaton
        system, states = automaton.system, (1,)
        q, u, w = state(rng)
        c = context(graph, w)
        samples = automaton.samples(states, 0.0, np.array([*q, *u]), c)
        # the chart of the paper: u1 independent, u2 (roll) and u3 (contact) dependent
        contact = automaton.contacts[0]
        chart = [(contact.normal_row, 2), (contact.tangent_row, 1)]
        with system.graph.scratch():
            embedded = embed(system, ActiveSet.of(system, states), samples, chart)
            reduced_terms = {"mass": embedded.reduced_mass, "force": embedded.reduced_force}
            program = Program.from_nodes(system.layout, reduced_terms)
        assert embedded.independent == (0,)
        for _ in range(10):
            q, u, w = state(rng)
            c = context(graph, w)
            reduced = program.evaluate(0.0, [*q, *u], c)
            terms = automaton.terms.evaluate(0.0, [*q, *u], c)
            M, f = terms["M"], terms["f"]
            errors.compare("F~1", reduced["force"], f[0] - f[1], scale=p["m"] * p["g"])
            u1_dot, u2_dot = 1.7, -1.7
            inertia = -(M[0, 0] * u1_dot + M[0, 1] * u2_dot), -(M[1, 0] * u1_dot + M[1, 1] * u2_dot)
            errors.compare("F~1*", -reduced["mass"].ravel() * u1_dot, inertia[0] - inertia[1])
    errors.check(LIMIT)


def newton(p, w, mode, direction):
    """u' (3,), normal force and friction force on the disk by Newton's laws, along a1, about a3, along a2."""
    m, weight, inertia = p["m"], p["m"] * p["g"], p["J"] / p["r"] ** 2
    along, across = w["push"] - weight * np.sin(p["phi"]), w["lift"] - weight * np.cos(p["phi"])
    if mode == "flying":
        return [along / m, 0.0, across / m], 0.0, 0.0
    normal = -across
    if mode == "sliding":
        friction = -direction * p["mu"] * normal
        return [(along + friction) / m, friction / inertia, 0.0], normal, friction
    u1_dot = along / (m + inertia)
    return [u1_dot, -u1_dot, 0.0], normal, -inertia * u1_dot


@pytest.mark.parametrize("mode", ["rolling", "sliding", "flying"])
def test_motion_and_forces_by_newton(mode_graph, errors, mode):
    for graph, p, rng in disks(mode_graph, 10):
        view = graph.modes[mode]
        for _ in range(30):
            q, u, w = state(rng)
            expected, normal, friction = newton(p, w, mode, np.sign(u[0] + u[1]))
            _, u_dot = view.derivatives(0.0, q, u, w)
            forces = view.contact_forces(0.0, q, u, w)["ramp"]
            size = p["m"] * p["g"] + PUSH + LIFT
            errors.compare("u'", u_dot, expected, scale=size / p["m"])
            errors.compare("normal force", forces[0], normal, scale=size)
            errors.compare("friction", forces[1], friction, scale=size)
    errors.check(LIMIT)


def test_slip_direction_is_given_where_the_slip_speed_is_zero(mode_graph):
    graph = mode_graph("rolling_disk")
    sliding, at_rest = graph.modes["sliding"], ([0, 0.1, 0], [1, -1, 0])
    with pytest.raises(InputError, match="slip speed is zero"):
        sliding.derivatives(0.0, *at_rest)
    p = {**dict(zip(graph.automaton.terms.layout.p, graph.parameters, strict=True))}
    for direction in (1, -1):
        _, u_dot = sliding.derivatives(0.0, *at_rest, directions={"ramp": direction})
        expected, *_ = newton(p, {"push": 0, "lift": 0}, "sliding", direction)
        np.testing.assert_allclose(u_dot, expected, rtol=1e-13, atol=1e-13)
    with pytest.raises(InputError, match="is 1 or -1"):
        sliding.derivatives(0.0, *at_rest, directions={"ramp": 0.5})
    with pytest.raises(InputError, match="no contact 'rampp'"):
        sliding.derivatives(0.0, *at_rest, directions={"rampp": 1})
    # a direction given outweighs the one that the speeds tell
    _, u_dot = sliding.derivatives(0.0, [0, 0.1, 0], [1, 1, 0], directions={"ramp": -1})
    np.testing.assert_allclose(u_dot, expected, rtol=1e-13, atol=1e-13)
