"""A live run ends when a coordinate leaves its stated range."""

import pytest

import fsm_dyn
from fsm_dyn.live.controller import RUNNING, STOPPED
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.runtime.abi import Status, TickCounts

BLOCK = {
    "fsm_dyn": 1, "name": "block", "coordinates": {"x": {"unit": "m", "range": ["-1 m", "0.1005 m"]}},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"block": {"center": "P", "mass": "1 kg"}},
    "ports": {"hand": {"point": "P", "body": "block", "axes": ["N.x"], "stiffness": "1 N/m", "damping": "0 N*s/m"}},
    "initial": {"x_dot": "1 m/s"},
}  # fmt: skip


def test_the_tick_in_which_a_range_is_left_is_the_last(bench):
    run = bench(fsm_dyn.compile(add_couplers(fsm_dyn.load(BLOCK))), motion=[])
    run.run(100)
    assert run.controller.phase == RUNNING
    run.run(1)
    assert run.controller.phase == STOPPED
    assert run.stepper.tick_data.counts[TickCounts.STATUS] == Status.LEFT_RANGE
    assert run.stepper.t == pytest.approx(0.1005, abs=1e-4)  # the coupler takes 1e-4 m/s on the way
