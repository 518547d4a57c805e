"""Kinematics of the pantograph: closed forms, finite differences, and those of the maker's public library."""

from __future__ import annotations

import math
import random

import pytest
from HaplyHAPI import Pantograph

from fsm_dyn.devices.pantograph import VERSIONS, FiveBar, angles_of, force_of, pose_of, torques_of

BARS = FiveBar(0.07, 0.09, 0.038)
ROUNDING = 1e-12


def poses(bars, count=200):
    """Return random positions in the space that the maker's device is used in, with their poses."""
    rng, found = random.Random(5), []
    while len(found) < count:
        x, y = rng.uniform(-0.06, 0.1), rng.uniform(0.05, 0.14)
        angles = angles_of(bars, x, y)
        if angles is not None and (pose := pose_of(bars, *angles)) is not None:
            found.append((x, y, angles, pose))
    return found


@pytest.mark.parametrize("angle", [1.7, 2.0, 2.4, 2.9])
def test_symmetric_poses_have_a_closed_form(angle):
    """``y = l sin a + sqrt(L^2 - (d/2 - l cos a)^2)``; moved alike the handle goes along x, moved apart along y."""
    pose = pose_of(BARS, angle, math.pi - angle)
    half = 0.5 * BARS.base - BARS.inner * math.cos(angle)
    height = math.sqrt(BARS.outer**2 - half**2)
    assert pose.position == pytest.approx((0.5 * BARS.base, BARS.inner * math.sin(angle) + height), abs=ROUNDING)
    (xa, xb), (ya, yb) = pose.jacobian
    assert xa == pytest.approx(xb, rel=1e-9)
    slope = BARS.inner * math.cos(angle) - half * BARS.inner * math.sin(angle) / height
    assert ya - yb == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize("version", sorted(VERSIONS))
def test_angles_and_positions_are_inverse(version):
    bars = VERSIONS[version].bars
    for x, y, angles, pose in poses(bars):
        elbows = [
            (bars.inner * math.cos(a) + shift, bars.inner * math.sin(a))
            for a, shift in zip(angles, (0.0, bars.base), strict=True)
        ]
        assert all(math.dist((x, y), elbow) == pytest.approx(bars.outer, rel=1e-9) for elbow in elbows)
        assert pose.position == pytest.approx((x, y), abs=1e-9)


def test_the_jacobian_is_the_difference_quotient():
    """Central differences at 1e-6 rad leave 1e-9 of a Jacobian of 0.1 m/rad."""
    step = 1e-6
    for _, _, (a, b), pose in poses(BARS, 50):
        for column, (da, db) in enumerate(((step, 0.0), (0.0, step))):
            after, before = pose_of(BARS, a + da, b + db), pose_of(BARS, a - da, b - db)
            for row in range(2):
                quotient = (after.position[row] - before.position[row]) / (2.0 * step)
                assert pose.jacobian[row][column] == pytest.approx(quotient, rel=1e-6, abs=1e-8)


def test_torques_do_the_work_of_the_force_and_give_it_back():
    for _, _, _, pose in poses(BARS, 50):
        assert force_of(pose, torques_of(pose, (1.5, -2.5))) == pytest.approx((1.5, -2.5), rel=1e-9)


@pytest.mark.parametrize("version", sorted(VERSIONS))
def test_the_makers_library_has_the_same_positions_and_torques(version):
    """The HaplyHAPI takes the angles of the outer links for positive: so far away from the motors do they agree."""
    theirs, bars, compared = Pantograph(version), VERSIONS[version].bars, 0
    for x, y, angles, pose in poses(bars):
        if any(y < bars.inner * math.sin(a) for a in angles):
            continue
        theirs.forwardKinematics([math.degrees(a) for a in angles])
        theirs.torqueCalculation([0.75, -1.25])
        assert theirs.get_coordinate() == pytest.approx([x, y], abs=1e-9)
        assert theirs.get_torque() == pytest.approx(torques_of(pose, (0.75, -1.25)), rel=1e-7, abs=1e-12)
        compared += 1
    assert compared > 100


def test_there_is_no_pose_where_the_links_do_not_meet():
    assert pose_of(FiveBar(0.07, 0.09, 0.05), math.pi, 0.0) is None  # elbows 0.19 m apart
    assert pose_of(FiveBar(0.07, 0.09, 0.0), 1.0, 1.0) is None  # on each other
    assert angles_of(BARS, 0.0, 0.3) is None
    assert angles_of(BARS, 0.0, 0.001) is None
