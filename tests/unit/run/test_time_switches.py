"""Switches over time: all are found, in order, each between neighbouring numbers, in any window and duration."""

import numpy as np
import pytest

from fsm_dyn.programs.functions import absolute, compare, floor, maximum, mod, sign, sin, where
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.run.time_switches import SwitchWindows, switch_blocks

SCALE = np.array([0.37, 1.9])


def program(make):
    graph = ExpressionGraph()
    t, a, b = (graph.symbol(name) for name in ("t", "a", "b"))
    return Program.from_nodes(Layout(p=("a", "b")), {"value": make(t, a, b)})


PLAIN = {
    "wave": lambda t, a, b: where(compare("<", sin(40.0 * a * t), 0.3), 1.0, 2.0),
    "pulses": lambda t, a, b: where(compare("<", mod(t, a), 0.01 * a), 1.0, 0.0),
    "teeth": lambda t, a, b: mod(t, a) * sign(mod(t, b) - 0.5),
    "steps": lambda t, a, b: floor(3.0 * sin(t) + mod(t / a, 2.0)),
    "folded": lambda t, a, b: absolute(absolute(t - b) - a) + maximum(sin(t), mod(t, b)),
    "nested": lambda t, a, b: where(compare(">", t, b), where(compare("<", mod(t, a), 0.02), 1.0, sin(t)), 0.0),
    "close": lambda t, a, b: where(compare("<", (t - b) ** 2, 1e-14), 1.0, 0.0),
    "touching": lambda t, a, b: where(compare("<", sin(t), 1.0), 1.0, 0.0),
    "undefined": lambda t, a, b: where(compare("<", (t - b) ** 0.5, a), 1.0, 0.0),
}


def found(name, until, parameters=SCALE):
    return np.concatenate(list(switch_blocks([program(PLAIN[name])], parameters, until)))


@pytest.mark.parametrize("name", PLAIN)
def test_nothing_jumps_between_two_switches(name):
    """Values are compared on 400,000 instants."""
    pairs, made = found(name, 10.0), program(PLAIN[name])
    assert np.all(np.nextafter(pairs[:, 0], np.inf) == pairs[:, 1])
    times = np.linspace(0.0, 10.0, 400_001)[1:]
    with np.errstate(all="ignore"):
        values = made.evaluate(times, np.zeros(0), SCALE)["value"]
    part = np.searchsorted(pairs[:, 1], times, side="right")
    same = part[1:] == part[:-1]
    assert np.nanmax(abs(np.diff(values))[same]) < 2e-3
    if name in ("wave", "pulses", "steps"):  # constant between them
        assert np.nanmax(abs(np.diff(values))[same]) == 0.0


def test_counts_and_places_are_those_of_the_closed_form():
    period, width = SCALE[0], 0.01 * SCALE[0]
    expected = np.sort(np.concatenate([period * np.arange(1, 28), period * np.arange(28) + width]))
    pairs = found("pulses", 10.0)
    np.testing.assert_allclose(pairs[pairs[:, 0] < 10.0][: len(expected), 1], expected, rtol=1e-15)
    np.testing.assert_allclose(found("close", 3.0)[:, 1], [SCALE[1] - 1e-7, SCALE[1] + 1e-7], rtol=1e-8)
    np.testing.assert_allclose(found("undefined", 3.0)[-1, 1], SCALE[1] + SCALE[0] ** 2, rtol=1e-15)


@pytest.mark.parametrize("name", PLAIN)
def test_more_time_changes_none_of_them(name):
    short, long = found(name, 3.0), found(name, 11.0)
    assert np.array_equal(long[: len(short)], short)


def test_windows_overlap_in_one_switch_and_are_found_from_anywhere():
    windows = SwitchWindows([program(PLAIN["pulses"])], np.array([1e-3, 1.0]), 10.0)
    all_pairs = np.concatenate(list(switch_blocks([program(PLAIN["pulses"])], np.array([1e-3, 1.0]), 10.0)))
    for number in (0, 1, 3, 2, 0):
        pairs, until = windows.window(number)
        assert np.array_equal(pairs, all_pairs[number * 4096 : (number + 1) * 4096 + 1])
        assert until == (pairs[-1, 0] if len(pairs) == 4097 else np.inf)
    for number in (2, 0, 1):
        begin, end = windows.window(number)[0][[0, -1], 0]
        assert windows.number_at(begin) == (number if number else 0)
        assert windows.number_at(np.nextafter(end, 0.0)) == number


def test_a_long_time_with_few_switches_is_no_work():
    made = program(lambda t, a, b: where(compare("<", t, a), 1.0, 0.0))
    blocks = list(switch_blocks([made], np.array([12345.678, 0.0]), 1e9))
    assert len(blocks) < 60
    assert np.concatenate(blocks)[:, 1].tolist() == [12345.678]
