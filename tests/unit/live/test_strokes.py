"""Targets of a hand: strokes, rhythms, and a pointer pressing a key."""

import numpy as np
import pytest

from fsm_dyn.devices.pointer import Driver
from fsm_dyn.live.strokes import Rhythm, Stroke


@pytest.mark.parametrize("motion", [Stroke(0.002, -0.012, 0.3), Rhythm(6.7, 3, -0.036, -0.0015)])
def test_velocities_are_those_of_the_places(motion):
    """And nothing jumps: at rest at both ends, and between notes."""
    times = np.linspace(-0.01, motion.duration + 0.01, 40_001)
    places, rates = np.array([motion.at(t) for t in times]).T
    middles = np.diff(places) / np.diff(times)
    np.testing.assert_allclose(middles, (rates[1:] + rates[:-1]) / 2, atol=2e-3 * np.abs(rates).max())
    assert rates[0] == rates[-1] == 0.0


def test_a_stroke_is_as_fast_as_it_says_and_a_rhythm_goes_all_the_way():
    stroke, rhythm = Stroke(0.0, 0.01, 0.25), Rhythm(4.0, 2, -0.03, 0.0)
    assert stroke.at(stroke.duration / 2)[1] == pytest.approx(0.25)
    assert stroke.at(9.0) == (0.01, 0.0)
    assert Stroke(0.01, 0.01, 1.0).at(0.0) == (0.01, 0.0)
    assert [rhythm.at(t)[0] for t in (0.12, 0.24, 0.37, 0.6)] == pytest.approx([-0.03, 0.0, -0.03, 0.0])


@pytest.mark.parametrize("bad", [(0.0, 8, -0.03, 0.0), (6.7, 0, -0.03, 0.0), (6.7, 8, float("nan"), 0.0)])
def test_rhythms_that_cannot_be(bad):
    with pytest.raises(ValueError, match="rate above 0"):
        Rhythm(*bad)


def test_a_pointer_presses_a_key_from_where_it_is(monkeypatch):
    """A velocity in the sample means a stroke; without one it follows as a pointer does."""
    driver = Driver({"axes": 1, "period": 1e-3})
    row = [0.0] * 16
    monkeypatch.setattr(driver, "_latest", lambda: row)
    monkeypatch.setattr("fsm_dyn.devices.pointer.time.monotonic", lambda: 0.0)
    row[1], row[7], row[13] = -0.0005, 0.4, 1
    assert driver.read().position[0] == -0.0005, "it takes hold where it is told to be"
    row[1], row[7] = -0.012, 0.3
    samples = [driver.read() for _ in range(100)]
    stroke = Stroke(-0.0005, -0.012, 0.3)
    for k, sample in enumerate(samples):
        assert (sample.position[0], sample.velocity[0]) == pytest.approx(stroke.at(1e-3 * k))
    row[1], row[7] = 0.0, 0.0
    assert -0.012 < driver.read().position[0] < -0.011
