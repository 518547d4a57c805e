"""The independent speeds that a model names for a mode: form of the equations, same motion, clear refusals."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.hybrid_automaton import Automaton
from tests.physics.test_pin_entries import shipped


def cart(**independent):
    """Return the shopping cart with independent speeds by mode."""
    model = shipped("shopping_cart")
    for mode, speeds in independent.items():
        model["modes"][mode] = {**model["modes"][mode], "independent": speeds}
    return model


@pytest.fixture(scope="module")
def plain():
    graph = fsm_dyn.compile(cart())
    return graph, fsm_dyn.simulate(graph, 3.0, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("rolling", "sticking"), [(["u1", "u2"], ["u1"]), (["u2", "u3"], ["u2"]), (["u3"], ["u3"])])
def test_same_motion_with_other_independent_speeds(plain, rolling, sticking):
    graph = fsm_dyn.compile(cart(rolling=rolling, sticking=sticking))
    for mode, speeds in (("rolling", rolling), ("sticking", sticking)):
        assert set(graph.modes[mode].kane_equations.independent) >= set(speeds)
    run = fsm_dyn.simulate(graph, 3.0, rtol=1e-10, atol=1e-12)
    times = np.linspace(0.0, 2.99, 30)
    np.testing.assert_allclose(run.sample(times).x, plain[1].sample(times).x, rtol=0.0, atol=1e-8)
    assert [x.cause for x in run.transitions] == [x.cause for x in plain[1].transitions]


def test_operations_depend_on_the_choice():
    """Gillespie's cart: stuck with u2 fewer operations than with u1, whose equations do not fail straight ahead."""
    counts = {}
    for speed in ("u1", "u2"):
        kane = fsm_dyn.compile(cart(sticking=[speed])).modes["sticking"].kane_equations
        assert kane.independent == (speed,)
        counts[speed] = kane.counts.together.total
    assert counts["u1"] == 66
    assert counts["u2"] < counts["u1"]


def test_a_chart_that_fails_in_a_run_is_left():
    """Straight ahead the stuck cart does not turn, so its u1 does not follow from u2: the run takes another chart."""
    graph = fsm_dyn.compile(cart(sticking=["u2"]))
    for start in ("0.3 rad", "0.02 rad"):
        own = fsm_dyn.simulate(graph, 1.0, initial={"q4": start}, on_failure="return")
        plain = fsm_dyn.simulate(fsm_dyn.compile(cart()), 1.0, initial={"q4": start}, on_failure="return")
        assert own.outcome.name == plain.outcome.name
        np.testing.assert_allclose(own.q[-1], plain.q[-1], atol=1e-6)


@pytest.mark.parametrize("strategy", ["compiled", "auto"])
def test_a_chart_is_derived_once_for_all_runs_that_come_to_its_place(monkeypatch, strategy):
    graph, derived = fsm_dyn.compile(cart(sticking=["u2"])), []
    real = Automaton.derive
    monkeypatch.setattr(Automaton, "derive", lambda *args, **named: derived.append(args[2:]) or real(*args, **named))

    def run(start):
        derived.clear()
        return fsm_dyn.simulate(graph, 1.0, strategy=strategy, initial={"q4": start}, on_failure="return")

    first, asked = run("0.02 rad"), len(derived)
    other, asked_there = run("0.021 rad"), len(derived)
    again, asked_again = run("0.02 rad"), len(derived)
    assert (asked, asked_there, asked_again) == (1, 1, 0)
    assert first.record.x.tobytes() != other.record.x.tobytes()
    for name in ("t", "x", "x_dot", "mode"):
        assert getattr(first.record, name).tobytes() == getattr(again.record, name).tobytes(), name
    assert [chart.full for chart in again.model.charts] == [chart.full for chart in first.model.charts]


def test_rows_that_cannot_be_solved_at_the_start():
    model = cart(sticking=["u2"])
    model["initial"] = {**model["initial"], "q4": "0 rad"}
    with pytest.raises(fsm_dyn.ModelError, match="cannot be solved for u1, u3 at the start"):
        fsm_dyn.compile(model, cache=False)


@pytest.mark.parametrize(
    ("speeds", "message"),
    [
        (["u4"], "'u4' is no speed"),
        (["u1", "u2"], "cannot be solved for u3"),
        ("u1", "list"),
    ],
)
def test_refusals(speeds, message):
    with pytest.raises(fsm_dyn.ModelError, match=message) as refused:
        fsm_dyn.compile(cart(sticking=speeds), cache=False)
    assert "u4" not in message or "u1" in str(refused.value)
