"""Definitions of speeds: their solutions, and the messages without one."""

import numpy as np
import pytest
import sympy as sp

from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive.printing import to_sympy
from fsm_dyn.language.elements import VelocityConstraint
from fsm_dyn.language.expression_tree import Text


def as_sympy(nodes):
    return to_sympy(list(nodes))


def test_cart_has_nothing_divided(model):
    """Gillespie 2003, (57), with the axle's column beside it."""
    terms = model("shopping_cart").terms
    u1, u2, u3, q3 = sp.symbols("u1 u2 u3 q3")
    assert as_sympy(terms.q_dot) == [sp.cos(q3) * u1, sp.sin(q3) * u1, u2, u3 - u2]
    assert [as_sympy(row) for row in terms.W] == [
        [sp.cos(q3), 0, 0, -sp.sin(q3)],
        [sp.sin(q3), 0, 0, sp.cos(q3)],
        [0, 1, 0, 0],
        [0, -1, 1, 0],
    ]


def test_wrist_divides_by_one_sine(model):
    """Gillespie 2003, (50): one division, of the sum."""
    terms = model("spherical_wrist").terms
    u1, u2, u3, q2, q3 = sp.symbols("u1 u2 u3 q2 q3")
    first = (sp.sin(q3) * u2 - sp.cos(q3) * u1) / sp.sin(q2)
    expected = [first, sp.sin(q3) * u1 + sp.cos(q3) * u2, u3 - sp.cos(q2) * first]
    assert all(sp.simplify(a - b) == 0 for a, b in zip(as_sympy(terms.q_dot), expected, strict=True))
    counts = terms.program(["q_dot"]).counts()
    assert (counts.multiply_divide, counts.add, counts.trig) == (6, 3, 4)  # the paper prints 9, 4, 9, sines repeated


def planar(speeds, constraints=None, frames=None):
    return {
        "fsm_dyn": 1,
        "name": "planar",
        "coordinates": ["x", "y", "a"],
        "frames": frames or {"A": {"parent": "N", "rotate": {"z": "a"}}},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}, "Q": {"from": "P", "at": "0.5*A.x"}},
        "bodies": {"body": {"center": "P", "frame": "A", "mass": 1, "inertia": {"zz": 1}}},
        "speeds": speeds,
        "constraints": constraints or {},
        "inputs": {"w": None},
    }


BY_FRAME = {"u": "dot(vel(P), A.x)", "v": "dot(vel(P), A.y)", "s": "rate(a)"}


def test_speeds_in_the_body_are_met_again_as_they_are(model):
    """The velocity of P is u A.x + v A.y, not sums of squares of sines and cosines."""
    terms = model(planar(BY_FRAME)).terms
    assert terms.program(["M"]).counts().total == 0
    assert terms.program(["q_dot", "M", "f"]).counts().trig == 2


@pytest.mark.parametrize(
    "speeds",
    [
        BY_FRAME,
        {"u": "dot(vel(Q), A.x)", "v": "dot(vel(Q), A.y)", "s": "rate(a)"},
        {"u": "dot(vel(Q), A.x) + 2*rate(a)", "v": "dot(vel(P), N.y)", "s": "rate(a) - 3*dot(vel(P), A.x)"},
        {"u": "rate(x) + w*t", "v": "rate(x) - 2*rate(y)", "s": "cos(x)*rate(a) + rate(y)"},
        {"u": "2*rate(x) + rate(y)", "v": "rate(x) - (1 + x**2)*rate(y)", "s": "rate(a)/3"},
    ],
)
def test_solution_satisfies_the_definitions(model, speeds):
    """Each definition, evaluated with the solved rates, gives its speed back."""
    texts = {f"check_{name}": text for name, text in speeds.items()}
    solved = model({**planar(speeds), "outputs": texts})
    for _ in range(5):
        state = solved.state()
        out = solved.evaluate(dict(solved.terms.outputs), state)
        np.testing.assert_allclose(
            [out[f"check_{name}"] for name in speeds], state[1][solved.layout.u_slice], rtol=1e-11, atol=1e-12
        )


def test_blocks_beyond_cofactors(model):
    """Five rates coupled in one block are eliminated step by step."""
    names = "abcde"
    source = {
        "fsm_dyn": 1,
        "name": "coupled",
        "coordinates": list(names),
        "points": {f"P{n}": {"from": "O", "at": f"{n}*N.x"} for n in names},
        "bodies": {f"body_{n}": {"center": f"P{n}", "mass": 1} for n in names},
        "speeds": {
            f"u{i}": " + ".join(f"{i ** (j - 1)}*cos({n})*rate({n})" for j, n in enumerate(names, 1))
            for i in range(1, 6)
        },
    }
    source["outputs"] = {f"check_{name}": text for name, text in source["speeds"].items()}
    solved = model(source)
    state = solved.state()
    out = solved.evaluate(dict(solved.terms.outputs), state)
    np.testing.assert_allclose(list(out.values()), state[1][5:], rtol=1e-9, atol=1e-9)


KINEMATIC = {"axle": {"velocity": "dot(vel(P), A.y)", "kinematic": True}}


def test_kinematic_row_with_a_remainder(model):
    """A moving belt: the kinematic speed is zero when the body moves with the belt."""
    belt = {"axle": {"velocity": "dot(vel(P), A.y) - w", "kinematic": True}}
    solved = model(planar({"u": "dot(vel(P), A.x)", "s": "rate(a)"}, belt))
    t, x, c = solved.state()
    out = solved.evaluate(["q_dot", "W", "X"], (t, x, c))
    a, w = x[2], solved.values((t, x, c))["w"]
    across = -np.sin(a) * out["q_dot"][0] + np.cos(a) * out["q_dot"][1]
    assert across == pytest.approx(w, rel=1e-12)
    np.testing.assert_allclose(out["W"] @ [*x[3:], 0] + out["X"], out["q_dot"], rtol=1e-12)


@pytest.mark.parametrize(
    ("speeds", "constraints", "words"),
    [
        (
            {"u": "rate(x)", "v": "rate(y)"},
            None,
            ["2 speeds and 0 kinematic rows for 3 rates: 1 more is needed", "rate(a)"],
        ),
        ({"u": "dot(vel(P), A.x)"}, KINEMATIC, ["1 speed and 1 kinematic row for 3 rates", "rate(a)"]),
        (BY_FRAME, KINEMATIC, ["3 speeds and 1 kinematic row for 3 rates: 1 too many", "axle"]),
        ({**BY_FRAME, "s": "u + v"}, None, ["u, v, s are not independent", "rate(a)"]),
        ({**BY_FRAME, "v": "2*dot(vel(P), A.x)"}, None, ["u, v are not independent"]),
        ({**BY_FRAME, "v": "dot(vel(P), A.x)*cos(a)"}, None, ["u, v are not independent"]),
        ({**BY_FRAME, "s": "rate(a)**2"}, None, ["'s' is not linear in the rates"]),
        ({**BY_FRAME, "s": "rate(a)*rate(x)"}, None, ["'s' is not linear in the rates"]),
        ({**BY_FRAME, "s": "rate(a)/0"}, None, ["the definition of s measures no motion", "rate(a)"]),
        ({**BY_FRAME, "s": "3*x"}, None, ["the definition of s measures no motion", "rate(a)"]),
        (
            {"u": "dot(vel(P), A.x)", "s": "rate(a)"},
            {"axle": {"velocity": "dot(vel(P), A.x)", "kinematic": True}},
            ["u, axle are not independent"],
        ),
    ],
)
def test_definitions_that_settle_nothing(model, load, speeds, constraints, words):
    rows = {
        n: VelocityConstraint(name=n, expression=Text(c["velocity"]), kinematic=True)
        for n, c in (constraints or {}).items()
    }
    texts = {name: Text(text) for name, text in speeds.items()}
    with pytest.raises(ModelError) as caught:
        model(load(planar(BY_FRAME), speeds=texts, constraints=rows))
    for word in words:
        assert word in str(caught.value)
