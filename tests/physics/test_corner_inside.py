"""A corner far inside a polygon ends the run by name, whatever was decided there."""

import pytest

import fsm_dyn
from fsm_dyn.run import loop as run_loop
from fsm_dyn.run import loop_state
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import Counters, Event, GuardStatus, Status, ToleranceTable
from tests.physics.flush import brick, polygon, rectangle, scene

ABOVE = 0.1  # m


@pytest.fixture(scope="module")
def hovering():
    """A brick that hangs still above a table."""
    table = polygon([(x, y - 0.5) for x, y in rectangle(4.0, 1.0)])
    return fsm_dyn.compile(scene({"box": brick(0.2, 0.1, y=0.05 + ABOVE)}, {"table": table}, gravity=None))


def sunk(depth, loop):
    """Put the brick so many tolerances of a gap into the table, as if something had decided that this is in order."""
    kept, tables = loop.state, loop.tables
    kept.x[1] -= ABOVE + depth * tables.tolerances[ToleranceTable.GAP]
    first = tables.mode_guard_start[kept.counters[Counters.MODE]]
    for j in range(tables.mode_guard_start[kept.counters[Counters.MODE] + 1] - first):
        if tables.guard_event[first + j] == Event.CLOSES:
            kept.armed[j], kept.guards[j] = GuardStatus.WAITING, -depth * tables.tolerances[ToleranceTable.GAP]


@pytest.mark.parametrize(("depth", "end"), [(50.0, "done"), (200.0, "penetration during the run")])
def test_a_corner_far_inside_a_polygon_ends_the_run(hovering, monkeypatch, depth, end):
    begun = []

    def begin(*given):
        begun.append(real_begin(*given))
        return begun[-1]

    def advance(*addresses):
        status = real_advance(*addresses)
        if status == Status.PAUSED and begun[-1].state.x[1] > 0.05 + 0.5 * ABOVE:
            sunk(depth, begun[-1])
        return status

    real_begin, real_advance = loop_state.begin, library.advance
    monkeypatch.setattr(run_loop, "begin", begin)
    monkeypatch.setattr(run_loop, "advance", advance)
    monkeypatch.setattr(run_loop, "_FIRST_CHUNK", 3)
    found = fsm_dyn.simulate(hovering, 0.1, method="rk4", step=0.01, on_failure="return")
    assert begun[-1].state.x[1] < 0.05
    assert found.outcome.name == end
