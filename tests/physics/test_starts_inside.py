"""Bodies that are placed inside one another, by the initial state or by a reset map.

A rigid overlap is refused where it arises; a compliant one pushes from its first instant, out through the nearest face.
"""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.errors import RunError
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
