"""One and two contacts with friction: closed forms, ties, hysteresis and the exclusion of what fired."""

from __future__ import annotations

import numpy as np
import pytest

OPEN, HOLD, FORWARD, BACKWARD = range(4)
G = 9.81
ONE = {"normal": 0, "tangent": 1}


def point_mass(push, *, m=1.0, weight=G, **contact):
    """K, base and the contact of a point mass on level ground, pushed along it."""
    return np.eye(2) / m, [-weight, push / m], [{**ONE, **contact}]


@pytest.mark.parametrize(
    ("push", "choice"), [(2.9, HOLD), (-2.9, HOLD), (3.0, FORWARD), (-3.0, BACKWARD), (0.3 * G, HOLD)]
)
def test_point_mass_pushed_from_rest(instant, push, choice):
    found = instant(*point_mass(push, mu=0.3))
    status, verdict = found.decide()
    assert status == 0
    assert verdict.motions == 1
    assert found.best[0] in (choice, HOLD if abs(push) == 0.3 * G else choice, FORWARD if push == 0.3 * G else choice)
    expected = -np.clip(push, -0.3 * G, 0.3 * G)
    assert found.forces == pytest.approx([G, expected])


@pytest.mark.parametrize("mass", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(instant, mass):
    found = instant(*point_mass(0.31 * mass * G, m=mass, mu=0.3))
    assert found.decide()[0] == 0
    assert found.best[0] == FORWARD
    assert found.answers[1] == pytest.approx(0.01 * G, rel=1e-9)


def test_static_above_kinetic_leaves_both_and_the_past_decides(instant):
    stuck = instant(*point_mass(0.35 * G, mu=0.3, static=0.4, cost={FORWARD: 1.0, BACKWARD: 1.0}))
    status, verdict = stuck.decide()
    assert (status, stuck.best[0]) == (0, HOLD)
    assert verdict.consistent == 2  # sticking and sliding both satisfy the contact laws,
    assert verdict.motions == 1  # which is no riddle: only static friction makes the difference
    sliding = instant(*point_mass(0.35 * G, mu=0.3, static=0.4, cost={HOLD: 1.0, BACKWARD: 1.0}))
    assert sliding.decide()[0] == 0
    assert sliding.best[0] == FORWARD


def test_the_state_that_fired_is_left_though_it_still_looks_right(instant):
    limit = instant(*point_mass(0.3 * G, mu=0.3, allowed=[OPEN, FORWARD]))
    assert limit.decide()[0] == 0
    assert limit.best[0] == FORWARD
    release = instant(*point_mass(0.0, weight=0.0, mu=0.3, allowed=[OPEN]))
    assert release.decide()[0] == 0
    assert release.best[0] == OPEN


def test_nothing_is_decided_by_rounding(instant):
    """No weight: open and closed are one motion, and the cheaper choice is taken."""
    for cost, expected in (({OPEN: 1.0}, HOLD), ({HOLD: 1.0}, OPEN)):
        found = instant(np.eye(1), [1e-17], [{"normal": 0, "cost": cost}], scale=9.81)
        status, verdict = found.decide()
        assert status == 0
        assert verdict.consistent == 2
        assert verdict.motions == 1
        assert found.best[0] == expected


def test_infinite_friction_at_no_load(instant):
    """Without load the tangent force may be anything, and its sign must not be lost in rounding."""
    found = instant(np.eye(2), [1e-18, -3.0], [{**ONE, "infinite": 1, "allowed": [HOLD]}])
    assert found.decide()[0] == 0
    assert found.forces[1] == pytest.approx(3.0)


def test_dry_friction_has_a_constant_bound(instant):
    for force, choice in ((0.39, HOLD), (-0.39, HOLD), (0.41, FORWARD), (-0.41, BACKWARD)):
        found = instant([[2.0]], [2.0 * force], [{"tangent": 0, "mu": 0.25, "static": 0.4}])
        assert found.decide()[0] == 0
        assert found.best[0] == choice
        assert found.forces[0] == pytest.approx(-force if choice == HOLD else -0.25 * np.sign(force))


@pytest.mark.parametrize("push", [3.0, 8.0, 9.0, 20.0])
def test_a_block_on_a_block(instant, push):
    """Mass 1 on mass 2 on the ground, the upper one pushed: by the textbook, one after the other lets go."""
    upper, lower = 0.3, 0.1
    M = np.diag([1.0, 1.0, 2.0, 2.0])  # x1 y1 x2 y2
    A = np.array([[0, 1, 0, -1], [1, 0, -1, 0], [0, 0, 0, 1], [0, 0, 1, 0]], float)
    K, base = A @ np.linalg.inv(M) @ A.T, A @ np.array([push, -G, 0.0, -G])
    contacts = [{"normal": 0, "tangent": 1, "mu": upper}, {"normal": 2, "tangent": 3, "mu": lower}]
    found = instant(K, base, contacts)
    status, verdict = found.decide()
    assert status == 0
    assert verdict.motions == 1
    a = [push, -G, 0.0, -G] + np.linalg.inv(M) @ A.T @ found.forces
    together = (push - 3.0 * lower * G) / 3.0
    if push <= 3.0 * lower * G + 1e-9:  # the ground holds as long as the upper contact could carry it over
        expected = (0.0, 0.0) if push <= upper * G else (push - upper * G, 0.0)
    elif push - together <= upper * G:
        expected = (together, together)
    else:
        expected = (push - upper * G, max(0.0, (upper * G - 3.0 * lower * G) / 2.0))
    assert (a[0], a[2]) == pytest.approx(expected, abs=1e-9)


def test_a_point_mass_on_a_steep_ramp_is_plain(instant):
    """At 45 degrees with mu = 1.01 the reduced mass of the slide is negative and nothing is wrong."""
    n, t = np.array([-1.0, 1.0]) / np.sqrt(2.0), np.array([1.0, 1.0]) / np.sqrt(2.0)
    A = np.array([n, t])
    for slip in (0, 1, -1):
        found = instant(A @ A.T, A @ np.array([0.0, -G]), [{**ONE, "mu": 1.01, "slip": slip}])
        status, verdict = found.decide()
        assert status == 0
        assert verdict.motions == 1
        assert found.forces[0] == pytest.approx(G / np.sqrt(2.0))


@pytest.mark.parametrize("seed", range(30))
def test_complementarity_agrees_with_enumeration(instant, runtime, seed):
    """Where static and kinetic friction are equal and not large, one motion; both routes find it."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 4))
    J = random.normal(size=(2 * count, 2 * count + 1))
    K, base = J @ J.T, J @ random.normal(size=2 * count + 1)
    contacts = [
        {"normal": 2 * k, "tangent": 2 * k + 1, "mu": 0.15, "slip": int(random.integers(-1, 2))} for k in range(count)
    ]
    found = instant(K, base, contacts)
    status, verdict = found.decide()
    if status != 0 or verdict.motions != 1:
        pytest.skip("friction couples too strongly for one motion")
    proposal = np.zeros(count, np.int64)
    assert runtime.propose(found.arena.struct, found.problem, proposal, 1e-9)
    y, v = np.zeros(2 * count), np.zeros(2 * count)
    trial = runtime.evaluate_candidate(found.arena.struct, found.problem, proposal, y, v, 1e-9)
    assert trial.violation <= 1e-9
    np.testing.assert_allclose(y * found.problem.get("unit"), found.forces, atol=1e-8)


def test_a_slot_is_pressed_on_either_face(instant):
    allowed = [HOLD, FORWARD, BACKWARD, 7, 8]
    for load in (-10.0, 10.0):
        for push, slides in ((2.0, False), (4.0, True), (-4.0, True)):
            found = instant(np.eye(2), [load, push], [{**ONE, "mu": 0.3, "bilateral": 1, "allowed": allowed}])
            status, verdict = found.decide()
            assert status == 0
            assert verdict.motions == 1
            assert found.forces == pytest.approx([-load, -np.clip(push, -3.0, 3.0)])
            assert (found.best[0] == HOLD) != slides
            assert (found.best[0] >= 7) == (slides and load > 0.0)
