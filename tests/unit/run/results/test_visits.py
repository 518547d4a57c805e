"""A run as visits with causes: sequences of shipped models, words, rebounds, and what can be answered from them."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language import models
from fsm_dyn.run.run_timeline import MOST_COLUMNS, Score, repeated
from fsm_dyn.run.words import mode_words

NAMED = (
    "piano_action", "latch_door", "tray", "twelve_contacts", "piano_action_simple", "seat_belt_reel", "gripper",
    "escapement_deadbeat", "escapement_anchor", "geneva_drive", "cart_on_ramp", "newtons_cradle", "box_on_table",
    "latch", "push_button",
)  # fmt: skip


@pytest.fixture(scope="module")
def runs():
    kept = {}

    def run(name):
        if name not in kept:
            kept[name] = fsm_dyn.simulate(fsm_dyn.compile(name))
        return kept[name]

    return run


def test_a_latch_in_the_words_of_locksmiths(runs):
    causes = {visit.name: visit.cause for visit in runs("latch_door").visits}
    assert causes["ride over"] == "ramp strikes striker"
    assert causes["shut"] == "bolt bounces 4× on its stop, rests"
    assert causes["settle"] == "push 15 → 0 N"
    assert causes["opening"] == "position of the door falls below 32 mm"


def test_rebounds_are_one_event(runs):
    (only,) = runs("bouncing_ball").happenings
    assert only.text == "ball bounces 47× on ground, rests"
    assert only.count == len(runs("bouncing_ball").transitions)


def test_columns_bar_and_marks_of_a_score(runs):
    score = Score(runs("piano_action").reading)
    assert len(score.columns) == MOST_COLUMNS
    assert score.note == "1 later visit: see the bar"
    assert score.is_cut
    places = np.array([score.on_bar(visit.begin) for visit in score.visits])
    times = np.array([visit.begin for visit in score.visits]) - score.begin
    assert places == pytest.approx(times / (score.shown_end - score.begin), abs=1e-12)
    anchor = Score(runs("escapement_anchor").reading)
    assert anchor.note.startswith("one cycle of 5: 0.98")
    assert [visit.name for visit in anchor.columns] == [
        "push on entry",
        "drop",
        "recoil",
        "push on exit",
        "drop",
        "recoil",
    ]


def test_repetitions():
    assert repeated("xyabcabcabcabc") == (2, 3, 4)
    assert repeated("abababab") == (0, 2, 4)
    assert repeated("abcdefgh") is None
    assert repeated("ababxyz") is None


# what people ask, and who or what answers
def test_questions_of_people_about_a_piano_stroke(runs):
    run = runs("piano_action")
    score = Score(run.reading)
    lanes = {lane.name: lane for lane in score.lanes}
    assert run.visits.at(0.08).name == "strike"  # what happens at 80 ms?
    assert lanes["hammer on string"].touches(0.08)  # which contact is it?
    assert not lanes["jack at knuckle"].touches(0.08)  # is the jack still under the knuckle?
    assert sum(visit.name == "strike" for visit in run.visits) == 1  # how often is the string struck?
    strike = next(visit for visit in run.visits if visit.name == "strike")
    assert 1e-3 < strike.duration < 2e-3  # for how long?
    assert run.visits.at(strike.begin - 1e-6).name == "free flight"  # does the hammer fly before?
    assert run.visits.at(0.2).name == "check"  # where is the hammer while the key is held?
    assert next(v.cause for v in run.visits if v.name == "let-off") == "jack strikes button"  # what ends the push?
    assert next(v.cause for v in run.visits if v.name == "acceleration") == "finger 0 → 10 N"  # and what began it?
    settling = next(visit for visit in run.visits if visit.name == "settling")
    assert run.visits.at(run.t[-1]).name == "rest"  # is the action ready again at the end?
    assert settling.end < 1.2  # since when?
    bottom = lanes["key at bottom"].segments[[v.name for v in score.columns].index("strike")]
    assert bottom  # does the key reach its bottom before the hammer is caught?


def test_a_model_without_contacts_moves_and_a_name_of_a_quantity_is_in_its_causes(runs):
    coin = runs("rolling_coin")
    assert [visit.name for visit in coin.visits] == ["motion"]
    assert coin.reading.headline.startswith("0 transitions of 1 mode,")
    assert "first ball on block" in [lane.name for lane in Score(runs("tray").reading).lanes]  # a pair of a list
    belt = runs("seat_belt_reel").visits
    assert "angle of the pawl rises above 0.02 rad" in [visit.cause for visit in belt]


def test_modes_by_names_of_contacts(runs):
    """The names of what touches in a mode, for live runs."""
    run = runs("latch_door")
    told = {mode_words(run.reading.words, chart.states) for chart in run.model.charts}
    assert {"nothing touches", "bolt out", "striker on bolt slides", "bolt out, door on frame"} <= told


def test_names_of_all_shipped_models_are_those_of_their_parts():
    for name in NAMED:
        mechanism = fsm_dyn.load(models.resolve(name))
        assert mechanism.names
        assert mechanism.phases
        assert all(len(part.text) <= 24 for part in mechanism.names.values())
