"""Gillespie (2003), Example 3: the shopping cart, by two other derivations and against the printed equations.

The two derivations are sympy's KanesMethod with a fourth speed across the axle, and Lagrange's equations with
multipliers in the four coordinates.  Both are evaluated at 1,000 random states of 20 random carts.

Bound of the comparison: rolling divides by L3 and by the reduced mass only, which is well conditioned.  Sticking
divides by ``Z2 = L3 - L2 c4`` as well; states with |Z2| < 0.1 L2 are left out, so that a rounding error of the
constraint row, about eps (L2 + L3), grows by less than (L2 + L3)/|Z2| <= 13 to the first power in the speeds and to
the second in the accelerations: 200 eps = 4e-14 of the terms added.  An acceleration that is a small difference of
such terms may lose two more digits; hence 1e-11 of the largest acceleration of the state.
"""

import numpy as np
import pytest
import sympy as sp
from sympy.physics import mechanics as me

STATES, CARTS = 1000, 20
LIMIT = 1e-11
MARGIN = 0.1  # |L3 - L2 c4| / L2 kept away from 0
NAMES = ("mB", "IB", "mC", "L1", "L2", "L3")
LOWEST = np.array([5.0, 0.5, 0.3, 0.1, 0.4, 0.05])
HIGHEST = np.array([30.0, 4.0, 2.0, 0.6, 1.0, 0.25])


def carts(mode_graph, tau_slip=0.25):
    """Yield (graph, parameters, states), a state being (q, u, inputs), STATES of them in all."""
    rng = np.random.default_rng(2)
    for _ in range(CARTS):
        p = dict(zip(NAMES, rng.uniform(LOWEST, HIGHEST), strict=True))
        states = []
        while len(states) < STATES // CARTS:
            q, u = rng.uniform(-4, 4, 4), rng.uniform(-3, 3, 3)
            w = {"push": rng.uniform(-40, 40), "turn": rng.uniform(-8, 8)}
            if abs(p["L3"] - p["L2"] * np.cos(q[3])) > MARGIN * p["L2"]:
                states.append((q, u, w))
        yield mode_graph("shopping_cart", tau_slip=tau_slip, **p), p, states


def on_rows(mode, p, q, u):
    """Speeds that satisfy (60), and while sticking (65); the independent ones are the first ones."""
    s4, c4 = np.sin(q[3]), np.cos(q[3])
    if mode == "sticking":
        spin = s4 * u[0] / (p["L2"] * c4 - p["L3"])
        return np.array([u[0], spin, spin])
    return np.array([u[0], u[1], (-s4 * u[0] + p["L2"] * c4 * u[1]) / p["L3"]])


def friction_torque(mode, u, tau_slip=0.25):
    """Moment of the caster on the basket while it slips."""
    return 0.0 if mode == "sticking" else np.sign(u[2] - u[1]) * tau_slip


@pytest.fixture(scope="module")
def kane():
    """Function of (mode or None, q, u, parameters, [push, turn, friction]) to mass matrix and forcing, KanesMethod.

    The kinematics are its own: the velocity of P1 is the derivative of its position, the axle is a fourth speed.
    """
    q, u = me.dynamicsymbols("q1:5"), me.dynamicsymbols("u1:5")
    p = sp.symbols(NAMES)
    mB, IB, mC, L1, L2, L3 = p
    push, turn, friction = loads = sp.symbols("push turn friction")
    N = me.ReferenceFrame("N")
    B = N.orientnew("B", "Axis", [q[2], N.z])
    C = B.orientnew("C", "Axis", [q[3], B.z])
    origin = me.Point("O")
    origin.set_vel(N, 0)
    P1 = origin.locatenew("P1", q[0] * N.x + q[1] * N.y)
    velocity = P1.pos_from(origin).dt(N)
    kinematics = [
        u[0] - velocity.dot(B.x),
        u[3] - velocity.dot(B.y),
        u[1] - q[2].diff(),
        u[2] - q[2].diff() - q[3].diff(),
    ]
    P1.set_vel(N, u[0] * B.x + u[3] * B.y)
    B.set_ang_vel(N, u[1] * N.z)
    C.set_ang_vel(N, u[2] * N.z)
    Bo, P2 = P1.locatenew("Bo", L1 * B.x), P1.locatenew("P2", L2 * B.x)
    P3 = P2.locatenew("P3", -L3 * C.x)
    Bo.v2pt_theory(P1, N, B)
    P2.v2pt_theory(P1, N, B)
    P3.v2pt_theory(P2, N, C)
    wheel = P3.vel(N).dot(C.y)
    bodies = [me.RigidBody("basket", Bo, B, mB, (me.inertia(B, 0, 0, IB), Bo)), me.Particle("caster", P3, mC)]
    applied = [(P1, push * B.x), (B, (turn + friction) * N.z), (C, -friction * N.z)]
    held = {
        None: ([3], [u[3]]),
        "rolling": ([2, 3], [u[3], wheel]),
        "sticking": ([1, 2, 3], [u[3], wheel, u[2] - u[1]]),
    }
    functions = {}
    for mode, (dependent, rows) in held.items():
        method = me.KanesMethod(
            N, q, [u[i] for i in range(4) if i not in dependent], kinematics,
            u_dependent=[u[i] for i in dependent], velocity_constraints=rows,
        )  # fmt: skip
        method.kanes_equations(bodies, applied)
        order = [list(method.u).index(speed) for speed in u[:3]]
        system = sp.lambdify([list(q), list(u), list(p), list(loads)], [method.mass_matrix, method.forcing], cse=True)
        functions[mode] = (system, order)

    def evaluate(mode, q, u, p, loads):
        system, order = functions[mode]
        M, f = system(q, [*u, 0.0], [p[name] for name in NAMES], loads)
        return np.linalg.solve(M, f.ravel())[order]

    return evaluate


@pytest.fixture(scope="module")
def cart(lagrange):
    """Lagrange's equations in q1..q4; rows: rear axle, front wheel, caster axis."""
    q, rates = sp.symbols("q1:5"), sp.symbols("r1:5")
    p = sp.symbols(NAMES)
    mB, IB, mC, L1, L2, L3 = p
    push, turn, friction = loads = sp.symbols("push turn friction")
    heading, castered = q[2], q[2] + q[3]
    b = sp.Matrix([sp.cos(heading), sp.sin(heading)])
    c = sp.Matrix([sp.cos(castered), sp.sin(castered)])
    P1 = sp.Matrix(q[:2])
    basket, wheel = P1 + L1 * b, P1 + L2 * b - L3 * c

    def velocity(point):
        return point.jacobian(q) * sp.Matrix(rates)

    def across(v, direction):
        return -direction[1] * v[0] + direction[0] * v[1]

    squares = velocity(basket).dot(velocity(basket)), velocity(wheel).dot(velocity(wheel))
    kinetic = (mB * squares[0] + IB * rates[2] ** 2 + mC * squares[1]) / 2
    power = push * velocity(P1).dot(b) + turn * rates[2] - friction * rates[3]
    rows = [across(velocity(P1), b), across(velocity(wheel), c), rates[3]]
    system = lagrange(q, rates, kinetic, 0, power, rows, [*p, *loads])

    def evaluate(mode, q, u, p, loads):
        """u' of the three speeds and the multipliers of the rows held."""
        held = [0, 1] if mode == "rolling" else [0, 1, 2]
        s3, c3 = np.sin(q[2]), np.cos(q[2])
        rates = np.array([c3 * u[0], s3 * u[0], u[1], u[2] - u[1]])
        second, multipliers = system.solve(q, rates, [*(p[name] for name in NAMES), *loads], held)
        # u1 = v.b1 with v across b1 zero; u2 = q3', u3 = q3' + q4'
        return np.array([c3 * second[0] + s3 * second[1], second[2], second[2] + second[3]]), multipliers

    return evaluate


def test_unconstrained_terms_against_kanes_method(mode_graph, kane, errors):
    """Only the axle held: ``M u' = f`` of the terms program, the first three columns."""
    for graph, p, states in carts(mode_graph):
        layout = graph.automaton.terms.layout
        for q, u, w in states:
            c = np.zeros(layout.n_c)
            c[layout.p_slice], c[layout.w_slice] = graph.parameters, [w["push"], w["turn"]]
            terms = graph.automaton.terms.evaluate(0.0, [*q, *u], c)
            u_dot = np.linalg.solve(terms["M"][:3, :3], terms["f"][:3])
            errors.compare("u'", u_dot, kane(None, q, u, p, [w["push"], w["turn"], 0.0]))
    errors.check(LIMIT)


@pytest.mark.parametrize("mode", ["rolling", "sticking"])
def test_modes_against_both_derivations(mode_graph, kane, cart, errors, mode):
    for graph, p, states in carts(mode_graph):
        view = graph.modes[mode]
        for q, free, w in states:
            u = on_rows(mode, p, q, free)
            loads = [w["push"], w["turn"], friction_torque(mode, u)]
            _, u_dot = view.derivatives(0.0, q, u, w)
            errors.compare("KanesMethod", u_dot, kane(mode, q, u, p, loads))
            errors.compare("Lagrange", u_dot, cart(mode, q, u, p, loads)[0])
    errors.check(LIMIT)


@pytest.mark.parametrize("mode", ["rolling", "sticking"])
def test_multipliers_against_the_augmented_system(mode_graph, cart, errors, mode):
    """Force across the rear axle (its row is eliminated by the speeds), across the front wheel, caster torque."""
    for graph, p, states in carts(mode_graph):
        view = graph.modes[mode]
        for q, free, w in states[:10]:
            u = on_rows(mode, p, q, free)
            torque = friction_torque(mode, u)
            _, expected = cart(mode, q, u, p, [w["push"], w["turn"], torque])
            forces = view.contact_forces(0.0, q, u, w)
            if mode == "rolling":
                expected = [*expected, -torque]  # the friction of a slipping caster is known
            for name, value in zip(("rear_axle", "front_wheel", "caster_axis"), expected, strict=True):
                errors.compare(name, forces[name], value, scale=np.abs(expected).max())
    errors.check(LIMIT)


def test_dependent_speeds_are_recomputed(mode_graph, errors):
    """Only independent speeds are read: what stands in the dependent entries of u does not matter."""
    for graph, p, states in carts(mode_graph):
        for mode in ("rolling", "sticking"):
            view = graph.modes[mode]
            names = graph.automaton.terms.layout.u
            for q, free, w in states[:3]:
                u = on_rows(mode, p, q, free)
                wrong = np.array([v if n in view.independent_speeds else 99.0 for n, v in zip(names, u, strict=True)])
                direction = {"caster_axis": 1 if u[2] >= u[1] else -1}
                for a, b in zip(
                    view.derivatives(0.0, q, wrong, w, directions=direction),
                    view.derivatives(0.0, q, u, w, directions=direction),
                    strict=True,
                ):
                    errors.compare("x'", a, b)
    errors.check(LIMIT)


def equation_63(p, q, u, u_dot, force, torque):
    """(63) as printed: F1 + F1* and F2 + F2*, and the size of the terms added."""
    mB, IB, mC, L1, L2, L3 = (p[name] for name in NAMES)
    s4, c4 = np.sin(q[3]), np.cos(q[3])
    u1, u2, u3 = u
    first = [
        (L1 * mB + L2 * mC * c4**2) * u2**2, -L3 * mC * c4 * u3**2, -mC * s4 * c4 * u1 * u2,
        -(mB + mC * c4**2) * u_dot[0], -L2 * mC * s4 * c4 * u_dot[1],
    ]  # fmt: skip
    second = [
        mC * L2**2 * s4 * c4 * u2**2, -L2 * L3 * mC * s4 * u3**2, -(L1 * mB + L2 * mC * s4**2) * u1 * u2,
        -L2 * mC * s4 * c4 * u_dot[0], -(IB + mB * L1**2 + mC * L2**2 * s4**2) * u_dot[1],
    ]  # fmt: skip
    return np.array([force + sum(first), torque + sum(second)]), np.abs([*first, *second, force, torque]).max()


def test_rolling_satisfies_63_as_printed(mode_graph, errors):
    """(63) has no friction at the caster axis: compared without it."""
    for graph, p, states in carts(mode_graph, tau_slip=0.0):
        view = graph.modes["rolling"]
        for q, free, w in states:
            u = on_rows("rolling", p, q, free)
            _, u_dot = view.derivatives(0.0, q, u, w)
            balance, size = equation_63(p, q, u, u_dot, w["push"], w["turn"])
            errors.compare("(63)", balance, [0.0, 0.0], scale=size)
    errors.check(LIMIT)


def generalized_inertia_force_67(p, q, u1, u1_dot, sign):
    """F~1* of (67) with the constants of (66): sign -1 as printed, +1 corrected; sticking, so Z1 = Z6 = 0."""
    mB, IB, mC, L1, L2, L3 = (p[name] for name in NAMES)
    s4, c4 = np.sin(q[3]), np.cos(q[3])
    Z2, Z3, Z4 = L3 - L2 * c4, L2 * mC * (L2 - L3 * c4), L1 * mB + L2 * mC
    Z5 = IB + Z3 + mB * L1**2
    u2 = u3 = -s4 * u1 / Z2
    mass = mB + Z5 * s4**2 / Z2**2 + mC * (1 - L3 * s4**2 / Z2)
    terms = [
        (Z4 - L2 * L3 * mC * s4**2 / Z2) * u2**2, -L3 * mC * (c4 - L2 * s4**2 / Z2) * u3**2,
        sign * s4 * (Z4 - L3 * mC * c4) / Z2 * u1 * u2, -mass * u1_dot,
    ]  # fmt: skip
    return sum(terms), np.abs(terms).max(), mass


def test_sticking_satisfies_the_corrected_67(mode_graph, errors):
    """``F~1 + F~1* = 0`` with ``F~1 = F - s4 tau/Z2``; the velocity terms cancel, the stuck cart moves on a circle."""
    for graph, p, states in carts(mode_graph):
        view = graph.modes["sticking"]
        for q, free, w in states:
            u = on_rows("sticking", p, q, free)
            _, u_dot = view.derivatives(0.0, q, u, w)
            Z2 = p["L3"] - p["L2"] * np.cos(q[3])
            force = w["push"] - np.sin(q[3]) * w["turn"] / Z2
            inertia, size, mass = generalized_inertia_force_67(p, q, u[0], u_dot[0], +1)
            errors.compare("(67)", force + inertia, 0.0, scale=max(abs(w["push"]), abs(force), size))
            errors.compare("M_eff u1'", mass * u_dot[0], force, scale=abs(w["push"]))
    errors.check(LIMIT)


def test_67_as_printed_creates_energy(mode_graph):
    """As printed, the sign of the u1 u2 term of (67) leaves ``2 (Z4 - L3 mC c4) s4^2 u1^2 / Z2^2`` over.

    With no force and no torque the stuck cart turns about a fixed point with constant speed; (67) as printed would
    accelerate it, and so change its kinetic energy.
    """
    shares = []
    for graph, p, states in carts(mode_graph):
        for q, free, _ in states[:5]:
            u = on_rows("sticking", p, q, free)
            _, u_dot = graph.modes["sticking"].derivatives(0.0, q, u)
            mB, _, mC, L1, L2, L3 = (p[name] for name in NAMES)
            s4, c4 = np.sin(q[3]), np.cos(q[3])
            Z2 = L3 - L2 * c4
            printed, size, mass = generalized_inertia_force_67(p, q, u[0], u_dot[0], -1)
            spurious = 2 * (L1 * mB + L2 * mC - L3 * mC * c4) * s4**2 * u[0] ** 2 / Z2**2
            assert abs(mass * u_dot[0]) < LIMIT * size  # ours: no force, no acceleration
            np.testing.assert_allclose(printed, spurious, rtol=1e-9, atol=1e-12 * size)
            power = spurious * u[0]
            shares.append(abs(power) / (0.5 * mass * u[0] ** 2))
    assert np.median(shares) > 0.1  # of the kinetic energy, per second


def test_check_point_of_67(mode_graph, reference):
    point = reference("gillespie2003")["check_point"]
    p, q = point["parameters"], [0.0, 0.0, 0.0, point["q4"]]
    arguments = (p, q, point["u1"], point["u1_dot"])
    corrected, _, mass = generalized_inertia_force_67(*arguments, +1)
    printed, *_ = generalized_inertia_force_67(*arguments, -1)
    np.testing.assert_allclose(corrected, point["inertia_force"], rtol=1e-14)
    np.testing.assert_allclose(printed, point["inertia_force_as_printed"], rtol=1e-14)
    np.testing.assert_allclose(mass, point["effective_mass"], rtol=1e-14)
    # the mode itself at this point: the force that gives u1' = 0.7 is -F~1*
    sticking = mode_graph("shopping_cart", **p).modes["sticking"]
    u = on_rows("sticking", p, q, [point["u1"], 0, 0])
    _, u_dot = sticking.derivatives(0.0, q, u, {"push": -point["inertia_force"]})
    np.testing.assert_allclose(u_dot[0], point["u1_dot"], rtol=1e-13)


def test_sticking_where_67_is_singular(mode_graph, cart, errors):
    """At L2 c4 = L3 the turning centre lies on the axle: u1 cannot be the independent speed, u2 can.

    The pivot of the usual chart tells so, and a chart derived there agrees with the augmented system.
    """
    for graph, p, states in carts(mode_graph):
        automaton = graph.automaton
        mode = automaton.modes[automaton.find((1,))]
        assert mode.programs.independent == (0,)
        c = np.zeros(automaton.terms.layout.n_c)
        c[: len(graph.parameters)] = graph.parameters
        for side in (1, -1):
            q, turning, w = states[0]
            q = [*q[:3], side * np.arccos(p["L3"] / p["L2"])]
            u = np.array([0.0, turning[1], turning[1]])
            c[automaton.terms.layout.w_slice] = w["push"], w["turn"]
            x = np.array([*q, *u])
            assert mode.programs.full.evaluate(0.0, x, c)["pivot"][0] < 1e-12
            there = automaton.derive((1,), 0.0, x, c)
            assert there.programs.independent == (1,)
            found = there.programs.full.evaluate(0.0, x, c)
            assert found["pivot"][0] > 0.01
            u_dot, multipliers = cart("sticking", q, u, p, [w["push"], w["turn"], 0.0])
            errors.compare("u'", found["x_dot"][4:], u_dot)
            errors.compare("multipliers", found["multipliers"], multipliers)
    errors.check(LIMIT)
