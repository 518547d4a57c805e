"""A change of mode gives no energy to the operator at the port.

A simulated device, in a hand that moves, is driven through many transitions.  The same run offline, which is the
same to the last bit, gives the work that the couplers do on the model, by five Gauss points per step, and what
transitions do to its energy.  Tick by tick the books are closed between device, coupler and model.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.devices.emulators.emulated_device import EmulatedHandle
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import DeviceMap, Limits, add_couplers
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import TickCounts

T, SUBSTEPS, TICKS = 1e-3, 4, 2500
FIRST = 3  # ticks in which hold is taken: the couplers close
SLIDE = {"hand_stiffness": 400.0, "hand_damping": 5.0}
TURN = {"hand_stiffness": 4.0, "hand_damping": 0.05}
# axis of the device, amplitude (m or rad), frequency (Hz), phase; model metres per metre; transitions at least
MODELS = {
    "virtual_wall": ([[0, 0.05, 0.9, 0.0], [1, 0.03, 1.7, 3.0]], 1.0, 8),
    "latch": ([[0, 0.09, 0.9, 0.0]], 1.0, 4),
    "bouncing_ball": ([[0, 0.16, 0.8, 1.5]], 4.0, 4),
    "shopping_cart": ([[0, 0.2, 1.1, 0.0], [1, 0.1, 0.7, 0.3], [2, 0.5, 1.6, 0.0]], 1.0, 4),
}
NODES = 0.5 * (np.polynomial.legendre.leggauss(5)[0] + 1.0)
WEIGHTS = 0.5 * np.polynomial.legendre.leggauss(5)[1]


@dataclass
class Run:
    """A live run and the same offline; energies per tick in J, arrays of shape (ticks,)."""

    trajectory: fsm_dyn.Trajectory
    given: np.ndarray  # to the device by the force it held
    entered: np.ndarray  # into the couplers where the device is
    done: np.ndarray  # on the model by the couplers
    stored: np.ndarray  # in the couplers, more than before
    heat: np.ndarray  # of the couplers
    changed: np.ndarray  # whether the mode did
    allowed: np.ndarray  # by which what enters may differ from what the hold gives


def driven(name):
    motion, scale, _ = MODELS[name]
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(name)))
    n = len(motion)
    free = Limits(force=1e6, slew=1e12, torque=1e6, torque_slew=1e12, velocity=1e3, angular_velocity=1e3, ramp=0.0)
    stepper = LiveStepper(graph, n, T, SUBSTEPS, mapping=DeviceMap(scale=scale), limits=free)
    controller = RunController(stepper, lambda event: None)
    turning = [axis.is_rotational for axis in stepper.axes]
    handles = [EmulatedHandle(2e-3, 0.01, **TURN) if turns else EmulatedHandle(0.15, 1.0, **SLIDE) for turns in turning]
    tick = stepper.tick_data
    times, inputs = [0.0], [tick.now.copy()]
    places, forces, made = [np.zeros(n)], [np.zeros(n)], []
    for i in range(TICKS):
        places.append(np.array([handle.position for handle in handles]))
        controller.tick(Sample(0.0, i, places[-1].tolist(), [handle.velocity for handle in handles]))
        assert controller.phase == 0
        times.append(stepper.t)
        inputs.append(tick.now.copy())
        forces.append(tick.force.copy())
        made.append(int(tick.counts[TickCounts.NEW_TRANSITIONS]))
        for handle, force, (_, size, rate, phase) in zip(handles, forces[-1], motion, strict=True):
            handle.force = float(force)
            handle.target = size * (np.sin(2.0 * np.pi * rate * (i + 1) * T + phase) - np.sin(phase))
            handle.advance(T)
    given = np.sum(np.array(forces[:-1]) * np.diff(places, axis=0), axis=1)
    return books(graph, stepper, times, np.array(inputs), given, np.array(made) > 0)


def books(graph, stepper, times, inputs, given, changed):
    names = graph.automaton.terms.layout.w
    tables = {name: {"sampled": np.column_stack([times, inputs[:, i]])} for i, name in enumerate(names)}
    run = fsm_dyn.simulate(graph, until=times[-1], method="rk4", step=T / SUBSTEPS, inputs=tables)
    assert np.array_equal(run.rows.x[-1], stepper.loop.state.x), "off line it is the same run"
    starts, h = run.t[:-1], np.diff(run.t)
    long = h > 0.0
    inner = run.sample((starts[long, None] + h[long, None] * NODES).ravel())
    weights = h[long, None] * WEIGHTS
    tick_of = np.minimum(np.searchsorted(times, starts[long], side="right"), TICKS) - 1
    entered, heat, stored, allowed = (np.zeros(TICKS) for _ in range(4))
    ends = run.sample(np.array(times))
    for axis in stepper.axes:
        K, B = (float(np.sum(graph.values[name])) for name in (axis.stiffness, axis.damping))
        rate, grip = inputs[:, names.index(axis.rate)], inputs[:, names.index(axis.engagement)]
        place = inputs[:, names.index(axis.device)]
        slope = np.diff(place) / np.diff(times)
        force = inner[axis.outputs[0]].reshape(weights.shape)
        relative = (inner[axis.rate] - inner[axis.outputs[2]]).reshape(weights.shape)
        held = inner[axis.engagement].reshape(weights.shape)
        np.add.at(entered, tick_of, np.sum(weights * force, axis=1) * slope[tick_of])
        # the rate that is sampled is not just that at which the place runs: what the damper really takes
        opens = slope[tick_of, None] - inner[axis.outputs[2]].reshape(weights.shape)
        np.add.at(heat, tick_of, np.sum(weights * held * B * relative * opens, axis=1))
        lead = place - ends[axis.outputs[1]]
        stored += np.diff(0.5 * grip * K * lead**2)
        port = ends[axis.outputs[2]]
        # of a straight course over a tick: the spring's force changes by K |w' - p'| T, the damper's by B |d(w' - p')|
        spread = K * np.abs(rate[1:] - port[1:]) * T + B * np.abs(np.diff(rate - port))
        allowed += np.abs(np.diff(place)) * spread
    own = len(fsm_dyn.load(graph.name).loads)
    couplers = list(run.energy.work)[own - len(graph.automaton.mechanism.loads) :]  # the last ones
    keep = np.append(np.diff(run.t) > 0.0, True)  # of two rows at one instant the later
    done = np.diff(np.interp(times, run.t[keep], sum(run.energy.work[name] for name in couplers)[keep]))
    parts = (part[FIRST:] for part in (given, entered, done, stored, heat, changed, allowed))
    return Run(run, *parts)


@pytest.fixture(scope="module", params=MODELS)
def run(request):
    return driven(request.param), MODELS[request.param][2]


def test_what_enters_the_couplers_reaches_the_model_or_is_accounted_for(run):
    """In ticks in which the mode changes as in all others; what is left is the error of the integration.

    The stiffest is the plate of the wall: 632 rad/s in steps of T/4, of fourth order, (0.16)^5 / 120 = 8e-7 a step.
    """
    run, least = run
    assert run.changed.sum() >= least
    left = run.entered - run.done - run.stored - run.heat
    scale = np.abs(run.entered).max()
    assert np.abs(left[~run.changed]).max() < 1e-6 * scale
    assert np.abs(left[run.changed]).max() < 1e-6 * scale


def test_the_device_gets_what_the_hold_gives_and_no_more(run):
    """Between the force held and the one the couplers would show lies what they change by in a tick: of order T^2.

    That holds tick by tick with the same bound, whether the mode changes or not; summed up, a tick with a change gives
    no more on the average than one without, by the same bound.
    """
    run, _ = run
    leak = run.given + run.entered
    floor = 1e-12 * np.abs(run.entered).max()
    assert np.all(np.abs(leak) <= 1.5 * run.allowed + floor)
    assert np.abs(leak).max() > floor, "nothing was held"


def test_changes_of_mode_only_lose_energy(run):
    run, _ = run
    account = run.trajectory.energy
    jumps = np.diff(account.transitions)
    assert jumps.max() <= 1e-9 * account.exchanged
    assert account.relative_residual < 1e-5
