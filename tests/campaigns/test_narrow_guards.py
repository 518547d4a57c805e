"""Narrow conditions, waves and bumps of load by every method: no event is missed, late or invented."""

import pytest

import fsm_dyn
from tests.campaigns import narrow_guards

CASES = 12


PAIRS = [
    (kind, way)
    for kind in narrow_guards.KINDS
    for way in narrow_guards.WAYS
    if kind not in narrow_guards.SOLVED or way in ("dopri5", "online")
]


@pytest.mark.parametrize(("kind", "way"), PAIRS)
def test_no_event_is_missed(kind, way):
    trials = [(seed, narrow_guards.trial(kind, seed, way)) for seed in range(CASES)]
    assert any(true for _, (true, _) in trials)
    found = [f"case {seed} {wrong[0]}: {wrong[1]}" for seed, (_, wrong) in trials if wrong]
    assert not found, "\n".join(found)


@pytest.mark.filterwarnings("ignore::fsm_dyn.core.errors.StepWarning")
def test_a_guard_that_bounds_do_not_decide_is_named():
    """Two waves that are one, whose bounds know nothing of each other, 1e-4 above a condition."""
    graph = fsm_dyn.compile(narrow_guards.counting("sin(n*q)*cos(n*q) - 0.5*sin(2*n*q) < c"))
    options = {"until": 0.1, "parameters": {"c": -1e-4, "n": 1e4}, "initial": {"q_dot": 1.0}}
    run, easy = (fsm_dyn.simulate(graph, **options, **more) for more in ({}, {"max_step": 1e-5}))
    assert len(run.transitions) == len(easy.transitions) == 0
    assert easy.warnings == ()
    (text,) = run.warnings
    assert "steps were halved" in text
    assert graph.automaton.user_transitions[0].name in text
