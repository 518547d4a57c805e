"""A strip shows the transitions that matter most, in order, with their causes."""

import pytest

from fsm_dyn import plot
from fsm_dyn.core.errors import InputError
from fsm_dyn.plot.animation import select_transitions
from tests.docs.overlaps import overlaps


def test_there_is_a_panel_for_each_transition_in_the_mode_after_it(disk):
    _, run = disk
    figure = plot.film_strip(run, most=100)
    impacts = sum(bool(item.impulse) for item in run.transitions)
    assert 0 < impacts < len(run.transitions)
    assert len(figure.axes) == 1 + len(run.transitions)
    words = [text.get_text() for text in figure.texts]
    short = {run.model.modes[number]: name for number, name in run.reading.names.items()}
    modes = [short[run.transitions[0].source], *(short[item.target] for item in run.transitions)]
    assert [text for text in words if text in modes] == modes
    causes = [run.reading.sentences.cause(number) for number in range(len(run.transitions))]
    assert all(any(cause[:20] in text for text in words) for cause in causes)
    assert " ".join(words).count("; energy ") == impacts
    assert not any("left out" in text for text in words)


@pytest.mark.parametrize("most", [2, 4, 7, 12])
def test_the_number_of_panels_is_bounded_and_the_rest_is_counted(disk, most):
    _, run = disk
    figure = plot.film_strip(run, most=most)
    assert 2 <= len(figure.axes) <= most
    kept = select_transitions(run.transitions, float(run.t[-1]), most - 1)
    assert run.transitions[-1] in kept
    assert [item.time for item in kept] == sorted(item.time for item in kept)
    left_out = len(run.transitions) - len(kept)
    assert any(text.get_text() == f"{left_out} transitions left out" for text in figure.texts)
    assert overlaps(figure) == []


def test_the_transitions_kept_are_followed_by_the_longest_dwell_times(disk):
    _, run = disk
    times = [*(item.time for item in run.transitions), float(run.t[-1])]
    dwell = {id(item): times[i + 1] - times[i] for i, item in enumerate(run.transitions)}
    kept = {id(item) for item in select_transitions(run.transitions, float(run.t[-1]), 6)}
    last = id(run.transitions[-1])
    shortest = min(dwell[item] for item in kept - {last})
    assert all(dwell[id(item)] <= shortest for item in run.transitions if id(item) not in kept)


def test_fewer_than_two_panels_are_refused(disk):
    with pytest.raises(InputError, match="2 or more"):
        plot.film_strip(disk[1], most=1)
