"""Passivity assessment of a coupled model with a device: conditions, verdicts, and their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.live.device_map import DeviceMap
from fsm_dyn.live.driver_protocol import DeviceDynamics
from fsm_dyn.passivity import conditions
from fsm_dyn.passivity.known_hand import Hand, damping_needed_with_hand, growth_with_hand
from fsm_dyn.passivity.sampled_response import SampledLoop, linearise_sampled_loop, velocity_response

Floats = NDArray[np.float64]

PASS: Final = "pass"
FAIL: Final = "fail"
UNKNOWN: Final = "unknown"
STABLE: Final = "stable alone"
HELD: Final = "held stably"  # that is given
BESIDE: Final = frozenset({STABLE, HELD})  # no conditions of passivity
_UNKNOWN: Final = DeviceDynamics()
_GROWS: Final = 1e-6  # beyond one, in a tick: not rounding


@dataclass(frozen=True)
class ConditionResult:
    """Result of one condition along one axis: it holds where more is available than required.

    Attributes
    ----------
    condition : str
        ``wall``, ``mode NAME``, ``coupler``, ``two-port``, ``quantisation``, ``stable alone`` or ``held
        stably``.
    axis : str
    verdict : str
        ``pass``, ``fail``, or ``unknown`` where a property of the device is not known.
    required : float or None
        Damping or dry friction of the device; infinite where none suffices, None where it is unknown.
    available : float or None
        Damping or dry friction that the device has, None: unknown.
    unit : str
    basis : str
        Quantities compared, or those missing.
    """

    condition: str
    axis: str
    verdict: str
    required: float | None
    available: float | None
    unit: str
    basis: str


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
        Compiled from what :func:`fsm_dyn.live.port_coupling.add_couplers` returned.
    handle : DeviceDynamics, optional
        Known dynamics of the device along its translation axes; by default none.
    modes : sequence of str
        Modes whose response is assessed; by default the initial mode of the graph.
    mapping, n_device, period, substeps, method
        As of a live run.
    turns : sequence of int, optional
        Axes of the device that turn; by default those that move axes of the port that do.
    at : mapping, optional
        What replaces entries of the model's ``initial``.
    hand : Hand, optional
        That holds the device: whether the loop is stable with it, which is no condition of passivity.

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
    """Assess the stability of the loop with a hand that is known."""
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
    """Compare the dry friction with what a rounded position needs."""
    unit = "N m" if turns else "N"
    if handle.resolution is None:
        why = "the resolution is not known"
        return ConditionResult("quantisation", axis, UNKNOWN, None, handle.friction, unit, why)
    needed = conditions.friction_needed(K, handle.resolution)
    verdict = UNKNOWN if handle.friction is None else PASS if handle.friction >= needed else FAIL
    why = f"dry friction for steps of {handle.resolution:.3g} {'rad' if turns else 'm'}: K Δ/2"
    return ConditionResult("quantisation", axis, verdict, needed, handle.friction, unit, why)
