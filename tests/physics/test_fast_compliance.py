"""Rebounds from dissipative faces, slower and faster than the speed at which their force would vanish, in closed form.

Along a compression and back ``v/d - log(1 + d v)/d^2`` has one value for the speeds before and, as ``-v``, after it
(K. H. Hunt, F. R. E. Crossley, J. Appl. Mech. 42 (1975) 440).
"""

import numpy as np
import pytest

import fsm_dyn

D = 0.1  # s/m
SHAPES = {
    "square": [[-0.3, -0.3], [0.3, -0.3], [0.3, 0.3], [-0.3, 0.3]],
    "angle": [[-0.3, -0.3], [0.3, -0.3], [0.3, 0.3], [0.1, 0.3], [0.1, -0.1], [-0.3, -0.1]],
}


def after(speed):
    """The speed of rebound, by bisection."""

    def kept(v):
        return v / D - np.log1p(D * v) / D**2

    low, high = 0.0, 1.0 / D
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if kept(-middle) < kept(speed) else (low, middle)
    return low


@pytest.fixture(scope="module", params=SHAPES)
def struck(request):
    law = {"stiffness": 1e5, "dissipation": D}
    return fsm_dyn.Simulator(
        fsm_dyn.compile(
            {
                "fsm_dyn": 1, "name": "struck", "coordinates": ["x", "y"],
                "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
                "bodies": {"ball": {"center": "P", "mass": 1}},
                "shapes": {
                    "round": {"circle": {"center": "P", "radius": 0.05}},
                    "target": {"polygon": {"from": "O", "points": SHAPES[request.param]}},
                },
                "contacts": {"c": {"between": ["round", "target"], "compliant": law}},
                "initial": {"x": 0.2, "y": 1},
            }
        )
    )  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}, {"rtol": 1e-3}, {"method": "radau"}])
@pytest.mark.parametrize("speed", [2.0, 9.99, 10.01, 12.0, 25.0])
def test_rebounds(struck, speed, options):
    """Faces behind the body, which it approaches from within, take no part."""
    run = struck.run(0.65 / speed + 0.03, initial={"y_dot": -speed}, **options)
    assert len(run.transitions) == 2
    assert run.transitions[0].time == pytest.approx(0.65 / speed, abs=1e-7)
    assert run["y_dot"][-1] == pytest.approx(after(speed), rel=3e-3 if "rtol" in options else 1e-4)
