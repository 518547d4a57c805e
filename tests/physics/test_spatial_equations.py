"""A body in space with Euler parameters, held by balls written as position rows: against Euler's equations."""

import numpy as np
import pytest

LIMIT = 1e-12


def heavy_body(*balls):
    """Speeds of the mass centre along N, angular velocity in the body; each ball holds a body's point at (h, 0, 0)."""
    rows = {
        f"{ball}_{axis}": {"position": f"dot(pos({ball}), N.{axis})" + (" - h" if (ball, axis) == ("Q", "x") else "")}
        for ball in balls
        for axis in "xyz"
    }
    return {
        "fsm_dyn": 1,
        "name": "heavy_body",
        "parameters": {
            "m": 2, "g": 9.81, "d": [0.1, -0.2, 0.3], "h": 0.6,
            "J": [0.05, 0.06, 0.07, 0.004, -0.003, 0.005],
        },
        "coordinates": ["x", "y", "z"],
        "frames": {"B": {"parent": "N", "euler_parameters": "e"}},
        "points": {
            "G": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"},
            "P": {"from": "G", "at": "-d[0]*B.x - d[1]*B.y - d[2]*B.z"},
            "Q": {"from": "P", "at": "h*B.z"},
        },
        "bodies": {
            "top": {
                "frame": "B", "center": "G", "mass": "m",
                "inertia": {
                    "xx": "J[0]", "yy": "J[1]", "zz": "J[2]", "xy": "J[3]", "yz": "J[4]", "xz": "J[5]",
                },
            }
        },
        "speeds": {
            **{f"v{axis}": f"dot(vel(G), N.{axis})" for axis in "xyz"},
            **{f"w{axis}": f"dot(omega(B), B.{axis})" for axis in "xyz"},
        },
        "constraints": rows,
        "loads": [{"gravity": "-g*N.z"}],
    }  # fmt: skip


D, HEIGHT, MASS = np.array([0.1, -0.2, 0.3]), 0.6, 2.0
UP = np.array([0, 0, 9.81])  # what weighs upon the body, per mass, the other way round
J = np.array([[0.05, 0.004, 0.005], [0.004, 0.06, -0.003], [0.005, -0.003, 0.07]])
ABOUT_P = J + MASS * (D @ D * np.eye(3) - np.outer(D, D))


def rotation(e):
    e0, v = e[0], np.asarray(e[1:])
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return (e0**2 - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * e0 * cross


def acceleration_of_centre(R, w, w_dot):
    return R @ (np.cross(w_dot, D) + np.cross(w, np.cross(w, D)))


def test_spinning_top_on_a_ball(mode_graph, errors):
    """Euler's equations about the ball, and the ball's force by Newton's law."""
    motion = mode_graph(heavy_body("P")).modes["motion"]
    rng = np.random.default_rng(6)
    assert motion.degrees_of_freedom == 3
    for _ in range(200):
        e = rng.normal(size=4)
        e /= np.linalg.norm(e)
        w, R = rng.uniform(-5, 5, 3), rotation(e)
        state = (0.0, [*(R @ D), *e], [*(R @ np.cross(w, D)), *w])
        weight = R.T @ (-MASS * UP)
        w_dot = np.linalg.solve(ABOUT_P, np.cross(D, weight) - np.cross(w, ABOUT_P @ w))
        centre = acceleration_of_centre(R, w, w_dot)
        q_dot, u_dot = motion.derivatives(*state)
        errors.compare("angular acceleration", u_dot[3:], w_dot)
        errors.compare("acceleration", u_dot[:3], centre)
        errors.compare("velocity", q_dot[:3], R @ np.cross(w, D))
        e_dot = 0.5 * np.array([-e[1:] @ w, *(e[0] * w + np.cross(e[1:], w))])
        errors.compare("rates of Euler parameters", q_dot[3:], e_dot)
        forces = np.concatenate(list(motion.contact_forces(*state).values()))
        errors.compare("force of the ball", forces, MASS * (centre + UP))
    errors.check(LIMIT)


@pytest.mark.parametrize("angle", [0.3, 1.7, -2.4])
def test_door_on_two_balls_has_a_redundant_row(mode_graph, errors, angle):
    """Two balls hold six rows of rank five: one is dropped, and the body turns about the line of the balls.

    The balls' line lies along N.x; the components of the forces across it follow by balance of moments.
    """
    model = heavy_body("P", "Q")
    # B.z along N.x, turned by the angle about it
    half = np.cos(angle / 2), np.sin(angle / 2)
    about_y = np.cos(np.pi / 4), np.sin(np.pi / 4)
    e = [half[0] * about_y[0], half[1] * about_y[0], half[0] * about_y[1], half[1] * about_y[1]]
    R = rotation(e)
    np.testing.assert_allclose(R[:, 2], [1, 0, 0], atol=1e-15)
    names = ("x", "y", "z", "e0", "e1", "e2", "e3")
    model["initial"] = {name: float(value) for name, value in zip(names, [*(R @ D), *e], strict=True)}
    motion = mode_graph(model).modes["motion"]
    assert motion.degrees_of_freedom == 1
    assert len(motion.redundant_rows) == 1
    assert motion.redundant_rows[0] in ("P_x", "Q_x")  # along the line, and only there, the two share
    speed = 3.0
    w = np.array([0, 0, speed])
    state = (0.0, [*(R @ D), *e], [*(R @ np.cross(w, D)), *w])
    torque = np.cross(D, R.T @ (-MASS * UP))[2]
    w_dot = np.array([0, 0, torque / ABOUT_P[2, 2]])
    _, u_dot = motion.derivatives(*state)
    errors.compare("angular acceleration", u_dot[3:], w_dot)
    centre = acceleration_of_centre(R, w, w_dot)
    errors.compare("acceleration", u_dot[:3], centre)
    forces = motion.contact_forces(*state)
    total = np.concatenate([forces[f"P_{axis}"] + forces[f"Q_{axis}"] for axis in "xyz"])
    errors.compare("sum of the forces", total, MASS * (centre + UP))
    # moments about P: the second ball's force acts at h along B.z
    moment = ABOUT_P @ w_dot + np.cross(w, ABOUT_P @ w) - np.cross(D, R.T @ (-MASS * UP))
    second = R.T @ np.concatenate([forces[f"Q_{axis}"] for axis in "xyz"])
    errors.compare("moment of the second ball", np.cross([0, 0, HEIGHT], second), [moment[0], moment[1], 0.0])
    errors.check(1e-11)
