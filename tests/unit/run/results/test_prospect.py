"""Guards of a mode in the order of the times at which they would fire, against closed forms and the run itself."""

import itertools
import math

import numpy as np
import pytest

import fsm_dyn


def test_a_falling_ball_meets_the_floor_at_the_time_of_its_parabola():
    run = fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), 0.4, initial={"y": 1.0})
    first, *_ = run.at(0.2).next(horizon=0.5)
    assert first.event == "ground closes"
    assert first.time == pytest.approx(math.sqrt(2.0 / 9.81), abs=1e-12)
    assert first.margin == pytest.approx(1.0 - 0.5 * 9.81 * 0.04, abs=1e-9)
    assert run.at(0.2).next(horizon=0.1)[0].time is None


def test_every_event_of_a_door_is_foreseen_halfway():
    """The latch: contacts and a user-defined transition, with springs, in modes derived and embedded online."""
    graph = fsm_dyn.compile("latch")
    for strategy in ("compiled", "online"):
        run = fsm_dyn.simulate(graph, 2.0, strategy=strategy)
        times = [0.0, *sorted({item.time for item in run.transitions})]
        spans = [(a, b) for a, b in itertools.pairwise(times) if b - a > 2e-3]
        assert len(spans) >= 3
        for begin, end in spans:
            middle = end - min(0.02, 0.5 * (end - begin))
            found = [item for item in run.at(middle).next(horizon=0.03) if item.time is not None]
            by_schedule = any(np.isclose(end, at) for at in (1.0, 1.5, 2.2))
            assert by_schedule or any(item.time == pytest.approx(end, abs=1e-8) for item in found)
            assert [item.time for item in found] == sorted(item.time for item in found)


def test_others_are_listed_as_if_nothing_else_changed():
    """Two walls: the second one would be met later, by the motion through the first."""
    model = {
        "fsm_dyn": 1, "name": "walls", "coordinates": {"x": "m"},
        "points": {"P": {"from": "O", "at": "x*N.x"}}, "bodies": {"ball": {"center": "P", "mass": "1 kg"}},
        "contacts": {"near": {"gap": "1 m - x"}, "far": {"gap": "3 m - x"}}, "initial": {"x_dot": "2 m/s"},
    }  # fmt: skip
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.2)
    found = run.at(0.1).next(horizon=2.0)
    assert [(item.event, item.time) for item in found] == [
        ("near closes", pytest.approx(0.5, abs=1e-12)), ("far closes", pytest.approx(1.5, abs=1e-12)),
    ]  # fmt: skip
    with pytest.raises(fsm_dyn.InputError, match="horizon"):
        run.at(0.1).next(horizon=0.0)
