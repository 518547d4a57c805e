"""Frictionless contacts are a linear complementarity problem with one solution: three routes must agree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fsm_dyn.runtime.abi import Status


def brute_force(K, base):
    """The solution of ``v = K y + base``, y ⊥ v, over all subsets, with NumPy alone."""
    n = len(base)
    for size in range(n + 1):
        for active in itertools.combinations(range(n), size):
            held = list(active)
            y = np.zeros(n)
            if held:
                y[held] = np.linalg.lstsq(K[np.ix_(held, held)], -base[held], rcond=None)[0]
            v = K @ y + base
            if (y >= -1e-10).all() and (v >= -1e-9).all():
                return y, v
    raise RuntimeError("none")


@pytest.mark.parametrize("seed", range(25))
def test_enumeration_lemke_and_brute_force_agree(instant, runtime, seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 6))
    J = random.normal(size=(n, n + 2)) * 10.0 ** random.uniform(-2, 2, (n, 1))  # rows in unlike units
    K, base = J @ J.T, (J @ random.normal(size=n + 2))
    y, v = brute_force(K, base)
    found = instant(K, base, [{"normal": i} for i in range(n)])
    status, verdict = found.decide()
    assert status == 0
    assert verdict.motions == 1
    np.testing.assert_allclose(found.forces, y, atol=1e-9 * max(1.0, np.abs(y).max()))
    np.testing.assert_allclose(found.answers, v, atol=1e-8 * max(1.0, np.abs(v).max()))
    z = np.zeros(n)
    assert runtime.solve_lcp(found.arena.struct, K, base, z)
    np.testing.assert_allclose(z, y, atol=1e-8 * max(1.0, np.abs(y).max()))


@pytest.mark.parametrize("seed", range(4))
def test_a_dozen_contacts_that_are_coupled_go_by_complementarity(instant, seed):
    random = np.random.default_rng(100 + seed)
    J = random.normal(size=(12, 14))
    K, base = J @ J.T, J @ random.normal(size=14)
    found = instant(K, base, [{"normal": i} for i in range(12)])
    status, verdict = found.decide()
    assert status == 0
    assert verdict.tried <= 12
    assert (found.forces >= -1e-9).all()
    assert (found.answers >= -1e-9).all()
    assert found.forces @ found.answers == pytest.approx(0.0, abs=1e-8)


def coupled(diagonal):
    """A matrix of weakly coupled contacts, all of them one island."""
    n = len(diagonal)
    return np.diag(np.asarray(diagonal, float)) + 0.01 * (np.ones((n, n)) - np.eye(n))


def test_many_contacts_of_which_one_can_neither_open_nor_close_have_no_solution(instant):
    """A force would press the first of them in, as in Painlevé's example; so does every subset say."""
    K, base = coupled([-1.0, *[1.0] * 7]), -np.ones(8)
    with pytest.raises(RuntimeError, match="none"):
        brute_force(K, base)
    found = instant(K, base, [{"normal": i} for i in range(8)], free=np.ones(8))
    status, verdict = found.decide()
    assert status == Status.INCONSISTENT
    assert verdict.consistent == 0
    assert verdict.tried > 0
    assert not found.forces.any(), "what was refused is not entered"


@pytest.mark.parametrize("seed", range(3))
def test_many_contacts_in_space_stick_by_one_linear_system(instant, seed):
    """Seven in one island, pressed so that all loads lie inside the cones of friction."""
    random = np.random.default_rng(200 + seed)
    K, base = coupled(np.ones(21)), random.uniform(-0.2, 0.2, 21)
    base[::3] = random.uniform(-2.0, -1.0, 7)
    contacts = [{"normal": 3 * i, "tangent": 3 * i + 1, "spatial": 1, "mu": 0.6} for i in range(7)]
    found = instant(K, base, contacts)
    status, _ = found.decide()
    expected = np.linalg.solve(K, -base)
    assert (np.hypot(expected[1::3], expected[2::3]) < 0.55 * expected[::3]).all()
    assert status == Status.CONTINUE
    np.testing.assert_allclose(found.forces, expected, atol=1e-12)
    np.testing.assert_allclose(found.answers, 0.0, atol=1e-12)


def test_contacts_apart_are_decided_apart(instant):
    n = 10
    found = instant(np.eye(n), -np.ones(n), [{"normal": i} for i in range(n)])
    status, verdict = found.decide()
    assert status == 0
    assert verdict.tried == 2 * n  # not 2 to the power of n
    np.testing.assert_allclose(found.forces, 1.0)


def test_three_legs_in_a_row_hold_as_one(instant):
    """A beam on three equal supports: the middle one repeats the others, and no leg is thrown away."""
    x = np.array([-1.0, 0.0, 1.0])
    A = np.column_stack([np.ones(3), x])
    K = A @ np.linalg.inv(np.diag([2.0, 0.5])) @ A.T
    found = instant(K, A @ np.array([-9.81, 0.0]), [{"normal": i, "cost": {0: 1.0}} for i in range(3)])
    status, verdict = found.decide()
    assert status == 0
    assert verdict.motions == 1  # any two of them, and the middle one alone, would do as well
    assert list(found.best) == [1, 1, 1]
    assert found.forces.sum() == pytest.approx(2.0 * 9.81)
    assert found.forces == pytest.approx(2.0 * 9.81 / 3.0)  # the smallest norm shares alike


@pytest.mark.parametrize("size", [1.0, 1e-8])
@pytest.mark.parametrize("seed", range(12))
def test_complementarity_keeps_its_laws_where_rows_are_nearly_the_same(instant, runtime, seed, size):
    """Contacts a nanometre apart make pivots of 1e-9, whose errors are not to decide; nor is the size of the motion."""
    random = np.random.default_rng(seed)
    n = 8
    J = random.normal(size=(n, n))
    J[n // 2 :] = J[: n // 2] + 10.0 ** random.uniform(-5.5, -4.0) * random.normal(size=(n // 2, n))
    K = J @ J.T
    base = size * np.where(random.integers(3, size=n) > 0, J @ random.normal(size=n), 0.0)
    found = instant(K, base, [{"normal": i} for i in range(n)])
    z = np.zeros(n)
    assert runtime.solve_lcp(found.arena.struct, K, base, z)
    w = K @ z + base
    within = 1e-11 * max(np.abs(base).max(), np.abs(K).max() * np.abs(z).max())
    assert z.min() >= -within
    assert w.min() >= -within
    assert np.abs(w[z > 0.0]).max(initial=0.0) <= within
