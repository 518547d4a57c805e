"""Compliant faces that lie flush: a brick on cushions moves the same however its table is cut into tiles.

The table's upper side is y = 0, and its stiffness acts at the brick's corners: upright, the brick is a mass m on two
springs K, and at a seam between two tiles nothing happens.  (Tilted, the brick sinks with a corner and
meets the tiles' own corners with its side, which then push as well.)
"""

from itertools import pairwise

import numpy as np
import pytest

import fsm_dyn
from tests.physics import flush

FINE = {"rtol": 1e-11, "atol": 1e-13, "strategy": "online"}
STIFFNESS = 4e3  # N/m at each corner
SEAMS = {"none": (), "one": (0.31,), "several": (0.17, 0.31, 0.5)}


def cushioned(bodies, fixed):
    """Return a scene whose contacts are all compliant, without friction."""
    model = flush.scene(bodies, fixed)
    law = {"compliant": {"stiffness": STIFFNESS}}
    model["contacts"] = {name: {"between": entry["between"], **law} for name, entry in model["contacts"].items()}
    return model


def tiles(seams, kind):
    at = [-1.0, *seams, 2.0]
    return flush.Tiles([(a, b, 0.0) for a, b in pairwise(at)], kind).shapes


@pytest.mark.parametrize(
    ("seams", "kind"), [("none", "polygon"), ("one", "polygon"), ("several", "polygon"), ("several", "segment")]
)
@pytest.mark.parametrize("height", [1e-6, 2e-3])
def test_a_brick_on_cushions_slides_and_bounces_over_seams_in_closed_form(seams, kind, height):
    """It falls from a height (m) and is returned by half a period of springs, again and again."""
    body = flush.brick(0.2, 0.1, 0.1, 0.05 + height, speed=(1.0, 0.0, 0.0))
    run = fsm_dyn.simulate(fsm_dyn.compile(cushioned({"brick": body}, tiles(SEAMS[seams], kind))), 0.4, **FINE)
    fall, omega = np.sqrt(2.0 * height / flush.G), np.sqrt(2.0 * STIFFNESS)  # m = 1 kg
    speed, sag = flush.G * fall, flush.G / omega**2
    held = 2.0 * (np.pi - np.arctan(speed / (omega * sag))) / omega  # from touching to leaving
    touches = [x.time for x in run.transitions if "closes" in x.cause]
    period = held + 2.0 * fall
    np.testing.assert_allclose(touches, fall + period * np.arange(len(touches)), atol=1e-8)
    assert len(touches) == int((0.4 - fall) / period) + 1
    assert run.q[-1] == pytest.approx([0.5, run.q[-1, 1], 0.0], abs=1e-9)
    assert np.abs(run.u[:, [0, 2]] - [1.0, 0.0]).max() <= 1e-8
    assert run.energy.relative_residual <= 1e-9


@pytest.mark.parametrize(("seams", "kind"), [("several", "polygon"), ("several", "segment")])
def test_by_time_stepping_seams_do_not_push_either(seams, kind):
    """A seam's corners lie between those of the brick, on one line with them: Moreau-Jean, to a step's error."""
    body = flush.brick(0.2, 0.1, 0.1, 0.05 + 2e-3, speed=(1.0, 0.0, 0.0))
    graph = fsm_dyn.compile(cushioned({"brick": body}, tiles(SEAMS[seams], kind)))
    whole = fsm_dyn.simulate(graph, 0.06, **FINE)
    stepped = fsm_dyn.simulate(graph, 0.06, method="moreau_jean", step=1e-5)
    np.testing.assert_allclose(stepped.q[-1], whole.q[-1], atol=1e-5)
