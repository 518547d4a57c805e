"""The seven-body mechanism: against published accelerations and multipliers, and against Lagrange's equations.

Schiehlen (ed.), Multibody Systems Handbook (1990); Hairer and Wanner, Solving ODEs II, VI.9.
"""

import numpy as np
import pytest
import sympy as sp

from fsm_dyn.derive.assembly import PrescribedValues
from fsm_dyn.programs.program import Program

LIMIT = 1e-10
OPERATIONS = 700


@pytest.fixture(scope="module")
def seven(mode_graph):
    return mode_graph("seven_body_mechanism")


@pytest.fixture(scope="module")
def published(reference):
    return reference("seven_body_mechanism")


def test_the_model_has_the_published_data(seven, published):
    given = dict(zip(seven.automaton.terms.layout.p, seven.parameters, strict=True))
    expected = {
        (name if i is None else f"{name}[{i}]"): value
        for name, values in published["parameters"].items()
        for i, value in (enumerate(values) if isinstance(values, list) else [(None, values)])
    }
    assert given == expected
    assert list(seven.automaton.terms.layout.q) == published["order"]


def test_accelerations_and_multipliers_at_the_start(seven, published, errors):
    mode, start = seven.modes["motion"], published["start"]
    at = (0.0, start["q"], np.zeros(7))
    _, u_dot = mode.derivatives(*at)
    errors.compare("accelerations", u_dot, start["accelerations"])
    errors.compare("beta''", u_dot[0], start["accelerations"][0])
    errors.compare("Theta''", u_dot[1], start["accelerations"][1])
    forces = np.concatenate(list(mode.contact_forces(*at).values()))
    errors.compare("multipliers", forces, start["multipliers"])
    errors.compare("lambda 1", forces[0], start["multipliers"][0])
    errors.compare("lambda 2", forces[1], start["multipliers"][1])
    errors.check(LIMIT)
    assert mode.degrees_of_freedom == 1
    assert mode.redundant_rows == ()


def test_operation_counts(seven):
    """The program of a step, and the one that gives all accelerations and multipliers."""
    (mode,) = seven.automaton.modes
    nodes = mode.programs.full.graph()[2]
    both = Program.from_nodes(
        mode.programs.full.layout, {"u_dot": nodes["x_dot"][7:], "multipliers": nodes["multipliers"]}
    ).counts()
    print(f"step {mode.programs.rhs.counts().total}, accelerations and multipliers {both.total}")  # noqa: T201
    assert mode.programs.rhs.counts().total <= both.total <= OPERATIONS


@pytest.fixture(scope="module")
def oracle(lagrange, published):
    """Lagrange's equations in the seven angles, bodies as the Handbook's figure has them, numbers put in."""
    q = sp.symbols(published["order"])
    rates = sp.symbols([f"{name}_rate" for name in published["order"]])
    beta, theta, gamma, phi, delta, omega, epsilon = q
    p = {k: v for k, v in published["parameters"].items() if not isinstance(v, list)}
    m, inertia = published["parameters"]["m"], published["parameters"]["I"]

    def along(angle, x, y=0.0):
        c, s = sp.cos(angle), sp.sin(angle)
        return sp.Matrix([c * x - s * y, s * x + c * y])

    A, B, C = (sp.Matrix([p["x" + k], p["y" + k]]) for k in "abc")
    angles = [beta, beta + theta, gamma, phi + delta, delta, omega + epsilon, epsilon]
    crank = along(beta, p["rr"])
    upper, lower = A + along(delta, p["zt"]), A + along(epsilon, 0, -p["u"])
    centres = [
        along(beta, p["ra"]),
        crank - along(beta + theta, p["da"]),
        B + along(gamma, p["sb"], -p["sa"]),
        upper + along(phi + delta, 0, p["ea"] - p["e"]),
        A + along(delta, p["ta"], p["tb"]),
        lower + along(omega + epsilon, p["zf"] - p["fa"]),
        A + along(epsilon, -p["ub"], -p["ua"]),
    ]
    end = crank - along(beta + theta, p["d"])
    loops = [
        B + along(gamma, 0, -p["ss"]) - end,
        upper + along(phi + delta, 0, -p["e"]) - end,
        lower + along(omega + epsilon, p["zf"]) - end,
    ]

    def rate(expression):
        return expression.jacobian(q) * sp.Matrix(rates)

    kinetic = sum(
        mass * rate(r).dot(rate(r)) / 2 + J * rate(sp.Matrix([angle]))[0] ** 2 / 2
        for mass, r, J, angle in zip(m, centres, inertia, angles, strict=True)
    )
    stretch = B + along(gamma, p["sd"], -p["sc"]) - C
    potential = p["c0"] * (sp.sqrt(stretch.dot(stretch)) - p["l0"]) ** 2 / 2
    rows = [entry for loop in loops for entry in rate(loop)]
    return lagrange(q, rates, kinetic, potential, p["mom"] * rates[0], rows, [])


def test_moving_against_lagrange(seven, published, oracle, errors):
    """At assembled configurations around a turn of the crank, moving: one chart each, all unknowns."""
    automaton = seven.automaton
    c = seven.parameters
    rng = np.random.default_rng(4)
    guess = dict(zip(published["order"], published["start"]["q"], strict=True))
    states = []
    for step in range(1, 41):
        # around the turn in small steps, each assembled from the one before
        guess["beta"] = published["start"]["q"][0] + step * 2 * np.pi / 40
        x = close(automaton, guess, c)
        guess = dict(zip(published["order"], x[:7], strict=True))
        states.append((x[:7], rng.uniform(-300, 300)))
    for q, speed in states:
        x = automaton.assemble(
            (), PrescribedValues(dict(zip(published["order"], q, strict=True)), {"beta_dot": speed}, 0.0, c)
        )
        mode = automaton.derive((), 0.0, x, c)
        found = mode.programs.full.evaluate(0.0, x, c)
        second, multipliers = oracle.solve(x[:7], x[7:], [], range(6))
        errors.compare("accelerations", found["x_dot"][7:], second)
        errors.compare("multipliers", found["multipliers"], multipliers)
        assert found["pivot"][0] > 1e-3
    errors.check(LIMIT)


def close(automaton, guess, c):
    """Close the loops by Newton's method from a guess, with the crank held; independent of the assembly."""
    names = list(automaton.terms.layout.q)
    q = np.array([guess[name] for name in names])
    for _ in range(30):
        terms = automaton.terms.evaluate(0.0, np.concatenate([q, np.zeros(7)]), c)
        q[1:] -= np.linalg.solve(terms["A"][:, 1:], terms["residual"])
    assert np.abs(terms["residual"]).max() < 1e-14
    return q
