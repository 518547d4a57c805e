"""The response of a coupled model against the live loop itself, driven by small oscillations."""

import numpy as np
import pytest

from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import DeviceMap, Limits
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.sampled_loop import linearise_sampled_loop
from fsm_dyn.live.stepper import LiveStepper

FREE = Limits(force=1e9, slew=1e15, velocity=1e9, ramp=0.0)
SPRING = {
    "fsm_dyn": 1,
    "name": "spring",
    "parameters": {"m": "2 kg", "k": "50 N/m", "d": "3 N*s/m"},
    "coordinates": {"x": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"b": {"center": "P", "mass": "m"}},
    "loads": [{"law": "-k*x - d*rate(x)", "coordinate": "x"}],
    "ports": {"crank": {"coordinate": "x", "kinematic": "15 Hz"}},
    "initial": {"x": "0.02 m"},
}
N = 250  # ticks over which the response is taken


def measured(graph, loop, mode, cycles, axis, mapping, settling, at, **options):
    """Drive one axis by ``cycles`` swings in N ticks and return the resisting force, as a complex amplitude."""
    n, T = len(loop.axes), loop.period
    stepper = LiveStepper(graph, n, mapping=mapping, limits=FREE, initial={"mode": mode, **at}, **options)
    controller = RunController(stepper, lambda event: None)
    w, size, forces, before = 2.0 * np.pi * cycles / (N * T), 1e-6, [], 0.0
    for i in range(settling + N):
        x = size * np.sin(w * i * T) * min(1.0, 4.0 * i / settling)
        position, velocity = np.zeros(n), np.zeros(n)
        position[axis], velocity[axis] = x, (x - before) / T
        before = x
        controller.tick(Sample(0.0, i, position.tolist(), velocity.tolist()))
        forces.append(stepper.tick_data.force.copy())
    assert stepper.mode == mode, "the oscillation is to stay within the mode"
    turn = np.exp(-1j * w * T * np.arange(settling, settling + N))
    return -2.0 / N * (np.array(forces[settling:]) * turn[:, None]).sum(axis=0) / (-1j * size)


@pytest.mark.parametrize(
    ("source", "mode", "at", "options", "scale", "tolerance"),
    [
        ("bouncing_ball", "resting", {"y": 0.0}, {}, 1.0, 1e-12),
        ("virtual_wall", "free", {"y": 0.01}, {"substeps": 3, "method": "heun"}, 2.0, 1e-7),
        ("virtual_wall", "free", {"y": 0.01}, {"period": 2e-3}, 1.0, 1e-7),
        (SPRING, "motion", {}, {}, 1.5, 1e-12),
        (SPRING, "motion", {}, {"substeps": 2, "method": "heun"}, 1.0, 1e-9),
    ],
)
def test_the_response_is_that_of_the_live_loop(held, source, mode, at, options, scale, tolerance):
    """The difference is rounding, and the rest of the initial motion (the tool's coupler decays with 5/s)."""
    graph = held(source)
    mapping = DeviceMap(scale=scale)
    loop = linearise_sampled_loop(graph, mode, mapping=mapping, at=at, **options)
    for cycles in (5, 37):
        H = loop.response([2.0 * np.pi * cycles / (N * loop.period)])[0]
        axis = len(loop.axes) - 1
        found = measured(graph, loop, mode, cycles, axis, mapping, 3000, at, **options)
        np.testing.assert_allclose(found, H[:, axis], rtol=0.0, atol=tolerance * np.abs(H).max())


def test_a_free_mass_behind_a_coupler_in_closed_form(held):
    """In slow motion it is M s^2 in series with K + B s; the sampled rate lags by half a tick."""
    loop = linearise_sampled_loop(held("virtual_wall"), "free", at={"y": 0.01})
    w, K, B, m = 20.0, 200.0, 2.0, 0.2
    s = 1j * w
    spring = K + B * (1.0 - np.exp(-s * 1e-3)) / 1e-3
    # a straight input between ticks: sinc^2, which is one to (w T)^2 / 12
    expected = spring * m * s * s / (K + B * s + m * s * s)
    assert loop.response([w])[0, 0, 0] == pytest.approx(expected, rel=1e-4)
    decays = np.max(np.exp(1e-3 * np.roots([m, B, K]).real))
    assert loop.growth == pytest.approx(decays, rel=1e-6)


def test_what_resists_is_turned_into_the_units_of_the_device(held):
    one = linearise_sampled_loop(held("virtual_wall"), "free").response([300.0])[0]
    two = linearise_sampled_loop(
        held("virtual_wall"), "free", mapping=DeviceMap(scale=(2.0, -3.0), force_scale=0.5)
    ).response([300.0])
    np.testing.assert_allclose(two[0], one * 0.5 * np.outer([2.0, -3.0], [2.0, -3.0]), rtol=1e-12)
