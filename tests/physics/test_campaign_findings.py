"""Starts with which the campaign once found something wrong: one of each kind."""

import pytest

import fsm_dyn
from tests.physics.campaign import ADAPTIVE, Checked, Start
from tests.physics.variants import VARIANTS, start

FINDINGS = [
    pytest.param("rocking_block", 7, id="two corners strike in turn without end"),
    pytest.param("rocking_block", 144, id="a corner that may not slip is caught with a pull"),
    pytest.param("ball_in_corner", 50, id="the end of a train is passed over another contact"),
    pytest.param("ball_in_corner", 51, id="no rebound of two contacts at the speeds asked for obeys the cones"),
    pytest.param("ball_in_corner", 142, id="a bounce too low for its gap to be told from zero"),
    pytest.param("ball_in_corner", 21, id="slip comes to rest within the end of a train"),
    pytest.param("box_on_table", 44, id="a corner sinks into the table"),
    pytest.param("box_on_table", 74, id="a corner near the table is closed with its gap"),
    pytest.param("double_pendulum_with_stop", 49, id="let go where nothing pulls, all forces being zero"),
    pytest.param("twelve_contacts", 73, id="a long step passes a peg"),
    pytest.param("twelve_contacts", 112, id="a step from rest passes a peg"),
]


@pytest.mark.parametrize(("name", "seed"), FINDINGS)
def test_the_laws_hold_where_they_did_not(name, seed):
    checked = Checked(name)
    run = checked.run(start(name, seed))
    assert not run.outcome.failed
    assert not checked.complaints(run)


QUARTER_TURN = 1.5707963267948966

STARTS = [
    pytest.param(
        "box in corner",
        {"initial": {"q": QUARTER_TURN, "x": 0.15, "y": 0.1, "w": -1.6301498420808116},
         "parameters": {"mu": 0.0, "e": 1.0}, "options": {"method": "rk4", "step": 1e-3}},
        id="a blow reverses a slip that comes to rest in the same instant",
    ),
    pytest.param(
        "stack in sequence",
        {"initial": {"y1": 0.0, "y2": 0.0, "y3": 0.23311933604604473, "y1_dot": -0.7757545947611761},
         "parameters": {"m1": 0.4513704118465438, "m2": 0.5145826239735569, "m3": 4.743069005717027,
                        "e": 0.5763870981330533}, "options": ADAPTIVE},
        id="blows in sequence leave less than the tolerance of speed",
    ),
    pytest.param(
        "box_on_table by Poisson",
        {"initial": {"mode": "in_air", "q": -0.014518351160188153, "y": 0.10144124517207899,
                     "vx": -0.042360821881070675, "vy": -0.03981588460707147, "w": 14.189108931885922},
         "parameters": {"mu": 0.3, "e": 0.009456722124094402, "b": 0.2, "reach": 0.07036576429436037},
         "inputs": {"push": 0.0, "nudge": 0.33082801299434234}, "options": ADAPTIVE},
        id="bringing a corner to rest exactly leaves more slip than counts as none",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("variant", "given"), STARTS)
def test_the_laws_hold_of_a_variant_where_they_did_not(variant, given):
    checked = Checked(VARIANTS[variant][0])
    run = checked.run(Start(variant, 0, 1.0, **given))
    assert not run.outcome.failed
    assert not checked.complaints(run)


def test_a_corner_that_may_neither_slip_nor_hold_ends_the_run_by_name():
    """With ``friction: inf`` the pressure on a falling corner comes to zero, while friction holds it down."""
    checked = Checked("rocking_block")
    run = checked.run(start("rocking_block", 50))
    assert run.outcome.name == "inconsistent contact state"
    assert checked.cannot_go_on(run)
    assert not checked.complaints(run)


def test_the_rocking_block_stands_at_the_end_of_its_train():
    """Flat on the ground and dropped askew, it comes to stand: both corners closed, at rest, the heat accounted for."""
    checked = Checked("rocking_block")
    run = checked.run(start("rocking_block", 7))
    last = run.transitions[-1]
    assert "Zeno time" in last.cause
    assert last.target == run.modes[-1] == "standing"
    assert abs(run.u[-1]).max() == 0.0
    assert run.energy.relative_residual < 1e-8


# the regulation of the piano action when this was found
REGULATED = {
    "jack_edge": 2.5e-3, "mu_knuckle": 0.2, "repetition": 1.2, "check": 0.0, "button_height": 60.93e-3,
    "screw_height": 104.2e-3, "lever_damping": 2e-5,
}  # fmt: skip


def test_a_gap_that_opens_at_its_mark_does_not_stop_the_clock():
    """An impact opens the jack's corner where its gap had been located, 4e-19 m above what counts as closed.

    Nothing told then whether it rose or fell, and steps of 1e-14 s were taken without end.
    """
    finger = {"steps": [[0.0, 0.0], [0.22511421553289535, 1.1367000582635014]]}
    graph = fsm_dyn.compile("piano_action", REGULATED)
    run = fsm_dyn.simulate(graph, 0.5, inputs={"finger": finger}, max_steps=20_000)
    opens = [x for x in run.transitions if "jack_knuckle_end opens" in x.cause]
    assert len(opens) >= 2, "the impacts that found it"
    assert run.outcome.name == "done"
