"""Sections `names` and `phases`: content, refused cases with their places, and no influence on the rest."""

import pytest

import fsm_dyn
from fsm_dyn.core.errors import PhaseWarning
from fsm_dyn.language.describe_keys import json_schema
from fsm_dyn.language.loader import load
from fsm_dyn.language.requirement import PhaseEvent, QuantityComparison, RunPhase, StateCondition, unreachable

CART = """fsm_dyn: 1
name: cart
parameters: {m: 1 kg, far: 0.3 m}
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}}
bodies: {cart: {center: P, mass: m}}
contacts: {stop: {gap: far - x, restitution: 0.2}}
inputs: {push: N}
loads: [{force: push*N.x, at: P}]
modes: {at_rest: {stop: closed}}
"""


def cart(text):
    return load("cart.yaml", text=CART + text)


def test_names_and_phases_as_data():
    found = cart(
        "names:\n  stop: {is: cart at stop, subject: cart, object: buffer}\n  cart: trolley\n"
        "phases:\n"
        "  held back: {when: [stop is not open and push > 1 N, at_rest], colour: red, text: held, shortest: 0 s}\n"
        "  way-back: {when: x_dot < 0 m/s, after: held back, until: x < 0 m, focus: cart}\n"
        "  other: {when: otherwise}\n"
    )
    assert found.names["stop"].text == "cart at stop"
    assert (found.names["stop"].subject, found.names["stop"].object) == ("cart", "buffer")
    assert found.names["cart"].text == "trolley"
    held, back, other = found.phases.values()
    assert [len(part) for part in held.when] == [2, 1]
    assert held.when[0][0] == StateCondition("stop", "open", True)
    assert isinstance(held.when[0][1], QuantityComparison)
    assert held.when[0][1].bound.text == "1 N"
    assert (held.colour, held.text, held.in_formulas) == ("red", "held", "held_back")
    assert (back.after, back.focus, back.in_formulas) == (("held back",), ("cart",), "way_back")
    assert (back.shortest, held.shortest.text) == (None, "0 s")
    assert other.when == ((),)


# faulty text, its line and column in the text behind the model, and a part of the message
WRONG = {
    "names: {stp: a}": (1, 9, "there is no contact, shape, body or quantity 'stp'"),
    f"names: {{stop: {'a' * 25}}}": (1, 15, "1 to 24 characters"),
    "names: {stop: {text: a}}": (1, 16, "allowed: is, subject, object"),
    "phases: {a: {when: stop is opn}}": (1, 20, "has no state 'opn'"),
    "phases: {a: {when: x > 3 kg}}": (1, 20, "is in kg"),
    "phases: {a: {when: y > 3 m}}": (1, 20, "there is no coordinate, speed, input, memory or output 'y'"),
    "phases: {a: {when: x > 3 m or x < 1 m}}": (1, 20, "found: "),
    "phases: {a: {when: moving}}": (1, 20, "there is no mode 'moving'"),
    "phases: {a: {when: phase == b}}": (1, 20, "names no phase"),
    "phases: {a: {wen: x > 3 m}}": (1, 14, "did you mean 'when'?"),
    "phases: {a: {after: b}}": (1, 10, "a lacks the key 'when'"),
    "phases: {a: {when: x > 3 m, colour: pink}}": (1, 37, "grey, blue, orange"),
    "phases: {a: {when: x > 3 m, after: b}}": (1, 36, "begins after 'b', which does not exist"),
    "phases: {a: {when: x > 3 m, shortest: 1 m}}": (1, 39, "is in m"),
    "phases: {a: {when: x > 3 m, until: otherwise}}": (1, 29, "ends a phase at once"),
    "phases: {a: {when: x > 3 m, focus: crt}}": (1, 36, "did you mean 'cart'?"),
    f"phases: {{a: {{when: x > 3 m, text: {'a' * 33}}}}}": (1, 35, "1 to 32 characters"),
    "phases: {a-b: {when: otherwise}, a b: {when: x > 1 m}}": (1, 34, "have one name in formulas"),
    "phases: {an overlong name: {when: otherwise}}": None,
    "phases: {an overlong name!: {when: otherwise}}": (1, 10, "at most 16 characters"),
    "requirements: {r: eventually phase == b}": (1, 19, "there is no phase 'b'"),
    "requirements: {r: count(b begins) <= 1}": (1, 19, "there is no phase 'b'"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_refused(text):
    if WRONG[text] is None:  # sixteen characters
        assert "an overlong name" in cart(text).phases
        return
    line, column, part = WRONG[text]
    with pytest.raises(fsm_dyn.ModelError) as caught:
        cart(text)
    where = caught.value.where
    assert (where.line, where.column) == (line + CART.count("\n"), column)
    assert part in str(caught.value)


def test_a_phase_that_can_never_begin_is_a_warning():
    with pytest.warns(PhaseWarning, match=r"cart.yaml:\d+:\d+: phase 'b' can never begin: 'a' before it applies"):
        cart("phases: {a: {when: otherwise}, b: {when: x > 0 m}}")
    always, once = ((),), ((StateCondition("stop", "closed"),),)
    phases = {
        "a": RunPhase("a", once, after=("b",)),
        "b": RunPhase("b", once, after=("a",)),
        "c": RunPhase("c", ((StateCondition("stop", "closed"), StateCondition("stop", "open")),)),
        "d": RunPhase("d", always, after=("c",)),
        "e": RunPhase("e", always),
    }
    assert set(unreachable(phases)) == {"a", "b", "c"}


def test_words_change_no_digest_but_phases_that_a_requirement_names_do():
    plain = cart("").digest
    phases = "phases: {a: {when: x > 1 m}, b: {when: otherwise}}\n"
    assert cart("names: {stop: cart at stop}\n" + phases).digest == plain
    judged = "requirements: {r: eventually phase == a}\n"
    other = phases.replace("1 m", "2 m")
    assert len({plain, cart(phases + judged).digest, cart(other + judged).digest}) == 3
    bare = "requirements: {r: eventually a}\n"
    assert cart(phases + bare).digest != cart(other + bare).digest


def test_formulas_of_requirements_name_phases():
    found = cart(
        "phases: {held back: {when: stop is not open}, other: {when: otherwise}}\n"
        "requirements: {once: count(held_back begins) <= 1, soon: eventually held_back before 2 s}\n"
    )
    assert found.requirements["once"].claim.event == PhaseEvent("held_back", "begins")
    assert found.requirements["soon"].claim.condition == StateCondition("held_back")


def test_the_schema_has_both_sections():
    schema = json_schema()
    properties, parts = schema["properties"], schema["$defs"]
    assert properties["phases"]["additionalProperties"] == {"$ref": "#/$defs/PhaseForm"}
    keys = parts["PhaseForm"]["properties"]
    assert set(keys) == {"when", "after", "until", "shortest", "colour", "text", "focus"}
    assert properties["names"]["additionalProperties"]["anyOf"][1] == {"$ref": "#/$defs/PartNameForm"}
    assert "is" in parts["PartNameForm"]["properties"]
