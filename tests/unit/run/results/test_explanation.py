"""Why a run is where it is: checked against what is known of the motion."""

import re

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.run.outcomes import candidates_fit, read_candidates


@pytest.fixture(scope="module")
def ball():
    return fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), 2.0)


def test_before_anything_happened_only_the_guards_of_the_mode_are_listed(ball):
    """The ball falls from 1 m: at 0.2 s the gap is 1 - g t²/2 and shrinks by g t."""
    found = ball.explain(0.2)
    assert found.mode == "flight"
    assert found.preceding == ()
    assert found.next_transition.time == pytest.approx(np.sqrt(2.0 / 9.81), rel=1e-9)
    (guard,) = found.guards
    assert guard.event == "ground closes"
    assert guard.value == pytest.approx(1.0 - 0.5 * 9.81 * 0.04, rel=1e-9)
    assert guard.slope == pytest.approx(-9.81 * 0.2, rel=1e-9)
    assert guard.time_to_zero == pytest.approx(guard.value / (9.81 * 0.2), rel=1e-9)
    assert found.contacts[0].normal is None


def test_an_impact_is_reported_with_its_guard_impulse_and_candidates(ball):
    first = ball.transitions[0]
    found = ball.explain(first.time)
    (item,) = found.preceding
    assert item is first
    text, value, slope = item.fired[0]
    assert text == "ground closes"
    assert abs(value) < 1e-9
    assert slope == pytest.approx(-np.sqrt(2.0 * 9.81), rel=1e-9)
    data = found.as_data()
    assert data["preceding_transitions"][0]["selection"]
    assert data["preceding_transitions"][0]["fired"][0]["guard"] == "ground closes"


def test_a_block_at_rest_tells_how_much_friction_is_left():
    """Two corners share the load m g and the push; together they may take mu_s m g."""
    run = fsm_dyn.simulate(fsm_dyn.compile("box_on_table"), 1.0)
    found = run.explain(0.5)
    touching = [contact for contact in found.contacts if contact.state == "stick"]
    assert all(contact.indeterminate for contact in touching)
    assert sum(contact.normal for contact in touching) == pytest.approx(9.81, rel=1e-9)
    assert sum(contact.limit for contact in touching) == pytest.approx(0.3 * 9.81, rel=1e-9)
    nearest = found.guards[0]
    assert nearest.event.endswith("slides (+)")
    events = [guard.event for guard in found.guards]
    assert sorted(set(events)) == sorted(events), "each line has its direction"
    assert 0.5 + nearest.time_to_zero == pytest.approx(found.next_transition.time, rel=1e-6)  # the push grows evenly


def test_rounding_is_zero_where_an_explanation_is_read():
    """The fingers hold the block: gaps of 1e-18 m and the like remain of their difference."""
    found = fsm_dyn.simulate(fsm_dyn.compile("gripper"), 1.0).explain(0.9)
    gaps = [abs(contact.gap) for contact in found.contacts if contact.normal is not None]
    assert any(0.0 < gap < 1e-12 for gap in gaps)
    assert re.findall(r"\de-1[3-9]", str(found)) == []


def test_a_saved_run_is_explained_like_the_run_itself(ball, tmp_path):
    again = fsm_dyn.open_run(ball.save(tmp_path / "ball.run.json"))
    for time in (0.2, ball.transitions[2].time, 2.0):
        assert str(again.explain(time).as_data()) == str(ball.explain(time).as_data())


def test_outside_the_run_there_is_nothing_to_explain(ball):
    with pytest.raises(InputError, match="does not cover"):
        ball.explain(3.0)


def test_combinations_that_a_double_cannot_hold_are_left_out():
    """Contacts 3 and 60 make a number of 58 bits: others would be reported in their place, or none."""
    rows = [
        [2.0**3 + 2.0**9, 12.0, 0.0, 0.0],
        [2.0**60 + 2.0**3 + 1.0, 111.0, 0.0, 0.0],
        [2.0**52 + 1.0, 21.0, 0.0, 0.0],
    ]
    found = read_candidates(np.array(rows).ravel(), 3)
    assert [candidate.choices for candidate in found] == [((3, 1), (9, 2)), ((0, 2), (52, 1))]


def test_candidates_of_many_contacts_are_read_up_to_five_of_them():
    rows = [[-float(((54 + 1) * 1024 + 55 + 1) * 1024 + 1023), 103.0, 0.0, 0.0], [-1.0, 2.0, 0.0, 0.0]]
    found = read_candidates(np.array(rows).ravel(), 2)
    assert [candidate.choices for candidate in found] == [((54, 1), (55, 0), (1022, 3)), ((0, 2),)]
    assert candidates_fit(np.array(rows), 1023)
    assert not candidates_fit(np.array(rows), 1022)


def test_every_guard_has_one_line_and_candidates_have_the_states_of_their_contacts():
    """Corners at rest share one limit of friction; rails and stops without friction never stick."""
    box = fsm_dyn.simulate(fsm_dyn.compile("box_on_table"), 0.5).explain(0.12)
    assert str(box).count("friction limit of c1 and c2 together") == 1
    assert "c1 slides (−), c1 slides (+), c2 slides (−), c2 slides (+)" in str(box)
    run = fsm_dyn.simulate(fsm_dyn.compile("piano_action_simple"), 0.12)
    states = {contact.name: {*contact.states, "slide +", "slide -"} for contact in run.model.contacts}
    examined = [line for item in run.transitions for line in item.selection[1:] if ": " in line]
    choices = [choice.split(" ", 1) for line in examined for choice in line.split(":")[0].split(", ")]
    assert {name for name, _ in choices} >= {"front_rail", "backcheck"}
    assert all(state in states[name] for name, state in choices)
