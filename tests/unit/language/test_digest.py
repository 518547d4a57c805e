"""The digest depends on the meaning of a model, not on its notation."""

from collections.abc import Callable

import pytest

from fsm_dyn.language.loader import load
from fsm_dyn.language.model import Mechanism

Load = Callable[..., Mechanism]

TEXT = """\
fsm_dyn: 1
name: ball
parameters: {m: 2 kg, e: 0.5}
coordinates: {x: m, y: m}
points: {P: {from: O, at: x*N.x + y*N.y}}
bodies:
  ball: {center: P, mass: m}
contacts:
  ground: {gap: y, restitution: e}
  wall: {gap: x}
initial: {x: 1 m, y: 2 m}
modes: {flight: {ground: open, wall: open}}
"""


def digest(text: str) -> str:
    return load("model.yaml", text=text).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: ball", "name: ball   # a comment"),
        ("fsm_dyn: 1\n", "# first\n\nfsm_dyn: 1\n"),
        ("name: ball", "name: 'ball'"),
        ("x*N.x + y*N.y", '"x*N.x  +  y*N.y"'),
        ("{center: P, mass: m}", "\n    mass: m\n    center: P"),
        ("initial: {x: 1 m, y: 2 m}", "initial: {y: 2 m, x: 1 m}"),
        ("{ground: open, wall: open}", "{wall: open, ground: open}"),
        ("name: ball\nparameters: {m: 2 kg, e: 0.5}", "parameters: {m: 2 kg, e: 0.5}\nname: ball"),
    ],
)
def test_does_not_change(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert digest(TEXT.replace(old, new)) == digest(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: ball", "name: ball2"),
        ("e: 0.5", "e: 0.6"),
        ("{m: 2 kg, e: 0.5}", "{e: 0.5, m: 2 kg}"),
        ("{x: m, y: m}", "{y: m, x: m}"),
        (
            "  ground: {gap: y, restitution: e}\n  wall: {gap: x}",
            "  wall: {gap: x}\n  ground: {gap: y, restitution: e}",
        ),
        ("restitution: e", "restitution: 0.5"),
        ("y: 2 m", "y: 3 m"),
        ("modes:", "impacts: sequential\nmodes:"),
        ("{flight: {", "{only_listed: true, flight: {"),
    ],
)
def test_changes(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert digest(TEXT.replace(old, new)) != digest(TEXT)


def test_does_not_depend_on_the_file() -> None:
    assert load("a.yaml", text=TEXT).digest == load("/b/c.yaml", text=TEXT).digest
    assert len(digest(TEXT)) == 64


def test_keys_of_numerics_have_no_order() -> None:
    assert digest(TEXT + "numerics: {}\n") == digest(TEXT)
    given = digest(TEXT + "numerics: {gap: 1 um, rtol: 1e-8}\n")
    assert given == digest(TEXT + "numerics: {rtol: 1e-8, gap: 1 um}\n") != digest(TEXT)


SHAPES = TEXT.replace("  wall: {gap: x}\n", "  wall: {gap: x}\n  bump: {between: [one, other]}\n").replace(
    "contacts:\n",
    "shapes:\n  one: {KIND: {frame: N, center: P, radius: 1 m}}\n"
    "  other: {KIND: {frame: N, center: O, radius: 1 m}}\ncontacts:\n",
)


def test_kinds_of_shapes_differ() -> None:
    assert digest(SHAPES.replace("KIND", "circle")) != digest(SHAPES.replace("KIND", "sphere"))


LOADS = (
    TEXT
    + """
loads:
  - {force: -m*(9.81 m/s**2)*N.y, at: P}
  - {name: pull, law: 3 N, between: [P, O]}
  - spring: {coordinate: x, stiffness: 2 N/m, free: 0.1 m}
  - damper: {between: [P, O], damping: 3 N*s/m}
inputs:
  a: {unit: N, constant: 2 N}
  b: {unit: N, linear: [[0 s, 1 N], [1 s, 2 N]]}
  c: {unit: N, steps: [[0 s, 1 N], [1 s, 2 N]]}
  d: {unit: N, expression: 3 N*sin(t/(1 s))}
"""
)


def test_kinds_of_loads_differ() -> None:
    spring = "spring: {between: [P, O], stiffness: 2 N/m, damping: 3 N*s/m}"
    assert digest(LOADS.replace("damper: {between: [P, O], damping: 3 N*s/m}", spring)) != digest(LOADS)
