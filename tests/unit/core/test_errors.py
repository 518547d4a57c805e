"""Remedies of misspelt names: the closest known name, or the one that has the name as a word."""

import pytest

from fsm_dyn.core.errors import ModelError, did_you_mean
from fsm_dyn.language.loader import load

KEYS = ("restitution", "restitution_law", "sound_frequency", "gap", "slip")
MODEL = """\
fsm_dyn: 1
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}}
bodies: {b: {center: P, mass: 1 kg}}
"""


@pytest.mark.parametrize(
    ("name", "meant"),
    [("law", "restitution_law"), ("frequency", "sound_frequency"), ("restitutoin", "restitution"), ("gap_", "gap")],
)
def test_the_name_that_is_meant(name: str, meant: str) -> None:
    assert did_you_mean(name, KEYS) == f"did you mean '{meant}'?"


def test_two_names_with_the_word_and_none_that_is_close() -> None:
    assert did_you_mean("law", ("law_of_one", "law_of_another")) == ""
    assert did_you_mean("zzz", KEYS) == ""


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("drives: {a: {}}", "scenarios"),
        ("contacts: {c: {gap: x, law: poisson}}", "restitution_law"),
        ("contacts: {c: {gap: x, pitch: 3 Hz}}", "sound_frequency"),
        ("contacts: {c: {gap: x, compliant: {stiffness: 1 N/m, loss: 1 s/m}}}", "dissipation"),
        ("ports: {h: {point: P, body: b, axes: [N.x], twist: N.z}}", "rotation"),
        ("transitions: [{from: '*', on: c leaves, stop: true}]\ncontacts: {c: {gap: x}}", "leaves_face"),
    ],
)
def test_other_words_for_a_key_lead_to_it(line: str, meant: str) -> None:
    with pytest.raises(ModelError) as caught:
        load("m.yaml", text=f"{MODEL}{line}\n")
    assert f"'{meant}'" in caught.value.remedy
