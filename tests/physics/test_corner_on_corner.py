"""A brick at rest that touches a table with a corner on its corner: where gravity points decides which face carries it.

The brick's lower right corner is at the table's upper left one; its inertia is so large that it does not turn.
"""

import numpy as np
import pytest

import fsm_dyn
from tests.physics import flush


def run_under(gravity, turned=0.0):
    """Run the scene under a gravity (m/s^2), all of it turned (rad)."""
    c, s = np.cos(turned), np.sin(turned)

    def place(x, y):
        return c * x - s * y, s * x + c * y

    body = flush.brick(0.2, 0.1, -0.1, 0.05)
    body.start = (*place(-0.1, 0.05), turned)
    body.inertia = 1e9
    corners = [place(*corner) for corner in [(0.0, -1.0), (2.0, -1.0), (2.0, 0.0), (0.0, 0.0)]]
    x, y = place(*gravity)
    model = flush.scene({"brick": body}, {"table": flush.polygon(corners)}, friction=0.0, gravity=f"{x}*N.x + {y}*N.y")
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.2, strategy="online")
    return run, np.column_stack([c * run.u[:, 0] + s * run.u[:, 1], -s * run.u[:, 0] + c * run.u[:, 1]])


@pytest.mark.parametrize("turned", [0.0, 0.6])
@pytest.mark.parametrize("gravity", [(3.0, -9.0), (9.0, -3.0), (0.5, -9.0), (9.0, -0.5)])
def test_the_face_towards_which_it_accelerates_less_carries_it(gravity, turned):
    """It falls along the table's side, or slides over its top: as if the other face were not there."""
    run, speed = run_under(gravity, turned)
    side = gravity[0] < -gravity[1]
    expected = [0.0, gravity[1] * 0.2] if side else [gravity[0] * 0.2, 0.0]
    assert speed[-1] == pytest.approx(expected, abs=1e-8)
    pushed = sum(np.abs(force[run.t > 0.0, 0]) for force in run.multipliers.values())
    np.testing.assert_allclose(pushed, min(abs(gravity[0]), abs(gravity[1])), rtol=1e-6)


def test_it_falls_freely_along_a_face_that_it_does_not_press():
    run, speed = run_under((0.0, -9.0))
    assert speed[-1] == pytest.approx([0.0, -1.8], abs=1e-9)
    assert sum(np.abs(force[run.t > 0.0, 0]).max() for force in run.multipliers.values()) <= 1e-9
