"""Default damping of couplers, if neither the file nor the run gives one, by the mass moved by their port."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.language.elements import CoupledPort, PortAxis
from fsm_dyn.live.device_map import SMALLEST, DeviceMaps
from fsm_dyn.live.driver_protocol import DeviceDynamics
from fsm_dyn.live.stepper import RATES, LiveStepper
from fsm_dyn.runtime.abi import Counters

Floats = NDArray[np.float64]

LEAST_RATIO: Final = 0.15  # damping ratio of a port on its coupler: a key in slow motion does not ring
MOST_PER_TICK: Final = 0.5  # share of a velocity removed by the damper in a tick: beyond 1 the sampled loop swings
_DISPLACEMENT: Final = 1e-3  # m or rad, of the device from the port
_ROUNDING: Final = 1e-9  # 1/kg
_POINTER: Final = ctypes.POINTER(ctypes.c_double)


def usual_dampings(
    stepper: LiveStepper, given: Collection[str], handle: DeviceDynamics, felt: float = 1.0
) -> dict[str, float]:
    """Return the dampings of couplers above the default, by the names of the parameters.

    The default damping, 2 N s/m, is raised if a heavy port would swing on its coupler with a damping ratio below
    ``LEAST_RATIO``: to this ratio, as far as no damper removes more than ``MOST_PER_TICK`` of the velocity of port or
    device in a tick and a coupler passive with a known device remains passive (docs/theory.md, "Damping of the
    coupler").

    Parameters
    ----------
    stepper : LiveStepper
    given : collection of str
        Parameters given by a run, which stay unchanged, like those given by the file.
    handle : DeviceDynamics
    felt : float
        Damping of the coupler at the device over that at the port: ``force_scale * scale**2``.
    """
    open_axes = [axis for port in stepper.ports for axis in _open_axes(stepper, port) if axis.damping not in given]
    found: dict[str, float] = {}
    for axis, mass in zip(open_axes, port_masses(stepper, open_axes), strict=True):
        usual, stiffness = (float(np.sum(stepper.values[name])) for name in (axis.damping, axis.stiffness))
        if not math.isfinite(mass) or stiffness <= 0.0:
            continue
        bounds = [LEAST_RATIO * 2.0 * math.sqrt(stiffness * mass), MOST_PER_TICK * mass / stepper.period]
        if not axis.is_rotational:
            bounds += _device_bounds(handle, usual, stiffness, stepper.period, felt)
        if min(bounds) > usual:
            found[axis.damping] = float(f"{min(bounds):.3g}")
    return found


def _device_bounds(handle: DeviceDynamics, usual: float, stiffness: float, period: float, felt: float) -> list[float]:
    """Return the bound on the damping of a coupler by the known dynamics of its device (N s/m, at the port)."""
    bounds = []
    if handle.mass is not None:
        bounds.append(MOST_PER_TICK * handle.mass / (period * felt))
    if handle.damping is not None:
        passive = handle.damping / felt - stiffness * (0.5 * period + handle.delay)
        if passive >= usual:  # a passive coupler stays passive
            bounds.append(passive)
    return bounds


def damped_graph(
    graph: ModeGraph, given: Collection[str], handle: DeviceDynamics, maps: DeviceMaps, period: float
) -> ModeGraph:
    """Return a coupled graph with the dampings of its couplers in a live run.

    Parameters
    ----------
    graph : ModeGraph
        With couplers.
    given : collection of str
        Parameters given by a run.
    handle : DeviceDynamics
    maps : DeviceMap or tuple of DeviceMap
    period : float
        Of the tick, s.
    """
    n_device = max(len(port.axes) for port in graph.automaton.mechanism.coupled_ports)
    found = usual_dampings(LiveStepper(graph, n_device, period), given, handle, most_felt(maps))
    return graph_with_parameters(graph.automaton, {**graph.values, **found}) if found else graph


def most_felt(maps: DeviceMaps) -> float:
    """Return the largest ratio of the damping at a device to the one at its port: ``force_scale * scale**2``."""
    found = []
    for one in maps if isinstance(maps, tuple) else (maps,):
        scales = one.scale if isinstance(one.scale, tuple) else (one.scale,)
        found.append(one.force_scale * max(float(scale) ** 2 for scale in scales))
    return max(*found, SMALLEST)


def _open_axes(stepper: LiveStepper, port: CoupledPort) -> list[PortAxis]:
    """Return the axes of a port with a coupler without a damping in the file."""
    declared = stepper.graph.automaton.mechanism.ports[port.name]
    return [
        axis
        for axis in port.axes
        if not axis.prescribed_coordinate
        and not axis.is_applied_force
        and (declared.damping is None or (axis.is_rotational and declared.coordinate is None))
    ]


def port_masses(stepper: LiveStepper, axes: Sequence[PortAxis]) -> list[float]:
    """Return the mass (kg, kg m^2) moved by the coupler of each axis; infinite if no mode lets it move.

    The mass is a force of the coupler over the added acceleration of the port, from the rates of a mode and from the
    port's velocity, which is linear in the speeds. The mode is the initial one; if it fixes the port, as friction does
    at rest, the largest mass of the derived modes about the same state counts.

    Parameters
    ----------
    stepper : LiveStepper
        At its initial state.
    axes : sequence of PortAxis
    """
    state, tables = stepper.loop.state, stepper.loop.tables
    derived = stepper.executable.own_kernels()
    initial = int(tables.mode_rhs[state.counters[Counters.MODE]])
    masses = []
    for axis in axes:
        mass = _mass(stepper, axis, initial) if initial in derived else math.inf
        if not math.isfinite(mass):
            mass = max(filter(math.isfinite, (_mass(stepper, axis, address) for address in derived)), default=math.inf)
        masses.append(mass)
    return masses


def _mass(stepper: LiveStepper, axis: PortAxis, address: int) -> float:
    """Return the mass moved by the coupler of an axis in the mode with the kernel at this address."""
    tick, state, layout = stepper.tick_data, stepper.loop.state, stepper.graph.automaton.terms.layout
    rates, n_a, n_q, a = RATES(address), len(stepper.axes), len(layout.q), stepper.axes.index(axis)

    def rate(context: Floats) -> Floats:
        found = np.empty(len(state.x))
        rates(0.0, *(array.ctypes.data_as(_POINTER) for array in (state.x, context, found)))
        return found

    context = state.c.copy()
    device, engagement = (layout.w_slice.start + int(tick.slot[k * n_a + a]) for k in (0, 2))
    stepper.ports_at(state.x, state.c)
    before = float(tick.ports[2 * n_a + a])
    context[device], context[engagement] = tick.ports[n_a + a], 1.0
    begin = rate(context)
    context[device] += _DISPLACEMENT
    moved = state.x.copy()
    with np.errstate(invalid="ignore", over="ignore"):  # nonfinite values mark a mode without rates here
        moved[n_q:] += (rate(context) - begin)[n_q:]
    stepper.ports_at(moved, state.c)
    added = float(tick.ports[2 * n_a + a]) - before
    stepper.ports_at(state.x, state.c)
    force = float(np.sum(stepper.values[axis.stiffness])) * _DISPLACEMENT
    # less is rounding: the port is held
    return force / added if force > 0.0 and added > _ROUNDING * force else math.inf
