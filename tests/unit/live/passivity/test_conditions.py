"""The conditions of passivity against closed forms, against each other, and against a worst hand built for them."""

import numpy as np
import pytest

from fsm_dyn.live import sampled_loop as conditions

T = 1e-3
W = conditions.frequencies(T)
RATE = (1.0 - np.exp(-1j * W * T)) / T


@pytest.mark.parametrize(("K", "B"), [(2000.0, 0.0), (2000.0, 0.7), (500.0, 3.0), (2000.0, -0.3)])
def test_the_general_condition_of_a_wall_is_that_of_colgate_and_brown(K, B):
    """For B >= 0 the most is needed at half the rate, exactly; for B < 0 at zero, which the grid nears to (w T)^2."""
    needed = conditions.damping_needed(K + B * RATE, W, T).max()
    assert needed == pytest.approx(conditions.wall_damping_required(K, B, T), rel=1e-7)


@pytest.mark.parametrize("whole", [1, 3])
def test_a_delay_of_whole_periods_is_a_shift_of_the_response(whole):
    H = 900.0 + 0.4 * RATE
    z = np.exp(1j * W * T)
    shifted = conditions.damping_needed(H * z**-whole, W, T)
    np.testing.assert_allclose(conditions.damping_needed(H, W, T, whole * T), shifted, rtol=1e-9)


def test_a_delay_within_a_period_lies_between_and_is_continuous():
    H = 900.0 + 0.0 * RATE
    none, one = (conditions.damping_needed(H, W, T, d).max() for d in (0.0, T))
    found = [conditions.damping_needed(H, W, T, share * T).max() for share in (1e-7, 0.25, 0.5, 0.75, 1 - 1e-7)]
    assert found[0] == pytest.approx(none, rel=1e-5)
    assert found[-1] == pytest.approx(one, rel=1e-5)
    assert np.all(np.diff(found) > 0.0)
    for share, needed in zip((0.25, 0.5, 0.75), found[1:4], strict=True):
        assert needed >= 900.0 * T * (0.5 + share), "passive is more than stable without a hand"


def test_a_delay_within_a_period_is_what_the_worst_hand_asks_for():
    """A hand and device with an admittance on the rim of ``Re Z >= b`` at every band close the loop.

    With ``1 / Z = (1 + exp(j p_m)) / (2 b)`` at band m, the loop's gain is a sum over the bands.  Phases ``p_m`` that
    turn each band's share alike bring it to -1 exactly at the required damping.
    """
    K, delay, b = 1500.0, 0.3 * T, 0.0
    for w in (0.3 * np.pi / T, 0.7 * np.pi / T):
        b = float(conditions.damping_needed([K + 0j], [w], T, delay)[0])
        bands = w + 2.0 * np.pi / T * np.arange(-200_000, 200_001)
        share = (1.0 - np.exp(-1j * w * T)) * K / T * np.exp(-1j * bands * delay) / -(bands**2) / (2.0 * b)
        fixed, reach = share.sum(), np.abs(share).sum()
        # 1 + fixed + (anything up to reach) can be zero just where |1 + fixed| = reach
        assert abs(1.0 + fixed) == pytest.approx(reach, rel=1e-5)  # bands beyond 2e5 add 1/2e5


def test_several_axes_need_what_their_worst_direction_needs():
    """Two walls turned against the axes of the device: the eigenvalues do not know."""
    turn = np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    walls = np.array([[np.diag([2000.0, 500.0]) + np.diag([0.5, 0.1]) * rate] for rate in RATE])[:, 0]
    for delay in (0.0, 0.4 * T):
        turned = conditions.damping_needed(turn @ walls @ turn.T, W, T, delay)
        np.testing.assert_allclose(turned, conditions.damping_needed(walls[:, 0, 0], W, T, delay), rtol=1e-7)


def test_any_model_needs_at_least_what_a_rigid_one_needs():
    for K, B in ((200.0, 2.0), (2000.0, 1.0), (2000.0, 0.1)):
        needed = conditions.coupler_damping_required(K, B, W, T)
        rigid = conditions.damping_needed(K + B * RATE, W, T)
        assert np.all(needed >= rigid * (1.0 - 1e-9) - 1e-9)
    assert np.isinf(conditions.coupler_damping_required(200.0, 0.0, W, T)).all(), "nothing damps a swing in the coupler"


def test_llewellyn_at_low_frequency_in_closed_form():
    """To the lowest order ``2 b B w^2 / K^2 >= w^2 (T/2 + t_d)^2 / 2``; both ways of counting bands agree there."""
    K, B = 800.0, 0.5
    for delay in (0.0, T):
        # the sampled rate lags by T/2, which adds B T/(2 K) w^2 to the phase: of higher order
        expected = K**2 * (T / 2 + delay) ** 2 / (4.0 * B)
        assert conditions.coupler_damping_required(K, B, W[:1], T, delay, aliased=False)[0] == pytest.approx(
            expected, rel=1e-3
        )
        assert conditions.coupler_damping_required(K, B, W[:1], T, delay)[0] == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("delay", [0.0, 0.35 * T, T])
def test_no_passive_model_asks_for_more_than_the_coupler_is_said_to_need(delay):
    """Models with impedance m s + c + k/s, folded band by band: their responses lie in the disc."""
    K, B = 1200.0, 0.8
    random = np.random.default_rng(7)
    needed = conditions.coupler_damping_required(K, B, W, T, delay)
    closest = 0.0
    for _ in range(60):
        m, c, k = 10.0 ** random.uniform([-4, -3, 0], [1, 1, 5])
        bands = W[:, None] + 2.0 * np.pi / T * np.arange(-200, 201)
        model, coupler = 1j * bands * m + c + k / (1j * bands), B + K / (1j * bands)
        shares = np.sinc(bands * T / (2.0 * np.pi)) ** 2
        H = (K + B * RATE) * (shares * model / (coupler + model)).sum(axis=1) / shares.sum(axis=1)
        own = conditions.damping_needed(H, W, T, delay)
        assert np.all(own <= needed * (1.0 + 1e-6) + 1e-9)
        closest = max(closest, (own / needed).max())
    assert closest > 0.9, "the bound is far from what models do"
