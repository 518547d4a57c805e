"""Default dampings of couplers: by the mass of the port, within the limits of a tick and a device."""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live.device_map import DeviceMap
from fsm_dyn.live.driver_protocol import DeviceDynamics
from fsm_dyn.live.launch import (
    LEAST_RATIO,
    MOST_PER_TICK,
    coupled_graph,
    damped_graph,
    most_felt,
    port_masses,
    prepare,
    usual_dampings,
)
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import TickCounts, TickNumbers

UNKNOWN = DeviceDynamics()
USUAL, STIFFNESS, PERIOD = 2.0, 200.0, 1e-3

LEVER = """
fsm_dyn: 1
name: lever
parameters: {m: 3 kg, d: 2 kg, arm: 0.2 m, reach: 0.3 m}
coordinates: {q: rad, s: m}
frames: {B: {parent: N, rotate: {z: q}}}
points:
  C: {from: O, at: arm*B.x}
  T: {from: O, at: reach*B.x}
  S: {from: O, at: s*N.y - 1 m*N.x}
bodies:
  beam: {frame: B, center: C, mass: m, inertia: {zz: 0 kg*m^2}}
  weight: {center: S, mass: d}
loads: [{gravity: -9.81 m/s^2*N.y}]
ports:
  tip: {point: T, body: beam, axes: [N.x, N.y]}
  turn: {coordinate: q}
  block: {point: S, body: weight, axes: [N.y]}
initial: {s: 1 m}
"""


@pytest.fixture(scope="module")
def lever(tmp_path_factory):
    path = tmp_path_factory.mktemp("lever") / "lever.yaml"
    path.write_text(LEVER, encoding="utf-8")
    return coupled_graph(fsm_dyn.compile(path))


def test_the_mass_of_a_port_by_closed_form(lever):
    """A point mass on an arm, felt at the tip, along its bar and about its joint."""
    stepper = LiveStepper(lever, 2)
    masses = dict(zip([axis.name for axis in stepper.axes], port_masses(stepper, stepper.axes), strict=True))
    inertia = 3.0 * 0.2**2
    assert masses["tip_1"] == math.inf  # along the bar nothing moves
    assert masses["tip_2"] == pytest.approx(inertia / 0.3**2, rel=1e-9)
    assert masses["turn_1"] == pytest.approx(inertia, rel=1e-9)
    assert masses["block_1"] == pytest.approx(2.0, rel=1e-9)


def test_a_heavy_port_does_not_ring_and_what_was_given_stays(lever):
    stepper = LiveStepper(lever, 2)
    found = usual_dampings(stepper, (), UNKNOWN)
    assert set(found) == {"block_1_damping", "turn_1_damping", "tip_2_damping"}
    for name, mass, stiffness in (("block_1", 2.0, STIFFNESS), ("tip_2", 4.0 / 3.0, STIFFNESS), ("turn_1", 0.12, 4.0)):
        assert found[f"{name}_damping"] == pytest.approx(2.0 * LEAST_RATIO * math.sqrt(stiffness * mass), rel=5e-3)
    assert "block_1_damping" not in usual_dampings(stepper, {"block_1_damping"}, UNKNOWN)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_device_bounds_it(lever, scale):
    felt = most_felt(DeviceMap(scale=scale))
    assert felt == scale**2
    stepper = LiveStepper(lever, 2)
    light = usual_dampings(stepper, (), DeviceDynamics(mass=0.01 * felt), felt)
    assert light["block_1_damping"] == pytest.approx(MOST_PER_TICK * 0.01 / PERIOD, rel=5e-3)
    assert "block_1_damping" not in usual_dampings(stepper, (), DeviceDynamics(mass=1e-3), felt)
    # a passive loop remains passive: b > K T / 2 + B
    b = 4.0 * felt
    known = usual_dampings(stepper, (), DeviceDynamics(damping=b), felt)["block_1_damping"]
    assert known == pytest.approx(min(b / felt - STIFFNESS * PERIOD / 2.0, 6.0), rel=5e-3)


def test_a_live_run_and_the_analysis_have_the_same(lever):
    ready = prepare(lever, "scripted", {"axes": 2})
    graph = damped_graph(lever, (), ready.spec.handle, DeviceMap(), PERIOD)
    for name in ("block_1_damping", "tip_2_damping"):
        assert ready.settings.parameters.get(name, USUAL) == graph.values[name] == ready.stepper.values[name]
        assert ready.stepper.parameters[lever.automaton.terms.layout.p.index(name)] == graph.values[name]


def test_a_moved_port_rings_as_its_damping_ratio_says(lever):
    """A block moved at constant speed: of m g, which the coupler takes up at the start, exp(-z w t) is left."""
    damped = damped_graph(lever, (), UNKNOWN, DeviceMap(), PERIOD)
    mass, begun, looked = 2.0, 200, 1000  # kg, ticks
    rate = math.sqrt(STIFFNESS / mass)
    for graph in (lever, damped):
        stepper = LiveStepper(graph, 1, mapping=DeviceMap(port="block"))
        axis = [axis.name for axis in stepper.axes].index("block_1")
        tick, forces = stepper.tick_data, []
        tick.numbers[[TickNumbers.ENGAGEMENT, TickNumbers.ENGAGEMENT_TARGET]] = 1.0
        tick.counts[[TickCounts.ADVANCING, TickCounts.ANCHOR]] = 1
        for k in range(begun + looked):
            tick.device[:] = [0.01 * k * PERIOD, 0.01]
            stepper.tick()
            forces.append(tick.ports[axis])
        ratio = float(graph.values["block_1_damping"]) / (2.0 * mass * rate)
        late = np.abs(np.array(forces[looked:]) - mass * 9.81).max()
        assert late <= 1.2 * mass * 9.81 * math.exp(-ratio * rate * looked * PERIOD)
        assert ratio == pytest.approx(LEAST_RATIO, rel=5e-3) or graph is lever
