"""Outlines follow their bodies, and the picture chooses between overlaying and setting apart."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.model import Body, Mechanism
from fsm_dyn.language.shapes import CircleOutline, PolygonOutline
from fsm_dyn.plot import style
from fsm_dyn.plot.motion import motion
from fsm_dyn.run.run_timeline import place_scene
from fsm_dyn.run.scene import Scene, SceneShape, shapes_of


class Turning:
    """A point at (x, 1, height) and a frame that turns about N.z (or N.x) by x."""

    def __init__(self, planar=True):
        self.planar = planar

    def evaluate(self, t, x, c):
        a = x[:, 0]
        one, zero = np.ones_like(a), np.zeros_like(a)
        flat = [[np.cos(a), -np.sin(a), zero], [np.sin(a), np.cos(a), zero], [zero, zero, one]]
        steep = [[one, zero, zero], [zero, np.cos(a), -np.sin(a)], [zero, np.sin(a), np.cos(a)]]
        frame = np.moveaxis(np.array(flat if self.planar else steep), -1, 0)
        return {"points": np.stack([a, one, zero], axis=-1)[:, None], "frames": frame[:, None]}


def scene(planar=True):
    square = SceneShape("box", "B", "P", np.array([[0.0, 0.0], [0.1, 0.0], [0.1, 0.1], [0.0, 0.1]]), closed=True)
    dot = SceneShape("bead", "N", "P", np.zeros((1, 2)), text="bead")
    return Scene((square, dot), ("P",), ("B",), Turning(planar))


def test_an_outline_turns_and_moves_with_its_frame(block):
    placed = place_scene(scene(), block.sample([0.0, 1.0]))
    outline = placed.outline(scene().shapes[0])
    assert_allclose(outline[0, 1], [0.1, 1.0, 0.0])
    assert_allclose(outline[1, 1], [1.0 + 0.1 * np.cos(1.0), 1.0 + 0.1 * np.sin(1.0), 0.0])
    assert_allclose(placed.point("O"), 0.0)


@pytest.mark.parametrize("planar", [True, False])
def test_a_picture_is_drawn(block, tmp_path, picture_size, planar):
    assert place_scene(scene(planar), block.rows).is_planar() == planar
    path = style.save(motion(block, scene(planar)), tmp_path / "motion.png")
    width, height = picture_size(path)
    assert 500 < width <= 1500
    assert 200 < height <= 1100


def test_shapes_come_from_the_view_and_other_bodies_get_a_dot():
    corners = tuple(tuple(Text(value) for value in point) for point in (("0", "0"), ("1", "0"), ("0", "r")))
    mechanism = Mechanism(
        name="m",
        bodies={
            "box": Body(name="box", center="P", mass=Text("1"), frame="B"),
            "bead": Body(name="bead", center="Q", mass=Text("1")),
        },
        view={"box": (PolygonOutline(points=corners), CircleOutline(radius=Text("r")))},
    )
    shapes = shapes_of(mechanism, {"r": 0.5})
    assert [(s.body, s.frame, s.origin, s.closed, len(s.points)) for s in shapes] == [
        ("box", "B", "P", True, 3),
        ("box", "B", "P", True, 61),
        ("bead", "N", "Q", False, 1),
    ]
    assert_allclose(shapes[0].points[2], [0.0, 0.5])
    assert_allclose(np.linalg.norm(shapes[1].points, axis=1), 0.5)
