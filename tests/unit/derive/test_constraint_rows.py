"""Constraint and contact rows: coefficients, remainders, rates."""

import numpy as np
import pytest

from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.elements import PositionConstraint
from fsm_dyn.language.expression_tree import Text

DRIVEN = {
    "fsm_dyn": 1,
    "name": "driven",
    "parameters": {"l": 0.7},
    "coordinates": ["x", "y", "a", "b"],
    "frames": {
        "A": {"parent": "N", "rotate": {"z": "a"}},
        "B": {"parent": "A", "rotate": {"x": "b + 0.3*sin(t) + w"}},
    },
    "points": {
        "P": {"from": "O", "at": "x*N.x + y*N.y"},
        "Q": {"from": "P", "at": "l*A.x + w*A.y"},
        "R": {"from": "Q", "at": "l*B.y + t*N.z"},
    },
    "bodies": {"body": {"center": "R", "frame": "B", "mass": 1, "inertia": {"xx": 1}}},
    "speeds": {
        "u": "dot(vel(P), A.x)",
        "v": "dot(vel(P), A.y) - 2*w",
        "wa": "rate(a)",
        "wb": "dot(omega(B), B.x) + 0.2*dot(vel(P), A.x)",
    },
    "inputs": {"w": None},
    "constraints": {
        "follow": {"position": "dot(pos(R), N.y) - w**2"},
        "skate": {"velocity": "dot(vel(R), A.y) + w*u"},
        "belt": {"velocity": "dot(vel(Q, A), N.x) - 3"},
    },
    "contacts": {
        "wall": {"gap": "2 - dot(pos(R), N.x)", "slip": "dot(vel(R, B), N.z)", "friction": {"static": 1, "kinetic": 1}},
        "pin": {"lock": {"velocity": "wa - w"}},
        "bolt": {"lock": {"position": "a - 2*b"}},
        "axle": {"dry_friction": {"speed": "dot(omega(B), B.y) + v", "static": 2, "kinetic": 1}},
    },
}


def shifted(model, state, h, direction):
    """The state a time h later along the motion at constant speeds; inputs follow their first two rates."""
    t, x, c = state
    n_q = len(model.layout.q)
    later = np.array(x)
    later[:n_q] += h * direction
    context = np.array(c)
    values = dict(zip(model.layout.c, c, strict=True))
    context[model.layout.w_slice] += h * values["w.rate"] + 0.5 * h * h * values["w.rate2"]
    context[model.layout.w_rate_slice] += h * values["w.rate2"]
    return t + h, later, context


def along(model, state, function):
    """d/dt of a function of the state at constant speeds: central differences, fifth order by extrapolation."""
    h = 1e-3
    flow = []
    for step in (h, -h, 2 * h, -2 * h):
        flow.append(function(_advance(model, state, step)))
    return (8 * (flow[0] - flow[1]) - (flow[2] - flow[3])) / (12 * h)


def _advance(model, state, h):
    """One classical Runge-Kutta step of q, speeds held."""
    rate = lambda s: model.evaluate(["q_dot"], s)["q_dot"]  # noqa: E731
    n_q = len(model.layout.q)
    k1 = rate(state)
    k2 = rate(shifted(model, state, h / 2, k1))
    k3 = rate(shifted(model, state, h / 2, k2))
    k4 = rate(shifted(model, state, h, k3))
    assert len(k1) == n_q
    return shifted(model, state, h, (k1 + 2 * k2 + 2 * k3 + k4) / 6)


@pytest.fixture
def driven(model):
    return model(DRIVEN)


def test_order_and_roles(driven):
    roles = [(row.name, row.owner, row.role, row.contact) for row in driven.terms.rows]
    assert roles == [
        ("follow", "constraint", "position", -1),
        ("skate", "constraint", "velocity", -1),
        ("belt", "constraint", "velocity", -1),
        ("wall", "contact", "normal", 0),
        ("wall", "contact", "tangent", 0),
        ("pin", "contact", "lock", 1),
        ("bolt", "contact", "lock", 2),
        ("axle", "contact", "friction", 3),
    ]
    rows = [(c.normal_row, c.tangent_row) for c in driven.terms.contacts]
    assert rows == [(3, 4), (5, -1), (6, -1), (-1, 7)]


def test_gamma_is_the_rate_at_constant_speeds(driven):
    for _ in range(5):
        state = driven.state()
        u = state[1][driven.layout.u_slice]

        def value(s, u=u):
            out = driven.evaluate(["A", "b"], s)
            return out["A"] @ u + out["b"]

        gamma = driven.evaluate(["gamma"], state)["gamma"]
        np.testing.assert_allclose(along(driven, state, value), gamma, rtol=1e-8, atol=1e-8)


def test_position_rows_are_the_rate_of_their_residual(driven):
    positions = [i for i, row in enumerate(driven.terms.rows) if row.residual is not None]
    assert [driven.terms.rows[i].name for i in positions] == ["follow", "wall", "bolt"]
    for _ in range(5):
        state = driven.state()
        u = state[1][driven.layout.u_slice]
        out = driven.evaluate(["A", "b"], state)
        slope = along(driven, state, lambda s: driven.evaluate(["residual"], s)["residual"])
        np.testing.assert_allclose((out["A"] @ u + out["b"])[positions], slope[positions], rtol=1e-8, atol=1e-8)


def test_kinematic_rows_are_unit_vectors(model):
    row = model("shopping_cart").terms.rows[0]
    assert (row.name, row.role) == ("rear_axle", "kinematic")
    assert [node.constant_value for node in row.A] == [0, 0, 0, 1]
    assert row.b.is_zero
    assert row.gamma.is_zero


def test_velocity_of_the_coincident_point(model):
    """``vel(P, B)``: of the point fixed in B at the present place of P; checked against v(centre) + omega × arm."""
    source = {
        **DRIVEN,
        "constraints": {},
        "contacts": {},
        "frames": {
            **DRIVEN["frames"],
            "C": {"parent": "B", "rotate": {"z": "0.4"}},
            "S": {"parent": "N", "rotate": {"z": "0.2"}},
        },
        "points": {**DRIVEN["points"], "W": {"from": "Q", "at": "0.2*C.x"}},
        "outputs": {
            f"{name}_{axis}": f"dot({text}, N.{axis})"
            for name, text in {
                "own": "vel(P, B)",
                "same": "vel(R) + cross(omega(B), pos(P, R))",
                "bare": "vel(R, C)",
                "anchored": "vel(Q) + cross(omega(C), pos(R, Q))",
                "ground": "vel(R, N)",
                "slope": "vel(R, S)",
                "arm": "vel(P, A)",
                "arm_same": "vel(P)",
            }.items()
            for axis in "xyz"
        },
    }
    driven = model(source)
    for _ in range(5):
        out = driven.evaluate(dict(driven.terms.outputs), driven.state())
        vector = {
            name: np.array([out[f"{name}_{axis}"] for axis in "xyz"])
            for name in ("own", "same", "bare", "anchored", "ground", "slope", "arm", "arm_same")
        }
        np.testing.assert_allclose(vector["own"], vector["same"], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(vector["bare"], vector["anchored"], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(vector["arm"], vector["arm_same"], rtol=1e-12, atol=1e-13)
        assert not vector["ground"].any()
        assert not vector["slope"].any()


BALL = {
    "fsm_dyn": 1,
    "name": "ball",
    "coordinates": ["x", "y"],
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"ball": {"center": "P", "mass": 1}},
    "speeds": {"u": "rate(x)", "v": "rate(y)"},
}


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ({"velocity": "u*v"}, "not linear in the speeds"),
        ({"velocity": "dot(vel(P), vel(P))"}, "not linear in the speeds"),
        ({"velocity": "abs(u)"}, "not linear in the speeds"),
        ({"position": "x - x + 1"}, "constrains nothing"),
        ({"position": "sin(x)**2 + cos(x)**2 - 2"}, "constrains nothing"),
        ({"velocity": "u - dot(vel(P), N.x) + 1"}, "constrains nothing"),
    ],
)
def test_rows_that_are_none(model, constraint, words):
    with pytest.raises(ModelError, match=words) as caught:
        model({**BALL, "constraints": {"odd": constraint}})
    assert "odd" in str(caught.value)


def test_position_rows_know_no_speeds(model, load):
    odd = PositionConstraint(name="odd", expression=Text("x + u"))
    with pytest.raises(ModelError, match="the position constraint of 'odd' may not depend on u"):
        model(load(BALL, constraints={"odd": odd}))
