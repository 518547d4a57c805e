"""The energy at the port observed in a live run, and its excess dissipated."""

import itertools

import numpy as np
import pytest

from fsm_dyn.devices.emulators.emulated_device import EmulatedHandle
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import watch_port
from fsm_dyn.runtime.abi import TickNumbers
from mechanisms.wall_chatter import KICK, MASS, PERIOD, Wall

T, b = PERIOD, 1.0


@pytest.fixture(scope="module")
def wall():
    return Wall()


def swing(wall, kind, known, K, B, ticks=1200):
    """Energies of a swing, exerted forces, the excess energy and the dissipated one."""
    tick = wall.stepper.tick_data
    watch_port(tick, kind, known)
    tick.numbers[[TickNumbers.EXCESS_ENERGY, TickNumbers.DISSIPATED]] = 0.0
    energies = wall.swing(K, B, b, ticks=ticks)
    return (
        energies,
        float(tick.force[0]),
        float(tick.numbers[TickNumbers.EXCESS_ENERGY]),
        float(tick.numbers[TickNumbers.DISSIPATED]),
    )


@pytest.mark.parametrize("known", [b, None])
@pytest.mark.parametrize(("K", "B"), [(2.0 * 2.0 * b / T, 0.0), (6.0 * 2.0 * b / T, 0.0), (10.0 * 2.0 * b / T, 0.5)])
def test_a_stiff_wall_buzzes_without_and_is_calm_with_damping(wall, known, K, B):
    without, _, leak, _ = swing(wall, "observe", known, K, B)
    assert len(without) < 1200, "it is to grow beyond all bounds within a second"
    # the device's energy gain exceeds the loss by its damping
    assert leak > 0.9 * (without[-1] - without[0])
    energies, _, left, taken = swing(wall, "control", known, K, B)
    assert len(energies) == 1200
    # the swing begins with the energy of one tick before the first observation: K (v T)^2 / 2
    assert energies.max() < energies[0] + K * (KICK * T) ** 2
    assert energies[-100:].max() < 0.7 * energies[0]
    assert left < 0.2 * energies[0]
    assert taken > 0.5 * energies[0]


@pytest.mark.parametrize(("K", "B"), [(0.99 * 2.0 * b / T, 0.0), (0.99 * 2.0 * (b - 0.6) / T, 0.6), (100.0, 0.9)])
def test_within_the_bound_nothing_is_done(wall, K, B):
    plain = swing(wall, "off", b, K, B)
    for kind in ("observe", "control"):
        watched = swing(wall, kind, b, K, B)
        np.testing.assert_array_equal(watched[0], plain[0])
        assert watched[1:] == (plain[1], 0.0, 0.0)


def test_the_leak_of_a_wall_in_closed_form(wall):
    """Held for a tick, a spring gives back K (dx)^2 / 2 more than it took; nothing else is in the account."""
    K, stepper = 1500.0, wall.stepper
    stepper.set_parameters({"handle_1_stiffness": K, "handle_1_damping": 0.0})
    stepper.reset()
    watch_port(stepper.tick_data, "observe", None)
    stepper.tick_data.numbers[TickNumbers.EXCESS_ENERGY] = 0.0
    controller = RunController(stepper, lambda event: None)
    places = np.concatenate([[0.0, 0.0], 1e-3 * np.random.default_rng(3).standard_normal(200)])
    for i, (before, x) in enumerate(itertools.pairwise([0.0, *places])):
        controller.tick(Sample(0.0, i, (x,), ((x - before) / T,)))
    assert stepper.tick_data.balance[0] == pytest.approx(0.5 * K * np.sum(np.diff(places) ** 2), rel=1e-12)
    assert stepper.tick_data.numbers[TickNumbers.EXCESS_ENERGY] == stepper.tick_data.balance[0]


def test_weight_is_not_counted_against_the_loop(held):
    """A soft hand lets a ball sink: the energy from gravity does not count as a fault of the loop."""
    graph = held("bouncing_ball")
    stepper = LiveStepper(graph, 1, limits=Limits(ramp=0.0))
    watch_port(stepper.tick_data, "control", None)
    controller = RunController(stepper, lambda event: None)
    handle = EmulatedHandle(MASS, 0.5, hand_stiffness=4.0, hand_damping=4.0)
    given = 0.0
    for i in range(2000):
        controller.tick(Sample(0.0, i, (handle.position,), (handle.velocity,)))
        handle.force = float(stepper.tick_data.force[0])
        before = handle.position
        handle.advance(T)
        given += handle.force * (handle.position - before)
    # m g over the way it has sunk, slowly, so little of it is kinetic
    assert handle.position < -0.15
    assert given == pytest.approx(-0.1 * 9.81 * handle.position, rel=0.05)
    # the hold alone gives K v^2 T^2 / 2 a tick: a ten-thousandth of m g v T at these speeds, and less
    assert stepper.tick_data.numbers[TickNumbers.DISSIPATED] < 1e-4 * given
    assert stepper.tick_data.numbers[TickNumbers.EXCESS_ENERGY] < 1e-4 * given


def test_what_takes_back_stays_within_the_limits(wall):
    limits = Limits(force=1.0, slew=1e12, velocity=1e3, ramp=0.0)
    stepper = LiveStepper(wall.stepper.graph, 1, limits=limits, initial={"mode": "latched"})
    stepper.set_parameters({"handle_1_stiffness": 8000.0, "handle_1_damping": 0.0})
    watch_port(stepper.tick_data, "control", None)
    controller = RunController(stepper, lambda event: None)
    forces = []
    for i in range(400):
        swing = 1e-3 * np.sin(0.7 * i)
        controller.tick(Sample(0.0, i, (swing,), (0.7e-3 / T * np.cos(0.7 * i),)))
        forces.append(float(stepper.tick_data.force[0]))
    assert stepper.tick_data.numbers[TickNumbers.DISSIPATED] > 0.0
    assert np.abs(forces).max() <= 1.0 + 1e-12


@pytest.mark.parametrize("delay", [0.4, 1.0, 2.3])
def test_a_delay_that_is_known_is_accounted_for(wall, delay):
    """At twice the stable stiffness for a force delayed by these ticks, the wall buzzes, and is calmed nevertheless.

    The balance takes the mean of the exerted forces between two samples, and b v^2 of the mean velocity: good to (w
    T)^2 / 12 each, 1 % at the 200 rad/s of the least delay.
    """
    stepper, tick, K = wall.stepper, wall.stepper.tick_data, 2.0 * b / ((0.5 + delay) * T)
    begins = 0.5 * MASS * KICK**2
    grows = {}
    for kind in ("observe", "control"):
        stepper.set_parameters({"handle_1_stiffness": K, "handle_1_damping": 0.0})
        stepper.reset()
        watch_port(tick, kind, b, delay * T)
        controller = RunController(stepper, lambda event: None)
        controller.tick(Sample(0.0, 0, (0.0,), (0.0,)))
        handle, shown, places = EmulatedHandle(MASS, b, velocity=KICK), [0.0] * 5, []
        for i in range(700):
            places.append(handle.position)
            controller.tick(Sample(0.0, i + 1, (handle.position,), (handle.velocity,)))
            shown.insert(0, float(tick.force[0]))
            part = delay % 1.0
            for late, share in ((1, part), (0, 1.0 - part)):
                handle.force = shown[int(delay) + late]
                handle.advance(share * T)
        grows[kind] = np.abs(places[-100:]).max() / np.abs(places[:100]).max()
        if kind == "observe":
            energy = 0.5 * MASS * handle.velocity**2 + 0.5 * K * handle.position**2
            assert tick.balance[0] == pytest.approx(energy - begins, rel=0.05)
    assert grows["observe"] > 2.0
    assert grows["control"] < 0.5
