"""Automata, runs and recordings that earlier versions wrote open and play.

``format_1`` was written by the version before the runtime in C, ``format_2`` by the first with it, ``format_3`` by the
last before the names of today.  A recording is
played as it is; run again it need not be the same to the last bit, as the arithmetic has changed since.
"""

import functools
import json
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import load
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line
from fsm_dyn.page.playback import open_recorded_run

FOLDER = Path(__file__).parent
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.*"))


@pytest.fixture(scope="module")
def compiled():
    """Compile the model of a stored file once, as it was when the file was written."""

    @functools.cache
    def graph(path):
        text = json.loads(path.read_text())["text"]
        return fsm_dyn.compile(load(str(path), text=text))

    return lambda name: graph((FOLDER / name.partition(".")[0]).with_suffix(".automaton.json"))


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".automaton.json")])
def test_automata_open_and_run(name, compiled):
    graph, today = fsm_dyn.open_graph(FOLDER / name), compiled(name)
    assert sorted(graph) == sorted(today)
    np.testing.assert_array_equal(fsm_dyn.simulate(graph, 0.3).q, fsm_dyn.simulate(today, 0.3).q)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".run.json")])
def test_runs_open_and_play(name, compiled):
    run = fsm_dyn.open_run(FOLDER / name)
    today = fsm_dyn.simulate(compiled(name), float(run.t[-1]))
    assert [item.target for item in run.transitions] == [item.target for item in today.transitions]
    times = np.linspace(0.0, run.t[-1], 50)
    np.testing.assert_allclose(run.sample(times).q, today.sample(times).q, rtol=0, atol=1e-6)  # 10 rtol of the method
    assert plays(name) == [item.target for item in run.transitions]


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".mcap")])
def test_recordings_open_and_play(name):
    run = off_line(read_recording(FOLDER / name))
    assert plays(name) == [item.target for item in run.transitions]
    assert len(run.transitions) >= 3


def plays(name):
    """Look at every instant of a recorded run and return the modes that its transitions lead to."""
    film = open_recorded_run(FOLDER / name)
    for number in range(0, len(film.t), 7):
        instant = film.at(number)
        assert np.isfinite(instant.x).all()
        assert instant.states == film.states[film.mode[number]]
    return [film.transition(number).target for number in range(len(film.when))]
