"""Contacts that are redundant: what counts is whether some forces satisfy the contact laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from fsm_dyn.runtime.abi import Status
from tests.runtime.internals import Arena

OPEN, HOLD, FORWARD, BACKWARD = range(4)


def block(push, *, m=1.0, g=9.81, width=0.2, height=0.02):
    """A block on two corners, pushed at its centre; its rows n1 t1 n2 t2 in x, y, angle."""
    A = np.array([[0, 1, -width], [1, 0, height], [0, 1, width], [1, 0, height]], float)
    W = np.diag([1.0 / m, 1.0 / m, 1.0 / (m * 0.01)])
    return A @ W @ A.T, A @ W @ np.array([push, -m * g, 0.0])


@pytest.mark.parametrize(("push", "holds"), [(1.4, True), (1.5, True), (2.9, True), (2.94, True), (2.95, False)])
def test_a_block_on_two_corners_holds_to_the_true_limit(instant, push, holds):
    K, base = block(push)
    contacts = [{"normal": 0, "tangent": 1, "mu": 0.3}, {"normal": 2, "tangent": 3, "mu": 0.3}]
    found = instant(K, base, contacts)
    status, verdict = found.decide()
    assert status == 0
    assert verdict.motions == 1
    assert list(found.best) == ([HOLD, HOLD] if holds else [FORWARD, FORWARD])
    assert found.answers[1] == pytest.approx(0.0 if holds else push - 0.3 * 9.81, abs=1e-9)
    for n, t in ((0, 1), (2, 3)):
        assert abs(found.forces[t]) <= 0.3 * found.forces[n] * (1.0 + 1e-9)


def test_both_leave_together(instant):
    """At the limit the corners may not go on sticking both; that one slides in name only is no other motion."""
    K, base = block(0.3 * 9.81)
    contacts = [{"normal": n, "tangent": n + 1, "mu": 0.3, "excluded": HOLD} for n in (0, 2)]
    found = instant(K, base, contacts)
    status, verdict = found.decide()
    assert status == 0
    assert verdict.motions == 1
    assert FORWARD in found.best


def test_sliding_with_unlike_friction_shares_as_on_equal_springs(instant):
    """Three feet in a row that slide with unlike coefficients: how the load is shared decides the motion."""
    x = np.array([-1.0, 0.0, 1.0])
    rows = [row for at in x for row in ([0.0, 1.0, at], [1.0, 0.0, 0.0])]
    A = np.array(rows)
    K, base = A @ A.T, A @ np.array([0.0, -9.81, 0.0])
    unlike = [{"normal": 2 * k, "tangent": 2 * k + 1, "mu": mu, "slip": 1} for k, mu in enumerate((0.1, 0.3, 0.1))]
    found = instant(K, base, [{**item, "allowed": [FORWARD]} for item in unlike])

    assert found.decide()[0] == 0
    np.testing.assert_allclose(found.forces[::2], 9.81 / 3.0)
    np.testing.assert_allclose(found.answers[1::2], -0.5 * 9.81 / 3.0)
    found = instant(K, base, [{**item, "allowed": [FORWARD], "mu": 0.2} for item in unlike])
    status, _ = found.decide()
    assert status == 0
    assert found.answers[1] == pytest.approx(-0.2 * 9.81)


@pytest.mark.parametrize("seed", range(20))
def test_the_widest_margin_is_that_of_scipy(runtime, arena, seed):
    random = np.random.default_rng(seed)
    m, k = int(random.integers(2, 9)), int(random.integers(1, 4))
    g, slack = random.normal(size=(m, k)), random.normal(size=m)
    tau, s = runtime.maximise_margin(arena.struct, g, slack, 5.0)
    result = linprog(
        np.r_[np.zeros(k), -1.0],
        A_ub=np.column_stack([-g, np.ones(m)]),
        b_ub=slack,
        bounds=[(None, None)] * k + [(None, 5.0)],
    )
    assert tau == pytest.approx(result.x[-1], abs=1e-9)
    assert (slack + g @ s).min() >= tau - 1e-9


@pytest.mark.parametrize("feet", [5, 8, 12])
@pytest.mark.parametrize("push", [0.2, 0.65, 0.95])
def test_the_widest_margin_of_a_block_on_many_feet(runtime, feet, push):
    """Normal forces and friction of feet on one line: many vertices, all of them nearly degenerate."""
    places, mu = np.linspace(-0.5, 0.5, feet), 1.5
    balance = np.zeros((3, 2 * feet))  # normal forces, their moment, friction
    balance[0, :feet], balance[1, :feet], balance[2, feet:] = 1.0, places, 1.0
    given = np.linalg.lstsq(balance, [9.81, -0.4 * push * 9.81, push * 0.5 * 9.81], rcond=None)[0]
    open_ = np.linalg.svd(balance)[2][3:].T
    laws = np.vstack(
        [np.eye(2 * feet)[:feet], *(np.hstack([mu * np.eye(feet), sign * np.eye(feet)]) for sign in (1, -1))]
    )
    g, slack, cap = laws @ open_, laws @ given, 20.0
    room = Arena()
    tau, s = runtime.maximise_margin(room.struct, np.ascontiguousarray(g), slack, cap)
    bounds = [(None, None)] * g.shape[1] + [(None, cap)]
    best = linprog(np.r_[np.zeros(g.shape[1]), -1.0], np.hstack([-g, np.ones((len(g), 1))]), slack, bounds=bounds)
    assert tau == pytest.approx(-best.fun, abs=1e-8)
    assert (slack + g @ s).min() == pytest.approx(tau, abs=1e-8)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("fixed", [-1.0, 0.3])
def test_a_law_that_does_not_depend_on_the_forces_does_not_choose_them(runtime, arena, seed, fixed):
    """It bounds the margin, and the forces stay what they are without it, also where it is the narrowest law."""
    random = np.random.default_rng(seed)
    m, k = int(random.integers(2, 9)), int(random.integers(1, 4))
    g, slack = random.normal(size=(m, k)), random.normal(size=m)
    tau, s = runtime.maximise_margin(arena.struct, g, slack, 5.0)
    at = int(random.integers(0, m + 1))
    both, chosen = runtime.maximise_margin(
        arena.struct, np.insert(g, at, 0.0, axis=0), np.insert(slack, at, fixed), 5.0
    )
    assert both == pytest.approx(min(tau, fixed), abs=1e-12)
    np.testing.assert_allclose(slack + g @ chosen, slack + g @ s, atol=1e-9)


def tower(count, push=0.0):
    """Bricks on each other, each on two corners of its own (K and base of all rows; unit masses, 9.81 m/s²)."""
    width, height, inertia = 0.2, 0.1, 0.01
    rows, weight = [], np.zeros(3 * count)
    for i in range(count):
        weight[3 * i + 1] = -9.81
        for side in (-1.0, 1.0):
            for direction in (0, 1):  # normal, tangent
                row = np.zeros(3 * count)
                for body, sign, up in ((i, 1.0, -height / 2), (i - 1, -1.0, height / 2)):
                    if body >= 0:
                        row[3 * body + 1 - direction] = sign
                        row[3 * body + 2] = sign * (-up if direction else side * width / 2)
                rows.append(row)
    weight[3 * (count - 1)] = push
    A = np.array(rows)
    mobility = np.tile([1.0, 1.0, 1.0 / inertia], count)
    return A @ (mobility[:, None] * A.T), A @ weight


@pytest.mark.parametrize("count", [4, 5, 6])
@pytest.mark.parametrize("push", [0.0, 0.7])
def test_bricks_at_rest_on_each_other_stick(instant, count, push):
    """More than six contacts, decided by complementarity: nothing moves, and so nothing slides."""
    K, base = tower(count, push)
    contacts = [{"normal": 2 * i, "tangent": 2 * i + 1, "mu": 0.4} for i in range(2 * count)]
    found = instant(K, base, contacts, scale=9.81)
    assert found.decide()[0] == Status.CONTINUE
    np.testing.assert_array_equal(found.best, 1)
    np.testing.assert_allclose(found.answers, 0.0, atol=1e-8)
    normal, tangent = found.forces[0::2], found.forces[1::2]
    assert (normal >= -1e-7).all()
    assert (np.abs(tangent) <= 0.4 * normal + 1e-7).all()


def test_the_uppermost_brick_slides_where_it_is_pushed_too_hard(instant):
    """With 0.4 m g and more it slides alone, by (P - mu m g)/m; the others stick."""
    K, base = tower(5, 4.5)
    contacts = [{"normal": 2 * i, "tangent": 2 * i + 1, "mu": 0.4} for i in range(10)]
    found = instant(K, base, contacts, scale=9.81)
    assert found.decide()[0] == Status.CONTINUE
    np.testing.assert_array_equal(found.best, [1] * 8 + [2, 2])
    np.testing.assert_allclose(found.answers[[17, 19]], 4.5 - 0.4 * 9.81, rtol=1e-7)
