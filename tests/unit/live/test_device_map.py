"""Motion of a port by a device, and its limits: scales, offsets, directions, limits by kind of axis."""

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.live.controller import FAULT, RUNNING
from fsm_dyn.live.device_map import DeviceMap, Limits
from fsm_dyn.live.driver_protocol import NOTHING, DeviceSpec, Sample
from fsm_dyn.live.launch import effective_limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import TickCounts, TickNumbers

WIDE = Limits(force=1e6, slew=1e9, torque=1e6, torque_slew=1e9, velocity=1e3, angular_velocity=1e3, ramp=0.0)


def holding(graph, axes=3, turns=(2,), **options):
    """A stepper with an engaged device at rest at zero."""
    stepper = LiveStepper(graph, axes, limits=options.pop("limits", WIDE), turns=turns, **options)
    tick = stepper.tick_data
    tick.counts[TickCounts.ADVANCING] = tick.counts[TickCounts.ANCHOR] = 1
    tick.numbers[TickNumbers.ENGAGEMENT_TARGET] = 1.0
    for _ in range(3):
        stepper.tick()
    return stepper


@pytest.mark.parametrize("scale", [0.5, 3.0, (2.0, -0.5, 0.25)])
def test_power_is_the_same_on_both_sides(held, scale):
    """For all scales: the work of the hand is the work at the couplers' ends, axis by axis and in sum."""
    stepper = holding(held("shopping_cart"), mapping=DeviceMap(scale=scale))
    tick = stepper.tick_data
    tick.device[:] = [0.02, -0.02, 0.05, 0.3, -0.2, 1.5]
    stepper.tick()
    scales = np.array(scale if isinstance(scale, tuple) else (scale, scale, 1.0))
    rates = tick.now[tick.slot[3:6]]
    np.testing.assert_allclose(rates, scales * tick.device[3:], rtol=1e-14)
    np.testing.assert_allclose(tick.force, -scales * tick.ports[:3], rtol=1e-14)
    assert tick.force @ tick.device[3:] == pytest.approx(-tick.ports[:3] @ rates, rel=1e-12)
    assert (np.abs(tick.force) > 0.01).all()


def test_the_force_scale_departs_from_conjugate_power(held):
    plain, strong = (holding(held("latch"), 1, (), mapping=DeviceMap(force_scale=s)) for s in (1.0, 2.5))
    for stepper in (plain, strong):
        stepper.tick_data.device[:] = [0.01, 0.1]
        stepper.tick()
    assert strong.tick_data.force[0] == pytest.approx(2.5 * plain.tick_data.force[0], rel=1e-12)


def test_an_offset_says_where_the_zero_lies(held):
    """Nothing is anchored: the port is drawn to the device."""
    stepper = holding(held("virtual_wall"), 2, (), mapping=DeviceMap(offset=(0.05, 0.01), scale=(1.0, 2.0)))
    tick = stepper.tick_data
    tick.device[:] = [0.02, 0.01, 0.0, 0.0]
    stepper.tick()
    assert tick.now[tick.slot[:2]].tolist() == pytest.approx([0.07, 0.03])
    assert tick.ports[0] == pytest.approx(200.0 * (0.07 - tick.ports[2]) - 2.0 * tick.ports[4], rel=1e-9)


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        (DeviceMap(scale=(1.0, 2.0)), "3 of them"),
        (DeviceMap(scale=0.0), "zero"),
        (DeviceMap(scale=float("nan")), "1e-06 to 1e\\+06"),
        (DeviceMap(scale=(1.0, float("inf"), 1.0)), "30 mm of it are 10 mm"),
        (DeviceMap(force_scale=-1.0), "keeps power the same"),
        (DeviceMap(force_scale=float("nan")), "from 0"),
        (DeviceMap(offset=(0.1,)), "3 finite numbers"),
        (DeviceMap(offset=(0.1, float("nan"), 0.0)), "3 finite numbers"),
        (DeviceMap(axes=(0, 3, 1)), "from -1 to 2"),
    ],
)
def test_maps_that_do_not_fit(held, mapping, words):
    with pytest.raises(InputError, match=words):
        LiveStepper(held("shopping_cart"), 3, mapping=mapping)


@pytest.mark.parametrize("number", [-2, 10**4, 10**30, 10**400])
@pytest.mark.parametrize("name", ["outliers", "dead_man_button", "clutch_button"])
def test_counts_that_no_machine_word_holds_are_refused(name, number):
    """A tampered recording may have them."""
    with pytest.raises(InputError, match=f"limits.{name}"):
        Limits(**{name: number}).check(1)


@pytest.mark.parametrize("number", [-2, 10**30, 10**400])
@pytest.mark.parametrize("name", ["ticks", "stall_ticks", "substeps"])
def test_settings_that_no_machine_word_holds_are_refused(name, number):
    with pytest.raises(InputError, match=name):
        LiveSettings(**{name: number}).check()


@pytest.mark.parametrize(
    ("limits", "velocity", "fault"),
    [
        (Limits(velocity=1.0, angular_velocity=5.0), [0.6, 0.6, 4.0], False),
        (Limits(velocity=1.0, angular_velocity=5.0, outliers=0), [0.8, 0.8, 0.0], True),
        (Limits(velocity=1.0, angular_velocity=5.0, outliers=0), [0.0, 0.0, -5.1], True),
        (Limits(velocity=1.0, angular_velocity=5.0, velocities=(0.5, 1.0, 5.0)), [0.4, 0.8, 4.9], False),
        (Limits(velocity=1.0, angular_velocity=5.0, velocities=(0.5, 1.0, 5.0), outliers=0), [-0.6, 0.0, 0.0], True),
        (Limits(velocity=1.0, angular_velocity=5.0, velocities=(0.5, 1.0, 3.0), outliers=0), [0.0, 0.0, 3.1], True),
    ],
)
def test_straight_axes_and_those_that_turn_have_velocity_limits_of_their_own(bench, held, limits, velocity, fault):
    """Metres and radians per second are never added."""
    run = bench(held("shopping_cart"), motion=(), axes=3, turns=(2,), limits=limits)
    run.one(Sample(0.0, 1, [0.0] * 3, [0.0] * 3))
    assert run.controller.phase == RUNNING
    run.one(Sample(0.0, 2, [0.0] * 3, velocity))
    assert (run.controller.phase == FAULT) is fault


def test_forces_and_torques_are_limited_apart(held):
    limits = Limits(force=2.0, torque=0.1, slew=100.0, torque_slew=5.0, ramp=0.0, velocity=1e3, angular_velocity=1e3)
    stepper = holding(held("shopping_cart"), limits=limits)
    tick = stepper.tick_data
    forces = []
    for k in range(400):
        tick.device[:] = [0.1 * np.sin(0.05 * k), 0.1, 0.8 * np.sin(0.03 * k), 0.0, 0.0, 0.0]
        stepper.tick()
        forces.append(tick.force.copy())
    straight, turning = np.linalg.norm(np.array(forces)[:, :2], axis=1), np.abs(np.array(forces)[:, 2])
    assert straight.max() == pytest.approx(2.0, rel=1e-12)
    assert turning.max() == pytest.approx(0.1, rel=1e-12)
    changes = np.diff(np.array(forces), axis=0)
    assert np.linalg.norm(changes[:, :2], axis=1).max() <= 0.1 * (1.0 + 1e-12)
    assert np.abs(changes[:, 2]).max() <= 0.005 * (1.0 + 1e-12)


def test_a_device_that_nothing_stops_is_limited_in_torque_too():
    limits = effective_limits(Limits(force=5.0, torque=1.0), DeviceSpec("loose", 3, NOTHING, torque=0.5))
    assert (limits.force, limits.torque) == (1.0, 0.1)


@pytest.mark.parametrize(
    ("limits", "words"), [(Limits(low=(0.0,)), "low"), (Limits(torque=0.0), "torque"), (Limits(velocities=(1.0,)), "3")]
)
def test_limits_that_do_not_fit(held, limits, words):
    with pytest.raises(InputError, match=words):
        LiveStepper(held("shopping_cart"), 3, limits=limits)


def test_maps_survive_json():
    import json
    from dataclasses import asdict

    mapping = DeviceMap("handle", (1, -1), (2.0, 1.0), 1.5, (0.1, 0.2))
    assert DeviceMap.from_data(json.loads(json.dumps(asdict(mapping)))) == mapping
