"""Gillespie (2003), Example 2: a body on a spherical wrist, with the two choices of speeds of (48) and (50)."""

import numpy as np

LIMIT = 1e-12
INPUTS = ("F1", "F2", "F3", "T1", "T2", "T3")


def wrists(mode_graph, model):
    """Graphs with random parameters and random states of them, away from the wrist's singular sin(q2) = 0."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        p = {"M": rng.uniform(0.3, 3), "L": rng.uniform(0.05, 0.5), "G": rng.uniform(1, 12)}
        p |= {name: rng.uniform(0.003, 0.05) for name in ("I1", "I2", "I3")}
        states = []
        while len(states) < 50:
            q = rng.uniform(-np.pi, np.pi, 3)
            if abs(np.sin(q[1])) > 0.2:
                states.append((q, rng.uniform(-4, 4, 3), dict(zip(INPUTS, rng.uniform(-3, 3, 6), strict=True))))
        yield mode_graph(model, **p).modes["motion"], p, states


def equation_49(p, q, u, w):
    """(49): u' of the body's own components of angular velocity, and the size of the terms added."""
    (s1, _, s3), (c1, c2, c3) = np.sin(q), np.cos(q)
    M, L, I1, I2, I3, G = (p[name] for name in ("M", "L", "I1", "I2", "I3", "G"))
    parts = [
        [w["T1"], -L * w["F2"], -L * G * M * (s1 * c3 + s3 * c1 * c2), -(I3 - I2 - M * L**2) * u[1] * u[2]],
        [w["T2"], L * w["F1"], L * G * M * (s1 * s3 - c1 * c2 * c3), (I3 - I1 - M * L**2) * u[0] * u[2]],
        [w["T3"], (I1 - I2) * u[0] * u[1]],
    ]
    inertia = [I1 + M * L**2, I2 + M * L**2, I3]
    return np.array([sum(row) for row in parts]) / inertia, max(
        np.abs(row).max() / i for row, i in zip(parts, inertia, strict=True)
    )


def equation_50(q, u):
    """(50): the rates of the angles."""
    (_, s2, s3), (_, c2, c3) = np.sin(q), np.cos(q)
    turn = (s3 * u[1] - c3 * u[0]) / s2
    return np.array([turn, s3 * u[0] + c3 * u[1], u[2] - c2 * turn])


def angular_velocity(q):
    """Matrix from rates of the 3-2-3 angles to the body's components of angular velocity; (50) inverted by hand."""
    (_, s2, s3), (_, c2, c3) = np.sin(q), np.cos(q)
    return np.array([[-s2 * c3, s3, 0.0], [s2 * s3, c3, 0.0], [c2, 0.0, 1.0]])


def angular_velocity_rate(q, r):
    """Its rate along the rates r of the angles."""
    (_, s2, s3), (_, c2, c3) = np.sin(q), np.cos(q)
    return np.array(
        [
            [-c2 * c3 * r[1] + s2 * s3 * r[2], c3 * r[2], 0.0],
            [c2 * s3 * r[1] + s2 * c3 * r[2], -s3 * r[2], 0.0],
            [-s2 * r[1], 0.0, 0.0],
        ]
    )


def test_equations_49_and_50(mode_graph, errors):
    for wrist, p, states in wrists(mode_graph, "spherical_wrist"):
        for q, u, w in states:
            q_dot, u_dot = wrist.derivatives(0.0, q, u, w)
            expected, size = equation_49(p, q, u, w)
            errors.compare("(49)", u_dot, expected, scale=size)
            errors.compare("(50)", q_dot, equation_50(q, u))
    errors.check(LIMIT)


def test_equation_48(mode_graph):
    wrist, _, states = next(wrists(mode_graph, "spherical_wrist_rates"))
    q, u, w = states[0]
    assert wrist.derivatives(0.0, q, u, w)[0].tolist() == u.tolist()


def test_both_choices_of_speeds_give_one_motion(mode_graph, errors):
    """Angular acceleration from the rates' equations against u' of (49)'s, and second derivatives back again."""
    ours, rates = wrists(mode_graph, "spherical_wrist"), wrists(mode_graph, "spherical_wrist_rates")
    for (body, p, states), (angles, _, _) in zip(ours, rates, strict=True):
        for q, u, w in states:
            q_dot, u_dot = body.derivatives(0.0, q, u, w)
            q_dot_again, q_second = angles.derivatives(0.0, q, q_dot, w)
            B, B_dot = angular_velocity(q), angular_velocity_rate(q, q_dot)
            size = equation_49(p, q, u, w)[1] / np.abs(np.sin(q[1]))
            errors.compare("q'", q_dot_again, q_dot)
            errors.compare("angular velocity", B @ q_dot, u)
            errors.compare("angular acceleration", B @ q_second + B_dot @ q_dot, u_dot, scale=size)
            errors.compare("q''", q_second, np.linalg.solve(B, u_dot - B_dot @ q_dot), scale=size)
    errors.check(LIMIT)
