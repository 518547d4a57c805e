"""Contact forces have the values of the run and act where the bodies touch."""

import numpy as np
from numpy.testing import assert_allclose

import fsm_dyn
from fsm_dyn.plot.contact_forces import contact_forces

# Locations come from differences of positions, good to 1e-10 m: 1e-8 is a hundred times that.
NEAR = 1e-8


def test_the_force_on_a_rolling_disk_acts_at_its_lowest_point(disk):
    _, run = disk
    rows = run.sample(np.linspace(0.0, 2.0, 41))
    (force,) = contact_forces(run.model.scene, rows)
    point, normal = force.ground()
    slope = run.model.values["phi"]
    assert_allclose(normal, [-np.sin(slope), np.cos(slope), 0.0], atol=NEAR)
    assert_allclose(point, 0.0, atol=NEAR)
    centre = rows.model.scene.geometry.evaluate(rows.t, rows.x, rows.context)["points"][
        :, run.model.scene.points.index("Bo")
    ]
    assert_allclose(centre - force.points, run.model.values["r"] * force.normals, atol=NEAR)
    contact = rows.model.contacts[0]
    forces = rows.multiplier_table[:, [contact.normal_row, contact.tangent_row]]
    assert_allclose(np.linalg.norm(force.forces, axis=1), np.linalg.norm(forces, axis=1), rtol=NEAR)


def test_a_resting_ball_carries_its_weight_at_the_rim_that_is_drawn():
    run = fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"))
    (force,) = contact_forces(run.model.scene, run.sample([0.1, 4.9]))
    assert_allclose(force.forces, [[0.0, 0.0, 0.0], [0.0, 0.981, 0.0]], atol=NEAR)  # m g
    assert_allclose(force.points[1], [0.0, -0.03, 0.0], atol=NEAR)  # the radius of the circle in its view


def test_corners_of_a_box_share_its_weight(box):
    rows = box.sample([0.0])
    forces = contact_forces(box.model.scene, rows)
    total = sum(force.forces[0] for force in forces)
    values = box.model.values
    assert_allclose(total[1], values["m"] * values["g"], rtol=NEAR)
    assert all(force.grounded for force in forces)


def test_a_run_without_touch_has_no_forces(disk):
    _, run = disk
    flying = run.t[np.array(run.labels) == "flying"]
    assert contact_forces(run.model.scene, run.sample(flying[2:4])) == ()


def test_fingers_that_do_not_turn_press_on_the_faces_of_the_block():
    run = fsm_dyn.simulate(fsm_dyn.compile("gripper"), until=1.0)
    forces = contact_forces(run.model.scene, run.sample([0.1, 0.9, 1.0]))
    pressing = [force for force in forces if not force.grounded]
    at = sorted(tuple(np.round(force.points[1, :2], 6)) for force in pressing)  # the ends of both pads
    assert len(set(at)) == 4
    assert at[0][1] == at[2][1]
    assert at[1][1] == at[3][1]
    total = sum(force.forces[:, 0] for force in pressing if force.normals[1, 0] > 0.5)
    opposite = sum(force.forces[:, 0] for force in pressing if force.normals[1, 0] < -0.5)
    assert total[1] > 1.0
    assert_allclose(total, -opposite, rtol=1e-6)  # the box is at rest across: the fingers press alike


def test_no_arrow_where_forces_at_several_points_have_the_same_power():
    """Wheel and pawl of a ratchet have one freedom each: a force at the hub would do as one at the tooth."""
    run = fsm_dyn.simulate(fsm_dyn.compile("ratchet"), 1.0)
    samples = run.sample(np.linspace(0.0, 1.0, 60))
    assert np.any(samples.multiplier_table != 0.0)
    assert contact_forces(run.model.scene, samples) == ()
