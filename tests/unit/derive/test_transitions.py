"""User-defined transitions: conditions as scalars with zero crossings."""

import pytest

from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.model import TransitionSpec

MODEL = {
    "fsm_dyn": 1,
    "name": "logic",
    "coordinates": ["x", "y"],
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"ball": {"center": "P", "mass": 1}},
    "speeds": {"u": "rate(x)", "v": "rate(y)"},
    "inputs": {"w": None},
    "memory": {"count": 0},
    "contacts": {"wall": {"gap": "x", "closes_if": "y > 0 and not v < w"}},
}
GUARDS = {
    "x - 0.5": (("falling",), lambda x, y, u, v, w: x - 0.5),
    "x > y": (("rising",), lambda x, y, u, v, w: x - y),
    "x <= 2*y": (("rising",), lambda x, y, u, v, w: 2 * y - x),
    "x >= 1 and v < w": (("rising",), lambda x, y, u, v, w: min(x - 1, w - v)),
    "x > 1 and count >= 0.7": (("rising",), lambda x, y, u, v, w: x - 1),
    "x > 1 or count != 0.7": (("rising",), lambda x, y, u, v, w: x - 1),
    "not (x > 1 or count < 0.7)": (("rising",), lambda x, y, u, v, w: 1 - x),
    "x > 0 and v < w": (("rising",), lambda x, y, u, v, w: min(x, w - v)),
    "x > 0 or not v < w or u > 1": (("rising",), lambda x, y, u, v, w: max(x, v - w, u - 1)),
    "dot(vel(P), N.y) - count": (("falling",), lambda x, y, u, v, w: v - 0.7),
}


@pytest.mark.parametrize("text", GUARDS)
def test_guards(model, load, text):
    (crossing,), expected = GUARDS[text]
    item = TransitionSpec("go", "*", when=Text(text), crossing="falling")
    logic = model(load(MODEL, transitions=(item,)))
    (terms,) = logic.terms.transitions
    assert terms.crossing == crossing
    for _ in range(5):
        t, x, c = logic.state()
        c[logic.layout.memory_slice] = 0.7
        values = logic.values((t, x, c))
        out = logic.evaluate({"guard": terms.guard}, (t, x, c))
        assert out["guard"] == pytest.approx(expected(*[values[name] for name in "xyuvw"]), abs=1e-11)


def test_resets_and_memory(model, load):
    item = TransitionSpec("go", "*", reset={"u": Text("-u + w"), "x": Text("y")}, set={"count": Text("count + 1")})
    logic = model(load(MODEL, transitions=(item,)))
    (terms,) = logic.terms.transitions
    assert terms.guard is None
    state = logic.state()
    values = logic.values(state)
    out = logic.evaluate({**terms.reset, **terms.set}, state)
    assert out["u"] == pytest.approx(values["w"] - values["u"])
    assert out["x"] == values["y"]
    assert out["count"] == values["count"] + 1


def test_conditions_without_an_instant(model, load):
    item = TransitionSpec("go", "*", when=Text("x > 0 and y != 0"))
    with pytest.raises(ModelError, match="definite instant"):
        model(load(MODEL, transitions=(item,)))


def test_closing_conditions(model):
    logic = model(MODEL)
    (wall,) = logic.terms.contacts
    for _ in range(20):
        state = logic.state()
        values = logic.values(state)
        closes = logic.evaluate({"closes": wall.closes_if}, state)["closes"]
        assert closes == float(values["y"] > 0 and values["v"] >= values["w"])
