"""Drawings of bodies and of fixed outlines: in the body's frame or in another named one."""

import numpy as np
import pytest

from fsm_dyn.automaton import compilation
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load
from fsm_dyn.run.scene import scene_of

TEXT = """
fsm_dyn: 1
name: coin
coordinates: {q: rad}
frames:
  F: {rotate: {z: q}}
  side: {parent: F, rotate: {x: 90 deg}}
bodies:
  disk: {frame: F, center: O, mass: 1 kg, inertia: {zz: 1 kg*m^2}}
view:
  disk: [{circle: 0.5}, {frame: side, line: [[-0.5, 0], [0.5, 0]]}]
  N: {line: [[0, 0], [2, 0]]}
"""


def test_outlines_lie_in_the_frame_that_is_named():
    graph = compilation.compile(load("coin", text=TEXT))
    shapes = scene_of(graph.automaton, graph.parameters, graph.values).shapes
    assert [(shape.body, shape.frame, shape.closed) for shape in shapes] == [
        ("disk", "F", True),
        ("disk", "side", False),
        ("N", "N", False),
    ]
    assert np.abs(shapes[0].points).max() == 0.5
    assert shapes[2].points.tolist() == [[0.0, 0.0], [2.0, 0.0]]


def test_a_frame_that_is_not_there_is_refused():
    with pytest.raises(ModelError, match="sode"):
        load("coin", text=TEXT.replace("{frame: side,", "{frame: sode,"))


def test_a_frame_changes_what_the_model_says_and_its_absence_does_not():
    other = TEXT.replace("{frame: side, line", "{line")
    assert load("coin", text=TEXT).digest != load("coin", text=other).digest


@pytest.mark.parametrize(
    ("cords", "match"),
    [("{toot: [O, O]}", "toot"), ("{brake: [O, X]}", "X"), ("{brake: [O]}", "too few points")],
)
def test_a_cord_joins_points_of_the_model_for_a_contact(cords, match):
    text = TEXT + "contacts: {brake: {dry_friction: {speed: q_dot, static: 1 N*m, kinetic: 1 N*m}}}\n"
    brake = text.replace("view:\n", "view:\n  cords: {brake: [O, O]}\n")
    assert load("coin", text=brake).view["cords"][0].points == ("O", "O")
    with pytest.raises(ModelError, match=match):
        load("coin", text=text.replace("view:\n", f"view:\n  cords: {cords}\n"))
