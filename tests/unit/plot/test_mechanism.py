"""Mechanisms are drawn with their pivots and springs, each body in one colour, with names that can be read."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.language import loader
from fsm_dyn.plot import mechanism as drawing
from fsm_dyn.plot import style
from fsm_dyn.plot.mechanism import draw_scene
from fsm_dyn.plot.scene_projection import project, trajectory_scene, with_force_arrows

PENDULUM = """
fsm_dyn: 1
name: hinges
parameters: {a: 0.3, b: 0.2}
coordinates: [p, q, s]
frames:
  A: {parent: N, rotate: {z: p}}
  B: {parent: A, rotate: {z: q}}
points:
  Ac: {from: O, at: 0.5*N.x + a*A.x}
  Bc: {from: Ac, at: a*A.x + b*B.x}
  S: {from: O, at: -(1 + s)*N.y}
bodies:
  upper: {frame: A, center: Ac, mass: 1, inertia: {zz: 0.1}}
  lower: {frame: B, center: Bc, mass: 1, inertia: {zz: 0.1}}
  block: {center: S, mass: 1}
loads:
  - {torsion_spring: {coordinate: q, stiffness: 3}, name: coil}
  - {spring: {coordinate: s, stiffness: 3, damping: 1}, name: strut}
  - {spring: {between: [Bc, O], stiffness: 3}, name: cable}
  - {spring: {coordinate: p + 2*q, stiffness: 3}, name: nowhere}
initial: {p: 0.4, q: -0.2, s: 0.1}
view:
  block: {circle: 0.05}
"""


def _scene(text):
    run = fsm_dyn.simulate(fsm_dyn.compile(loader.load(text=text)), until=0.1)
    return run, project(run, trajectory_scene(run), run.t[[0, -1]])


def test_pivots_are_found_where_no_point_is_named():
    run, view = _scene(PENDULUM)
    (fixed,) = (s for s in view.scene.symbols if s.kind == "support" and s.name == "upper")
    (moving,) = (s for s in view.scene.symbols if s.kind == "pivot")
    at = view.anchors[:, fixed.anchors[0]]
    np.testing.assert_allclose(at, [[0.5, 0.0], [0.5, 0.0]], atol=1e-12)
    p = run.q[[0, -1], 0]
    expected = np.stack([0.5 + 0.6 * np.cos(p), 0.6 * np.sin(p)], axis=-1)
    np.testing.assert_allclose(view.anchors[:, moving.anchors[0]], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ("tip: {circle: {frame: B, center: end, radius: 2 mm}}", 1),  # a hammer's head, apart from its hinge
        ("rod: {segment: {frame: B, from: H, points: [[0 mm, 0 mm], [50 mm, 0 mm]]}, side: B.y}", 0),
        ("rod: {segment: {frame: B, from: H, points: [[-20 mm, 0 mm], [50 mm, 0 mm]]}, side: B.y}", 0),
        ("wheel: {circle: {frame: B, center: H, radius: 60 mm}}\n"
         "  peg: {circle: {frame: B, center: end, radius: 2 mm}}", 0),
        ("peg: {circle: {frame: B, center: end, radius: 2 mm}, repeat: {count: 5, about: H}}", 5),  # spokes
        ("bar: {polygon: {frame: B, from: H, points: [[-5 mm, -2 mm], [49 mm, -2 mm], [49 mm, 2 mm], [-5 mm, 2 mm]]}}\n"
         "  tip: {circle: {frame: B, center: end, radius: 2 mm}}", 0),
    ],
)  # fmt: skip
def test_outlines_apart_from_the_pivot_of_their_body_are_joined_to_it(shapes, expected):
    _, view = _scene(
        "fsm_dyn: 1\njoints: {hinge: {revolute: {child: B, at: H, axis: N.z}}}\n"
        "points: {H: {from: O, at: 10 mm*N.x}, end: {from: H, at: 50 mm*B.x}, C: {from: H, at: 20 mm*B.x}}\n"
        "bodies: {lever: {frame: B, center: C, mass: 8 g, inertia: {zz: 1e-6 kg*m^2}}}\n"
        f"shapes:\n  {shapes}\ninitial: {{hinge_dot: 1 rad/s}}\n"
    )
    bars = [symbol for symbol in view.scene.symbols if symbol.kind == "bar" and symbol.owner == "lever"]
    assert len(bars) == expected
    hinge = np.array([-0.02, 0.0, 0.0])  # from the body's centre
    for bar in bars:
        lengths = [np.linalg.norm(view.scene.anchors[number].offset - hinge) for number in bar.anchors]
        np.testing.assert_allclose(sorted(lengths), [0.0, 0.05], atol=1e-9)


def test_gears_have_teeth_of_one_size():
    run = fsm_dyn.simulate(fsm_dyn.compile("planetary_gear"), until=0.01)
    values, counts = run.model.values, {}
    for shape in trajectory_scene(run).shapes:
        if shape.closed:
            radii = np.linalg.norm(shape.points, axis=1)
            assert radii.mean() == pytest.approx(
                values["rs" if "sun" in shape.owner else "rr" if "ring" in shape.owner else "rp"]
            )
            counts[shape.owner] = np.count_nonzero(np.diff(radii) > 1e-6 * radii.mean())
    assert counts["planet_a"] == counts["planet_b"] == counts["planet_c"] == 16
    assert counts["sun_wheel"] / 16 == pytest.approx(values["rs"] / values["rp"], rel=0.02)
    assert counts["ring_wheel"] == counts["sun_wheel"] + 2 * 16  # as in any planetary gear


def test_springs_are_drawn_where_their_coordinates_move_bodies_and_others_are_named():
    run, view = _scene(PENDULUM)
    kinds = {s.name: s.kind for s in view.scene.symbols if s.kind in ("spring", "spiral")}
    assert kinds == {"coil": "spiral", "strut": "spring", "cable": "spring"}
    assert view.scene.missing == ("spring nowhere",)
    (strut,) = (s for s in view.scene.symbols if s.kind == "spring" and s.name == "strut")
    far, near = (view.anchors[:, number] for number in strut.anchors)
    np.testing.assert_allclose(far[0], far[1], atol=1e-12)  # on the ground
    np.testing.assert_allclose(near[1] - near[0], [0.0, -np.diff(run.q[[0, -1], 2])[0]], atol=1e-12)
    (plate,) = (s for s in view.scene.symbols if s.kind == "ground" and s.name == "strut")
    assert plate.owner == "N"


def test_what_is_not_drawn_is_listed_below_a_figure():
    run, _ = _scene(PENDULUM)
    assert "not drawn: spring nowhere" in [text.get_text() for text in plot.motion(run).texts]


def test_dry_friction_at_a_pivot_has_a_shoe_that_tells_whether_it_sticks():
    run = fsm_dyn.simulate(fsm_dyn.compile("shopping_cart"), until=3.3)
    view = with_force_arrows(run, project(run, trajectory_scene(run), np.linspace(0.0, 3.3, 12)))
    assert view.sticking[:, 0].tolist() == [name == "caster stuck" for name in view.visits]
    assert {*view.visits} == {"caster stuck", "caster trails"}
    (pivot,) = (symbol for symbol in view.scene.symbols if symbol.kind == "pivot")
    np.testing.assert_allclose(view.brakes[:, 0], view.anchors[:, pivot.anchors[0]], atol=1e-9)


def test_a_scene_does_not_depend_on_the_order_of_bodies():
    lines = PENDULUM.splitlines(keepends=True)
    upper, block = (next(i for i, line in enumerate(lines) if line.startswith(f"  {n}:")) for n in ("upper", "block"))
    lines[upper], lines[block] = lines[block], lines[upper]
    found = []
    for text in (PENDULUM, "".join(lines)):
        _, view = _scene(text)
        shown = [
            (s, s.anchors[:1] if s.kind == "spiral" else s.anchors) for s in view.scene.symbols if s.kind != "pivot"
        ]
        found.append({(s.kind, s.name, *np.round(view.anchors[0, list(at)], 9).ravel() + 0.0) for s, at in shown})
    assert found[0] == found[1]


def test_an_input_is_an_arrow_along_its_force_and_no_arrow_at_zero():
    run = fsm_dyn.simulate(fsm_dyn.compile("carried_bar"), until=0.4)
    view = project(run, trajectory_scene(run), np.linspace(0.0, 0.4, 9))
    left = run.sample(view.times)["lift_left"]
    assert left.max() > 0.0
    arrows = view.pushes[:, 0, 1] - view.pushes[:, 0, 0]
    assert np.isfinite(arrows).all(axis=1).tolist() == (np.abs(left) >= 0.02 * np.abs(run["lift_left"]).max()).tolist()
    shown = np.isfinite(arrows[:, 1])
    np.testing.assert_allclose(arrows[shown, 0], 0.0, atol=1e-12)
    assert (arrows[shown, 1] * left[shown] > 0.0).all()
    assert np.ptp(np.linalg.norm(arrows[shown], axis=1)) <= 8.0 * view.unit


def test_a_spring_has_six_teeth_and_a_spiral_winds_with_the_bodies():
    line = drawing.zigzag(np.zeros(2), np.array([100.0, 0.0]), 1.0)
    assert np.count_nonzero(np.diff(np.sign(line[2:-2, 1]))) == 2 * drawing.TEETH - 1
    assert np.ptp(line[:, 1]) <= 3.2
    centre, up = np.zeros(2), np.array([0.0, 1.0])
    for turn in (-0.5, 0.0, 0.5):
        outer = np.array([-np.sin(turn), np.cos(turn)])
        end = drawing.spiral(centre, up, outer, 1.0)[-1]
        assert np.arctan2(-end[0], end[1]) == pytest.approx(turn)


def test_a_face_is_lit_while_it_is_touched():
    """A point falls past the upper of two shelves, drawn from (1, 0) to (3, 0), and lands on the lower one."""
    run = fsm_dyn.simulate(fsm_dyn.compile({
        "fsm_dyn": 1, "name": "drop", "coordinates": ["y"], "points": {"P": {"from": "O", "at": "2*N.x + y*N.y"}},
        "bodies": {"bead": {"center": "P", "mass": 1}},
        "shapes": {"shelf": {"segment": {"points": [[1, 0], [3, 0]]}, "side": "N.y"},
                   "aside": {"segment": {"points": [[5, 0.5], [6, 0.5]]}, "side": "N.y"}},
        "contacts": {"lands": {"point": "P", "on": "shelf"}, "passes": {"point": "P", "on": "aside"}},
        "loads": [{"gravity": "-9.81*N.y"}], "initial": {"y": 1},
    }), until=1.0)  # fmt: skip
    view = with_force_arrows(run, project(run, trajectory_scene(run), np.array([0.2, 0.9])))
    assert np.isnan(view.lit[0]).all()
    assert [face.tolist() for face in view.lit[1] if np.isfinite(face).all()] == [[[1, 0], [3, 0]]]
    for instant, count in enumerate((0, 1)):
        axes = style.new_figure(3, 3).add_subplot()
        draw_scene(axes, view, instant)
        assert sum(line.get_gid() == "lit" for line in axes.lines) == count
