"""Thin disks that fall flat, lie, slide and spin on a plane; cords and rings with a gap that is not smooth at first."""

import numpy as np
import pytest

import fsm_dyn
from tests.physics.edge_models import COIN, CORD, RING

METHODS = {
    "dopri5": {},
    "radau": {"method": "radau"},
    "bdf": {"method": "bdf"},
    "online": {"strategy": "online"},
    "moreau_jean": {"method": "moreau_jean", "step": 1e-5},
}
FLAT = {"z": 0.0, "p0": 1.0, "p1": 0.0}


def compiled(text, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return fsm_dyn.compile(path)


@pytest.mark.parametrize("method", METHODS)
def test_a_disk_falls_flat_and_lies(method, tmp_path):
    run = fsm_dyn.simulate(compiled(COIN, tmp_path), until=0.1, **METHODS[method])
    sunk = 3e-6 if method == "moreau_jean" else 1e-9
    assert abs(run.q[-1, 2]) <= sunk
    assert np.abs(run.q[-1, 4:6]).max() <= (1e-3 if method == "moreau_jean" else 1e-9)
    assert np.abs(run.u[-1]).max() <= 1e-9
    assert run.q[:, 2].min() >= -sunk


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tilt", [0.0, np.pi], ids=["face", "back"])
def test_a_disk_starts_lying(method, tilt, tmp_path):
    start = {"z": 0.0, "p0": np.cos(tilt / 2), "p1": np.sin(tilt / 2)}
    run = fsm_dyn.simulate(compiled(COIN, tmp_path), until=0.1, initial=start, **METHODS[method])
    assert np.abs(run.u).max() <= 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_a_disk_that_lies_slides_to_rest(method, tmp_path):
    """x = v²/2μg; three feet at the same distance from the centre transmit a third each, up to the moment of friction,
    which has no lever arm as the disk is thin."""
    run = fsm_dyn.simulate(compiled(COIN, tmp_path), until=0.2, initial=FLAT | {"vx": 0.3}, **METHODS[method])
    close = 2e-6 if method == "moreau_jean" else 1e-9
    assert run.q[-1, 0] == pytest.approx(0.3**2 / (2 * 0.4 * 9.81), abs=close)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_energy_of_a_disk_that_falls_flat_closes(side, tmp_path):
    """Spinning, struck almost flat, it rolls on its rim at a tilt below 1e-5, which must be known to its rounding."""
    start = {"z": 0.0074, "p0": 1.0, "p1": 1.2e-5 * side, "vx": -0.36, "w3": 30.7 * side}
    graph = compiled(COIN, tmp_path)
    for options in ({}, {"rtol": 1e-11, "atol": 1e-13}):
        run = fsm_dyn.simulate(graph, until=0.2, initial=start, **options)
        assert run.outcome.name == "done"
        assert run.energy.relative_residual < 1e-10
        assert len(run) < 1000
        assert np.abs(run.u[-1]).max() <= 1e-9


@pytest.mark.parametrize("tilt", [8e-4, 4e-4])
def test_a_start_on_the_rim_begins_on_the_rim_of_the_model(tilt, tmp_path):
    """The model's rim is lifted by 1e-12 to 1e-10 m there, and what the run exchanges is the fall from 5 to 10 um."""
    start = {"z": 0.012 * np.sin(tilt), "p0": np.cos(tilt / 2), "p1": np.sin(tilt / 2), "vx": 0.02, "w3": -0.9}
    run = fsm_dyn.simulate(compiled(COIN, tmp_path), until=0.02, initial=start)
    assert run.outcome.name == "done"
    assert run.energy.relative_residual < 1e-9


def test_a_disk_that_lies_spins_to_rest(tmp_path):
    """Friction on three feet at 0.99 R: the spin falls at μ m g 0.99 R/(m R²/2)."""
    run = fsm_dyn.simulate(compiled(COIN, tmp_path), until=0.2, initial=FLAT | {"w3": 20.0})
    rate = 0.4 * 9.81 * 0.99 / (0.012 / 2)
    turned = 2 * np.arctan2(run.q[-1, 6], run.q[-1, 3])
    assert turned == pytest.approx(20.0**2 / (2 * rate), rel=1e-6)


@pytest.mark.parametrize("turn", [0.0, 0.3, 1.1, 2.0])
def test_a_disk_that_falls_any_way_ends_flat(turn, tmp_path):
    """Feet are where they are: about any diameter that it falls, it ends at height zero, at rest."""
    half, tilt = turn / 2, 0.4
    start = {
        "z": 0.012 * np.sin(tilt), "p0": np.cos(half) * np.cos(tilt / 2), "p1": np.cos(half) * np.sin(tilt / 2),
        "p2": np.sin(half) * np.sin(tilt / 2), "p3": np.sin(half) * np.cos(tilt / 2),
    }  # fmt: skip
    run = fsm_dyn.simulate(compiled(COIN, tmp_path), until=0.3, initial=start, max_steps=100000)
    assert abs(run.q[-1, 2]) <= 1e-9
    assert np.abs(run.u[-1]).max() <= 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_a_cord_that_begins_at_its_anchor(method, tmp_path):
    """A fall of 10 m, then a swing on the cord about the equilibrium."""
    settings = METHODS[method] if method != "moreau_jean" else {"method": method, "step": 1e-4}
    run = fsm_dyn.simulate(compiled(CORD, tmp_path), until=2.0, **settings)
    fall, omega, sag = np.sqrt(20.0 / 9.81), np.sqrt(100.0 / 70.0), 70.0 * 9.81 / 100.0
    t = 2.0 - fall
    depth = 10.0 + sag - sag * np.cos(omega * t) + 9.81 * fall / omega * np.sin(omega * t)
    assert run.q[-1, 1] == pytest.approx(-depth, abs=1e-5)


def test_a_cord_that_begins_at_its_anchor_with_a_speed(tmp_path):
    run = fsm_dyn.simulate(compiled(CORD, tmp_path), until=1.0, parameters={"v": 3.0})
    assert run.q[-1] == pytest.approx([3.0, -9.81 / 2], abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_concentric_circles(method, tmp_path):
    """A pin in the middle of its hole falls by the play."""
    run = fsm_dyn.simulate(compiled(RING, tmp_path), until=0.1, **METHODS[method])
    assert run.q[-1, 1] == pytest.approx(-1e-3, abs=2e-6 if method == "moreau_jean" else 1e-8)
    if method != "moreau_jean":
        assert run.transitions[0].time == pytest.approx(np.sqrt(2e-3 / 9.81), abs=1e-9)
