"""Runs and graphs in a notebook and in other processes: shown as tables, copied, pickled, as data sets and frames."""

import copy
import pickle

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.core.errors import InputError
from fsm_dyn.run.run_files import increasing


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("bouncing_ball")


@pytest.fixture(scope="module")
def run(graph):
    return fsm_dyn.simulate(graph, 2.0)


def pickled(item):
    return pickle.loads(pickle.dumps(item))  # noqa: S301 - written here


def test_a_graph_is_pickled_as_data(graph):
    again = pickled(graph)
    assert list(again.modes) == list(graph.modes)
    assert dict(again.values) == dict(graph.values)
    assert fsm_dyn.simulate(again, 2.0).q.tobytes() == fsm_dyn.simulate(graph, 2.0).q.tobytes()
    changed = fsm_dyn.compile("bouncing_ball", parameters={"e": 0.5})
    assert pickled(changed).values["e"] == 0.5


@pytest.mark.parametrize("by", ["simulate", "Simulator"])
def test_a_run_is_pickled_as_data_and_can_be_resumed(graph, by):
    made = fsm_dyn.simulate(graph, 2.0) if by == "simulate" else fsm_dyn.Simulator(graph).run(2.0)
    again = pickled(made)
    assert again.q.tobytes() == made.q.tobytes()
    assert [str(item) for item in again.transitions] == [str(item) for item in made.transitions]
    assert again.resume(3.0).q.tobytes() == made.resume(3.0).q.tobytes()


def test_copies_of_what_nothing_changes_are_the_same(graph, run):
    for item in (graph, run):
        assert copy.copy(item) is item
        assert copy.deepcopy([item])[0] is item


def test_an_unknown_column_is_a_key_error_too(run):
    with pytest.raises(KeyError):
        run["nope"]
    with pytest.raises(InputError, match=r"did you mean 'energy\.kinetic'"):
        run["energy.kinetik"]
    assert run.columns == ("y", "v", "lambda.ground", "energy.kinetic", "energy.potential")
    for name in run.columns:
        assert run[name].shape == run.t.shape


def test_what_is_long_is_shown_as_text_and_tables(graph, run):
    transitions = run.transitions
    assert repr(transitions).splitlines()[0].split() == ["time,", "s", "from", "to", "cause"]
    assert len(repr(transitions).splitlines()) == len(transitions) + 2
    assert transitions._repr_html_().count("<tr>") == len(transitions) + 1
    assert repr(transitions[0]).startswith("<Transition 0.451524 s  flight → flight  ground impacts")
    assert repr(run.explain(1.0)).startswith("bouncing_ball at t = 1.000000 s: flight\n")
    assert repr(graph.automaton.mechanism).startswith("<Mechanism bouncing_ball: 1 coordinates")
    linear = fsm_dyn.linearise(graph, "flight")
    assert repr(linear).splitlines()[0].split() == ["rate", "of", "y", "v"]
    assert "eigenvalues, 1/s: " in repr(linear)
    assert repr(fsm_dyn.simulate(graph, 0.1).transitions) == "no transitions"


def test_times_of_a_data_set_increase_and_lookups_work(run):
    assert (np.diff(run.t) == 0.0).any(), "no transition"
    data = run.to_xarray()
    assert (np.diff(data["time"]) > 0.0).all()
    np.testing.assert_allclose(data["time"], run.t, rtol=1e-15, atol=1e-300)
    assert {*run.columns} <= {*data.variables}
    np.testing.assert_array_equal(data["lambda.ground"], run["lambda.ground"])
    assert data["energy.kinetic"].attrs["units"] == "J"
    middle = data[["y", "v"]].interp(time=[0.1, 0.2])
    assert middle["v"].values == pytest.approx([-0.981, -1.962], rel=1e-9)  # straight lines are interpolated exactly
    first = run.transitions[0]
    after = data["v"].sel(time=first.time, method="nearest")
    assert float(after) == first.u_after[0]
    assert float(data["v"].sel(time=np.nextafter(first.time, 0.0), method="nearest")) == first.u_before[0]


def test_three_rows_at_one_time_keep_their_order():
    times = increasing(np.array([0.0, 0.0, 0.0, 1.0, 1.0]))
    assert (np.diff(times) > 0.0).all()
    assert (times[2], times[4]) == (0.0, 1.0)
    assert times[0] > -1e-300


def test_rows_as_a_data_frame(run):
    frame = run.to_pandas()
    assert list(frame.columns) == ["mode", *run.columns]
    np.testing.assert_array_equal(frame.index, run.t)
    np.testing.assert_array_equal(frame["y"], run["y"])
    assert frame.attrs["units"]["energy.kinetic"] == "J"


def test_a_figure_shows_itself_in_a_notebook(run):
    assert plot.states(run)._repr_png_().startswith(b"\x89PNG")
