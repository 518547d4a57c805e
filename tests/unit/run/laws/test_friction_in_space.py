"""Coulomb's law in the tangent plane: what is found keeps it, to 1e-9 of the forces."""

import numpy as np
import pytest

from fsm_dyn.runtime.abi import Status

OPEN, HOLD, SLIDE = 0, 1, 2


def response(random, n, stretch=1.0):
    """A symmetric positive matrix, its axes stretched."""
    axes = np.linalg.qr(random.normal(size=(n, n)))[0]
    return axes @ np.diag(random.uniform(1.0, 1.0 + stretch, n)) @ axes.T


def keeps_coulomb(y, v, mu, scale):
    """Whether one contact's forces and motions (normal, two tangents) satisfy the contact laws."""
    small = 1e-8 * scale
    if y[0] <= small:
        return v[0] >= -small and np.linalg.norm(y) <= small
    if abs(v[0]) > small or np.hypot(*y[1:]) > mu * y[0] + small:
        return False
    return np.hypot(*v[1:]) <= small or np.linalg.norm(y[1:] + mu * y[0] * v[1:] / np.hypot(*v[1:])) <= small


@pytest.mark.parametrize("seed", range(60))
def test_one_contact(instant, seed):
    random = np.random.default_rng(seed)
    K, base, mu = response(random, 3, stretch=2.0), random.normal(size=3), random.uniform(0.05, 0.4)
    found = instant(K, base, [{"normal": 0, "tangent": 1, "spatial": 1, "mu": mu}])
    status, _ = found.decide()
    assert status == Status.CONTINUE
    assert keeps_coulomb(found.forces, found.answers, mu, np.abs(base).max())
    np.testing.assert_allclose(found.answers, base + K @ found.forces, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_two_contacts_that_are_coupled(instant, seed):
    random = np.random.default_rng(1000 + seed)
    K, base = response(random, 6), random.normal(size=6)
    contacts = [{"normal": 3 * k, "tangent": 3 * k + 1, "spatial": 1, "mu": 0.2} for k in range(2)]
    found = instant(K, base, contacts)
    status, _ = found.decide()
    assert status == Status.CONTINUE
    for k in range(2):
        own = slice(3 * k, 3 * k + 3)
        assert keeps_coulomb(found.forces[own], found.answers[own], 0.2, np.abs(base).max())


def test_the_limit_is_a_circle(instant):
    """A load of 0.99 and 1.01 of the limit, at all angles, on a plane that answers alike in all directions."""
    for angle in np.linspace(0.0, 2.0 * np.pi, 13):
        for load, choice in ((0.99, HOLD), (1.01, SLIDE)):
            pull = 0.3 * load * np.array([np.cos(angle), np.sin(angle)])
            found = instant(np.eye(3), [-1.0, *pull], [{"normal": 0, "tangent": 1, "spatial": 1, "mu": 0.3}])
            found.decide()
            assert found.best[0] == choice
            if choice == SLIDE:
                np.testing.assert_allclose(found.problem.get("slip_direction")[0], pull / np.hypot(*pull), atol=1e-12)
                np.testing.assert_allclose(found.answers[1:], pull * (1.0 - 1.0 / load), atol=1e-12)


def test_slip_already_there_gives_the_direction(instant):
    """Friction acts against the slip, wherever the acceleration points."""
    contact = {"normal": 0, "tangent": 1, "spatial": 1, "mu": 0.5, "slip": 1, "way": (0.6, 0.8)}
    found = instant(np.eye(3), [-2.0, 5.0, -7.0], [contact])
    found.decide()
    np.testing.assert_allclose(found.forces, [2.0, -0.6, -0.8], atol=1e-12)


def test_units_do_not_matter(instant):
    """Rows in other units, the same in both directions of a plane."""
    random = np.random.default_rng(5)
    K, base = response(random, 3), np.array([-1.0, 1.0, 0.4])
    unit = np.array([1e3, 1e-2, 1e-2])
    plain = instant(K, base, [{"normal": 0, "tangent": 1, "spatial": 1, "mu": 0.2}])
    # speeds times unit, forces divided by it; friction per normal force accordingly
    other = instant(
        K * np.outer(unit, unit), base * unit,
        [{"normal": 0, "tangent": 1, "spatial": 1, "mu": 0.2 * unit[0] / unit[1]}],
    )  # fmt: skip
    plain.decide()
    other.decide()
    np.testing.assert_allclose(other.forces * unit, plain.forces, rtol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_a_body_that_lands_on_three_feet(instant, seed):
    """Nine rows of one body with six speeds: impacts at random speeds downwards, judged foot by foot."""
    random = np.random.default_rng(3000 + seed)
    rows = []
    for i in range(3):
        x, y, z = 0.3 * np.cos(2.0 * np.pi * i / 3), 0.3 * np.sin(2.0 * np.pi * i / 3), -0.2
        # speeds of the foot: v + w x (x, y, z)
        rows += [[0, 0, 1, y, -x, 0], [1, 0, 0, 0, z, -y], [0, 1, 0, -z, 0, x]]
    A = np.array(rows, float)
    K = A @ np.diag([0.5, 0.5, 0.5, 20.0, 20.0, 12.5]) @ A.T
    u = random.normal(size=6) * [1.0, 1.0, 0.0, 1.0, 1.0, 1.0] - [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]
    contacts = [{"normal": 3 * k, "tangent": 3 * k + 1, "spatial": 1, "mu": 0.3} for k in range(3)]
    found = instant(K, A @ u, contacts)
    status, _ = found.decide()
    assert status in (Status.CONTINUE, Status.NON_UNIQUE_STATE)
    for k in range(3):
        own = slice(3 * k, 3 * k + 3)
        assert keeps_coulomb(found.forces[own], found.answers[own], 0.3, np.abs(A @ u).max())
