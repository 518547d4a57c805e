"""A model too slow for the clock releases the device: by a fault, by every command, over the ramp, without a push."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.live.controller import FAULT, FAULTS, PAUSED, RUNNING
from fsm_dyn.live.launch import coupled_graph, prepare
from fsm_dyn.live.stepper import LiveStepper, stability_interval
from fsm_dyn.run.integrators import METHODS
from fsm_dyn.runtime.abi import Fault, TickCounts, TickNumbers
from tests.unit.live.disengaging import COMMANDS
from tests.unit.live.stalling import PERIOD, STALLS, Stalled, stalling_wall

RAMP = 200  # ticks
SOON = 50  # ticks
LIMIT = 100  # ticks by which the model may be behind
MILLIJOULE = 1e-3


@pytest.fixture(scope="module")
def wall():
    given = {"handle_1_stiffness": 1000.0, "handle_2_stiffness": 1000.0}
    return coupled_graph(fsm_dyn.compile(stalling_wall()), given)


@pytest.fixture(scope="module")
def letting_go(wall):
    """The largest energy of a device without a hand while the run continues, J."""
    pressed = Stalled(wall).press()
    pressed.let_go_of_device()
    pressed.tick(400)
    return pressed.meter.peak_energy


def stalled(wall, stall, lag_limit=0.0):
    pressed = Stalled(wall, lag_limit).press()
    pressed.controller.command({"do": "input", "values": STALLS[stall]})
    return pressed


@pytest.mark.parametrize("stall", STALLS)
def test_a_lag_beyond_the_limit_is_a_fault_that_releases(wall, stall):
    pressed = stalled(wall, stall, lag_limit=PERIOD * LIMIT)
    forces = pressed.tick(2 * LIMIT)
    fault = next(event for event in pressed.events if event["event"] == "fault")
    assert fault["reason"] == FAULTS[Fault.LAGGED]
    after = fault["tick"] - pressed.controller.ticks + len(forces) - 1
    assert LIMIT <= after <= LIMIT + SOON
    assert not any(forces[after:])
    assert pressed.controller.phase == FAULT
    # cleared, the lag is forgotten; the cause of the stall remains
    pressed.controller.command({"do": "clear"})
    pressed.controller.command({"do": "run"})
    pressed.tick(LIMIT - 20)
    assert pressed.controller.phase == RUNNING
    pressed.tick(SOON + 20)
    assert pressed.controller.phase == FAULT


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_carried_out_over_the_ramp(wall, stall, command):
    pressed = stalled(wall, stall)
    pressed.tick(10)
    pressed.controller.command(COMMANDS[command])
    forces = pressed.tick(RAMP + SOON)
    done = [event for event in pressed.events if event["event"] in ("command_done", "command_rejected")]
    assert [event["command"]["do"] for event in done] == ["input", COMMANDS[command]["do"]]
    zero = next(k for k, force in enumerate(forces) if force == 0.0)
    assert zero <= RAMP + 1
    assert done[1]["tick"] <= pressed.controller.ticks - len(forces) + RAMP + 3


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("way", ["fault", "owner", *COMMANDS])
def test_the_hand_is_not_pushed(wall, letting_go, stall, way):
    """A device without a hand gets no more energy than in a continued run, a hand no work."""
    for gone in (True, False):
        pressed = stalled(wall, stall, lag_limit=0.1 if way == "fault" else 0.0)
        pressed.tick(10 if way != "fault" else 1)
        pressed.meter = type(pressed.meter)()
        if gone:
            pressed.let_go_of_device()
        if way == "owner":
            pressed.stepper.tick_data.counts[TickCounts.OWNER_SILENT] = 1
        elif way != "fault":
            pressed.controller.command(COMMANDS[way])
        forces = pressed.tick(RAMP + SOON)
        if gone:
            assert pressed.meter.peak_energy <= 1.2 * letting_go + MILLIJOULE
        else:
            assert pressed.meter.most_work <= MILLIJOULE
        assert forces[RAMP + 1] == 0.0 or way in ("set", "speed", "port", "reset", "scrub")  # engaged again


def test_ramps_and_timeouts_keep_to_the_wall_clock(wall):
    late = 4e-3  # s, for a tick of 5 ms
    pressed = Stalled(wall).press()
    pressed.controller.command({"do": "pause"})
    forces = pressed.tick(RAMP, late=late)
    zero = next(k for k, force in enumerate(forces) if force == 0.0)
    assert zero <= 0.2 / (PERIOD + late) + 1
    assert pressed.controller.phase == PAUSED
    for ticks, reason in ((3, "released"), (21, "fault")):  # 12 ms and 100 ms
        pressed = Stalled(wall).press()
        pressed.stepper.tick_data.counts[TickCounts.STALL_TICKS] = 100
        pressed.sequence -= 1
        for _ in range(ticks):
            pressed.tick(late=late)
            pressed.sequence -= 1
        assert [event["event"] for event in pressed.events if event["event"] == reason]


def test_a_session_knows_the_model_s_speed(wall):
    pressed = stalled(wall, "stiff damper")
    numbers = pressed.stepper.tick_data.numbers
    before, wall_before = pressed.stepper.t, pressed.wall
    progress = float(numbers[TickNumbers.PROGRESS])
    pressed.tick(300)
    gained, passed = float(numbers[TickNumbers.PROGRESS]) - progress, 1e-9 * (pressed.wall - wall_before)
    assert gained == pytest.approx(pressed.stepper.t - before, abs=1e-12)
    assert gained < 0.5 * passed


def amplification(method, z):
    """Return the factor of a step for ``s' = l s`` with ``l h = z``, by its stages."""
    stages = []
    for row in method.a:
        stages.append(z * (1.0 + sum(float(weight) * stage for weight, stage in zip(row, stages, strict=True))))
    return abs(1.0 + sum(float(weight) * stage for weight, stage in zip(method.b, stages, strict=True)))


@pytest.mark.parametrize("method", ["rk4", "heun", "euler"])
def test_the_interval_is_where_a_step_stops_to_damp(method):
    most = stability_interval(METHODS[method])
    assert amplification(METHODS[method], -0.999 * most) < 1.0 < amplification(METHODS[method], -1.001 * most)


def test_a_value_that_a_tick_cannot_carry_is_refused_with_the_largest_that_it_can(wall):
    """By closed forms: the plate alone, a mass on the coupler."""
    interval = stability_interval(METHODS["rk4"])
    for name, largest in (
        ("c", 0.05 * interval / PERIOD),  # of the plate, on a soft spring
        ("handle_1_stiffness", 0.2 * (interval / PERIOD) ** 2),
        ("k", 0.05 * (interval / PERIOD) ** 2),
    ):
        stepper = LiveStepper(wall, 2)
        with pytest.raises(InputError, match=f"'{name}' is more than the steps of a tick can carry") as refused:
            stepper.set_parameters({name: 1.5 * largest})
        assert float(refused.value.allowed.split()[1]) == pytest.approx(largest, rel=0.1)
        assert stepper.values[name] != 1.5 * largest
        stepper.set_parameters({name: 0.5 * largest})
    with pytest.raises(InputError, match="'m' is more than") as refused:  # a light tool on the coupler
        LiveStepper(wall, 2).set_parameters({"m": 1e-5})
    light, damping = float(refused.value.allowed.split()[1]), wall.values["handle_2_damping"]
    fastest = np.abs(np.roots([light, damping, 1000.0])).max()
    assert fastest * PERIOD == pytest.approx(interval, rel=0.01)
    with pytest.raises(InputError, match="substeps"):
        prepare(wall, "scripted", {"axes": 2}, parameters={"c": 1e6})
    for name, value in (("handle_1_stiffness", 0.0), ("handle_1_stiffness", -10.0), ("handle_2_damping", -1.0)):
        with pytest.raises(InputError, match=f"'{name}' of a coupler"):
            LiveStepper(wall, 2).set_parameters({name: value})
        with pytest.raises(InputError, match=f"'{name}' of a coupler"):
            prepare(wall, "scripted", {"axes": 2}, parameters={name: value})
