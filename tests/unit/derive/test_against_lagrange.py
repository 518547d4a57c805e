"""Kane's terms against Lagrange's equations, derived by sympy in coordinates: mass matrix, forces, energies."""

import sympy as sp

from tests.planar_models import THREE_LINKS


def symbols(names):
    return list(sp.symbols(names))


def test_cart(model, lagrange, agrees):
    """Gillespie 2003, Example 3, with the axle's row as a fourth speed."""
    cart = model("shopping_cart")
    q1, q2, q3, q4, push, turn = symbols("q1 q2 q3 q4 push turn")
    mB, IB, mC, L1, L2, L3 = symbols("mB IB mC L1 L2 L3")
    oracle = lagrange([q1, q2, q3, q4], [push, turn, mB, IB, mC, L1, L2, L3])
    b1, c1 = sp.Matrix([sp.cos(q3), sp.sin(q3), 0]), sp.Matrix([sp.cos(q3 + q4), sp.sin(q3 + q4), 0])
    P1 = sp.Matrix([q1, q2, 0])
    oracle.body(mB, P1 + L1 * b1)
    oracle.body(mC, P1 + L2 * b1 - L3 * c1)
    oracle.T += IB * oracle.qd[2] ** 2 / 2
    oracle.force(push * b1, P1)
    oracle.Q[2] += turn
    agrees(cart, oracle, count=200)


def test_wrist_in_both_choices_of_speeds(model, lagrange, agrees, turned):
    """Gillespie 2003, Example 2."""
    q1, q2, q3, M, L, I1, I2, I3, G, F1, F2, F3, T1, T2, T3 = symbols("q1 q2 q3 M L I1 I2 I3 G F1 F2 F3 T1 T2 T3")
    oracle = lagrange([q1, q2, q3], [M, L, I1, I2, I3, G, F1, F2, F3, T1, T2, T3])
    R = turned("z", q1) * turned("y", q2) * turned("z", q3)
    Co = R * sp.Matrix([0, 0, L])
    oracle.body(M, Co, R, sp.diag(I1, I2, I3))
    oracle.V = M * G * Co[0]
    oracle.force(R * sp.Matrix([F1, F2, F3]), Co)
    oracle.torque(sp.Matrix([T1, T2, T3]), R)
    agrees(model("spherical_wrist"), oracle, tolerance=1e-10)  # 1/sin(q2) of arbitrary q2 amplifies rounding
    agrees(model("spherical_wrist_rates"), oracle)


CHAIN = {
    **THREE_LINKS,
    "fsm_dyn": 1,
    "name": "chain",
    "parameters": {"m": [1.0, 2.0, 3.0], "l": [0.5, 0.6, 0.7], "J": 0.1, "g": 9.81},
    "bodies": {
        "first": {"center": "P", "mass": "m[0]", "frame": "A"},
        "second": {"center": "Q", "mass": "m[1]", "frame": "B", "inertia": {"zz": "J"}},
        "third": {"center": "R", "mass": "m[2]"},
    },
    "loads": [{"gravity": "-g*N.y"}, {"torque": "2*N.z", "on": "second", "reaction": "first"}],
}


def chain_oracle(lagrange):
    a, b, c, g, J = symbols("a b c g J")
    m = [sp.Symbol(f"m[{i}]") for i in range(3)]
    l = [sp.Symbol(f"l[{i}]") for i in range(3)]  # noqa: E741
    oracle = lagrange([a, b, c], [g, J, *m, *l])
    r, angle = sp.zeros(3, 1), 0
    for i, q in enumerate((a, b, c)):
        angle = angle + q
        r = r + l[i] * sp.Matrix([sp.cos(angle), sp.sin(angle), 0])
        oracle.body(m[i], r)
        oracle.V += m[i] * g * r[1]
    oracle.T += J * (oracle.qd[0] + oracle.qd[1]) ** 2 / 2
    oracle.Q[1] += 2  # the couple and its reaction work on the relative angle
    return oracle


def test_chain_with_default_speeds(model, lagrange, agrees):
    agrees(model(CHAIN), chain_oracle(lagrange))


def test_chain_with_speeds_of_the_links(model, lagrange, agrees):
    speeds = {"w1": "dot(omega(A), N.z)", "w2": "dot(omega(B), N.z)", "w3": "2*dot(vel(R), C.y)"}
    agrees(model({**CHAIN, "speeds": speeds}), chain_oracle(lagrange))


def spatial(frame, speeds):
    """A heavy asymmetric body in space: products of inertia, centre away from the point of the coordinates."""
    return {
        "fsm_dyn": 1,
        "name": "spatial",
        "parameters": {"M": 1.3, "g": 9.81, "d": [0.1, -0.2, 0.3], "J": [0.5, 0.6, 0.7, 0.04, -0.03, 0.05], "k": 3},
        "coordinates": ["x", "y", "z", "a", "b", "c"],
        "frames": {"B": {"parent": "N", **frame}},
        "points": {
            "P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"},
            "G": {"from": "P", "at": "d[0]*B.x + d[1]*B.y + d[2]*B.z"},
            "K": {"from": "O", "at": "1.5*N.x"},
        },
        "bodies": {
            "body": {
                "center": "G",
                "frame": "B",
                "mass": "M",
                "inertia": {"xx": "J[0]", "yy": "J[1]", "zz": "J[2]", "xy": "J[3]", "yz": "J[4]", "xz": "J[5]"},
            }
        },
        "speeds": speeds,
        "inputs": {"F": None, "T": None},
        "loads": [
            {"gravity": "-g*N.z"},
            {"force": "F*B.y", "at": "P"},
            {"torque": "T*B.z + T*B.x", "on": "body"},
            {"spring": {"between": ["P", "K"], "stiffness": "k", "free": "0.7"}},
        ],
    }


def spatial_oracle(lagrange, R, about=None):
    x, y, z, a, b, c, M, g, F, T, k = symbols("x y z a b c M g F T k")
    d = [sp.Symbol(f"d[{i}]") for i in range(3)]
    J = [sp.Symbol(f"J[{i}]") for i in range(6)]
    oracle = lagrange([x, y, z, a, b, c], [M, g, *d, *J, F, T, k])
    P = sp.Matrix([x, y, z])
    tensor = sp.Matrix([[J[0], J[3], J[5]], [J[3], J[1], J[4]], [J[5], J[4], J[2]]])
    if about is not None:
        arm = sp.Matrix(d) if about == "P" else None
        tensor = tensor - M * (arm.dot(arm) * sp.eye(3) - arm * arm.T)
    G = P + R * sp.Matrix(d)
    oracle.body(M, G, R, tensor)
    length = sp.sqrt((x - sp.Rational(3, 2)) ** 2 + y**2 + z**2)
    oracle.V = M * g * G[2] + k * (length - sp.Rational(7, 10)) ** 2 / 2
    oracle.force(R * sp.Matrix([0, F, 0]), P)
    oracle.torque(sp.Matrix([T, 0, T]), R)
    return oracle


BODY_SPEEDS = {
    "u1": "dot(vel(P), B.x)",
    "u2": "dot(vel(P), B.y)",
    "u3": "dot(vel(P), B.z)",
    "w1": "dot(omega(B), B.x)",
    "w2": "dot(omega(B), B.y)",
    "w3": "dot(omega(B), B.z)",
}
RATES = {f"{q}_rate": f"rate({q})" for q in "xyzabc"}


def test_body_fixed_angles(model, lagrange, agrees, turned):
    a, b, c = symbols("a b c")
    R = turned("x", a) * turned("y", b) * turned("z", c)
    frame = {"body": "xyz", "angles": ["a", "b", "c"]}
    agrees(model(spatial(frame, BODY_SPEEDS)), spatial_oracle(lagrange, R), tolerance=1e-10)


def test_space_fixed_angles(model, lagrange, agrees, turned):
    a, b, c = symbols("a b c")
    R = turned("z", c) * turned("y", b) * turned("x", a)  # turned about N's x first, then y, then z
    frame = {"space": "xyz", "angles": ["a", "b", "c"]}
    agrees(model(spatial(frame, RATES)), spatial_oracle(lagrange, R))


def test_inertia_about_another_point_than_the_centre(model, lagrange, agrees, turned):
    a, b, c = symbols("a b c")
    R = turned("z", a) * turned("x", b) * turned("z", c)
    mapping = spatial({"body": "zxz", "angles": ["a", "b", "c"]}, RATES)
    mapping["parameters"]["J"] = [5.5, 5.6, 5.7, 0.04, -0.03, 0.05]
    mapping["bodies"]["body"]["inertia"]["about"] = "P"
    agrees(model(mapping), spatial_oracle(lagrange, R, about="P"))


def test_coordinates_in_a_turning_frame(model, lagrange, agrees):
    """A bead on a turning arm: its vector has varying components in a turning frame."""
    bead = {
        "fsm_dyn": 1,
        "name": "bead",
        "parameters": {"m": 1, "J": 2, "g": 9.81, "k": 5, "phi": 0.3},
        "coordinates": ["r", "q"],
        "frames": {
            "S": {"parent": "N", "rotate": {"z": "phi"}},
            "A": {"parent": "S", "rotate": {"z": "q - pi/2"}},
        },
        "points": {"P": {"from": "O", "at": "r*A.x + r**2*A.y"}},
        "bodies": {
            "arm": {"frame": "A", "center": "O", "mass": 0, "inertia": {"zz": "J"}},
            "bead": {"center": "P", "mass": "m"},
        },
        "speeds": {"v": "dot(vel(P), A.x)", "w": "rate(q)"},
        "loads": [
            {"gravity": "-g*S.y"},
            {"spring": {"coordinate": "r", "stiffness": "k", "free": 1, "damping": 2}},
        ],
    }
    r, q, m, J, g, k, phi = symbols("r q m J g k phi")
    oracle = lagrange([r, q], [m, J, g, k, phi])
    angle = phi + q - sp.pi / 2
    P = sp.Matrix([r * sp.cos(angle) - r**2 * sp.sin(angle), r * sp.sin(angle) + r**2 * sp.cos(angle), 0])
    oracle.body(m, P)
    oracle.T += J * oracle.qd[1] ** 2 / 2
    oracle.V = m * g * (P[1] * sp.cos(phi) - P[0] * sp.sin(phi)) + k * (r - 1) ** 2 / 2
    oracle.Q[0] += -2 * oracle.qd[0]
    agrees(model(bead), oracle)
