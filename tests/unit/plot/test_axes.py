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


def test_energies_forces_and_motion(disk):
    _, run = disk
    left, middle, right = Figure().subplots(1, 3)
    assert plot.energy(run, ax=left) is left
    assert [line.get_label() for line in left.get_lines()[:3]] == ["kinetic", "potential", "total"]
    assert left.get_lines()[2].get_ydata()[-1] == run.energy.total[-1]
    assert plot.forces(run, ["ramp"], ax=middle) is middle
    assert middle.get_title(loc="left") == "ramp"
    assert plot.motion(run, instants=4, ax=right) is right
    assert right.get_aspect() == 1.0
    low, high = right.get_ylim()
    assert low < run["y"].min() < run["y"].max() < high
    assert left.figure.axes == [left, middle, right]
    assert not left.figure.texts
    box = fsm_dyn.simulate(fsm_dyn.compile("box_on_table"), until=0.1)
    with pytest.raises(fsm_dyn.InputError, match="one contact"):
        plot.forces(box, ax=middle)


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
