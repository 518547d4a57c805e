"""Moreau-Jean time stepping: an independent route to the motions that the event-driven runs find."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.errors import InputError
from tests.physics.variants import shipped

TIGHT = {"rtol": 1e-11, "atol": 1e-13}
STEPS = (4e-3, 2e-3, 1e-3, 5e-4)
PHASES = (1.0, 0.93, 0.86, 0.79)  # an impact may fall anywhere in a step: errors are averaged over some lengths


def errors(graph, until, **options):
    """Mean error of the coordinates at the end for each length of step."""
    exact = fsm_dyn.simulate(graph, until=until, **TIGHT, **options).q[-1]
    found = []
    for step in STEPS:
        runs = [fsm_dyn.simulate(graph, until=until, method="moreau_jean", step=step * p, **options) for p in PHASES]
        found.append(np.mean([np.abs(run.q[-1] - exact).max() for run in runs]))
    return np.array(found)


@pytest.mark.parametrize(
    ("model", "until", "bound"),
    [
        ("bouncing_ball", 0.9, 6.0),
        ("rolling_disk", 3.0, 8.0),
        ("pendulum_with_stop", 2.0, 8.0),
        ("rocking_block", 0.9, 4.0),
        ("box_on_table", 1.0, 1.0),
        ("stick_slip_belt", 3.0, 1.0),
        ("ball_in_corner", 0.6, 16.0),
        ("sliding_rod", 0.6, 6.0),
        ("double_pendulum_with_stop", 0.8, 8.0),
        ("cam_flat_follower", 0.1, 2.0),
        ("twelve_contacts", 0.5, 20.0),
        ("shopping_cart", 2.0, 0.3),
    ],
)
def test_converges_to_the_event_driven_motion(model, until, bound):
    """First order: errors below a constant times the step, and falling as fast as it over an eightfold refinement."""
    found = errors(fsm_dyn.compile(model), until)
    order = -np.polyfit(np.log2(1.0 / np.array(STEPS)), np.log2(found), 1)[0]
    print(model, [f"{e:.1e}" for e in found], f"order {order:.2f}")  # noqa: T201
    assert np.all(found <= bound * np.array(STEPS))
    assert order >= 0.7


def test_a_ball_comes_to_rest_where_impacts_pile_up():
    graph = fsm_dyn.compile("bouncing_ball")
    run = fsm_dyn.simulate(graph, until=6.0, method="moreau_jean", step=1e-3)
    assert run.modes[-1] == "resting"
    events = fsm_dyn.simulate(graph, until=6.0)
    rest = next(x.time for x in run.transitions if x.target == "resting")
    assert abs(rest - events.transitions[-1].time) <= 0.1
    strikes = [x.time for x in run.transitions][:5]
    np.testing.assert_allclose(strikes, [x.time for x in events.transitions][:5], atol=2e-2)


def test_nothing_is_derived_for_it():
    """A ball dropped among the pegs meets combinations of contacts that no graph run has reached."""
    graph = fsm_dyn.compile("twelve_contacts")
    derived = {mode.name for mode in graph.automaton.modes}
    dropped, rough = {"mode": "falling", "x": 0.43, "y": 1.22}, {"mu": 0.8, "e": 0.0}
    run = fsm_dyn.simulate(graph, until=2.0, method="moreau_jean", step=1e-3, initial=dropped, parameters=rough)
    assert run.outcome.name == "done"
    assert len(set(run.modes) - derived) >= 3
    assert {mode.name for mode in graph.automaton.modes} == derived
    assert np.isfinite(run.rows.multiplier_table).all()


def test_impulses_push_and_energy_does_not_rise():
    graph = fsm_dyn.compile("bouncing_ball")
    run = fsm_dyn.simulate(graph, until=2.0, method="moreau_jean", step=1e-3)
    assert len(run.transitions) >= 3
    for strike in run.transitions:
        assert strike.cause == "ground strikes and rebounds"
        assert min(value[0] for value in strike.impulse.values()) >= 0.0
        assert strike.energy_after <= strike.energy_before * (1 + 1e-9)


def test_what_it_refuses():
    with pytest.raises(InputError, match="needs the length of its steps"):
        fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), until=1.0, method="moreau_jean")
    with pytest.raises(InputError, match="written transitions"):
        fsm_dyn.simulate(fsm_dyn.compile("latch"), until=1.0, method="moreau_jean", step=1e-3)
    with pytest.raises(InputError, match="at once"):
        fsm_dyn.simulate(fsm_dyn.compile("newtons_cradle"), until=1.0, method="moreau_jean", step=1e-3)
    with pytest.raises(InputError, match="Newton"):
        fsm_dyn.simulate(
            fsm_dyn.compile(shipped("ball_in_corner", law="poisson")), 1.0, method="moreau_jean", step=1e-3
        )
