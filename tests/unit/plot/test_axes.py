"""Plots in axes of the caller, which are returned: ``ax=``."""

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import fsm_dyn
from fsm_dyn import plot


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_states_of_one_unit(disk, ax):
    _, run = disk
    assert plot.states(run, ["x", "y"], ax=ax) is ax
    assert [line.get_label() for line in ax.get_lines()[:2]] == ["x", "y"]
    assert ax.get_lines()[0].get_ydata()[-1] == run["x"][-1]
    assert ax.get_xlabel() == "time, s"
    assert ax.get_xlim() == (run.t[0], run.t[-1])
    assert len(ax.figure.axes) == 1
    assert not ax.figure.texts


def test_a_phase_portrait(disk, ax):
    _, run = disk
    assert plot.phase(run, "y", "u3", ax=ax) is ax
    drawn = np.concatenate([line.get_ydata() for line in ax.get_lines()])
    assert drawn.max() == pytest.approx(run["u3"].max(), rel=0.05)  # rows between those of the run are drawn as well
    assert ax.get_xlabel().startswith("y")
    assert not ax.figure.texts


def test_modes_and_a_guard(disk):
    _, run = disk
    above, below = Figure().subplots(2, 1, sharex=True)
    assert plot.modes(run, ax=above) is above
    assert {label.get_text() for label in above.get_yticklabels()} == set(run.labels)
    assert plot.guards(run, ["gap of ramp"], ax=below) is below
    assert below.texts[0].get_text() == "gap of ramp"
    assert below.get_xlim() == (run.t[0], run.t[-1])


def test_axes_take_one_unit_and_one_guard(disk, ax):
    _, run = disk
    with pytest.raises(fsm_dyn.InputError, match="columns of one unit"):
        plot.states(run, ["x", "theta"], ax=ax)
    with pytest.raises(fsm_dyn.InputError, match="one guard"):
        plot.guards(run, ax=ax)
    assert not ax.has_data()


def test_settings_of_the_caller_stay(disk, ax):
    before = dict(matplotlib.rcParams)
    plot.modes(disk[1], ax=ax)
    assert dict(matplotlib.rcParams) == before
