"""Sampled controllers in the live loop: offline the same bits, and none is faster than the tick."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.sampled_loop import linearise_sampled_loop
from fsm_dyn.live.stepper import LiveStepper

SERVO = {
    "fsm_dyn": 1,
    "name": "servo",
    "parameters": {"k": "60 N/m", "d": "2 N*s/m", "T": "2 ms"},
    "coordinates": {"x": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"mass": {"center": "P", "mass": "0.2 kg"}},
    "contacts": {"wall": {"gap": "5 mm - x", "restitution": 0.5}},
    "controllers": {
        "servo": {
            "period": "T",
            "delay": 1,
            "inputs": {"e": {"value": "-x", "quantum": "0.1 mm"}},
            "memory": {"last": {"unit": "m", "update": "e"}},
            "outputs": {"push": {"unit": "N", "value": "k*e + d*(e - last)/T", "quantum": "1 mN"}},
        }
    },
    "loads": [{"force": "push*N.x", "at": "P"}],
    "ports": {"grip": {"coordinate": "x"}},
}
MOTION = [[0, 0.015, 1.1, 0.0]]


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(add_couplers(fsm_dyn.load(SERVO)))


@pytest.mark.parametrize("period", [0.001, 0.002, 0.0027])
def test_live_and_offline_are_the_same_run(graph, bench, period):
    live = bench(graph, motion=MOTION, method="rk4")
    live.stepper.set_parameters({"T": period})
    live.stepper.reset()
    live.run(1200)
    run = fsm_dyn.simulate(
        graph, live.times[-1], method="rk4", step=1e-3, inputs=live.tables(), parameters={"T": period}
    )
    state, layout = live.stepper.loop.state, graph.automaton.terms.layout
    assert run.rows.memory["servo.samples"][-1] == np.ceil((live.times[-1] - 1e-9) / period)
    assert [*run.q[-1], *run.u[-1]] == state.x.tolist()
    assert run.rows.context[-1][layout.memory_slice].tolist() == state.c[layout.memory_slice].tolist()
    assert [item[0] for item in live.transitions] == [item.time for item in run.transitions]
    assert len(run.transitions) > 3


def test_a_controller_faster_than_the_tick_is_refused():
    fast = {**SERVO, "parameters": {**SERVO["parameters"], "T": "0.5 ms"}}
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(fast)))
    with pytest.raises(InputError, match="controller 'servo' is faster than the tick of the live run"):
        LiveStepper(graph, 1)
    LiveStepper(graph, 1, period=0.5e-3)  # of a faster loop it is not


def test_passivity_is_not_assessed_with_a_controller(graph):
    with pytest.raises(InputError, match="passivity does not take sampled controllers into account"):
        linearise_sampled_loop(graph)


def test_a_period_waits_for_a_reset_and_gains_do_not(graph, bench):
    live = bench(graph, motion=MOTION, method="rk4").run(10)
    assert live.stepper.set_parameters({"k": 50.0}) == ()
    assert live.stepper.set_parameters({"T": 0.003}) == ("T",)
    with pytest.raises(InputError, match="faster than the tick"):
        live.stepper.set_parameters({"T": 0.0004})
