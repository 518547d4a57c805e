"""Phases of a live run, followed tick by tick, against the visits of a run with all short ones."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.page.scene_drawing import TIME, RowEvaluator
from fsm_dyn.page.story import LivePhases, phases_payload
from fsm_dyn.run.phases import NO_PHASE

PERIOD = 1e-3


def rows_of(run, columns, times):
    """Return the rows of ticks at some times of a run, and the contact states at each."""
    samples, layout = run.sample(times), run.model.layout
    states = [run.model.charts[mode].states for mode in samples.mode]
    rows = np.zeros((len(times), len(columns.names)))
    rows[:, TIME] = times
    rows[:, columns.places["state"]] = samples.x
    rows[:, columns.places["inputs"]] = samples.context[:, layout.w_slice]
    rows[:, columns.places["discrete"]] = samples.context[:, layout.sigma_slice.start : layout.memory_slice.stop]
    return rows, states


@pytest.mark.parametrize("name", ["latch_door", "push_button", "seat_belt_reel"])
def test_the_phases_at_ticks_are_those_of_the_run(name):
    graph = fsm_dyn.compile(name)
    run = fsm_dyn.simulate(graph)
    layout = graph.automaton.terms.layout
    discrete = range(layout.memory_slice.stop - layout.sigma_slice.start)
    columns = TickColumns(layout.w, layout.x, 0, (), tuple(f"discrete {number}" for number in discrete))
    followed = LivePhases(RowEvaluator(graph, columns))
    times = np.arange(0.5 * PERIOD, run.t[-1], PERIOD)
    rows, states = rows_of(run, columns, times)
    payload = phases_payload(graph.automaton.mechanism)
    visits, shown = run.reading.all_visits, []
    for k, row in enumerate(rows):
        followed.follow(row[None], rows[k - 1] if k else None, lambda _, k=k: states[k])
        shown.append(payload[followed.now()["phase"]]["name"])
    wrong = [time for time, found in zip(times, shown, strict=True) if found != visits.at(time).name]
    assert len(wrong) <= 5  # a condition true for less than a tick is missed
    graph_ = followed.graph()
    assert [box["name"] for box in graph_["boxes"]] == list(dict.fromkeys(shown))
    followed.follow(rows[:1], None, lambda _: states[0])  # a reset
    assert payload[followed.now()["phase"]]["name"] == shown[0]
    assert followed.news() is not None
    assert followed.news() is None
    assert NO_PHASE == -1
