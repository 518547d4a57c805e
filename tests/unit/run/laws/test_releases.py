"""Contacts whose guard fired: what their law may miss is how far from zero the event was located, and no more."""

import numpy as np
import pytest

from fsm_dyn.runtime.abi import Status

OPEN, HOLD, FORWARD, BACKWARD = 0, 1, 2, 3
FORCE = 3e-12  # N, what is left of the normal force at the event; all other forces have cancelled


def left(mu=0.0, **more):
    """A contact without its state of before, ``HOLD``."""
    contact = {"normal": 0, "allowed": [OPEN], "mu": mu, **more}
    if mu:
        contact["tangent"] = 1
    return contact


@pytest.mark.parametrize("mass", [1e-6, 1.0, 1e6])
def test_a_contact_is_released_if_its_force_may_be_zero(instant, mass):
    K, base = [[1.0 / mass]], [-FORCE / mass]
    assert instant(K, base, [left()]).decide()[0] == Status.INCONSISTENT
    assert instant(K, base, [left(slack=(0.9 * FORCE, 0.0))]).decide()[0] == Status.INCONSISTENT
    assert instant(K, base, [left(slack=(0.0, 2.0 * FORCE))]).decide()[0] == Status.INCONSISTENT
    found = instant(K, base, [left(slack=(1.1 * FORCE, 0.0))])
    status, _ = found.decide()
    assert status == Status.CONTINUE
    assert found.best[0] == OPEN
    np.testing.assert_allclose(found.answers, base, rtol=1e-12)


def test_what_is_granted_to_one_contact_is_not_granted_to_another(instant):
    """Both still bear the same; only the guard of the first fired."""
    contacts = [left(slack=(2.0 * FORCE, 0.0)), {"normal": 1, "allowed": [OPEN]}]
    assert instant(np.eye(2), [-FORCE, -FORCE], contacts).decide()[0] == Status.INCONSISTENT
    contacts[1]["slack"] = (2.0 * FORCE, 0.0)
    assert instant(np.eye(2), [-FORCE, -FORCE], contacts).decide()[0] == Status.CONTINUE


@pytest.mark.parametrize(("direction", "sign"), [(FORWARD, 1.0), (BACKWARD, -1.0)])
def test_a_contact_begins_to_slide_if_its_margin_may_be_zero(instant, direction, sign):
    """Pressed with 1 N and pulled along by hardly less than mu: on its own it would slide backwards."""
    mu, margin = 0.3, 1e-8
    base = [-1.0, sign * (mu - margin)]
    contact = {"normal": 0, "tangent": 1, "mu": mu, "allowed": [OPEN, direction]}
    assert instant(np.eye(2), base, [contact]).decide()[0] == Status.INCONSISTENT
    assert instant(np.eye(2), base, [contact | {"slack": (0.0, 0.5 * margin)}]).decide()[0] == Status.INCONSISTENT
    found = instant(np.eye(2), base, [contact | {"slack": (0.0, 1.1 * margin)}])
    assert found.decide()[0] == Status.CONTINUE
    assert found.best[0] == direction


@pytest.mark.parametrize("load", [1.0, 1e-5])
def test_in_space_the_margin_is_known_squared(instant, load):
    """(mu N)^2 - |T|^2 of a load whose friction is hardly below its limit."""
    mu, share = 0.3, 1e-6
    base = load * np.array([-1.0, 0.6 * mu * (1.0 - share), 0.8 * mu * (1.0 - share)])
    margin = (mu * load) ** 2 * (1.0 - (1.0 - share) ** 2)
    contact = {"normal": 0, "tangent": 1, "spatial": 1, "mu": mu, "allowed": [OPEN, FORWARD], "static": mu}
    assert instant(np.eye(3), base, [contact]).decide()[0] == Status.INCONSISTENT
    assert instant(np.eye(3), base, [contact | {"slack": (0.0, 0.2 * margin)}]).decide()[0] == Status.INCONSISTENT
    found = instant(np.eye(3), base, [contact | {"slack": (0.0, 2.2 * margin)}])
    assert found.decide()[0] == Status.CONTINUE
    assert found.best[0] == FORWARD
