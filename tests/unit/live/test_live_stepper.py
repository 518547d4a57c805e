"""Tick by tick is the same as offline; substeps, bounded work, parameters, released memory."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.live.controller import RUNNING, RunController
from fsm_dyn.live.device_map import DeviceMap, Limits, add_couplers
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.launch import coupled_graph as held_graph
from fsm_dyn.live.launch import substeps_of
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import CAUGHT_UP_MOST, WORK_OF_MODE, Counters, Status, TickCounts, TickNumbers

MODELS = ["shopping_cart", "latch", "bouncing_ball", "virtual_wall"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("substeps", [1, 3])
def test_the_same_transitions_as_offline_to_the_last_bit(bench, name, substeps):
    run = bench(name, substeps=substeps).run(3000)
    assert run.controller.phase == 0, run.events
    trajectory = fsm_dyn.simulate(
        run.stepper.graph, until=run.times[-1], method="rk4", step=1e-3 / substeps, inputs=run.tables()
    )
    names = run.stepper.executable.chart_names
    live = [(t, names[int(a)], names[int(b)]) for t, a, b in run.transitions]
    assert len(live) >= 3, "a hand that changes nothing shows nothing"
    assert [(x.time, x.source, x.target) for x in trajectory.transitions] == live
    assert np.array_equal(trajectory.rows.x[-1], run.stepper.loop.state.x)


@pytest.mark.parametrize("name", ["push_button", "toggle_switch"])
def test_ports_have_steps_that_suit_their_models(bench, held, name):
    """Steps of 1 ms made the dome of the button fail after 0.8 s, and left a quarter of the switch's ticks behind."""
    graph = held(name)
    substeps = substeps_of(LiveSettings(), graph)
    assert substeps > 1
    quick = Limits(velocity=200.0, angular_velocity=2000.0)  # a simulated hand is not disengaged for being quick
    run = bench(name, substeps=substeps, schedule=True, limits=quick).run(3000)
    assert run.controller.phase == 0, run.events
    assert [event for event in run.events if event["event"] == "lagging"] == []


@pytest.mark.parametrize(
    ("period", "asked", "steps"),
    [(1e-3, None, 16), (5e-5, None, 1), (2e-3, None, 32), (1.01e-3, None, 17), (1e-3, 2, 2)],
)
def test_no_step_is_longer_than_ports_say_unless_asked_for(held, period, asked, steps):
    assert substeps_of(LiveSettings(period=period, substeps=asked), held("toggle_switch")) == steps
    assert substeps_of(LiveSettings(period=period), held("virtual_wall")) == 1


def test_the_model_and_the_device_feel_the_same_force(bench):
    """Within its limits the device exerts the opposite of the coupler's force on the model."""
    run = bench("virtual_wall", limits=Limits(force=1e6, slew=1e9)).run(1500)
    tick = run.stepper.tick_data
    np.testing.assert_array_equal(tick.force, -tick.ports[:2])
    assert np.abs(tick.force).max() > 0.1


def test_scale_and_power():
    """A device at half the scale feels half the force: the power on both sides is the same."""
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load("virtual_wall")))
    stepper = LiveStepper(graph, 2, mapping=DeviceMap(scale=0.5), limits=Limits(force=1e6, slew=1e9, ramp=0.0))
    tick = stepper.tick_data
    tick.counts[TickCounts.ADVANCING] = tick.counts[TickCounts.ANCHOR] = 1
    tick.numbers[TickNumbers.ENGAGEMENT_TARGET] = 1.0
    for _ in range(3):
        stepper.tick()
    tick.device[:] = [0.01, 0.0, 0.3, 0.0]
    stepper.tick()
    assert tick.now[tick.slot[0]] == pytest.approx(0.5 * 0.01, abs=1e-15)
    power_of_device = tick.force[0] * 0.3
    power_of_model = -tick.ports[0] * tick.now[tick.slot[2]]
    assert power_of_device == pytest.approx(power_of_model, rel=1e-12)


def test_pressed_at_rest_the_plate_yields_as_two_springs_in_series(bench):
    """The device moves down by d from its engagement, y above the plate: k z = kc (y - d - z)."""
    depth, kc, k = 0.03, 200.0, 20e3
    run = bench("virtual_wall", motion=(), axes=2)
    y = run.stepper.loop.state.x[1]
    for i in range(6000):
        down = -depth * min(i / 1000, 1.0)
        run.one(Sample(0.0, i, [0.0, down], [0.0, -depth / 1.0 if i < 1000 else 0.0]))
    assert run.stepper.mode == "pressing"
    # the remaining motion after 5 s decays by exp(-t c / 2 m)
    assert run.stepper.loop.state.x[2] == pytest.approx(kc * (y - depth) / (kc + k), rel=1e-6)


def test_a_tick_does_no_more_than_its_share(bench):
    """Unfinished work of a tick waits for the next ones, which catch up with the clock; nothing is lost."""
    run = bench("bouncing_ball")
    run.stepper.options.counts[0] = 3  # turns of the stepper in a tick
    run.run(4000)
    assert len(run.times) < 4000
    assert 1.9e-3 < max(np.diff(run.times)) < 1.001e-3 * (1 + CAUGHT_UP_MOST)
    assert run.times[-1] == pytest.approx(4.0, abs=1e-9)
    trajectory = fsm_dyn.simulate(run.stepper.graph, until=run.times[-1], method="rk4", step=1e-3, inputs=run.tables())
    assert np.array_equal(trajectory.rows.x[-1], run.stepper.loop.state.x)


def test_parameters_of_springs_apply_at_once_and_those_of_masses_at_reset(held):
    stepper = LiveStepper(held_graph(held("virtual_wall")), 2)
    layout = stepper.graph.automaton.terms.layout
    assert stepper.set_parameters({"k": 1e4}) == ()
    assert stepper.set_parameters({"m": 0.5, "mu_k": 0.2}) == ("m",)
    values = stepper.loop.state.c[: len(layout.p)]
    assert values[layout.p.index("k")] == 1e4
    assert values[layout.p.index("mu_k")] == 0.2
    assert values[layout.p.index("m")] == 0.2
    stepper.reset()
    assert stepper.loop.state.c[layout.p.index("m")] == 0.5


def test_a_schedule_can_run_with_a_device(bench):
    run = bench("virtual_wall", motion=(), axes=2, schedule=True, limits=Limits(dead_man_button=0)).run(1000)
    names = run.stepper.graph.automaton.terms.layout.w
    assert run.stepper.tick_data.now[names.index("push")] == -4.0
    assert run.grips[-1] == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "dopri5"}, "rk4"),
        ({"mapping": DeviceMap(port="door")}, "handle"),
        ({"mapping": DeviceMap(axes=(0, 1))}, "3 numbers"),
    ],
)
def test_what_does_not_fit_is_refused(held, options, words):
    with pytest.raises(InputError, match=words):
        LiveStepper(held("shopping_cart"), 3, **options)


def test_a_model_that_is_not_held_is_refused():
    with pytest.raises(InputError, match="no couplers"):
        LiveStepper(fsm_dyn.compile("shopping_cart"), 3)


def test_status_of_a_finished_tick(bench):
    run = bench("latch")
    assert run.one(run.hand.read()) == Status.DONE


@pytest.mark.parametrize("substeps", [1, 4])
@pytest.mark.parametrize("name", ["bouncing_ball", "virtual_wall"])
def test_the_work_of_a_quiet_tick_counts_evaluations_of_the_guards(bench, name, substeps):
    """At its beginning, because of new inputs, and in the middle and at the end of each step."""
    run = bench(name, motion=[], substeps=substeps)
    for _ in range(3):
        run.one(run.hand.read())
    assert run.stepper.counters[Counters.WORK_DONE] == 1 + 2 * substeps


@pytest.mark.parametrize("limit", [0, 6])
def test_work_is_bounded_where_friction_and_force_end_together(bench, limit):
    """Of the latch door a force and two friction limits end in one instant; without end a tick's steps were halved.

    By the count, not by the clock: without a limit no tick evaluates the guards more than a hundred times, and with one
    it ends no more than one turn of the loop beyond it.
    """
    motion = [[0, 0.1, 0.5, 0.0]]
    run = bench("latch_door", motion=motion, limits=Limits(velocity=20.0), schedule=True, work_per_tick=limit)
    run.stepper.prepare()
    done, behind = [], 0
    for _ in range(4400):
        run.one(run.hand.read())
        done.append(int(run.stepper.counters[Counters.WORK_DONE]))
        behind += int(run.stepper.tick_data.counts[TickCounts.INCOMPLETE])
    assert run.controller.phase == 0, run.events
    assert run.stepper.mode != run.stepper.executable.chart_names[0]
    assert max(done) <= (100 if limit == 0 else 30) + 2 * WORK_OF_MODE
    assert (behind > 0) == (limit > 0)


def test_while_the_model_is_behind_the_force_is_that_of_the_latest_sample(held):
    """Between the device as sampled and the port moved on at its rate; in other ticks it is the model's own."""
    limits = Limits(force=1e6, torque=1e6, slew=1e12, ramp=0.01, velocity=1e3)
    stepper = LiveStepper(held("virtual_wall"), 2, mapping=DeviceMap(scale=(2.0, -0.5)), limits=limits, work_per_tick=1)
    controller = RunController(stepper, lambda event: None)
    tick, seen = stepper.tick_data, []
    stiffness, damping = (np.array([stepper.parameters[i] for i in part]) for part in tick.law.reshape(2, 2))
    for k in range(1500):
        place, rate = 0.03 * np.sin(0.05 * k), 1.5 * np.cos(0.05 * k)
        controller.tick(Sample(0.0, k + 1, [place, place], [rate, rate]))
        behind = min(1e-3 * (k + 1) - stepper.t, 4e-3)
        port, velocity = tick.ports.reshape(3, 2)[1:]
        away = tick.offset + tick.scale * place - port - behind * velocity
        force = tick.numbers[TickNumbers.ENGAGEMENT] * (stiffness * away + damping * (tick.scale * rate - velocity))
        np.testing.assert_allclose(tick.force, -tick.scale * force, rtol=1e-9, atol=1e-8)
        seen.append(behind)
    assert controller.phase == RUNNING
    assert 10 < np.count_nonzero(np.array(seen) > 1e-9) < 1400
    assert max(seen) > 1.5e-3


@pytest.mark.parametrize("work", [1, 5, None])
def test_a_start_that_takes_some_ticks_leaves_no_row_before_the_first(held, work):
    """Its mode is not in the mode pool, and the row of the state as given is of an earlier tick."""
    graph = held("piano_action")
    stepper = LiveStepper(graph, 1, limits=Limits(), work_per_tick=work)
    controller, least = RunController(stepper, lambda event: None), 0
    for k in range(20):
        status = controller.tick(Sample(0.0, k + 1, [0.0], [0.0]))
        if controller.wants(status):
            controller.supply(status)
        least = min(least, int(stepper.counters[Counters.ROWS]))
    assert stepper.t > 0.0
    assert least == 0
