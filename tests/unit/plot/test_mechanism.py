"""Mechanisms are drawn with their pivots and springs, each body in one colour, with names that can be read."""

import itertools

import numpy as np
import pytest
from matplotlib.path import Path

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg, symbol_lines
from fsm_dyn.draw.svg import FILLS, phase_fills
from fsm_dyn.language import loader, models
from fsm_dyn.language.elements import SpringLoad
from fsm_dyn.plot import style
from fsm_dyn.plot.mechanism import draw_scene, name_bodies, set_box
from fsm_dyn.plot.scene_projection import project, trajectory_scene, with_force_arrows

SHOWN = ["latch_door", "planar_three_body", "seat_belt_reel", "push_button", "newtons_cradle"]


def _drawn(name, until=0.05):
    run = fsm_dyn.simulate(fsm_dyn.compile(name), until=until)
    view = with_force_arrows(run, project(run, trajectory_scene(run), np.array([0.0, until])))
    figure = style.new_figure(8.0, 5.0)
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    low, high = view.box(0)
    margin = 0.15 * (high - low).max()
    set_box(axes, low - margin, high + margin)
    axes.set_axis_off()
    draw_scene(axes, view, 0)
    figure.canvas.draw()
    name_bodies(axes, view, 0)
    return run, view, figure, axes


def _check(name):
    run, view, figure, axes = _drawn(name)
    mechanism = run.model.automaton.mechanism
    labels = {artist.get_gid() for artist in axes.get_children()}
    for load in mechanism.loads:
        if isinstance(load, SpringLoad):
            assert f"spring:{load.name}" in labels or f"spring {load.name}" in view.scene.missing
    for body in mechanism.view:
        assert f"link:{body}" not in labels or _is_arm(view, body)
    fills = {fill for fill, _ in svg.body_colours(view.scene.bodies).values()}
    assert fills.isdisjoint(FILLS.values())
    _check_names(view, figure, axes)


def _is_arm(view, body):
    """Return whether all bars of a body with a view carry the springs of slides."""
    return all(symbol.name != body for symbol in view.scene.symbols if symbol.kind in ("bar", "link"))


def _check_names(view, figure, axes):
    renderer = figure.canvas.get_renderer()
    named = [text for text in axes.texts if (text.get_gid() or "").startswith("name:")]
    boxes = [text.get_window_extent(renderer) for text in named]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.padded(-0.5).overlaps(other.padded(-0.5))
    for text, box in zip(named, boxes, strict=True):
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        middle = [(0.5 * (box.x0 + box.x1), 0.5 * (box.y0 + box.y1))]
        below = [
            f"name:{shape.owner}"
            for shape, outline in zip(view.scene.shapes, view.shapes, strict=True)
            if shape.closed and shape.bounded and np.isfinite(outline[0]).all()
            and Path(axes.transData.transform(outline[0])).contains_points(middle).any()
        ]  # fmt: skip
        assert below[-1:] in ([], [text.get_gid()])  # of several the uppermost


@pytest.mark.parametrize("name", SHOWN)
def test_springs_are_drawn_and_bodies_have_one_colour_and_a_name(name):
    _check(name)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(models.names()) - set(SHOWN)))
def test_every_shipped_model_is_drawn(name):
    _check(name)


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
    line = symbol_lines.zigzag(np.zeros(2), np.array([100.0, 0.0]), 1.0)
    assert np.count_nonzero(np.diff(np.sign(line[2:-2, 1]))) == 2 * symbol_lines.TEETH - 1
    assert np.ptp(line[:, 1]) <= 3.2
    centre, up = np.zeros(2), np.array([0.0, 1.0])
    for turn in (-0.5, 0.0, 0.5):
        outer = np.array([-np.sin(turn), np.cos(turn)])
        end = symbol_lines.spiral(centre, up, outer, 1.0)[-1]
        assert np.arctan2(-end[0], end[1]) == pytest.approx(turn)


# -- Colours ------------------------------------------------------------------------------------------------------

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.119192, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])


def _linear(colour):
    rgb = np.array([int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _lab(linear):
    xyz = TO_XYZ @ np.clip(linear, 0.0, 1.0) / WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def _ciede2000(one, other):
    """Sharma, Wu and Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = 0.5 * (np.hypot(a1, b1) + np.hypot(a2, b2))
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2)
    lightness, c = 0.5 * (l1 + l2), 0.5 * (c1 + c2)
    h = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = 1 - 0.17 * np.cos(np.radians(h - 30)) + 0.24 * np.cos(np.radians(2 * h))
    t += 0.32 * np.cos(np.radians(3 * h + 6)) - 0.20 * np.cos(np.radians(4 * h - 63))
    rotation = -2 * np.sqrt(c**7 / (c**7 + 25.0**7)) * np.sin(np.radians(60 * np.exp(-(((h - 275) / 25) ** 2))))
    dl = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2))
    dc, dh = (c2 - c1) / (1 + 0.045 * c), dh / (1 + 0.015 * c * t)
    return float(np.sqrt(dl**2 + dc**2 + dh**2 + rotation * dc * dh))


def _contrast(one, other):
    low, high = sorted(float(TO_XYZ[1] @ _linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (50.0, 0.0, -2.5), 4.3065),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
    ],
)
def test_the_measure_of_distances_gives_published_values(one, other, expected):
    assert _ciede2000(one, other) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("vision", VISIONS)
def test_phases_differ_in_every_vision(vision):
    labs = [_lab(np.array(VISIONS[vision]) @ _linear(colour)) for colour in FILLS.values()]
    assert min(_ciede2000(one, other) for one, other in itertools.combinations(labs, 2)) >= 12.0
    shown = phase_fills({f"{name} {turn}": name for turn in range(4) for name in FILLS})
    assert len({(fill.colour, fill.texture) for fill in shown.values()}) == 24
    assert len(set(shown.values())) == 32


def test_text_can_be_read_and_bodies_are_pale_with_dark_edges():
    assert min(_contrast(svg.TEXT, fill) for fill in FILLS.values()) >= 4.5
    for fill, edge in svg.BODIES:
        assert _lab(_linear(fill))[0] >= 85.0
        assert _lab(_linear(edge))[0] <= 45.0
        assert _contrast(edge, fill) >= 4.5


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
