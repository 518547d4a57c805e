"""Escapements: one tooth a beat, a motion that repeats, a clock that stands; the rate against Airy's theorem."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import fsm_dyn

PITCH = 2 * np.pi / 15
LIGHT = {"J_wheel": 0.0, "drum": 1e-3, "m_weight": 0.2}  # a wheel almost without inertia under the same torque
INERTIA, STIFFNESS = 0.3 * 0.25**2 + 1e-4, 0.3 * 9.81 * 0.25  # of the pendulum


@pytest.fixture(scope="module")
def deadbeat():
    return fsm_dyn.compile("escapement_deadbeat")


@pytest.fixture(scope="module")
def anchor():
    return fsm_dyn.compile("escapement_anchor")


def cycle_of(graph, **more):
    return fsm_dyn.limit_cycle(graph, "p falling", advancing={"w": "pitch"}, **more)


def free_period(amplitude):
    """Of the pendulum alone: the circular error by the arithmetic-geometric mean."""
    a, b = 1.0, np.cos(amplitude / 2)
    for _ in range(6):
        a, b = (a + b) / 2, np.sqrt(a * b)
    return 2 * np.pi * np.sqrt(INERTIA / STIFFNESS) / a


@pytest.mark.parametrize("name", ["deadbeat", "anchor"])
def test_one_tooth_a_beat(request, name):
    """The pallets take turns, and between two teeth of one pallet the wheel turns by a pitch."""
    graph = request.getfixturevalue(name)
    run = fsm_dyn.simulate(graph, until=4.0)
    landed = [
        (x.time, x.cause.split("_")[0])
        for x in run.transitions
        if " closes" in x.cause and "push" not in x.cause.split(" ")[0]
    ]
    assert len(landed) >= 7
    assert all(a[1] != b[1] for a, b in pairwise(landed))
    if name == "deadbeat":  # where a tooth lands on a slant the pendulum decides, which still gains on its cycle
        entry = [run.sample([time])["w"][0] for time, pallet in landed if pallet == "entry"]
        np.testing.assert_allclose(np.diff(entry), PITCH, atol=1e-9)


@pytest.mark.parametrize("name", ["deadbeat", "anchor"])
def test_the_cycle_is_stable_and_does_not_depend_on_the_start(request, name):
    graph = request.getfixturevalue(name)
    cycle = cycle_of(graph)
    assert cycle.stable
    other = cycle_of(graph, initial={"p": np.deg2rad(8.5)})
    assert other.period == pytest.approx(cycle.period, abs=1e-9)
    assert cycle.trajectory["w"][-1] - cycle.trajectory["w"][0] == pytest.approx(PITCH, abs=1e-9)


def test_the_tips_of_teeth_touch_faces_only(deadbeat):
    """Circles of radius 0 are points: fifteen for each of four faces, none for their ends."""
    names = [contact.name for contact in deadbeat.automaton.contacts]
    assert len(names) == 60
    assert all(name.endswith("_face") for name in names)


def test_what_the_weight_gives_the_air_and_the_blows_take(deadbeat):
    """Over a period the weight falls by drum x pitch; nothing else is lost."""
    cycle = cycle_of(deadbeat)
    run = cycle.trajectory
    air = -(run.energy.work["air"][-1] - run.energy.work["air"][0])
    blows = sum(x.energy_lost for x in run.transitions)
    assert air + blows == pytest.approx(0.02 * 9.81 * 0.01 * PITCH, rel=1e-7)


def test_at_rest_the_wheel_stands_still_and_on_an_anchor_it_recoils(deadbeat, anchor):
    dead, back = cycle_of(deadbeat).trajectory, cycle_of(anchor).trajectory
    resting = np.array(["rest" in mode for mode in dead.modes])
    assert resting.sum() > 20
    assert np.abs(dead["w_dot"][resting]).max() <= 1e-12
    assert dead["w_dot"].min() > -1e-12
    assert back["w_dot"].min() < -0.1


@pytest.mark.parametrize(("name", "weight"), [("deadbeat", 3e-3), ("anchor", 1e-3)])
def test_too_light_a_weight_stops_the_clock_and_the_run_says_so(request, name, weight):
    start = {"p": np.deg2rad(3.5)}
    run = fsm_dyn.simulate(request.getfixturevalue(name), until=30.0, parameters={"m_weight": weight}, initial=start)
    assert run.outcome.name == "stopped"
    assert 1.0 < run.t[-1] < 30.0
    assert "the clock stands" in run.transitions[-1].cause
    assert abs(run["p"][-1]) < np.deg2rad(2.5)


def airy(theta, torque):
    """The shift of the period, as a share of it, by pushes small against the amplitude ``theta`` (Airy 1826):
    ``∮ F sin(phase) d(phase) / (2 pi m g l theta)``, the torque ``F = torque dw/dp`` from the pallets' geometry.

    Wheel's arbor at (0, -d) from the pallets' pivot; corners of the slopes as places of the wheel turned back to p = 0.
    """
    R, span, push, unlock, leave = 0.03, 3.5 * PITCH, PITCH / 2 - np.deg2rad(2), np.deg2rad(2), np.deg2rad(3)
    hub = -R / np.cos(span / 2) * 1j  # the plane of complex numbers: turning is a product
    outer, inner = (hub + R * 1j * np.exp(-0.5j * angle) for angle in (span + push, span - push))

    def torque_at(start, end, p):
        def tooth(at):  # where the slope, turned by the pendulum, cuts the wheel's circle
            a, b = start * np.exp(1j * at), end * np.exp(1j * at)
            share = brentq(lambda s: abs(a + s * (b - a) - hub) - R, -0.1, 1.1)
            return -np.angle(a + share * (b - a) - hub)

        return torque * (tooth(p + 1e-6) - tooth(p - 1e-6)) / 2e-6

    def half(start, end, first, last):
        return quad(lambda phase: torque_at(start, end, theta * np.sin(phase)) * np.sin(phase), first, last)[0]

    u, v = np.arcsin(unlock / theta), np.arcsin(leave / theta)
    left, right = (lambda z: -z.conjugate()), (lambda z: z)
    entry = half(left(outer) * np.exp(-1j * unlock), left(inner) * np.exp(1j * leave), np.pi - u, np.pi + v)
    leaving = half(right(inner) * np.exp(1j * unlock), right(outer) * np.exp(-1j * leave), -u, v)
    return (entry + leaving) / (2 * np.pi * STIFFNESS * theta)


def test_the_rate_is_what_airy_s_theorem_gives(deadbeat):
    """The wheel almost without inertia; it still takes a moment to follow, which is the 2 % left."""
    cycle = cycle_of(deadbeat, parameters=LIGHT)
    theta = cycle.trajectory["p"].max()
    measured = cycle.period / free_period(theta) - 1
    assert measured > 5e-4
    assert measured == pytest.approx(airy(theta, 0.2 * 9.81 * 1e-3), rel=0.03)


def test_weight_makes_an_anchor_gain_and_hardly_moves_a_deadbeat(deadbeat, anchor):
    """From 15 g to 30 g: what recoil adds to gravity's torque is the reason for which Graham gave it up."""

    def gain(graph):
        light, heavy = (cycle_of(graph, parameters={"m_weight": m}).period for m in (15e-3, 30e-3))
        return (light - heavy) / light

    assert gain(anchor) > 5e-3
    assert abs(gain(deadbeat)) < 1e-3
