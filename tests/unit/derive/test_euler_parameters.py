"""Euler parameters against angles: the same body, the same speeds, the same equations."""

import numpy as np
import pytest

SPEEDS = {
    "u1": "dot(vel(P), B.x)",
    "u2": "dot(vel(P), B.y)",
    "u3": "dot(vel(P), B.z)",
    "w1": "dot(omega(B), B.x)",
    "w2": "dot(omega(B), B.y)",
    "w3": "dot(omega(B), B.z)",
}
IN_N = {**SPEEDS, "w1": "dot(omega(B), N.x)", "w2": "dot(omega(B), N.y)", "w3": "dot(omega(B), N.z)"}


def body(frame, coordinates, speeds):
    return {
        "fsm_dyn": 1,
        "name": "body",
        "coordinates": ["x", "y", "z", *coordinates],
        "frames": {"B": {"parent": "N", **frame}},
        "points": {
            "P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"},
            "G": {"from": "P", "at": "0.1*B.x - 0.2*B.y + 0.3*B.z"},
            "K": {"from": "G", "at": "0.5*B.x + 0.1*N.z"},
        },
        "bodies": {
            "body": {
                "center": "G",
                "frame": "B",
                "mass": 1.3,
                "inertia": {"xx": 0.5, "yy": 0.6, "zz": 0.7, "xy": 0.04, "yz": -0.03, "xz": 0.05},
            }
        },
        "speeds": speeds,
        "loads": [{"gravity": "-9.81*N.z"}, {"force": "2*N.x + 3*B.y", "at": "K"}],
        "contacts": {
            "ground": {
                "gap": "dot(pos(K), N.z)",
                "slip": "dot(vel(K, B), N.x)",
                "friction": {"static": 1, "kinetic": 1},
            }
        },
    }


def parameters_of(R):
    """Unit Euler parameters of a rotation matrix (columns: the turned frame's unit vectors)."""
    e0 = 0.5 * np.sqrt(1 + np.trace(R))
    return np.array([e0, *(np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * e0))])


@pytest.mark.parametrize("speeds", [SPEEDS, IN_N], ids=["about B", "about N"])
def test_same_terms_as_with_angles(model, speeds):
    by_angles = model(body({"body": "zxz", "angles": ["a", "b", "c"]}, ["a", "b", "c"], speeds))
    by_parameters = model(body({"euler_parameters": "e"}, [], speeds))
    assert by_parameters.layout.q == ("x", "y", "z", "e0", "e1", "e2", "e3")
    assert by_parameters.terms.quaternions == (3,)
    names = ["M", "f", "A", "b", "gamma", "kinetic_energy", "potential_energy"]
    for _ in range(10):
        q = by_angles.random.uniform(-0.7, 0.7, 6)
        u = by_angles.random.uniform(-1, 1, 6)
        angles = by_angles.evaluate(names, (0, [*q, *u], [0]))
        R = by_angles.evaluate({"R": by_angles.terms.frames["B"]}, (0, [*q, *u], [0]))["R"]
        e = parameters_of(R)
        state = (0, [*q[:3], *e, *u], [0])
        out = by_parameters.evaluate(names, state)
        np.testing.assert_allclose(
            by_parameters.evaluate({"R": by_parameters.terms.frames["B"]}, state)["R"], R, atol=1e-13
        )
        for name in names:
            np.testing.assert_allclose(out[name], angles[name], rtol=1e-10, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("speeds", [SPEEDS, IN_N], ids=["about B", "about N"])
def test_rates_keep_the_norm_and_turn_the_frame(model, speeds):
    free = model(body({"euler_parameters": "e"}, [], speeds))
    for _ in range(5):
        t, x, c = free.state()
        e = x[3:7]
        q_dot = free.evaluate(["q_dot"], (t, x, c))["q_dot"]
        assert abs(e @ q_dot[3:]) < 1e-14
        h = 1e-6
        R = [
            free.evaluate({"R": free.terms.frames["B"]}, (t, [*(x[:7] + s * h * q_dot), *x[7:]], c))["R"]
            for s in (-1, 0, 1)
        ]
        skew = (R[2] - R[0]) / (2 * h) @ R[1].T  # of the angular velocity in N
        omega = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
        expected = R[1] @ x[10:] if speeds is SPEEDS else x[10:]
        np.testing.assert_allclose(omega, expected, atol=1e-8)


def test_nothing_is_divided(model):
    """The half of e times omega is exact: no determinant is left, whatever the axes of the angular speeds."""
    for speeds in (SPEEDS, IN_N):
        free = model(body({"euler_parameters": "e"}, [], speeds))
        counts = free.terms.program(["q_dot", "M", "f", "A", "gamma"]).counts()
        assert counts.divide == 0
        assert counts.trig == 0
