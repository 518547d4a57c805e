"""Bodies that are placed inside one another, by the initial state or by a reset map.

A rigid overlap is refused where it arises; a compliant one pushes from its first instant, out through the nearest face.
"""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import RunError, StartWarning
from fsm_dyn.language.loader import load
from tests.physics import flush
from tests.physics.test_compliant_seams import SEAMS, STIFFNESS, cushioned, tiles

#: Settings of a method, and the error of the position that it may make (m): of Moreau-Jean the step's order, 1.
METHODS = {
    "dopri5": ({"method": "dopri5", "rtol": 1e-10, "atol": 1e-12}, 1e-9),
    "radau": ({"method": "radau", "rtol": 1e-9, "atol": 1e-11}, 1e-7),
    "moreau_jean": ({"method": "moreau_jean", "step": 1e-5}, 2e-6),
}
TABLES = [("none", "polygon"), ("several", "polygon"), ("none", "segment"), ("several", "segment")]


def simulate(model, until, method="dopri5"):
    return fsm_dyn.simulate(fsm_dyn.compile(model), until, strategy="online", **METHODS[method][0])


def lowered(depth, x=0.1, q=0.0):
    """Return a brick 0.2 m by 0.1 m that reaches so far below the height 0 (m)."""
    body = flush.brick(0.2, 0.1)
    body.start = (x, 0.05 - depth, q)
    return body


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("seams", "kind"), TABLES)
@pytest.mark.parametrize("depth", [1e-7, 1e-4, 5e-3])
def test_a_brick_begins_pressed_into_cushions_and_swings_in_closed_form(depth, seams, kind, method):
    """A mass of 1 kg on two springs, released at rest: until they are released, and in flight after that."""
    run = simulate(cushioned({"brick": lowered(depth)}, tiles(SEAMS[seams], kind)), 0.03, method)
    omega, t = np.sqrt(2.0 * STIFFNESS), run.t
    sag = flush.G / omega**2
    released = np.arccos(min(max(sag / (sag - depth), -1.0), 1.0)) / omega if depth > 2.0 * sag else np.inf
    held = np.minimum(t, released)
    gap = -(sag + (depth - sag) * np.cos(omega * held))
    rate = (depth - sag) * omega * np.sin(omega * held)
    flown = t - held
    expected = gap + rate * flown - 0.5 * flush.G * flown**2
    assert run.t[-1] == 0.03
    assert expected[-1] > 0.0 or depth < 2.0 * sag
    np.testing.assert_allclose(run.q[:, 1] - 0.05, expected, rtol=0.0, atol=METHODS[method][1])


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("method", ["dopri5", "moreau_jean"])
def test_a_compliant_body_leaves_through_the_nearest_face(method, side):
    """A brick with its side 1 mm inside a wall is pushed off sideways, and not up through the wall's top."""
    body = flush.brick(0.2, 0.1)
    body.start = (side * (0.1 - 1e-3), 0.3, 0.0)
    wall = flush.polygon([(-side, 0.0), (0.0, 0.0), (0.0, 1.0), (-side, 1.0)][:: 1 if side > 0.0 else -1])
    model = cushioned({"brick": body}, {"wall": wall}) | {"loads": []}
    run = simulate(model, 0.02, method)
    omega = np.sqrt(2.0 * STIFFNESS)
    assert 0.5 * np.pi / omega < 0.02  # it has left
    np.testing.assert_allclose(run.u[-1], [side * 1e-3 * omega, 0.0, 0.0], atol=1e-3 * omega * 1e-2)
    assert run.energy.relative_residual <= (1e-8 if method == "dopri5" else 1e-2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("seams", "kind"), TABLES)
@pytest.mark.parametrize("q", [0.0, 0.3])
@pytest.mark.parametrize("depth", [1e-7, 5e-3])
def test_a_rigid_body_does_not_begin_inside_another(depth, q, seams, kind, method):
    """Tilted by ``q`` (rad) a corner is inside; upright two corners are, and at seams four."""
    model = flush.scene({"brick": lowered(depth, q=q)}, tiles(SEAMS[seams], kind))
    with pytest.raises(RunError, match="initial penetration at t = 0 s"):
        simulate(model, 0.1, method)


@pytest.mark.parametrize("method", ["dopri5", "moreau_jean"])
@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_below_a_segment_there_is_room(law, method):
    """A segment has no inside: a body that is wholly behind it is free."""
    make = flush.scene if law == "rigid" else cushioned
    run = simulate(make({"brick": lowered(0.2)}, tiles((), "segment")), 0.1, method)
    assert run.q[-1, 1] == pytest.approx(0.05 - 0.2 - 0.5 * flush.G * 0.1**2, abs=1e-9)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_a_reset_map_may_place_a_body_inside(law):
    """Put 1 mm below the height 0 at 0.05 s: refused in that instant, or pressed from it on."""
    make = flush.scene if law == "rigid" else cushioned
    model = make({"brick": lowered(-0.5)}, tiles((), "polygon"))
    model["transitions"] = [{"from": "*", "when": "t - 0.05", "reset": {"y_brick": "0.049", "y_brick_dot": "0"}}]
    if law == "rigid":
        with pytest.raises(RunError, match=r"penetration during the run at t = 0\.05 s"):
            simulate(model, 0.1)
        return
    run = simulate(model, 0.06)
    omega = np.sqrt(2.0 * STIFFNESS)
    sag = flush.G / omega**2
    assert run.q[-1, 1] - 0.05 == pytest.approx(-(sag + (1e-3 - sag) * np.cos(omega * 0.01)), abs=1e-9)


def disk(at, fixed, law, radius=0.1):
    """Return the model of a free disk of 1 kg centred `at` (m), and a fixed shape."""
    return {
        "fsm_dyn": 1,
        "name": "disk",
        "coordinates": ["x", "y", "q"],
        "frames": {"F": {"rotate": {"z": "q"}}},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"body": {"frame": "F", "center": "C", "mass": 1, "inertia": {"zz": 0.005}}},
        "shapes": {"disk": {"circle": {"frame": "F", "center": "C", "radius": radius}}, "fixed": fixed},
        "contacts": {"touch": {"between": ["disk", "fixed"], **law}},
        "initial": {"x": at[0], "y": at[1]},
    }


LAWS = {"rigid": {"restitution": 0}, "compliant": {"compliant": {"stiffness": STIFFNESS}}}
GROUND = flush.polygon([(-1.0, -1.0), (1.0, -1.0), (1.0, 0.0), (-1.0, 0.0)])
WALL = flush.polygon([(-0.01, -1.0), (0.01, -1.0), (0.01, 1.0), (-0.01, 1.0)])
PEG = flush.polygon([(-0.01, -0.01), (0.01, -0.01), (0.01, 0.01), (-0.01, 0.01)])
RAIL = {"segment": {"points": [["-1", "0"], ["1", "0"]]}, "side": "N.y"}
BOWL = {"arc": {"center": "O", "radius": 1, "angles": ["200 deg", "340 deg"]}, "side": "inside"}
#: Centre of a disk of radius 0.1 m (m), a fixed shape, how deep it is in it (m), and the way out.
PRESSED = {
    "ground": ((0.0, 0.095), GROUND, 0.005, (0.0, 1.0)),
    "ground, its centre below": ((0.2, -0.05), GROUND, 0.15, (0.0, 1.0)),
    "ground, all of it below": ((0.2, -0.3), GROUND, 0.4, (0.0, 1.0)),
    "ground, its corner": ((1.06, 0.06), GROUND, 0.1 - 0.06 * np.sqrt(2.0), (np.sqrt(0.5), np.sqrt(0.5))),
    "a wall thinner than it": ((0.005, 0.0), WALL, 0.105, (1.0, 0.0)),
    "a peg in it": ((0.004, 0.0), PEG, 0.106, (1.0, 0.0)),
    "rail": ((0.3, 0.095), RAIL, 0.005, (0.0, 1.0)),
    "rail, its centre behind": ((0.3, -0.05), RAIL, 0.15, (0.0, 1.0)),
    "rail, its end": ((1.06, 0.0), RAIL, 0.04, (1.0, 0.0)),
    "bowl": ((0.0, -0.95), BOWL, 0.05, (0.0, 1.0)),
    "bowl, its centre outside": ((0.0, -1.05), BOWL, 0.15, (0.0, 1.0)),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PRESSED)
def test_a_rigid_disk_does_not_begin_inside(name, method):
    at, fixed, _depth, _out = PRESSED[name]
    with pytest.raises(RunError, match="initial penetration at t = 0 s"):
        simulate(disk(at, fixed, LAWS["rigid"]), 0.1, method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PRESSED)
def test_a_compliant_disk_that_begins_inside_is_pressed_out(name, method):
    """A quarter of a period of the spring, and then the flight."""
    at, fixed, depth, out = PRESSED[name]
    omega = np.sqrt(STIFFNESS)
    until = 0.5 * np.pi / omega + 1e-3
    run = simulate(disk(at, fixed, LAWS["compliant"]), until, method)
    speed = depth * omega
    np.testing.assert_allclose(run.u[-1, :2], speed * np.array(out), atol=1e-3 * speed)
    np.testing.assert_allclose(
        run.q[-1, :2], np.array(at) + (depth + 1e-3 * speed) * np.array(out), atol=1e-3 * depth + METHODS[method][1]
    )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("fixed", [RAIL, BOWL])
def test_a_disk_that_is_wholly_behind_is_free(fixed, law):
    """By 1 mm."""
    y = -0.101 if fixed is RAIL else -1.101
    run = simulate(disk((0.0, y), fixed, LAWS[law]), 0.1)
    np.testing.assert_array_equal(run.q[-1], [0.0, y, 0.0])
    assert not run.transitions


def plank(length, width, at):
    """Return a rectangular body, its dimensions in m, at x, y and angle (m, rad)."""
    return flush.Body(flush.rectangle(length, width), at)


BAR = flush.polygon([(-0.05, 0.0), (0.05, 0.0), (0.05, 1.0), (-0.05, 1.0)])
HOOK = flush.polygon([(-0.05, 0.0), (0.5, 0.0), (0.5, 0.1), (0.05, 0.1), (0.05, 1.0), (-0.05, 1.0)])
FENCE = {"segment": {"points": [["0", "0"], ["0", "1"]]}, "side": "N.x"}
CROSSED = {
    "bar": ({"a": plank(1.0, 0.05, (0.0, 0.3, 0.0))}, {"bar": BAR}),
    "bar, obliquely": ({"a": plank(1.0, 0.05, (0.02, 0.5, 0.6))}, {"bar": BAR}),
    "hook": ({"a": plank(1.0, 0.05, (0.0, 0.6, 0.2))}, {"hook": HOOK}),
    "fence": ({"a": plank(1.0, 0.05, (0.1, 0.9, 0.3))}, {"fence": FENCE}),
    "two planks": ({"a": plank(1.0, 0.05, (0.0, 0.3, 0.0)), "b": plank(0.05, 1.0, (0.0, 0.3, 0.0))}, {}),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("name", CROSSED)
def test_bodies_that_cross_without_a_corner_inside_either_are_refused(name, mirrored, law, method):
    """Compliant ones too: no contact of a corner has a way out."""
    bodies, fixed = CROSSED[name]
    if mirrored:
        bodies = {
            key: plank(*_sides(body), (-body.start[0], body.start[1], -body.start[2])) for key, body in bodies.items()
        }
        fixed = {key: _mirrored(shape) for key, shape in fixed.items()}
    make = flush.scene if law == "rigid" else cushioned
    with pytest.raises(RunError, match="initial penetration at t = 0 s"):
        simulate(make(bodies, fixed), 0.1, method)


def _sides(body):
    (x, y) = body.outline[2]
    return 2 * x, 2 * y


def _mirrored(shape):
    if "segment" in shape:
        return shape | {"side": "-N.x"}
    corners = [(-float(x), float(y)) for x, y in shape["polygon"]["points"]]
    return flush.polygon(corners[::-1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gap", [0.0, 1e-10, 1e-3])
def test_planks_that_touch_without_crossing_are_not_refused(gap, method):
    """A plank on the top of the bar, and one at its side."""
    for start in ((0.2, 1.025 + gap, 0.0), (0.55 + gap, 0.3, 0.0)):
        run = simulate(flush.scene({"a": plank(1.0, 0.05, start)}, {"bar": BAR}), 0.01, method)
        assert run.outcome.name == "done"


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("turned", [False, True], ids=["as written", "upside down"])
@pytest.mark.parametrize(("y", "behind"), [(0.1, None), (-0.101, 0.201), (-0.5, 0.6)])
def test_a_start_wholly_behind_a_segment_is_a_warning_with_its_depth(y, behind, turned, law):
    sign = -1 if turned else 1
    ground = {"segment": {"points": [[sign * -1.0, 0.0], [sign * 1.0, 0.0]]}, "side": f"{sign}*N.y"}
    graph = fsm_dyn.compile(disk((0.0, sign * y), ground, LAWS[law]))
    if behind is None:
        assert fsm_dyn.simulate(graph, 0.01).warnings == ()
        return
    with pytest.warns(StartWarning, match=f"'disk' is {behind:g} m behind 'fixed'"):
        run = fsm_dyn.simulate(graph, 0.01)
    assert len(run.warnings) == 1
    assert run.q[-1] == pytest.approx(run.q[0])


def test_a_start_past_the_end_or_in_front_of_a_segment_is_no_warning():
    ground = {"segment": {"points": [[-1.0, 0.0], [1.0, 0.0]]}, "side": "N.y"}
    for at in ((1.5, -0.3), (0.0, 0.1), (0.0, 2.0)):
        assert fsm_dyn.simulate(fsm_dyn.compile(disk(at, ground, LAWS["rigid"])), 0.01).warnings == ()


@pytest.mark.parametrize("thick", [2e-3, 1.0])
def test_the_depth_in_a_polygon_is_that_of_its_nearest_face(thick):
    """A disk on a thin plate and on a thick one: the faces on the other sides count for nothing."""
    plate = flush.polygon([(-1.0, -thick), (1.0, -thick), (1.0, 0.0), (-1.0, 0.0)])
    with pytest.raises(RunError, match="initial penetration") as said:
        fsm_dyn.simulate(fsm_dyn.compile(disk((0.0, 0.07), plate, LAWS["rigid"])), 0.01)
    assert re.findall(r": penetration (.*)", str(said.value)) == ["0.03 m"]


def test_check_warns_of_starts_with_their_depths(tmp_path):
    """Behind a segment, within a thin plate; nothing of a start in front."""
    segment = {"segment": {"points": [[-1.0, 0.0], [1.0, 0.0]]}, "side": "N.y"}
    plate = flush.polygon([(-1.0, -2e-3), (1.0, -2e-3), (1.0, 0.0), (-1.0, 0.0)])
    for fixed, y, said in (
        (segment, -0.5, "warning: at the start 'disk' is 0.6 m behind 'fixed'"),
        (plate, 0.07, "warning: initial penetration at t = 0 s in mode 'all_free'; touch_face3: penetration 0.03 m"),
        (segment, 0.5, ""),
    ):
        path = tmp_path / "disk.yaml"
        path.write_text(json.dumps(disk((0.0, y), fixed, LAWS["rigid"])))
        shown = CliRunner().invoke(app, ["check", str(path)], catch_exceptions=False)
        assert shown.exit_code == 0
        assert said in shown.output
        assert ("warning" in shown.output) == bool(said)


WEDGE = """
fsm_dyn: 1
name: wedge
coordinates: {x: m, y: m}
points: {P: {from: O, at: x*N.x + y*N.y}}
bodies: {b: {center: P, mass: 1 kg}}
contacts:
  floor: {gap: y + x/2}
  wall: {gap: 1 m + 2*x - y}
loads: [{gravity: -9.81 m/s^2*N.y}]
"""


@pytest.mark.parametrize("off", [9e-10, -9e-10])
@pytest.mark.parametrize("both", [False, True])
def test_a_start_that_touches_to_a_tolerance_is_moved_onto_its_contacts(off, both):
    """The least way, before the first row, alone and in a study; what touches to the last digits stays as it is."""
    graph = fsm_dyn.compile(load(text=WEDGE))
    x = -0.4 if both else 0.3
    for gap in (0.0, off):
        start = {"x": x, "y": -x / 2 + gap}
        run = fsm_dyn.simulate(graph, 0.1, initial=start, strategy="online")
        moved = np.array([-0.4 * gap, -0.8 * gap]) if not both else -np.array([0.0, gap])
        assert run.q[0] == pytest.approx(np.array([x, -x / 2 + gap]) + moved, abs=1e-15)
        assert run.energy.relative_residual < 1e-12
        study = fsm_dyn.study(graph, {"initial.x": [x], "initial.y": [start["y"], 0.9]}, until=0.1, jobs=1)
        first = study.to_dataset().isel(run=0)
        assert [float(first[name][0]) for name in ("x", "y")] == run.q[0].tolist()
