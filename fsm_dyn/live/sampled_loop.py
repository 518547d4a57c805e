"""A sampled loop with a device: transfer function, conditions of passivity, Z-width (docs/theory.md, "Passivity")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from fsm_dyn.analysis.linearisation import independent_coordinates, jacobian
from fsm_dyn.automaton.initial_state import find_initial_state
from fsm_dyn.automaton.initial_values import initial_values
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.language.elements import CoupledPort, PortAxis
from fsm_dyn.language.memory import refuse_controllers
from fsm_dyn.live.device_map import DeviceMap, coupled_ports
from fsm_dyn.live.driver_protocol import DeviceDynamics
from fsm_dyn.live.tick import bandwidths
from fsm_dyn.programs.program import Program
from fsm_dyn.run.integrators import METHODS, Tableau

# -- Conditions of passivity of a sampled loop with zero-order hold ------------------------------------------
#
# Conditions of passivity of a sampled loop with zero-order hold, as formulae (docs/theory.md, "Passivity").
#
# Everything is along one axis of the device, or along several as matrices, in units of the device: N, m, s. ``b`` is
# the viscous damping of the device alone, ``T`` the period of the loop, ``K`` and ``B`` stiffness and damping felt,
# the rate of the position being its backward difference. The only assumption on the hand is passivity.


Complexes = NDArray[np.complex128]

_TURNS: Final = np.concatenate([-np.geomspace(1e-6, np.pi, 40), [0.0], np.geomspace(1e-6, np.pi, 40)])  # rad
_THIRDS: Final = 25
_ALIASES: Final = 200  # bands on either side: their weight falls with the second power
_GRID: Final = 160


def frequencies(period: float, count: int = _GRID) -> Floats:
    """Return frequencies (rad/s) from near zero to half the rate at which to look, shape (count,)."""
    nyquist = np.pi / period
    low = np.geomspace(1e-4, 1e-2, count // 4, endpoint=False)
    return np.concatenate([low, np.linspace(1e-2, 1.0, count - len(low))]) * nyquist


def wall_damping_required(stiffness: float, damping: float, period: float) -> float:
    """Return the damping of the device required by a sampled wall, ``K T / 2 + |B|`` (N s/m).

    Colgate & Brown, "Factors affecting the Z-width of a haptic display", ICRA 1994.
    """
    return 0.5 * stiffness * period + abs(damping)


def stable_stiffness(device: float, damping: float, period: float, delay: float) -> float:
    """Return the largest stiffness of a stable wall without a hand, ``(b + B) / (T / 2 + t_d)`` (N/m).

    Stability is less than passivity: a hand on the device may still make it buzz.  Gil, Avello, Rubio & Florez,
    "Stability analysis of a 1 DOF haptic interface using the Routh-Hurwitz criterion", IEEE TCST 2004; Hulin, Preusche
    & Hirzinger, "Stability boundary for haptic rendering", IROS 2006.  For small delays and dampings.
    """
    return (device + damping) / (0.5 * period + delay)


def friction_needed(stiffness: float, resolution: float) -> float:
    """Return the dry friction for passivity of a rounded position, ``K Δ / 2`` (N).

    Abbott & Okamura, "Effects of position quantization and sampling rate on virtual-wall passivity", IEEE Transactions
    on Robotics 21(5), 2005.
    """
    return 0.5 * stiffness * resolution


def damping_needed(response: ArrayLike, w: ArrayLike, period: float, delay: float = 0.0) -> Floats:
    """Return the least damping of the device for a passive loop, at each frequency (N s/m).

    ``response``, complex array, shape (k,) or (k, n, n): ``H(exp(j w T))``: from the sampled positions of the device
    (m) to the resisting forces (N). ``w``, shape (k,): frequencies, above 0 and up to pi / T, rad/s. ``period``,
    ``delay``: of the loop; additional, from sampling to exerting the force, s. The result has the shape (k,). The loop
    is passive with every passive hand if and only if the damping is above all of them.  Without a delay, or with one of
    whole periods, this is Colgate & Schenkel's condition (Journal of Robotic Systems 14(1), 1997), ``(T / 2) / (1 - cos
    w T) Re{(1 - exp(-j w T)) H}``.
    """
    w = np.asarray(w, dtype=np.float64)
    H = np.asarray(response, dtype=np.complex128)
    H = H.reshape(len(w), 1, 1) if H.ndim == 1 else H
    factor, folded, most, rest = _bands(w, period, delay)
    c = factor[:, None, None] * H
    real = c * folded[:, None, None]
    real = 0.5 * (real + real.conj().swapaxes(1, 2))
    spread = (most * rest * (period - rest))[:, None, None] * (c @ c.conj().swapaxes(1, 2))
    n = H.shape[1]
    if n == 1:
        r = real[:, 0, 0].real
        found: Floats = r + np.sqrt(r**2 + spread[:, 0, 0].real)
        return found
    # the largest b of b^2 v = 2 b real v + spread v
    companion = np.zeros((len(w), 2 * n, 2 * n), dtype=np.complex128)
    companion[:, :n, n:] = np.eye(n)
    companion[:, n:, :n], companion[:, n:, n:] = spread, 2.0 * real
    largest: Floats = np.linalg.eigvals(companion).real.max(axis=1)
    return largest


def coupler_damping_required(
    stiffness: float,
    damping: float,
    w: ArrayLike,
    period: float,
    delay: float = 0.0,
    rate: ArrayLike | None = None,
    *,
    aliased: bool = True,
) -> Floats:
    """Return the least damping of the device for a coupler passive with any model, at each frequency (N s/m).

    ``rate``, complex array, shape (k,): the reported velocity over the position, by default the backward difference.
    ``aliased``: whether all aliased bands count.  The coupler then shows ``H = (K + B (1 - 1/z) / T) sum s_m Y_m``,
    with ``s_m`` the shares of the bands in a position linear from sample to sample (they add up to one), and ``Y_m = Z
    / (Z_c + Z)`` at the band's frequency anywhere in a disc through 0 and 1 with the radius ``1 / (2 cos arg Z_c)``.
    All such ``H`` fill a disc; the damping is the largest of :func:`damping_needed` on its rim.  Without them it is
    Llewellyn's condition of absolute stability for the two-port between hand and model, ``2 Re h11 Re h22 >= |h12 h21|
    + Re(h12 h21)`` with ``Re h11, Re h22 >= 0`` (Adams & Hannaford, "Stable haptic interaction with virtual
    environments", IEEE Transactions on Robotics and Automation 15(3), 1999), solved for the damping, which enters ``Re
    h11`` alone: ``h11 = m s + b`` is the device, ``h12`` hold and delay, ``h22 = 1 / (B + K / s)`` the coupler, which
    is integrated with the model, and ``h21`` the interpolation of the device's positions from sample to sample.

    The result has the shape (k,).
    """
    w = np.asarray(w, dtype=np.float64)
    if not aliased:
        h12, h21, yields = _two_port(stiffness, damping, w, period, delay, rate)
        product = h12 * h21
        with np.errstate(divide="ignore"):
            found: Floats = (np.abs(product) + product.real) / (2.0 * yields)
        return found
    if damping <= 0.0:
        return np.full(len(w), np.inf)
    bands = w[:, None] + 2.0 * np.pi / period * np.arange(-_ALIASES, _ALIASES + 1)
    shares = np.sinc(bands * period / (2.0 * np.pi)) ** 2
    shares /= shares.sum(axis=1, keepdims=True)
    slope = stiffness / (damping * bands)
    velocity = (1.0 - np.exp(-1j * w * period)) / period if rate is None else np.asarray(rate)
    size = (stiffness + damping * velocity) / 2.0
    centre = size * (1.0 + 1j * (shares * slope).sum(axis=1))
    radius = np.abs(size) * (shares * np.sqrt(1.0 + slope**2)).sum(axis=1)
    return _most_on_rim(centre, radius, w, period, delay)


def _two_port(
    K: float, B: float, w: Floats, period: float, delay: float, rate: ArrayLike | None
) -> tuple[Complexes, Complexes, Floats]:
    """Return ``h12``, ``h21`` and ``Re h22``, each of shape (k,)."""
    back = 1.0 - np.exp(-1j * w * period)
    hold = back / (1j * w * period) * np.exp(-1j * w * delay)
    runs = np.sinc(w * period / (2.0 * np.pi)) ** 2
    leads = runs * (K + B * (back / period if rate is None else np.asarray(rate))) / (K + 1j * w * B)
    return hold, -leads, B * w**2 / (K**2 + (B * w) ** 2)


def _most_on_rim(centre: Complexes, radius: Floats, w: Floats, period: float, delay: float) -> Floats:
    """Return the largest damping needed by any response on a circle, at each frequency.

    The circle may be far larger than its relevant part: it is sampled more densely towards the worst point of a delay
    of whole periods, and then between the two neighbours of the best sample.
    """
    turn = -np.angle(_direction(w, period, delay))

    def needed(angle: Floats) -> Floats:
        return damping_needed(centre + radius * np.exp(1j * (turn + angle)), w, period, delay)

    found = np.array([needed(np.full(len(w), angle)) for angle in _TURNS])
    best = np.clip(found.argmax(axis=0), 1, len(_TURNS) - 2)
    low, high = _TURNS[best - 1], _TURNS[best + 1]
    for _ in range(_THIRDS):
        first, second = low + (high - low) / 3.0, high - (high - low) / 3.0
        rises = needed(first) < needed(second)
        low, high = np.where(rises, first, low), np.where(rises, high, second)
    most: Floats = np.maximum(found.max(axis=0), needed(0.5 * (low + high)))
    return most


def _direction(w: Floats, period: float, delay: float) -> Complexes:
    """Return ``c s``, shape (k,): a loop with a delay of whole periods needs ``2 Re(c s H)``."""
    c, folded, _, _ = _bands(w, period, delay)
    return c * folded


def _bands(w: Floats, period: float, delay: float) -> tuple[Complexes, Complexes, Floats, float]:
    """Return the effects of sampling, hold and delay: factor, folded bands, their most, part of a period."""
    whole = np.floor(delay / period + 1e-9)
    rest = max(delay - whole * period, 0.0)
    # total gain of the bands folded into this one, and the largest rotation by each
    most = 0.25 * period**2 / np.sin(0.5 * w * period) ** 2
    folded = most + period * rest / np.expm1(1j * w * period)
    c = -np.expm1(-1j * w * period) * np.exp(-1j * w * period * whole) / (2.0 * period)
    return c, folded, most, rest


# -- Z-width (Colgate & Brown 1994): the largest passive stiffness over the rate of the loop -----------------

RATES: Final = tuple(np.geomspace(250.0, 40e3, 14))  # Hz; as compared by Choi & Tan, IROS 2004
_COARSE: Final = 60  # number of frequencies


@dataclass(frozen=True)
class ZWidth:
    """Largest stiffnesses at some rates, at the device.

    Attributes
    ----------
    rate : ndarray, shape (k,)
        Hz.
    wall : ndarray, shape (k,)
        For a rigid model, N/m, with the given damping of the coupler or none.
    coupler : ndarray, shape (k,)
        For any model, N/m, with the best damping of the coupler for each rate.
    alone : ndarray, shape (k,)
        For a wall stable without a hand, N/m.
    quantised : float or None
        Limit by dry friction and resolution at any rate, N/m; None if one is unknown.
    """

    rate: Floats
    wall: Floats
    coupler: Floats
    alone: Floats
    quantised: float | None


def z_width(handle: DeviceDynamics, rates: Sequence[float] = RATES, damping: float = 0.0) -> ZWidth:
    """Return the largest passive stiffness of a device at each rate.

    Parameters
    ----------
    handle : DeviceDynamics
        Its damping must be known.
    rates : sequence of float
        Hz.
    damping : float
        Of the wall, by the backward difference of the position, N s/m.

    Raises
    ------
    InputError
        The damping of the device is not known.
    """
    if handle.damping is None:
        raise InputError("the Z-width needs the damping of the device", found="unknown", remedy="give --damping")
    b, delay = handle.damping, handle.delay
    periods = 1.0 / np.array(rates, dtype=np.float64)
    wall = [_stiffest_wall(b, damping, T, delay) for T in periods]
    coupler = [b / _least_needed(T, delay) for T in periods]
    quantised = None
    if handle.resolution is not None and handle.friction is not None:
        quantised = 2.0 * handle.friction / handle.resolution if handle.resolution > 0.0 else np.inf
    return ZWidth(
        1.0 / periods,
        np.array(wall),
        np.array(coupler),
        np.array([stable_stiffness(b, damping, T, delay) for T in periods]),
        quantised,
    )


def _stiffest_wall(b: float, B: float, T: float, delay: float) -> float:
    """Return the stiffness (N/m) at which a rigid wall needs just the damping ``b`` of the device."""
    if not delay:
        return max(0.0, 2.0 * (b - abs(B)) / T)
    w = frequencies(T)
    rate = -np.expm1(-1j * w * T) / T
    low, high = 0.0, 2.0 * (b + abs(B)) / T
    for _ in range(50):
        middle = 0.5 * (low + high)
        if damping_needed(middle + B * rate, w, T, delay).max() < b:
            low = middle
        else:
            high = middle
    return low


def _least_needed(T: float, delay: float) -> float:
    """Return the damping needed by a coupler of 1 N/m with its best own damping, N s/m."""
    w = frequencies(T, _COARSE)

    def needed(ratio: float) -> float:
        return float(coupler_damping_required(1.0, T * np.exp(ratio), w, T, delay).max())

    found = minimize_scalar(needed, bounds=(np.log(0.02), np.log(5.0)), method="bounded", options={"xatol": 0.02})
    return float(found.fun)


INPUT_LENGTH = 4  # an input in a tick: value, rate, second rate, third rate


@dataclass(frozen=True)
class SampledLoop:
    """Linearised sampled loop of a coupled port in one mode: the map of state and inputs over a tick.

    With the state ``s`` and the inputs' values and rates at the begin of a tick in ``i``, ``s_next = step s + push i``;
    the forces of the port on the model are ``out s + through i`` at the end of a tick.
    """

    axes: tuple[PortAxis, ...]  # axes of the port moved by a device
    sources: tuple[int, ...]  # the corresponding axes of the device
    mode: str
    period: float  # s
    scales: Floats  # shape (n,): units of the model per unit of the device, along each axis
    force_scale: float  # newtons of the device per newton of the model, on top of the scale
    # step, push, out, through: shapes (n_s, n_s), (n_s, 4 m), (n, n_s), (n, 4 m): value, rate, second and third rate of
    # each of m inputs stand together
    step: Floats
    push: Floats
    out: Floats
    through: Floats
    # for each axis the bandwidth of the filter of a coordinate prescribed by the device, rad per tick, or 0
    filters: tuple[float, ...]
    # of the device, see :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`
    velocity_bandwidth: float | None = math.inf

    def response(self, w: ArrayLike) -> Complexes:
        """Return ``H(exp(j w T))`` from the device's sampled positions to the resisting forces, in its units.

        ``w``, shape (k,): rad/s, above 0. Returns ndarray of complex, shape (k, n, n).
        """
        z = np.exp(1j * np.asarray(w, dtype=np.float64) * self.period)
        begins, ends = self._inputs(z)
        n = len(self.step)
        s = np.linalg.solve(z[:, None, None] * np.eye(n) - self.step, z[:, None, None] * (self.push @ begins))
        force = self.out @ s + self.through @ ends
        return self.force_scale * self.scales[:, None] * force * self.scales

    def _inputs(self, z: Complexes) -> tuple[Complexes, Complexes]:
        """Inputs at begin and end of a tick for a motion ``z^n`` of each axis, shapes (k, 4 m, n)."""
        m = self.push.shape[1] // INPUT_LENGTH
        begins = np.zeros((len(z), m * INPUT_LENGTH, len(self.axes)), dtype=np.complex128)
        ends = np.zeros_like(begins)
        at, back = 0, velocity_response(z, self.period, self.velocity_bandwidth)
        difference = (1.0 - 1.0 / z) / self.period
        for a, bandwidth in enumerate(self.filters):
            if bandwidth:
                ends[:, at : at + 3, a] = _filtered(z, back, bandwidth, self.period)
                begins[:, at : at + 3, a] = ends[:, at : at + 3, a] / z[:, None]
                begins[:, at + 3, a] = difference * ends[:, at + 2, a]
                at += INPUT_LENGTH
                continue
            for value in (np.ones_like(z), back):  # position and rate, each straight from tick to tick
                ends[:, at, a], begins[:, at, a] = value, value / z
                begins[:, at + 1, a] = difference * value
                at += INPUT_LENGTH
        return begins, ends

    @property
    def growth(self) -> float:
        """The largest factor by which a motion of the model alone grows in a tick."""
        return float(np.abs(np.linalg.eigvals(self.step)).max(initial=0.0))

    def resonances(self) -> Floats:
        """Return the natural frequencies (rad/s) of the model."""
        angles = np.abs(np.angle(np.linalg.eigvals(self.step)))
        found: Floats = np.unique(angles[(angles > 1e-6) & (angles < np.pi)]) / self.period
        return found


def velocity_response(z: Complexes, period: float, bandwidth: float | None) -> Complexes:
    """Return the reported velocity of a device for the sampled positions ``z^n``, 1/s.

    ``z``, ndarray of complex, shape (k,): of absolute value one. ``period``: s. ``bandwidth``: Hz, see
    :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`; a measured velocity is the velocity of the motion below half
    the rate.
    """
    if bandwidth is None:
        measured: Complexes = (1j * np.angle(z) / period).astype(np.complex128)
        return measured
    difference: Complexes = (1.0 - 1.0 / z) / period
    if bandwidth == math.inf:
        return difference
    part = -math.expm1(-2.0 * math.pi * bandwidth * period)
    found: Complexes = part * difference / (1.0 - (1.0 - part) / z)
    return found


def _filtered(z: Complexes, back: Complexes, g: float, period: float) -> Complexes:
    """Value, rate and second rate of a smooth input at the end of a tick, see ``fsm_dyn.live.compiled_inputs``."""
    whole = 1.0 + g * (3.0 + g * (1.5 + g / 6.0))
    to_target = np.array([g**3, 3.0 * g * g * period]) / whole  # of target and target rate, as a third difference
    from_state = -np.array([g**3, g**3 + 3.0 * g * g, 0.5 * g**3 + 3.0 * g * g + 3.0 * g]) / whole
    ahead = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    jerk = np.array([1.0 / 6.0, 0.5, 1.0])
    matrix = ahead + np.outer(jerk, from_state)
    drive = jerk[None, :] * (to_target[0] + to_target[1] * back)[:, None]
    state = np.linalg.solve(np.eye(3) - matrix / z[:, None, None], drive[:, :, None])[:, :, 0]
    found: Complexes = state / np.array([1.0, period, period * period])
    return found


def linearise_sampled_loop(
    graph: ModeGraph,
    mode: str | None = None,
    *,
    mapping: DeviceMap | None = None,
    n_device: int | None = None,
    period: float = 1e-3,
    substeps: int = 1,
    method: str = "rk4",
    at: Mapping[str, float | str] | None = None,
    velocity_bandwidth: float | None = math.inf,
) -> SampledLoop:
    """Linearise a coupled model in a mode over a tick, at rest, with the coupler closed and unstretched.

    ``graph``: compiled from the result of :func:`fsm_dyn.live.device_map.add_couplers`. ``mode``: a mode of the graph;
    by default the one it starts in. ``n_device``: axes of the device; by default as many as the port has. ``period``,
    ``substeps``, ``method``: as of a live run. ``at``: replacements for entries of the model's ``initial``; speeds not
    given here are zero. ``velocity_bandwidth``: of the device, see
    :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`. Raises InputError: the mode or the port is unknown, the axes
    do not fit, or the model has a sampled controller. Raises ModelError: the values contradict the mode.
    """
    mapping = mapping or DeviceMap()
    port = _port(graph, mapping.port)
    automaton = graph.automaton
    refuse_controllers(automaton.mechanism, "passivity")
    mode = mode or graph.initial
    found = next((known for known in automaton.modes if known.name == mode), None)
    if found is None:
        names = [known.name for known in automaton.modes]
        raise InputError(
            f"no mode '{mode}' in '{graph.name}'", allowed=", ".join(names), remedy=did_you_mean(mode, names)
        )
    begin = initial_values(automaton, graph.values, graph.parameters, {**(at or {}), "settle": False})
    layout = automaton.terms.layout
    rest = {name: value for name, value in begin.values.items() if name in layout.q or name in (at or {})}
    here = find_initial_state(automaton, rest, mode, 0.0, begin.context)
    context = _closed(graph, port, here.x, here.context)
    programs = automaton.derive(found.states, 0.0, here.x, context).programs
    sources, scales = mapping.device_axes(port, n_device or len(port.axes)), mapping.scales(port)
    axes = tuple(axis for axis, source in zip(port.axes, sources, strict=True) if source >= 0)
    kept = [i for i, source in enumerate(sources) if source >= 0]
    if not axes:
        raise InputError(f"no axis of port '{port.name}' is moved", found=str(sources), remedy="give the device's axes")
    inputs = [
        name for axis in axes for name in ((axis.device,) if axis.prescribed_coordinate else (axis.device, axis.rate))
    ]
    A, B, C, D = _first_order(graph, programs, axes, inputs, here.x, context)
    step, push = _one_tick(METHODS[method], A, B, period / substeps, substeps)
    smooth = [axis.device for axis in axes if axis.prescribed_coordinate]
    filters = dict(zip(smooth, bandwidths(smooth, axes, graph.values, period), strict=True))
    return SampledLoop(
        axes, tuple(sources[i] for i in kept), mode, period, np.array(scales)[kept], mapping.force_scale,
        step, push, C, D,
        tuple(filters.get(axis.device, 0.0) for axis in axes), velocity_bandwidth,
    )  # fmt: skip


def _port(graph: ModeGraph, name: str) -> CoupledPort:
    ports = {port.name: port for port in coupled_ports(graph.automaton.mechanism)}
    if not ports or any(i not in graph.automaton.terms.layout.w for port in ports.values() for i in port.inputs):
        raise InputError(
            f"'{graph.name}' has no couplers", remedy="compile what fsm_dyn.live.device_map.add_couplers returns"
        )
    name = name or next(iter(ports))
    if name not in ports:
        raise InputError(f"no port '{name}'", allowed=", ".join(ports), remedy=did_you_mean(name, list(ports)))
    return ports[name]


def _closed(graph: ModeGraph, port: CoupledPort, x: Floats, context: Floats) -> Floats:
    """Return the context with the couplers of a port closed and unstretched."""
    automaton = graph.automaton
    layout = automaton.terms.layout
    values = automaton.report.evaluate(0.0, x, context)["outputs"]
    outputs = dict(zip(automaton.mechanism.outputs, values, strict=True))
    closed = context.copy()
    for axis in port.axes:
        if not axis.prescribed_coordinate:
            for name, value in ((axis.device, outputs[axis.outputs[1]]), (axis.engagement, 1.0)):
                closed[layout.w_slice.start + layout.w.index(name)] = value
    return closed


def _first_order(
    graph: ModeGraph, programs: ModePrograms, axes: tuple[PortAxis, ...], inputs: list[str], x: Floats, context: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return ``A B C D`` of ``s' = A s + B i``, ``force = C s + D i`` with the inputs' values and rates in ``i``."""
    layout = graph.automaton.terms.layout
    rows = [row.name for row in graph.automaton.rows]
    by_inputs = np.zeros((len(rows), len(layout.w)))
    for axis in axes:
        if axis.prescribed_coordinate:  # the row is: coordinate - begin - input
            by_inputs[rows.index(axis.constraint), layout.w.index(axis.device)] = -1.0
    free, T, P = independent_coordinates(graph, programs.states, x, context, by_inputs)
    n_q, n_free = len(layout.q), len(free)
    kept = [*free, *(n_q + i for i in programs.independent)]
    names = [name + end for name in inputs for end in ("", ".rate", ".rate2", ".rate3")]
    followed, led = np.zeros((layout.n_x, len(kept))), np.zeros((layout.n_x, len(names)))
    followed[:n_q, :n_free] = T
    followed[kept[n_free:], range(n_free, len(kept))] = 1.0
    led[:n_q, ::INPUT_LENGTH] = P[:, [layout.w.index(name) for name in inputs]]
    mode = _Slopes(programs.full, names, x, context)
    rate_x, rate_i = mode.of(mode.nodes["x_dot"])
    speed_x, speed_i = mode.of(mode.nodes["u"])
    A, B = rate_x[kept] @ followed, rate_i[kept] + rate_x[kept] @ led
    followed[n_q:], led[n_q:] = speed_x @ followed, speed_i + speed_x @ led
    C, D = np.zeros((len(axes), len(kept))), np.zeros((len(axes), len(names)))
    report = _Slopes(graph.automaton.report, names, x, context)
    outputs = list(graph.automaton.mechanism.outputs)
    for k, axis in enumerate(axes):
        if axis.prescribed_coordinate:
            by_x, by_i = mode.of(mode.nodes["multipliers"][[rows.index(axis.constraint)]])
        else:
            by_x, by_i = report.of(report.nodes["outputs"][[outputs.index(axis.outputs[0])]])
        C[k], D[k] = (by_x @ followed)[0], (by_i + by_x @ led)[0]
    return A, B, C, D


class _Slopes:
    """Derivatives of a program's nodes by the state and by some inputs, at one point."""

    def __init__(self, program: Program, names: list[str], x: Floats, context: Floats) -> None:
        _, symbols, self.nodes = program.graph()
        self._layout, self._x, self._context = program.layout, x, context
        self._symbols = [symbols[name] for name in (*program.layout.x, *names)]

    def of(self, nodes: NDArray[np.object_]) -> tuple[Floats, Floats]:
        """Return the derivatives of these nodes, shapes (k, n_x) and (k, number of inputs)."""
        n_x = self._layout.n_x
        program = Program.from_nodes(self._layout, {"slopes": jacobian(list(nodes), self._symbols)})
        found = program.evaluate(0.0, self._x, self._context)["slopes"]
        return found[:, :n_x], found[:, n_x:]


def _one_tick(method: Tableau, A: Floats, B: Floats, h: float, steps: int) -> tuple[Floats, Floats]:
    """Return the map of the method for ``s' = A s + B i`` over ``steps`` steps of length ``h``, with cubic inputs."""
    n, m = len(A), B.shape[1]
    stages: list[Floats] = []
    for row, node in zip(method.a, method.nodes, strict=True):
        state = np.hstack([np.eye(n), np.zeros((n, m))])
        for weight, stage in zip(row, stages, strict=True):
            state = state + h * float(weight) * stage
        stages.append(A @ state + np.hstack([np.zeros((n, n)), B @ _later(m, float(node) * h)]))
    once = np.hstack([np.eye(n), np.zeros((n, m))]) + h * sum(
        float(w) * k for w, k in zip(method.b, stages, strict=True)
    )
    whole = np.eye(n + m)
    whole[:n] = once
    whole[n:, n:] = _later(m, h)
    found = np.linalg.matrix_power(whole, steps)[:n]
    return found[:, :n], found[:, n:]


def _later(m: int, d: float) -> Floats:
    """Return the matrix by which values and rates of inputs become those a time ``d`` later, shape (m, m)."""
    one = np.array([[1.0, d, d * d / 2, d**3 / 6], [0.0, 1.0, d, d * d / 2], [0.0, 0.0, 1.0, d], [0.0, 0.0, 0.0, 1.0]])
    return np.kron(np.eye(m // INPUT_LENGTH), one)
