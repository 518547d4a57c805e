"""Passivity and stability of a coupled model with a device, unconditional and with a known hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq

from fsm_dyn.automaton.initial_state import find_initial_state
from fsm_dyn.automaton.initial_values import initial_values
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.live import sampled_loop as conditions
from fsm_dyn.live.device_map import DeviceMap, port_of
from fsm_dyn.live.driver_protocol import DeviceDynamics
from fsm_dyn.live.sampled_loop import INPUT_LENGTH, SampledLoop, linearise_sampled_loop, velocity_response

# -- Stability of a coupled model with a device and a hand ---------------------------------------------------
#
# Stability of a coupled model with a known device and hand: the exact map of the loop over a tick.
#
# Device and hand are a mass on a spring and a damper, ``m x'' = F - b x' - k x``, solved exactly under a force that is
# constant over a tick, or changes within it if the delay is no whole number of ticks. The model is that of
# :class:`~fsm_dyn.live.sampled_loop.SampledLoop`; the velocity is the one reported by the device. No assumption is
# made about frequencies, and aliasing is included: the loop is stable if and only if the map is (docs/theory.md).


_MOST: Final = 1e4  # N s/m, of a device
_HALVINGS: Final = 40
_ROUNDING: Final = 1e-9  # beyond one, of a growth


@dataclass(frozen=True)
class Hand:
    """A hand on the device."""

    # stiffness, damping, mass: N/m, N s/m, kg
    stiffness: float = 0.0
    damping: float = 0.0
    mass: float = 0.0

    def __post_init__(self) -> None:
        if not all(0.0 <= value < math.inf for value in (self.stiffness, self.damping, self.mass)):
            found = f"{self.stiffness:g} N/m, {self.damping:g} N s/m, {self.mass:g} kg"
            raise InputError("stiffness, damping and mass of a hand", found=found, allowed="from 0")


def growth_with_hand(loop: SampledLoop, axis: int, device: DeviceDynamics, hand: Hand) -> float:
    """Return the largest growth factor of a motion in a tick, with a hand on one axis of the device.

    ``axis``: of the loop, with a coupler; ``device``: its mass and damping must be known. Raises InputError: mass or
    damping of the device is unknown.
    """
    if device.mass is None or device.damping is None:
        raise InputError("a loop with a hand needs mass and damping of the device", remedy="give --mass and --damping")
    step = _tick(loop, axis, device, hand)
    size = step(np.zeros(0)).size
    columns = [step(unit) for unit in np.eye(size)]
    return float(np.abs(np.linalg.eigvals(np.array(columns).T)).max())


def damping_needed_with_hand(loop: SampledLoop, axis: int, device: DeviceDynamics, hand: Hand) -> float:
    """Return the least damping of the device (N s/m) above which the loop is stable; infinite for none.

    A device may be unstable with much damping too: this is the end of the interval from which stability begins.
    """

    def stable(damping: float) -> bool:
        return growth_with_hand(loop, axis, replace(device, damping=damping), hand) < 1.0 + _ROUNDING

    if stable(0.0):
        return 0.0
    tried = [value for value in np.geomspace(1e-3, _MOST, _HALVINGS) if stable(float(value))]
    if not tried:
        return math.inf
    low, high = 0.0, float(tried[0])
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stable(middle) else (middle, high)
    return high


def _tick(loop: SampledLoop, axis: int, device: DeviceDynamics, hand: Hand) -> Callable[[Floats], Floats]:
    """Return the map of the whole state over a tick.

    The state: position and velocity of the device, position and velocity sampled in the tick before, the state of the
    model, the forces commanded in the last ticks, the latest first.
    """
    T, scale = loop.period, float(loop.scales[axis])
    late = device.delay / T
    whole = math.floor(late + 1e-9)
    part = max(late - whole, 0.0)
    n, forces = len(loop.step), whole + (part > 0.0)
    plant = [_plant(device, hand, duration) for duration in (part * T, (1.0 - part) * T)]
    at = INPUT_LENGTH * sum(1 if bandwidth else 2 for bandwidth in loop.filters[:axis])
    report = _velocity(device.velocity_bandwidth, T)

    def step(z: Floats) -> Floats:
        if z.size == 0:  # asks for the size
            return np.zeros(4 + n + forces)
        moving, before, s, sent = z[:2], z[2:4], z[4 : 4 + n], z[4 + n :]
        x, v = float(moving[0]), report(moving, before)
        begins, ends = np.zeros(loop.push.shape[1]), np.zeros(loop.push.shape[1])
        for k, (value, old) in enumerate(((x, before[0]), (v, before[1]))):
            first = at + k * INPUT_LENGTH
            begins[first : first + 2] = scale * old, scale * (value - old) / T
            ends[first] = scale * value
        s = loop.step @ s + loop.push @ begins
        force = -loop.force_scale * scale * float((loop.out @ s + loop.through @ ends)[axis])
        commanded = np.concatenate([[force], sent])
        if part > 0.0:
            moving = plant[0][:, :2] @ moving + plant[0][:, 2] * commanded[whole + 1]
        moving = plant[1][:, :2] @ moving + plant[1][:, 2] * commanded[whole]
        return np.concatenate([moving, [x, v], s, commanded[:forces]])

    return step


def _velocity(bandwidth: float | None, T: float) -> Callable[[Floats, Floats], float]:
    """Return the reported velocity, from the motion of the device and its report of the tick before."""
    if bandwidth is None:
        return lambda moving, before: float(moving[1])
    part = 1.0 if bandwidth == math.inf else -math.expm1(-2.0 * math.pi * bandwidth * T)
    return lambda moving, before: float(before[1] + part * ((moving[0] - before[0]) / T - before[1]))


def _plant(device: DeviceDynamics, hand: Hand, duration: float) -> Floats:
    """Return the map of device and hand over a time at a constant force: position and velocity, by those and by it."""
    mass = (device.mass or 0.0) + hand.mass
    matrix = np.zeros((3, 3))
    matrix[0, 1] = 1.0
    matrix[1] = -hand.stiffness / mass, -((device.damping or 0.0) + hand.damping) / mass, 1.0 / mass
    found: Floats = expm(matrix * duration)[:2]
    return found


# -- Passivity assessment of a coupled model with a device ---------------------------------------------------
#
# Passivity assessment of a coupled model with a device: conditions, verdicts, and their numbers.

PASS: Final = "pass"
FAIL: Final = "fail"
UNKNOWN: Final = "unknown"
STABLE: Final = "stable alone"
HELD: Final = "held stably"  # with a given hand
BESIDE: Final = frozenset({STABLE, HELD})  # no conditions of passivity
_UNKNOWN: Final = DeviceDynamics()
_GROWS: Final = 1e-6  # beyond one, in a tick: not rounding


@dataclass(frozen=True)
class ConditionResult:
    """Result of one condition along one axis: it holds if more is available than required."""

    # ``wall``, ``mode NAME``, ``coupler``, ``two-port``, ``quantisation``, ``stable alone`` or ``held stably``
    condition: str
    axis: str
    verdict: str  # ``pass``, ``fail``, or ``unknown`` if a property of the device is not known
    required: float | None  # required damping or dry friction of the device; infinite if none suffices, None if unknown
    available: float | None  # damping or dry friction of the device, None: unknown
    unit: str
    basis: str  # compared quantities, or missing ones


@dataclass(frozen=True)
class Assessment:
    """Passivity assessment of a coupled model with a device.

    Attributes
    ----------
    model, port : str
    period : float
        s.
    handle : DeviceDynamics
        The device, as far as it is known.
    stiffness, damping : mapping
        Of the coupler as the device feels it, by axis.
    checks : tuple of ConditionResult
    """

    model: str
    port: str
    period: float
    handle: DeviceDynamics
    stiffness: Mapping[str, float]
    damping: Mapping[str, float]
    checks: tuple[ConditionResult, ...]

    @property
    def verdict(self) -> str:
        """``fail`` if a condition of passivity fails, else ``unknown`` if one is unknown, else ``pass``."""
        found = {check.verdict for check in self.checks if check.condition not in BESIDE}
        return next((verdict for verdict in (FAIL, UNKNOWN) if verdict in found), PASS)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as JSON holds it (infinite numbers as text)."""
        data = asdict(self)
        for check in data["checks"]:
            if check["required"] == np.inf:
                check["required"] = "infinite"
        return {**data, "verdict": self.verdict}

    def rows(self) -> list[tuple[str, ...]]:
        """Return the checks as lines of a table: condition, axis, verdict, needed, given, why."""
        lines: list[tuple[str, ...]] = []
        for c in self.checks:
            condition, _, mode = c.condition.partition(" ") if c.condition not in BESIDE else (c.condition, "", "")
            why = f"{mode}: {c.basis}" if mode else c.basis  # names of modes can be long
            lines.append((condition, c.axis, c.verdict, _number(c.required, c.unit), _number(c.available, c.unit), why))
        return lines

    def __str__(self) -> str:
        head = f"{self.model}, port {self.port}, at {1.0 / self.period:.4g} Hz: {self.verdict}"
        return "\n".join([head, *("  " + ", ".join(row) for row in self.rows())])


def _number(value: float | None, unit: str) -> str:
    return "unknown" if value is None else "infinite" if value == np.inf else f"{value:.4g} {unit}"


def assess(
    graph: ModeGraph,
    handle: DeviceDynamics | None = None,
    *,
    modes: Sequence[str] = (),
    mapping: DeviceMap | None = None,
    n_device: int | None = None,
    turns: Sequence[int] | None = None,
    period: float = 1e-3,
    substeps: int = 1,
    method: str = "rk4",
    at: Mapping[str, float | str] | None = None,
    hand: Hand | None = None,
) -> Assessment:
    """Assess a coupled model with a device by the conditions of passivity (docs/theory.md, "Passivity").

    Parameters
    ----------
    graph : ModeGraph
        Compiled from the result of :func:`fsm_dyn.live.device_map.add_couplers`.
    handle : DeviceDynamics, optional
        Known dynamics of the device along its translation axes; by default none.
    modes : sequence of str
        Modes to assess; by default the initial mode of the graph.
    mapping, n_device, period, substeps, method
        As of a live run.
    turns : sequence of int, optional
        Rotational axes of the device; by default those mapped to rotational axes of the port.
    at : mapping, optional
        Replacements for entries of the model's ``initial``.
    hand : Hand, optional
        Hand on the device, to assess the stability of the loop with it (not a condition of passivity).

    Returns
    -------
    Assessment

    Raises
    ------
    InputError
        A mode or port is unknown, or the axes do not fit.
    """
    handle = handle or DeviceDynamics()
    loops = [
        linearise_sampled_loop(
            graph,
            mode,
            mapping=mapping,
            n_device=n_device,
            period=period,
            substeps=substeps,
            method=method,
            at=at,
            velocity_bandwidth=handle.velocity_bandwidth,
        )
        for mode in (modes or [graph.initial])
    ]
    first = loops[0]
    checks: list[ConditionResult] = []
    stiffness, damping = {}, {}
    turning = [
        axis.is_rotational if turns is None else source in turns
        for axis, source in zip(first.axes, first.sources, strict=True)
    ]
    for k, axis in enumerate(first.axes):
        # a handle is known along straight axes
        known = replace(_UNKNOWN, delay=handle.delay, velocity_bandwidth=handle.velocity_bandwidth)
        known = known if turning[k] else handle
        if not axis.prescribed_coordinate:
            felt = first.force_scale * first.scales[k] ** 2
            K, B = (felt * float(np.sum(graph.values[name])) for name in (axis.stiffness, axis.damping))
            stiffness[axis.name], damping[axis.name] = K, B
            checks += _of_coupler(axis.name, K, B, known, turning[k], period)
        for loop in loops:
            checks.append(_of_mode(loop, [k], axis.name, known, turning[k]))
            if hand is not None and not axis.prescribed_coordinate:
                checks.append(_of_hand(loop, k, axis.name, known, turning[k], hand))
    straight = [k for k, turns_too in enumerate(turning) if not turns_too]
    if len(straight) > 1:
        checks += [_of_mode(loop, straight, "together", handle, False) for loop in loops]
    return Assessment(graph.name, first.axes[0].port, period, handle, stiffness, damping, tuple(checks))


def _of_coupler(
    axis: str, K: float, B: float, handle: DeviceDynamics, turns: bool, period: float
) -> list[ConditionResult]:
    """Assess the conditions on the coupler alone: a rigid model, any model, rounding, and a wall without a hand."""
    w, delay, bandwidth = conditions.frequencies(period), handle.delay, handle.velocity_bandwidth
    late = f", {delay:g} s late" if delay else ""
    rate = velocity_response(np.exp(1j * w * period), period, bandwidth)
    by_difference = bandwidth == np.inf
    if by_difference:
        formula = "" if delay else ": K T/2 + |B|"
    else:
        formula = ", velocity " + ("as measured" if bandwidth is None else f"filtered at {bandwidth:g} Hz")
    rigid = conditions.wall_damping_required(K, B, period)
    if delay or not by_difference:
        rigid = float(conditions.damping_needed(K + B * rate, w, period, delay).max())
    any_model = float(conditions.coupler_damping_required(K, B, w, period, delay, rate).max())
    two_port = float(conditions.coupler_damping_required(K, B, w, period, delay, rate, aliased=False).max())
    alone = max(0.0, K * (0.5 * period + delay) - B)
    return [
        _damping("wall", axis, rigid, handle, turns, f"the model rigid{late}{formula}"),
        _damping("coupler", axis, any_model, handle, turns, f"any passive model and hand{late}"),
        _damping("two-port", axis, two_port, handle, turns, f"Llewellyn, below half the rate alone{late}"),
        _quantisation(axis, K, handle, turns),
        _damping(STABLE, axis, alone, handle, turns, f"a wall without a hand: not passivity{late}"),
    ]


def _of_mode(loop: SampledLoop, axes: list[int], name: str, handle: DeviceDynamics, turns: bool) -> ConditionResult:
    """Assess the response of a mode, along one axis or along several together."""
    condition = f"mode {loop.mode}"
    if loop.growth > 1.0 + _GROWS:
        why = f"the model by itself grows by {loop.growth - 1.0:.2g} in a tick: it is not passive"
        return ConditionResult(condition, name, UNKNOWN, None, handle.damping, _unit(turns), why)
    w = conditions.frequencies(loop.period)
    near = loop.resonances()[:, None] * (1.0 + np.array([-1e-2, -1e-3, -1e-4, 0.0, 1e-4, 1e-3, 1e-2]))
    w = np.unique(np.concatenate([w, near[(near > 0.0) & (near <= np.pi / loop.period)]]))
    response = loop.response(w)[:, axes][:, :, axes]
    needs = conditions.damping_needed(response, w, loop.period, handle.delay)
    worst = int(np.argmax(needs))
    why = f"its own response, most at {w[worst] / (2.0 * np.pi):.3g} Hz"
    return _damping(condition, name, max(0.0, float(needs[worst])), handle, turns, why)


def _of_hand(
    loop: SampledLoop, axis: int, name: str, handle: DeviceDynamics, turns: bool, hand: Hand
) -> ConditionResult:
    """Assess the stability of the loop with a known hand."""
    if handle.mass is None or handle.damping is None:
        why = "the mass of the device is not known" if handle.mass is None else "its damping is not known"
        return ConditionResult(HELD, name, UNKNOWN, None, handle.damping, _unit(turns), why)
    needed = damping_needed_with_hand(loop, axis, handle, hand)
    growth = growth_with_hand(loop, axis, handle, hand)
    held = f"{hand.stiffness:g} N/m, {hand.damping:g} N s/m, {hand.mass:g} kg"
    why = f"mode {loop.mode}, {held}: factor {growth:.4g} a tick"
    verdict = PASS if growth < 1.0 else FAIL
    return ConditionResult(HELD, name, verdict, needed, handle.damping, _unit(turns), why)


def _unit(turns: bool) -> str:
    return "N m s/rad" if turns else "N s/m"


def _damping(
    condition: str, axis: str, needed: float, handle: DeviceDynamics, turns: bool, why: str
) -> ConditionResult:
    verdict = UNKNOWN if handle.damping is None else PASS if handle.damping > needed else FAIL
    return ConditionResult(condition, axis, verdict, needed, handle.damping, _unit(turns), why)


def _quantisation(axis: str, K: float, handle: DeviceDynamics, turns: bool) -> ConditionResult:
    """Compare the dry friction with the friction needed for a rounded position."""
    unit = "N*m" if turns else "N"
    if handle.resolution is None:
        why = "the resolution is not known"
        return ConditionResult("quantisation", axis, UNKNOWN, None, handle.friction, unit, why)
    needed = conditions.friction_needed(K, handle.resolution)
    verdict = UNKNOWN if handle.friction is None else PASS if handle.friction >= needed else FAIL
    why = f"dry friction for steps of {handle.resolution:.3g} {'rad' if turns else 'm'}: K Δ/2"
    return ConditionResult("quantisation", axis, verdict, needed, handle.friction, unit, why)


# -- Stability of a device -----------------------------------------------------------------------------------
#
# Stability of an admittance device: it measures the force of the hand and follows the model (docs/theory.md,
# "Admittance").
#
# A hand of stiffness ``K`` and damping ``B`` holds the device; its force moves an inertia ``M`` in the model, and the
# device follows a time ``d`` later. The loop oscillates at the boundary given by
#
#     M w^2 = |K + j w B|,    arctan(w B / K) = w d:
#
# a lighter inertia is unstable. A hand without damping, or with ``B < K d``, is unstable with any.

_SMALL = 1e-6  # of the phase's range, at its ends


def least_inertia(stiffness: float, damping: float, delay: float) -> float:
    """Return the least inertia of a stable loop.

    ``stiffness``, ``damping``: of the hand, N/m and N s/m; ``delay``: from the force of the hand to the resulting
    motion, s, the tick included. Result: kg; infinite if no inertia is stable, 0 without a delay.
    """
    if min(stiffness, damping, delay) < 0.0 or stiffness == 0.0:
        raise InputError(
            "hand and delay", found=f"{stiffness:g} N/m, {damping:g} N s/m, {delay:g} s", allowed="above 0"
        )
    if delay == 0.0:
        return 0.0
    if damping <= stiffness * delay:
        return math.inf
    ends = _SMALL / delay, 0.5 * math.pi / delay
    w = float(brentq(lambda w: math.atan2(w * damping, stiffness) - w * delay, *ends))
    return math.hypot(stiffness, w * damping) / w**2


@dataclass(frozen=True)
class AdmittanceCondition:
    """Verdict for an axis of the port in one mode."""

    axis: str
    mode: str
    inertia: float  # inertia felt by the hand, at the device, kg or kg m^2; infinite if the mode fixes the port
    required: float  # least stable inertia, in the same unit

    @property
    def stable(self) -> bool:
        """Whether the loop is stable."""
        return self.inertia > self.required


def assess_admittance(
    graph: ModeGraph,
    mode: str,
    *,
    stiffness: float,
    damping: float,
    delay: float,
    port: str = "",
    scale: float = 1.0,
    period: float = 1e-3,
) -> tuple[AdmittanceCondition, ...]:
    """Assess a model with an admittance device, for each axis of a port.

    ``graph``: coupled graph: ``coupled_graph(graph, admittance=True)``. ``mode``: mode for the inertia, at the model's
    initial state. ``stiffness``, ``damping``: of the hand, N/m and N s/m. ``delay``: of the device, s: from a command
    to the motion and from a force to its sample; a tick is added. ``port``: empty: the first. ``scale``: of the device
    map. ``period``: of the tick, s. Raises InputError: port or mode are unknown, or the graph is coupled for devices
    that measure motions.
    """
    required = least_inertia(stiffness, damping, delay + period)
    seen = inertia_seen(graph, mode, port)
    return tuple(AdmittanceCondition(axis, mode, scale**2 * value, required) for axis, value in seen.items())


def inertia_seen(graph: ModeGraph, mode: str, port: str = "") -> dict[str, float]:
    """Return the inertia against a force along each axis of a port in a mode, at the initial state, kg or kg m^2.

    Raises InputError: port or mode are unknown, or the graph is coupled for devices that measure motions.
    """
    coupled, automaton = port_of(graph, port), graph.automaton
    if not coupled.axes[0].is_applied_force:
        raise InputError(f"'{graph.name}' is coupled for impedance", remedy="coupled_graph(graph, admittance=True)")
    known = {found.name: found for found in automaton.modes}
    if mode not in known:
        raise InputError(f"no mode '{mode}'", allowed=", ".join(known), remedy=did_you_mean(mode, list(known)))
    layout = automaton.terms.layout
    begin = initial_values(automaton, graph.values, graph.parameters, {"settle": False})
    at_rest = {name: value for name, value in begin.values.items() if name in layout.q}
    here = find_initial_state(automaton, at_rest, mode, 0.0, begin.context)
    program = automaton.derive(known[mode].states, 0.0, here.x, here.context).programs.rhs
    n_q = len(layout.q)

    def rates(context: Floats) -> Floats:
        return np.asarray(program.evaluate(0.0, here.x, context)["x_dot"])[n_q:]

    def speeds_at_port(u: Floats) -> Floats:
        x = here.x.copy()
        x[n_q:] = u
        return np.asarray(automaton.report.evaluate(0.0, x, here.context)["outputs"])

    names = list(automaton.mechanism.outputs)
    found = {}
    for axis in coupled.axes:
        pushed = here.context.copy()
        pushed[layout.w_slice.start + layout.w.index(axis.applied_force)] += 1.0
        response = rates(pushed) - rates(here.context)
        moved = (speeds_at_port(response) - speeds_at_port(np.zeros_like(response)))[names.index(axis.outputs[2])]
        found[axis.name] = 1.0 / float(moved) if moved > 0.0 else math.inf
    return found
