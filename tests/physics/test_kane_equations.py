"""Gillespie (2003) symbol by symbol from the public calls of a mode: tables, (24), (38)-(50), (57)-(67), Table 3.

SymPy decides equality: a difference is simplified to 0, nothing is compared by numbers or by its spelling.
"""

import numpy as np
import pytest
import sympy as sp

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.derive.equations import OUTPUTS


def assert_equal(found, expected):
    difference = sp.Matrix(found) - sp.Matrix(expected)
    assert sp.simplify(difference) == sp.zeros(*difference.shape)


def in_n(vector, frames):
    """Components in N of a vector by parts, with rotation matrices by frame."""
    return sum((frames[name] * sp.Matrix(triple) for name, triple in vector.parts.items()), sp.zeros(3, 1))


def turned(axis, angle):
    c, s = sp.cos(angle), sp.sin(angle)
    return {
        "z": sp.Matrix([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
        "y": sp.Matrix([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
    }[axis]


# -- the disk: (36)-(42) -----------------------------------------------------------------------------------


def test_disk_tables_and_forces(kane):
    m, r, J, phi, g, push, lift = sp.symbols("m r J phi g push lift")
    u1_dot, u2_dot, u3_dot = sp.symbols("u1_dot u2_dot u3_dot")
    free, rolling = kane("rolling_disk", "flying"), kane("rolling_disk", "rolling")
    velocities, spins = free.partial_velocities()["Bo"], free.partial_angular_velocities()["B"]
    assert [str(velocities[u]) for u in ("u1", "u2", "u3")] == ["A.x", "0", "A.y"]  # (36)
    assert [str(spins[u]) for u in ("u1", "u2", "u3")] == ["0", "1/r*B.z", "0"]
    assert_equal(free.generalized_active_forces, [push - m * g * sp.sin(phi), 0, lift - m * g * sp.cos(phi)])  # (38)
    assert_equal(free.generalized_inertia_forces, [-m * u1_dot, -J / r**2 * u2_dot, -m * u3_dot])  # (38), (39)
    assert (rolling.independent, rolling.dependent) == (("u1",), ("u2", "u3"))
    assert_equal(rolling["D"], [-1, 0])  # (7)
    assert_equal(rolling["E"], [0, 0])
    assert_equal(rolling.constrained_active_forces, [push - m * g * sp.sin(phi)])  # (41)
    assert_equal(rolling.constrained_inertia_forces, [-(m + J / r**2) * u1_dot])  # (42)


def test_friction_of_a_sliding_disk_is_in_the_test_basis(kane):
    """``SᵀG = 0`` with friction in G; where nothing slides S is T and G is Aᵀ."""
    sliding, rolling = kane("rolling_disk", "sliding"), kane("rolling_disk", "rolling")
    mu, sigma = sp.Symbol("mu"), sp.Symbol("ramp.sigma")
    assert_equal(sliding["G"], [-mu * sigma, -mu * sigma, 1])
    assert_equal(sliding["S"].T * sliding["G"], [0, 0])
    assert_equal(sliding["A"] * sliding["T"], sp.zeros(1, 2))
    assert_equal(rolling["S"], rolling["T"])
    assert_equal(rolling["G"], rolling["A"].T)


# -- the wrist: (49), (50) ---------------------------------------------------------------------------------


def test_wrist_as_printed(kane):
    q1, q2, q3, u1, u2, u3 = sp.symbols("q1 q2 q3 u1 u2 u3")
    M, L, I1, I2, I3, G, F1, F2, T1, T2, T3 = sp.symbols("M L I1 I2 I3 G F1 F2 T1 T2 T3")
    s1, c1, s2, c2, s3, c3 = (f(q) for q in (q1, q2, q3) for f in (sp.sin, sp.cos))
    wrist = kane("spherical_wrist", "motion")
    turning = (s3 * u2 - c3 * u1) / s2
    assert_equal(wrist["q_dot"], [turning, s3 * u1 + c3 * u2, u3 - c2 * turning])  # (50)
    expected = [
        (T1 - L * (F2 + G * M * (s1 * c3 + s3 * c1 * c2)) - (I3 - I2 - M * L**2) * u2 * u3) / (I1 + M * L**2),
        (T2 + L * (F1 + G * M * (s1 * s3 - c1 * c2 * c3)) + (I3 - I1 - M * L**2) * u1 * u3) / (I2 + M * L**2),
        (T3 + (I1 - I2) * u1 * u2) / I3,
    ]
    assert_equal(wrist["u_dot"], expected)  # (49)
    balance = wrist.generalized_active_forces + wrist.generalized_inertia_forces  # (46)
    assert_equal(balance.subs(dict(zip(wrist.accelerations, expected, strict=True))), [0, 0, 0])


def test_table_3(kane, reference):
    """Printed operations count a sine every time it is written; ours count it once, so they are no more."""
    table = reference("gillespie2003")["table_3"]
    wrist, rates = kane("spherical_wrist", "motion"), kane("spherical_wrist_rates", "motion")
    for counts, printed in (
        (wrist.counts.kinematics, table["eq_50"]),
        (wrist.counts.dynamics, table["eq_49"]),
        (rates.counts.kinematics, table["eq_48"]),
        (rates.counts.dynamics, table["rates_choice"]),
    ):
        found = {"multiply_divide": counts.multiply_divide, "add_subtract": counts.add, "sine_cosine": counts.trig}
        assert all(found[kind] <= number for kind, number in printed.items()), (found, printed)
    # exactly, so that a change of either is seen: products and quotients, sums, sines and cosines
    for counts, exactly in ((wrist.counts.kinematics, (6, 3, 4)), (wrist.counts.dynamics, (29, 16, 5))):
        assert (counts.multiply_divide, counts.add, counts.trig) == exactly


# -- partial velocities are derivatives by the speeds: (24) -------------------------------------------------


@pytest.mark.parametrize(("model", "mode"), [("spherical_wrist", "motion"), ("shopping_cart", "rolling")])
def test_partial_velocities_are_derivatives(kane, model, mode):
    """(24) with positions written by hand, differentiated by SymPy; the rates of coordinates from ``q_dot``."""
    equations = kane(model, mode)
    q = sp.symbols("q1:5")
    L, L1, L2, L3 = sp.symbols("L L1 L2 L3")
    if model == "spherical_wrist":
        q = q[:3]
        frames = {"A": turned("z", q[0])}
        frames["B"] = frames["A"] * turned("y", q[1])
        frames["C"] = frames["B"] * turned("z", q[2])
        places = {"Co": frames["C"] * sp.Matrix([0, 0, L])}
    else:
        frames = {"B": turned("z", q[2]), "C": turned("z", q[2] + q[3])}
        places = {"P1": sp.Matrix([q[0], q[1], 0])}
        places["Bo"] = places["P1"] + frames["B"] * sp.Matrix([L1, 0, 0])
        places["P3"] = places["P1"] + frames["B"] * sp.Matrix([L2, 0, 0]) - frames["C"] * sp.Matrix([L3, 0, 0])
    frames["N"] = sp.eye(3)
    table = equations.partial_velocities()
    assert set(table) == set(places)
    for point, place in places.items():
        velocity = place.jacobian(q) * equations["q_dot"]
        for speed in equations.speeds:
            assert_equal(in_n(table[point][speed], frames), velocity.diff(sp.Symbol(speed)))


# -- the cart: (57), (60), (63)-(67) -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def symbols():
    names = "u1 u2 u3 q3 q4 mB IB mC L1 L2 L3 push turn u1_dot u2_dot"
    return dict(zip(names.split(), sp.symbols(names), strict=True))


def test_cart_tables(kane, symbols):
    q3, q4, u1, u2, u3, L2, L3 = (symbols[name] for name in ("q3", "q4", "u1", "u2", "u3", "L2", "L3"))
    rolling = kane("shopping_cart", "rolling")
    assert_equal(rolling["q_dot"], [sp.cos(q3) * u1, sp.sin(q3) * u1, u2, u3 - u2])  # (57)
    assert_equal(rolling["D"], [[-sp.sin(q4) / L3, L2 * sp.cos(q4) / L3]])  # (60)
    table = {
        point: [str(v) for v in row.values()] for point, row in rolling.partial_velocities(constrained=True).items()
    }
    assert table == {
        "P1": ["B.x", "0"],
        "Bo": ["B.x", "L1*B.y"],
        "P3": ["B.x + sin(q4)*C.y", "L2*B.y - L2*cos(q4)*C.y"],
    }
    assert [str(v) for v in rolling.partial_angular_velocities()["B"].values()] == ["0", "B.z", "0"]


def test_cart_63(kane, symbols):
    """With no friction at the caster axis; u3 by (60)."""
    u1, u2, u3, _, q4, mB, IB, mC, L1, L2, L3, push, turn, v1, v2 = symbols.values()
    s4, c4 = sp.sin(q4), sp.cos(q4)
    rolling = kane("shopping_cart", "rolling")
    held = {u3: (-s4 * u1 + L2 * c4 * u2) / L3}
    assert_equal(rolling.constrained_active_forces.subs(sp.Symbol("tau_slip"), 0), [push, turn])
    printed = [
        (L1 * mB + L2 * mC * c4**2) * u2**2 - L3 * mC * c4 * u3**2 - mC * s4 * c4 * u1 * u2
        - (mB + mC * c4**2) * v1 - L2 * mC * s4 * c4 * v2,
        mC * L2**2 * s4 * c4 * u2**2 - L2 * L3 * mC * s4 * u3**2 - (L1 * mB + L2 * mC * s4**2) * u1 * u2
        - L2 * mC * s4 * c4 * v1 - (IB + mB * L1**2 + mC * L2**2 * s4**2) * v2,
    ]  # fmt: skip
    assert_equal(rolling.constrained_inertia_forces.subs(held), sp.Matrix(printed).subs(held))


@pytest.mark.parametrize(("sign", "right"), [(1, True), (-1, False)])
def test_cart_67_corrected_and_not_as_printed(kane, symbols, sign, right):
    """The paper has the u1 u2 term of (67) with the sign -1; Z1 = Z6 = 0 while the axis sticks, (65) for u2 and u3."""
    u1, u2, u3, _, q4, mB, IB, mC, L1, L2, L3, push, turn, v1, _ = symbols.values()
    s4, c4 = sp.sin(q4), sp.cos(q4)
    sticking = kane("shopping_cart", "sticking")
    Z2, Z3, Z4 = L3 - L2 * c4, L2 * mC * (L2 - L3 * c4), L1 * mB + L2 * mC
    Z5 = IB + Z3 + mB * L1**2
    assert_equal(sticking["D"], [-s4 / Z2, -s4 / Z2])  # (65)
    assert_equal(sticking.constrained_active_forces, [push - s4 * turn / Z2])
    printed = (
        (Z4 - L2 * L3 * mC * s4**2 / Z2) * u2**2 - L3 * mC * (c4 - L2 * s4**2 / Z2) * u3**2
        + sign * s4 * (Z4 - L3 * mC * c4) / Z2 * u1 * u2
        - (mB + Z5 * s4**2 / Z2**2 + mC * (1 - L3 * s4**2 / Z2)) * v1
    )  # fmt: skip
    held = {u2: -s4 * u1 / Z2, u3: -s4 * u1 / Z2}
    difference = sp.simplify((sticking.constrained_inertia_forces[0] - printed).subs(held))
    assert (difference == 0) is right


# -- all parts fit together ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["rolling_disk", "shopping_cart", "spherical_wrist", "bouncing_ball", "felt_drop"])
def test_sources_and_numbers_agree(model):
    """NumPy source and named arrays against the program evaluated as it is: the same operations, so the same bits."""
    graph = fsm_dyn.compile(model)
    layout = graph.automaton.terms.layout
    rng = np.random.default_rng(3)
    x, c = graph.start.x + 0.1 * rng.uniform(-1, 1, layout.n_x), np.ones(layout.n_c)
    c[layout.p_slice] = graph.parameters
    for mode in graph.modes.values():
        kane = mode.kane_equations
        names = [name for name in OUTPUTS if name != "guards"]
        space = {}
        exec(kane.numpy_source(*names), space)  # noqa: S102 - source that the package made
        found, expected = space["evaluate"](0.0, x, c), kane.part(*names).evaluate(0.0, x, c)
        for name in names:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
        # M u̇ = f + Gλ and f = F + F*: another route to each, so up to rounding
        np.testing.assert_allclose(expected["f"], expected["F"] + expected["F_star_0"], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(expected["S"].T @ expected["G"], 0.0, atol=1e-13)
        np.testing.assert_allclose(expected["A"] @ expected["T"], 0.0, atol=1e-13)


def test_c_source_has_one_assignment_for_each_number(kane):
    source = kane("shopping_cart", "sticking").c_source("M", "f", function="cart_terms")
    assert "void cart_terms(double t, const double *restrict x" in source
    assert source.count("out[") == 9 + 3


def test_what_there_is_not_is_refused(kane):
    with pytest.raises(InputError, match="no output 'mass'"):
        kane("rolling_disk", "rolling").read("M", "mass")
    with pytest.raises(InputError, match="identifier"):
        kane("rolling_disk", "rolling").numpy_source("M", function="class")
