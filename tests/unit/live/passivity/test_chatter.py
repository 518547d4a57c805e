"""Onset of buzzing of a wall in the live loop, with a simulated device and no hand."""

import pytest

from mechanisms.wall_chatter import PERIOD, Wall, expected, worst_spring


@pytest.fixture(scope="module")
def walls():
    return {one_sided: Wall(one_sided) for one_sided in (False, True)}


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize(("device", "mass"), [(1.0, 0.1), (2.0, 0.4)])
def test_without_damping_of_the_wall_it_is_2_b_over_T_within_two_per_cent(walls, one_sided, device, mass):
    wall, theory = walls[one_sided], 2.0 * device / PERIOD
    assert not wall.buzzes(0.98 * theory, 0.0, device, mass)
    assert wall.buzzes(1.02 * theory, 0.0, device, mass)


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("damping", [0.25, 0.75])
def test_what_is_passive_does_not_buzz(walls, one_sided, damping):
    """Passivity is stricter than stability: the simulated boundary is higher, as the equation states."""
    wall, device = walls[one_sided], 1.0
    assert not wall.buzzes(2.0 * (device - damping) / PERIOD, damping, device)
    boundary = expected(device, damping)
    assert boundary > 2.0 * (device - damping) / PERIOD
    assert not wall.buzzes(0.98 * boundary, damping, device)
    assert wall.buzzes(1.02 * boundary, damping, device)


@pytest.mark.parametrize("damping", [0.3, 0.75])
def test_stable_alone_is_not_passive(walls, damping):
    """With a spring the device may buzz at values stable without it, but not at passive ones.

    It swings with two of the folded bands, which make 8 / pi^2 of the worst effect of a hand.
    """
    wall, device, spring = walls[False], 1.0, worst_spring()
    passive, alone = 2.0 * (device - damping) / PERIOD, expected(device, damping)
    boundary = expected(device, damping, hand=spring)
    assert passive < boundary < 0.8 * alone
    assert boundary == pytest.approx(2.0 * (device * 3.141592653589793**2 / 8.0 - damping) / PERIOD, rel=1e-3)
    assert not wall.buzzes(0.98 * boundary, damping, device, hand=spring)
    assert wall.buzzes(1.02 * boundary, damping, device, hand=spring)
    assert not wall.buzzes(0.9 * alone, damping, device)
