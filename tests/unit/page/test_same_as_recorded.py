"""The page of a run tells what its recording tells, tick by tick, also in modes that are met for the first time."""

import time

import numpy as np

import fsm_dyn
from fsm_dyn.live.tick import FIXED
from fsm_dyn.page import live_view as taken
from fsm_dyn.page.frames import HEAD
from fsm_dyn.page.live_view import LiveOptions, LiveView
from fsm_dyn.page.playback import open_recorded_run

MODE, SAMPLES, READER = 3, 7, 8  # in the head of a frame
TICK = FIXED.index("tick")


def label(evaluator, number):
    """What a mode is called that the page has under a number."""
    return next(text for text, known in evaluator._labels.items() if known == number)


def watched(view, until):
    """The frames of a run, until the model's time, and again after a reset, from which on modes are numbered anew."""
    frames, turns = [], 0
    patience = time.monotonic() + 120.0
    while turns < 3 or len(frames) < 40:  # on a busy machine there are few
        assert time.monotonic() < patience, view.session.log()
        data = view.frame()  # nothing else is asked of the run
        frames += [] if data is None else [np.frombuffer(data)]
        at = 0.0 if view._last is None else view._last[1]
        if turns == 0 and at >= until:
            view.session.send("reset")
        turns += at < until if turns == 1 else at >= until
        time.sleep(0.002)
    return frames


def test_page_and_recording_tell_the_same(tmp_path, monkeypatch):
    """Every frame, and the ticks between, as many as there is time for, to the last bit."""
    monkeypatch.setattr(taken, "SAMPLES", 4)
    path = tmp_path / "run.mcap"
    view = LiveView(fsm_dyn.compile("piano_action_simple"), 1, LiveOptions(record=path, schedule=True))
    try:
        frames = watched(view, 0.12)
    finally:
        view.close()
    film = open_recorded_run(path)
    ticks = np.array([film.at(k).row[TICK] for k in range(len(film.t))])
    shown, evaluator = film.encoder, film.encoder.evaluator
    width, met, compared = 2 + len(shown.quantities.all), set(), 0
    for frame in frames:
        tick, count = int(frame[1]), int(frame[SAMPLES])
        k = int(np.searchsorted(ticks, tick))
        it = film.at(k)
        met.add(it.states)
        expected = shown.frame((*frame[:3], *frame[4:7]), it.states, it.x, it.c, it.row)
        assert label(view.evaluator, frame[MODE]) == label(evaluator, expected[MODE]), tick
        assert np.array_equal(frame[HEAD : len(expected)], expected[HEAD:], equal_nan=True), tick
        for sample in frame[len(expected) :].reshape(count, width):
            at = k - np.argmax(film.t[k::-1] == sample[0])
            it = film.at(at)
            assert sample[0] == film.t[at]
            assert label(view.evaluator, sample[1]) == label(evaluator, evaluator.number(it.states)), sample[0]
            assert np.array_equal(sample[2:], shown.values(it.states, it.x, it.c), equal_nan=True), sample[0]
            compared += 1
    assert compared > 50
    assert len(met) > 1
