"""Painlevé's rod: one, no or several motions, by the numbers of the literature."""

from __future__ import annotations

import numpy as np
import pytest

from fsm_dyn.runtime.abi import Status

OPEN, HOLD, FORWARD, BACKWARD = range(4)


def rod(theta, mu, omega, slip=1, *, g=9.81, m=1.0, half=1.0):
    """A uniform rod leaning at theta on its lower end, sliding; rows in x, y, theta of its centre.

    The end is at ``-half (cos, sin)`` from the centre; slipping forward drives it into the ground where friction is
    high.
    """
    s, c = np.sin(theta), np.cos(theta)
    A = np.array([[0.0, 1.0, -half * c], [1.0, 0.0, half * s]])
    W = np.diag([1.0 / m, 1.0 / m, 3.0 / (m * half**2)])
    base = np.array([-g + half * s * omega**2, half * c * omega**2])
    return A @ W @ A.T, base, [{"normal": 0, "tangent": 1, "mu": mu, "slip": slip}]


def apparent(theta, mu):
    """K_nn - mu K_nt s over 1/m: 1 + 3 cos² - 3 mu sin cos (Genot and Brogliato 1999)."""
    return 1.0 + 3.0 * np.cos(theta) ** 2 - 3.0 * mu * np.sin(theta) * np.cos(theta)


@pytest.mark.parametrize("slip", [1, -1])
def test_the_apparent_mass_is_that_of_the_literature(slip):
    K, _, _ = rod(1.0, 1.5, 0.0)
    values = (K[0, 0] - 1.5 * K[0, 1], K[0, 0] + 1.5 * K[0, 1])
    assert min(abs(value - apparent(1.0, 1.5)) for value in values) < 1e-12


@pytest.mark.parametrize("theta", np.radians([20.0, 45.0, 63.4349488, 75.0]))
@pytest.mark.parametrize("mu", [0.3, 1.0, 1.33, 1.34, 1.5, 2.0])
@pytest.mark.parametrize("omega", [0.0, 2.0, 6.0])
@pytest.mark.parametrize("slip", [1, -1])
def test_one_motion_on_one_side_and_a_name_on_the_other(instant, theta, mu, omega, slip):
    K, base, contacts = rod(theta, mu, omega, slip)
    mass = K[0, 0] - slip * mu * K[0, 1]
    found = instant(K, base, contacts)
    status, verdict = found.decide()
    if mass > 1e-9:
        assert status == Status.CONTINUE
        assert verdict.motions == 1
        assert found.best[0] == (OPEN if base[0] > 0.0 else (FORWARD if slip > 0 else BACKWARD))
    elif base[0] < 0.0:
        assert status == Status.INCONSISTENT
        assert verdict.consistent == 0
        assert verdict.nearest > 1e-3
    else:
        assert status == Status.NON_UNIQUE_STATE
        assert verdict.consistent == 2


def test_the_boundary_is_at_four_thirds(instant):
    theta = np.arctan(2.0)
    for mu, expected in ((4.0 / 3.0 - 1e-6, Status.CONTINUE), (4.0 / 3.0 + 1e-6, Status.INCONSISTENT)):
        results = {instant(*rod(theta, mu, 0.0, slip)).decide()[0] for slip in (1, -1)}
        assert results == {Status.CONTINUE, expected}


# one end at rest that may stick (λ = 0.833, -1.167), slide forward (λ_n = 0.167) or lift
AT_REST = ([[1.0, 0.8], [0.8, 1.0]], [0.1, 0.5])


@pytest.mark.parametrize("static", [2.0, 2.5])
@pytest.mark.parametrize("lasting", [0, 1])
def test_what_stuck_goes_on_sticking_where_other_motions_agree(instant, lasting, static):
    """Below its limit nothing lets go of it: forces are continuous.  Without a past nothing decides."""
    cost = {OPEN: 1.0, HOLD: 0.0, FORWARD: 1.0, BACKWARD: 1.0}
    end = {"normal": 0, "tangent": 1, "mu": 2.0, "static": static, "lasting": lasting, "cost": cost}
    found = instant(*AT_REST, [end])
    status, verdict = found.decide()
    assert verdict.consistent == 3
    assert found.best[0] == HOLD
    assert found.answers == pytest.approx(0.0, abs=1e-15)
    assert found.forces == pytest.approx([0.3 / 0.36, -0.42 / 0.36])
    assert status == (Status.CONTINUE if lasting else Status.NON_UNIQUE_STATE)
    assert verdict.continuity == lasting


def test_at_its_limit_what_stuck_has_several_motions(instant):
    end = {"normal": 0, "tangent": 1, "mu": 2.0, "lasting": 1, "allowed": [OPEN, FORWARD]}
    status, verdict = instant(*AT_REST, [end]).decide()
    assert status == Status.NON_UNIQUE_STATE
    assert (verdict.consistent, verdict.continuity) == (2, 0)
