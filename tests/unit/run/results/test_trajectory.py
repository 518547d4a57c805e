"""A trajectory reads back what was recorded, and what follows from it, against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fsm_dyn.core.errors import InputError


def test_rows_names_and_modes(block):
    assert block.t[0] == 0.0
    assert block.t[-1] == 2.0
    assert block.q.shape == (len(block), 1)
    assert block.u.shape == (len(block), 1)
    assert block.modes[0] == "sliding"
    assert block.modes[-1] == "sticking"
    assert_allclose(block["v"], block.u[:, 0])
    assert_allclose(block["double"], 2 * block["x"])


def test_two_rows_at_a_jump_show_both_sides_of_the_input(block):
    before, after = np.flatnonzero(block.t == 1.0)
    assert (block["push"][before], block["push"][after]) == (0.0, 5.0)


def test_an_unknown_column_is_answered_with_the_nearest(block):
    with pytest.raises(InputError, match="did you mean 'push'"):
        block["psuh"]


def test_multipliers_follow_the_mode(block):
    force = block.multipliers["floor"]
    assert force.shape == (len(block), 2)
    assert_allclose(force[:, 0], 19.62)
    assert_allclose(force[0, 1], -4.0)
    assert_allclose(force[-1, 1], 0.0)
    assert_allclose(block["lambda.floor.tangent"], force[:, 1])


@pytest.mark.parametrize(
    ("time", "x", "v"), [(0.0, 0.0, 2.0), (0.3, 0.51, 1.4), (1.7, 1.078125, 0.0), (2.0, 1.078125, 0.0)]
)
def test_dense_output(block, time, x, v):
    state = block.at(time)
    assert_allclose([state.q[0], state.u[0]], [x, v], rtol=1e-14, atol=1e-15)


def test_at_a_transition_the_later_side_is_given(block):
    assert block.at(1.625).mode == "sticking"
    assert block.at(np.nextafter(1.625, 0)).mode == "sliding"


def test_sampling_gives_forces_and_outputs_between_the_rows(block):
    samples = block.sample([0.5, 1.25, 1.9])
    assert_allclose(samples.multipliers["floor"][:, 1], [-4.0, -4.0, 0.0])
    assert_allclose(samples["push"], [0.0, 5.0, 0.0])
    assert_allclose(samples.outputs["double"], 2 * samples.q[:, 0])
    assert_allclose(block.at(np.array([0.5])).q, samples.q[:1])


@pytest.mark.parametrize("time", [-1e-9, 2.0000001, float("nan"), float("inf")])
def test_a_time_outside_the_run_is_refused(block, time):
    with pytest.raises(InputError, match="does not cover"):
        block.at(time)


def test_the_energy_balance_closes(block):
    energy = block.energy
    pushed = 5.0 * (1.0625 - 1.0)
    assert_allclose(energy.kinetic[[0, -1]], [4.0, 0.0], atol=1e-15)
    assert_allclose(energy.work["pushing"][-1], pushed, rtol=1e-13)
    assert_allclose(energy.friction["floor"][-1], 4.0 + pushed, rtol=1e-13)
    assert np.all(np.diff(energy.friction["floor"]) >= 0.0)
    assert energy.relative_residual < 1e-14


def test_transitions_say_what_happened(block):
    stop = block.transitions[-1]
    assert (stop.time, stop.source, stop.target) == (1.625, "sliding", "sticking")
    assert str(stop) == "1.625000 s  sliding → sticking  floor sticks (slip velocity zero)"
    assert stop.energy_lost == pytest.approx(0.0, abs=1e-15)


def test_repr_is_short(block):
    assert repr(block) == "<Trajectory of block: 0 to 2 s, 14 rows, 2 transitions, done>"
