"""Runs with accelerations and multipliers solved for together, against runs with the rows embedded."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.hybrid_automaton import AutomatonByMultipliers

EXACT = {"rtol": 1e-10, "atol": 1e-12}
# modes without rows, sticking and rolling wheels, loops, sliding, redundant feet, a spatial loop in absolute ones
MODELS = {
    "bouncing_ball": 1.0,
    "shopping_cart": 3.0,
    "slider_crank": 0.05,
    "sliding_rod": None,
    "rocking_block": 0.5,
    "spatial_two_body": 0.1,
}


@pytest.mark.parametrize("name", MODELS)
def test_the_same_trajectory(name):
    graph = fsm_dyn.compile(name)
    options = {**EXACT, **({} if MODELS[name] is None else {"until": MODELS[name]})}
    embedded = fsm_dyn.simulate(graph, **options)
    together = fsm_dyn.simulate(graph, formulation="multipliers", **options)
    assert [x.target for x in together.transitions] == [x.target for x in embedded.transitions]
    times = [[x.time for x in run.transitions] for run in (together, embedded)]
    np.testing.assert_allclose(*times, rtol=0.0, atol=1e-9)
    middles = np.linspace(0.0, 0.999 * embedded.t[-1], 30)
    found, wanted = together.sample(middles), embedded.sample(middles)
    np.testing.assert_allclose(found.x, wanted.x, rtol=1e-7, atol=1e-7)
    size = max(1.0, float(np.abs(wanted.multiplier_table).max(initial=0.0)))
    np.testing.assert_allclose(found.multiplier_table, wanted.multiplier_table, rtol=0.0, atol=1e-7 * size)


def test_all_speeds_take_part():
    """The accelerations of a rolling cart depend on all three speeds, with the rows embedded on two of them."""
    graph = fsm_dyn.compile("shopping_cart")
    automaton, rows = graph.automaton, fsm_dyn.simulate(graph, 0.1).rows
    x, c = rows.x[-1], rows.context[-1]
    mode = next(mode for mode in automaton.modes if mode.name == "rolling")
    together = AutomatonByMultipliers.of(automaton).derive(mode.states, 0.0, x, c).programs
    layout = automaton.terms.layout
    (dependent,) = set(range(len(layout.u))) - set(mode.programs.independent)
    off = x.copy()
    off[len(layout.q) + dependent] += 0.1
    for programs, depends in ((mode.programs, False), (together, True)):
        at, away = (programs.rhs.evaluate(0.0, state, c)["x_dot"][len(layout.q) :] for state in (x, off))
        assert bool(np.abs(at - away).max() > 1e-6) == depends


def test_saved_and_continued(tmp_path):
    graph = fsm_dyn.compile("shopping_cart")
    first = fsm_dyn.simulate(graph, 1.0, formulation="multipliers")
    first.save(tmp_path / "run.json")
    later = fsm_dyn.open_run(tmp_path / "run.json").resume(2.0)
    whole = fsm_dyn.simulate(graph, 2.0, formulation="multipliers")
    np.testing.assert_array_equal(later.rows.x, whole.rows.x)


MASSLESS = {
    "fsm_dyn": 1,
    "name": "massless",
    "coordinates": {"x": "m", "y": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"block": {"center": "P", "mass": "1 kg"}},
    "constraints": {"tied": {"position": "y - 2*x"}},
}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formulation": "multiplier"}, "did you mean 'multipliers'"),
        ({"formulation": "multipliers", "strategy": "online"}, "derives every mode"),
        ({"formulation": "multipliers", "derive_after": 3.0}, "derives every mode"),
    ],
)
def test_refused_options(options, message):
    with pytest.raises(fsm_dyn.InputError, match=message):
        fsm_dyn.simulate("shopping_cart", 0.1, **options)


def test_massless_speeds_are_named():
    """Embedding takes a massless speed as dependent; together with multipliers it has no acceleration."""
    graph = fsm_dyn.compile(MASSLESS)
    assert fsm_dyn.simulate(graph, 0.1, initial={"x_dot": "1 m/s"})["y"][-1] == pytest.approx(0.2)
    with pytest.raises(fsm_dyn.FsmDynError, match="y_dot"):
        fsm_dyn.simulate(graph, 0.1, formulation="multipliers")
