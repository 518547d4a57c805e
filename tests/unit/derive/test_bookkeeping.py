"""Matrices of Kane's method against values worked by hand, other formulations and multipliers."""

import numpy as np
import pytest
import sympy as sp

import fsm_dyn
from fsm_dyn.core.errors import InputError


@pytest.fixture(scope="module")
def graphs():
    return {name: fsm_dyn.compile(name) for name in ("shopping_cart", "rolling_disk", "spherical_wrist")}


def assert_equal(found, expected):
    difference = sp.Matrix(found) - sp.Matrix(expected)
    assert sp.simplify(difference) == sp.zeros(*difference.shape)


def test_cart_by_hand(graphs):
    u2, u3, q3, q4 = sp.symbols("u2 u3 q3 q4")
    mB, mC, IB, L1, L2, L3 = sp.symbols("mB mC IB L1 L2 L3")
    s3, c3, s4, c4 = sp.sin(q3), sp.cos(q3), sp.sin(q4), sp.cos(q4)
    kane = graphs["shopping_cart"].modes["rolling"].kane_equations
    assert_equal(kane["Y"], [[c3, s3, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1], [-s3, c3, 0, 0]])
    assert_equal(kane["Z"], [0, 0, 0, 0])
    assert_equal(kane["W"], sp.Matrix([[c3, s3, 0, 0], [0, 0, 1, -1], [0, 0, 0, 1]]).T)
    assert_equal(kane["X"], [0, 0, 0, 0])
    M = [[mB + mC, 0, L3 * mC * s4], [0, IB + L1**2 * mB + L2**2 * mC, -L2 * L3 * mC * c4], [0, 0, L3**2 * mC]]
    assert_equal(kane["M"], sp.Matrix(3, 3, lambda i, j: M[min(i, j)][max(i, j)]))
    C = [
        [0, -(L1 * mB + L2 * mC) * u2, L3 * mC * c4 * u3],
        [(L1 * mB + L2 * mC) * u2, 0, L2 * L3 * mC * s4 * u3],
        [-L3 * mC * c4 * u2, -L2 * L3 * mC * s4 * u2, 0],
    ]
    assert_equal(kane["C"], C)
    M_tilde = [[mB + mC * c4**2, L2 * mC * s4 * c4], [L2 * mC * s4 * c4, IB + L1**2 * mB + L2**2 * mC * s4**2]]
    assert_equal(kane["M_tilde"], M_tilde)


def test_disk_by_hand(graphs):
    m, r, J, g, phi, push, lift = sp.symbols("m r J g phi push lift")
    kane = graphs["rolling_disk"].modes["rolling"].kane_equations
    assert_equal(kane["W"], [[1, 0, 0], [0, 0, 1], [0, 1 / r, 0]])
    assert_equal(kane["M"], sp.diag(m, J / r**2, m))
    assert_equal(kane["C"], sp.zeros(3, 3))
    motion = dict(zip(kane.accelerations, kane["u_dot"], strict=True))
    normal = kane.auxiliary_speed("ramp.normal").force.subs(motion)
    tangent = kane.auxiliary_speed("ramp.tangent").force.subs(motion)
    assert_equal([normal], [m * g * sp.cos(phi) - lift])
    assert_equal([tangent], [J * (m * g * sp.sin(phi) - push) / (J + m * r**2)])


@pytest.mark.parametrize("model", ["shopping_cart", "spherical_wrist"])
def test_velocity_terms(graphs, model):
    """``C u = -F*`` at rest of the accelerations, and ``Ṁ - 2 C`` is skew: no work is done by inertia but M's."""
    kane = graphs[model].modes[graphs[model].initial].kane_equations
    assert_equal(kane["h"], -kane["F_star_0"])
    assert_equal(kane["h"], kane["C"] * sp.Matrix(sp.symbols(kane.speeds)))
    rate = sp.zeros(*kane["M"].shape)
    for name, q_dot in zip(kane.coordinates, kane["q_dot"], strict=True):
        rate += kane["M"].diff(sp.Symbol(name)) * q_dot
    skew = rate - 2 * kane["C"]
    assert_equal(skew + skew.T, sp.zeros(*skew.shape))
    W, Y = kane["W"], kane["Y"]
    assert_equal(Y[: len(kane.speeds), :] * W, sp.eye(len(kane.speeds)))


@pytest.mark.parametrize(
    ("model", "mode"), [("shopping_cart", "rolling"), ("shopping_cart", "sticking"), ("rolling_disk", "sliding")]
)
def test_auxiliary_forces_are_the_multipliers(graphs, model, mode):
    """At states on the rows, of sliding contacts too; and the partial velocities of all points follow the row."""
    kane = graphs[model].modes[mode].kane_equations
    layout, generator = kane.part("M").layout, np.random.default_rng(4)
    x, c = generator.uniform(0.3, 1.2, layout.n_x), generator.uniform(0.3, 1.2, layout.n_c)
    known = kane.part("T", "e", "u_dot", "multipliers").evaluate(0.0, x, c)
    n_q = len(kane.coordinates)
    independent = [kane.speeds.index(name) for name in kane.independent]
    x[n_q:] = known["T"] @ x[n_q:][independent] + known["e"]
    known = kane.part("u_dot", "multipliers").evaluate(0.0, x, c)
    values = dict(zip(layout.x, x, strict=True)) | dict(zip(layout.c, c, strict=True))
    values |= {f"{name}_dot": value for name, value in zip(kane.speeds, known["u_dot"], strict=True)}
    for row in kane.rows:
        force = kane.auxiliary_speed(row).force
        found = float(force.subs({symbol: values[symbol.name] for symbol in force.free_symbols}))
        expected = dict(zip(kane.row_names, known["multipliers"], strict=True))[row]
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_auxiliary_speed_of_the_wheel(graphs):
    speed = graphs["shopping_cart"].modes["rolling"].kane_equations.auxiliary_speed("front_wheel")
    assert {point: str(vector) for point, vector in speed.velocities.items()} == {"P1": "0", "Bo": "0", "P3": "C.y"}
    with pytest.raises(InputError, match="no active row 'wheel'"):
        graphs["shopping_cart"].modes["rolling"].kane_equations.auxiliary_speed("wheel")


def test_lagrange_of_the_cart_against_kane(graphs):
    """``Wᵀ (M_q q̈ + h_q - Q) = M u̇ + h - F`` with ``q̈`` of the speeds: two derivations of one mechanism."""
    kane = graphs["shopping_cart"].modes["rolling"].kane_equations
    lagrange = kane.lagrange()
    assert lagrange.rows == ("rear_axle", "front_wheel")
    q, W = sp.Matrix(sp.symbols(kane.coordinates)), kane["W"]
    u, v = sp.Matrix(sp.symbols(kane.speeds)), kane.accelerations
    onward = W * v + sum((W.diff(q[i]) * kane["q_dot"][i] for i in range(len(q))), sp.zeros(*W.shape)) * u
    rates = {sp.Symbol(f"{name}_dot"): rate for name, rate in zip(lagrange.coordinates, kane["q_dot"], strict=True)}
    left = W.T * (lagrange.M * onward + (lagrange.h - lagrange.Q).subs(rates))
    active = sp.Matrix([sp.Symbol("push"), sp.Symbol("turn"), 0])
    assert_equal(left, kane["M"] * v + kane["h"] - active)
    assert_equal((lagrange.A * W)[1:, :], kane["A"])
    assert_equal((lagrange.A * W)[:1, :], sp.zeros(1, 3))
    assert "lambda_front_wheel" in str(lagrange)


def test_inertia_forces_keep_accelerations(graphs):
    """F* has the symbols of accelerations unless the motion is asked for, so that it stays readable."""
    kane = graphs["shopping_cart"].modes["rolling"].kane_equations
    assert_equal(kane["F_star"], kane.generalized_inertia_forces)
    assert sum(int(value.count_ops()) for value in kane["F_star"]) < 130
    in_motion = kane.read("F_star", motion=True)
    assert in_motion.counts.total > kane.read("F_star").counts.total
    followed = kane.read("F_star", in_terms_of="independent", expand_symbols=True).results["F_star"]
    assert not followed.has(sp.Symbol("u3"), sp.Symbol("u3_dot"))
    with pytest.raises(InputError, match="no choice of speeds"):
        kane.read("F_star", in_terms_of="dependent")


def test_thirds_are_fractions():
    from fsm_dyn.derive.printing import number

    assert [number(1 / 3), number(0.5), number(2.5e-3)] == [sp.Rational(1, 3), sp.Rational(1, 2), sp.Rational(1, 400)]
    assert number(np.pi) == sp.Float(np.pi)
