"""Requirements in model files: content read from a formula, and formulas without a possible judgement."""

import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.loader import load
from fsm_dyn.language.requirement import (
    Always,
    ContactEvent,
    Count,
    Eventually,
    Extreme,
    MeasuredQuantity,
    NeverTwice,
    QuantityComparison,
    StateCondition,
    read_formula,
)

BALL = """
fsm_dyn: 1
name: ball
parameters: {m: 1 kg, top: 2 m}
coordinates: {x: m, y: m}
points:
  C: {from: O, at: x*N.x + y*N.y}
bodies:
  ball: {center: C, mass: m}
contacts:
  ground: {gap: y, slip: rate(x), friction: 0.3, restitution: 0.5}
  wall: {gap: x}
modes:
  flying: {ground: open}
outputs: {height: y}
"""
BALL_CLOSES = ContactEvent("ground", "closes")


def model(formula):
    return load("ball", text=f"{BALL}requirements:\n  r: {formula}\n")


@pytest.mark.parametrize(
    ("formula", "claim"),
    [
        ("never ground closes", Count(BALL_CLOSES, "<=", Text("0"))),
        ("never ground closes twice within 2*20 ms", NeverTwice(BALL_CLOSES, Text("2*20 ms"))),
        ("never mode == flying", Always(StateCondition("flying", "", True))),
        ("never y > 2 m", Always(QuantityComparison(MeasuredQuantity("y"), "<=", Text("2 m")))),
        ("always flying", Always(StateCondition("flying"))),
        (
            "always ground.normal > m*9 N/kg while flying and ground is not stick",
            Always(
                QuantityComparison(MeasuredQuantity("ground", "normal"), ">", Text("m*9 N/kg")),
                (StateCondition("flying"), StateCondition("ground", "stick", True)),
            ),
        ),
        ("eventually ground closes", Eventually(BALL_CLOSES)),
        ("eventually mode != flying before 0.3 s", Eventually(StateCondition("flying", "", True), Text("0.3 s"))),
        ("eventually abs(y) <= 1 m before 1 s",
         Eventually(QuantityComparison(MeasuredQuantity("y", "", True), "<=", Text("1 m")), Text("1 s"))),
        ("peak(ground.friction) < 8 N",
         Extreme("peak", QuantityComparison(MeasuredQuantity("ground", "friction"), "<", Text("8 N")))),
        ("count(ground closes) >= 2", Count(BALL_CLOSES, ">=", Text("2"))),
    ],
)  # fmt: skip
def test_a_formula_is_read_as_data(formula, claim):
    assert read_formula(Text(formula)) == claim
    model(formula)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("sometimes ground closes", "does not begin with 'sometimes'"),
        ("never ground closes twice", "'within' is missing at the end"),
        ("always y >", "a value is missing"),
        ("always y = 2 m", "has no meaning"),
        ("always y == 2 m", "'==' does not compare"),
        ("count(ground closes) <= 2 while flying", "'while' is not expected here"),
        ("always ground.pressure > 2 N", "no force 'pressure'"),
        ("never groun closes", "there is no contact 'groun'"),
        ("never ground engages", "has no event 'engages'"),
        ("always flyin", "there is no mode 'flyin'"),
        ("never ground is closed", "has no state 'closed'"),
        ("always wall.friction < 2 N", "has no friction force"),
        ("always width < 2 m", "'width'"),
        ("always y < 2 N", "the bound of requirement 'r'"),
        ("always y < x", "the bound of requirement 'r'"),
        ("always ground.normal > 2 m", "the bound of requirement 'r'"),
        ("eventually flying before 2 m", "the bound of requirement 'r'"),
        ("count(ground closes) < 2 s", "the bound of requirement 'r'"),
        ("always __import__ < 1", "has no meaning"),
    ],
)
def test_a_requirement_that_can_never_be_judged_is_refused_with_its_place(formula, message):
    with pytest.raises(ModelError, match=message.replace("(", r"\(")) as error:
        model(formula)
    line = BALL.count("\n") + 2
    assert str(error.value).startswith(f"ball:{line}:6: "), str(error.value)


def test_requirements_change_the_digest_only_where_there_are_some():
    bare = load("ball", text=BALL)
    assert load("ball", text=f"{BALL}requirements: {{}}\n").digest == bare.digest
    assert model("never ground closes").digest != bare.digest


def test_a_text_is_kept_with_the_formula():
    found = model("{formula: 'never   ground closes', text: It flies.}").requirements["r"]
    assert (found.formula, found.summary) == ("never ground closes", "It flies.")


def test_the_force_of_a_contact_whose_gap_has_memory_is_a_force():
    text = fsm_dyn.load("ratchet").text
    load("ratchet", text=f"{text}requirements:\n  press: peak(flank.normal) < 20 N\n")
    with pytest.raises(ModelError, match="the bound of requirement 'press'"):
        load("ratchet", text=f"{text}requirements:\n  press: peak(flank.normal) < 20 m\n")
