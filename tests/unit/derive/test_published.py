"""Against equations in print."""

import numpy as np
import pytest
import sympy as sp
from sympy.physics import mechanics as me

from fsm_dyn.derive.printing import to_sympy


def test_cart_against_kanes_method_of_sympy(model):
    """The unconstrained cart with the axle embedded, by sympy's KanesMethod: mass matrix and forces."""
    cart = model("shopping_cart")
    q1, q2, q3, q4, u1, u2, u3 = me.dynamicsymbols("q1 q2 q3 q4 u1 u2 u3")
    mB, IB, mC, L1, L2, L3, push, turn = sp.symbols("mB IB mC L1 L2 L3 push turn")
    N = me.ReferenceFrame("N")
    B = N.orientnew("B", "Axis", [q3, N.z])
    C = B.orientnew("C", "Axis", [q4, B.z])
    B.set_ang_vel(N, u2 * N.z)
    C.set_ang_vel(N, u3 * N.z)
    O, P1 = me.Point("O"), me.Point("P1")  # noqa: E741
    O.set_vel(N, 0)
    P1.set_pos(O, q1 * N.x + q2 * N.y)
    P1.set_vel(N, u1 * B.x)
    Bo, P2 = P1.locatenew("Bo", L1 * B.x), P1.locatenew("P2", L2 * B.x)
    P3 = P2.locatenew("P3", -L3 * C.x)
    Bo.v2pt_theory(P1, N, B)
    P2.v2pt_theory(P1, N, B)
    P3.v2pt_theory(P2, N, C)
    bodies = [me.RigidBody("basket", Bo, B, mB, (me.inertia(B, 0, 0, IB), Bo)), me.Particle("caster", P3, mC)]
    kinematics = [q1.diff() - u1 * sp.cos(q3), q2.diff() - u1 * sp.sin(q3), q3.diff() - u2, q4.diff() - u3 + u2]
    kane = me.KanesMethod(N, [q1, q2, q3, q4], [u1, u2, u3], kd_eqs=kinematics)
    kane.kanes_equations(bodies, [(P1, push * B.x), (B, turn * N.z)])
    arguments = [q1, q2, q3, q4, u1, u2, u3, mB, IB, mC, L1, L2, L3, push, turn]
    function = sp.lambdify(arguments, [kane.mass_matrix, kane.forcing], cse=True)
    for _ in range(100):
        state = cart.state()
        values = cart.values(state)
        M, f = function(*[values[str(symbol).removesuffix("(t)")] for symbol in arguments])
        out = cart.evaluate(["M", "f"], state)
        np.testing.assert_allclose(out["M"][:3, :3], M, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(out["f"][:3], f.ravel(), rtol=1e-11, atol=1e-11)


def test_free_cart_as_printed(model):
    """Gillespie 2003, (63): the front wheel embedded by (60) in the terms of the free caster, F1 + F1* and F2 + F2*."""
    terms = model("shopping_cart").terms
    u1, u2, s4, c4, v1, v2 = sp.symbols("u1 u2 s4 c4 v1 v2")
    q4, u3, L1, L2, L3, mB, mC, IB, push, turn = sp.symbols("q4 u3 L1 L2 L3 mB mC IB push turn")
    M = sp.Matrix(3, 3, to_sympy([terms.M[i][j] for i in range(3) for j in range(3)]))
    f = sp.Matrix(to_sympy(terms.f[:3]))
    wheel = next(row for row in terms.rows if row.name == "front_wheel")
    A = sp.Matrix(1, 3, to_sympy(wheel.A[:3]))
    gamma = to_sympy([wheel.gamma])[0]
    D = sp.Matrix([[1, 0], [0, 1], [-A[0] / A[2], -A[1] / A[2]]])
    ud = D * sp.Matrix([v1, v2]) + sp.Matrix([0, 0, -gamma / A[2]])
    embedded = D.T * (f - M * ud)
    u3_value = (-sp.sin(q4) * u1 + L2 * sp.cos(q4) * u2) / L3
    embedded = embedded.subs(u3, u3_value)
    printed = sp.Matrix(
        [
            push
            + (L1 * mB + L2 * mC * c4**2) * u2**2
            - L3 * mC * c4 * u3_value**2
            - mC * s4 * c4 * u1 * u2
            - (mB + mC * c4**2) * v1
            - L2 * mC * s4 * c4 * v2,
            turn
            + mC * L2**2 * s4 * c4 * u2**2
            - L2 * L3 * mC * s4 * u3_value**2
            - (L1 * mB + L2 * mC * s4**2) * u1 * u2
            - L2 * mC * s4 * c4 * v1
            - (IB + mB * L1**2 + mC * L2**2 * s4**2) * v2,
        ]
    ).subs({s4: sp.sin(q4), c4: sp.cos(q4)})
    assert sp.simplify(embedded - printed) == sp.zeros(2, 1)


def test_wrist_as_printed(model):
    """Gillespie 2003, (49)."""
    terms = model("spherical_wrist").terms
    u1, u2, u3, q1, q2, q3 = sp.symbols("u1 u2 u3 q1 q2 q3")
    M, L, I1, I2, I3, G, F1, F2, T1, T2, T3 = sp.symbols("M L I1 I2 I3 G F1 F2 T1 T2 T3")
    s1, c1, c2, s3, c3 = sp.sin(q1), sp.cos(q1), sp.cos(q2), sp.sin(q3), sp.cos(q3)
    printed = [
        (T1 - L * (F2 + G * M * (s1 * c3 + s3 * c1 * c2)) - (I3 - I2 - M * L**2) * u2 * u3) / (I1 + M * L**2),
        (T2 + L * (F1 + G * M * (s1 * s3 - c1 * c2 * c3)) + (I3 - I1 - M * L**2) * u1 * u3) / (I2 + M * L**2),
        (T3 + (I1 - I2) * u1 * u2) / I3,
    ]
    for r in range(3):
        row, f = to_sympy(terms.M[r]), to_sympy([terms.f[r]])[0]
        assert sp.simplify(f - sum(row[s] * printed[s] for s in range(3))) == 0


def test_disk_as_printed(model):
    """Gillespie 2003, (40), with the signs corrected: friction and normal force come as multipliers of the rows."""
    terms = model("rolling_disk").terms
    m, r, J, phi, g, push, lift = sp.symbols("m r J phi g push lift")
    assert [to_sympy(row) for row in terms.M] == [[m, 0, 0], [0, J / r**2, 0], [0, 0, m]]
    assert to_sympy(terms.f) == [push - m * g * sp.sin(phi), 0, lift - m * g * sp.cos(phi)]
    normal, tangent = terms.rows
    assert (normal.role, tangent.role) == ("normal", "tangent")
    assert [node.constant_value for node in normal.A] == [0, 0, 1]
    assert [node.constant_value for node in tangent.A] == [1, 1, 0]


# Operations of the terms before any mode is embedded: multiply and divide, add, sine and cosine.
# The paper's Table 3 has 29, 16, 10 for (49) and 9 (printed 10), 4, 9 for (50), repeated sines counted; for the
# rates as speeds 790, 285, 372.  Ours count a common subexpression once.
BASELINE = {
    ("spherical_wrist", "q_dot"): (6, 3, 4),
    ("spherical_wrist", "Mf"): (23, 16, 5),
    ("spherical_wrist_rates", "q_dot"): (0, 0, 0),
    ("spherical_wrist_rates", "Mf"): (86, 42, 6),
    ("shopping_cart", "q_dot"): (2, 1, 2),
    ("shopping_cart", "Mf"): (28, 10, 2),
    ("shopping_cart", "rows"): (6, 2, 2),
    ("rolling_disk", "Mf"): (6, 2, 2),
    ("seven_body_mechanism", "Mf"): (76, 53, 8),
    ("seven_body_mechanism", "rows"): (56, 28, 14),
}


@pytest.mark.parametrize(("name", "what"), BASELINE, ids=str)
def test_operation_counts(model, name, what):
    """A baseline: if a number falls, write it here; if it rises, know why."""
    outputs = {"q_dot": ["q_dot"], "Mf": ["M", "f"], "rows": ["A", "b", "gamma"]}[what]
    counts = model(name).terms.program(outputs).counts()
    assert (counts.multiply_divide, counts.add, counts.trig) == BASELINE[name, what]


def test_seven_bodies_start_as_published(model):
    """Hairer and Wanner, Solving ODEs II, VI.9: accelerations and multipliers at the start."""
    seven = model("seven_body_mechanism")
    c = [float(text.text) for parameter in seven.mechanism.parameters.values() for text in parameter.values]
    q = [float(seven.mechanism.initial.values[name].text) for name in seven.layout.q]
    out = seven.evaluate(["M", "f", "A", "gamma", "residual"], (0, [*q, *np.zeros(7)], c))
    np.testing.assert_allclose(out["residual"], 0, atol=1e-16)
    system = np.block([[out["M"], -out["A"].T], [out["A"], np.zeros((6, 6))]])
    solution = np.linalg.solve(system, [*out["f"], *-out["gamma"]])
    accelerations = [14222.4439199541138705911625887, -10666.8329399655854029433719415, 0, 0, 0, 0, 0]
    multipliers = [98.5668703962410896, -6.12268834425566265, 0, 0, 0, 0]
    np.testing.assert_allclose(solution, [*accelerations, *multipliers], rtol=1e-10, atol=1e-6)
