"""Intermediate updates of units for FMI 3.0: an importer looks behind every event of a step, and ends it there."""

import fmpy
import pytest
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

import fsm_dyn
from tests.exports.building import quick_units


@pytest.fixture(scope="module")
def ball(tmp_path_factory):
    """Return the unpacked unit, its description, and the impacts of the run: times, and speeds behind them."""
    folder = tmp_path_factory.mktemp("ball")
    with pytest.MonkeyPatch.context() as patch:
        quick_units(patch)
        graph = fsm_dyn.compile("bouncing_ball")
        path = fsm_dyn.export(graph, folder / "ball.fmu", "fmu3", outputs="all")
    assert not validate_fmu(str(path))
    run = fsm_dyn.simulate(graph, until=2.5)
    impacts = [(item.time, float(item.u_after[0])) for item in run.transitions]
    assert len(impacts) > 3
    return fmpy.extract(str(path), unzipdir=str(folder / "unit")), fmpy.read_model_description(str(path)), impacts


def stepped(ball, early=0):
    """Make one step over all impacts; return what was read in it, how it ended, and the instance."""
    folder, description, _ = ball
    known = {v.name: v.valueReference for v in description.modelVariables}
    seen = []

    def look(_, time, set_requested, get_allowed, step_finished, can_return, wants, at):
        assert (set_requested, get_allowed, step_finished, can_return) == (False, True, True, early > 0)
        seen.append((time, *it.getFloat64([known["time"], known["y"], known["v"]])))
        wants[0] = len(seen) == early
        at[0] = time

    it = FMU3Slave(guid=description.guid, unzipDirectory=folder, instanceName="one",
                   modelIdentifier=description.coSimulation.modelIdentifier)  # fmt: skip
    it.instantiate(eventModeUsed=False, earlyReturnAllowed=early > 0, intermediateUpdate=look)
    it.enterInitializationMode()
    it.exitInitializationMode()
    return seen, it.doStep(0.0, 2.5), it, known


def test_every_impact_is_seen_at_its_time(ball):
    impacts = ball[2]
    seen, (_, _, early, reached), it, known = stepped(ball)
    assert [time for time, *_ in seen[:-1]] == pytest.approx([time for time, _ in impacts], abs=1e-9)
    assert [speed for *_, speed in seen[:-1]] == pytest.approx([speed for _, speed in impacts], abs=1e-9)
    assert all(time == own for time, own, *_ in seen)
    assert all(abs(height) < 1e-9 for _, _, height, _ in seen[:-1])
    assert (seen[-1][0], reached, bool(early)) == (2.5, 2.5, False)
    it.freeInstance()
    assert known["y"]


def test_a_step_ends_where_the_importer_says(ball):
    impacts = ball[2]
    seen, (_, _, early, reached), it, known = stepped(ball, early=2)
    assert (len(seen), bool(early)) == (2, True)
    assert reached == pytest.approx(impacts[1][0], abs=1e-9)
    assert it.getFloat64([known["v"]]) == pytest.approx([impacts[1][1]], abs=1e-9)
    it.doStep(reached, 0.01)  # and the run continues from there
    it.freeInstance()
