"""Launch of a live session: settings, coupled graph, stepper, effective limits, processes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from fsm_dyn.automaton import compilation, storage
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, warn_of_start
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.elements import CoupledPort, PortAxis
from fsm_dyn.language.impositions import hand_slots
from fsm_dyn.language.loader import imposing, with_settings
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.live import watchdog
from fsm_dyn.live.device_map import (
    SMALLEST,
    DeviceMap,
    DeviceMaps,
    Limits,
    add_couplers,
    coupled_ports,
    is_coupled,
)
from fsm_dyn.live.driver_protocol import (
    ADMITTANCE,
    NOTHING,
    UNSTOPPED_FORCE_FRACTION,
    DeviceDynamics,
    DeviceSpec,
    Transport,
    descriptors,
    driver_class,
)
from fsm_dyn.live.hand_commands import Pair, contacts_to_impose, with_touching
from fsm_dyn.live.live_settings import ZERO_AFTER, LiveSettings
from fsm_dyn.live.stepper import RATES, LiveStepper
from fsm_dyn.live.tick import usual_substeps
from fsm_dyn.live.tick_process import new_stepper
from fsm_dyn.runtime.abi import Counters

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
    coupler"). ``given``: parameters given by a run, which stay unchanged, like those given by the file; ``felt``:
    damping of the coupler at the device over that at the port: ``force_scale * scale**2``.
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

    ``given``: parameters given by a run; ``period``: of the tick, s.
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
    at rest, the largest mass of the derived modes about the same state counts. ``stepper``: at its initial state.
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


# -- Launch of a live session: coupled graph, stepper, effective limits, processes ---------------------------

CODE: Final = "making machine code of the modes: once for a model, then it is kept"
LEAST_RELEASE: Final = 3.0  # periods
LOOKS: Final = 8.0  # of the watchdog process in the time to a release
# the libraries behind NumPy start a thread per processor, of no use here
_ALONE: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def merge_parameters(graph: ModeGraph, parameters: Parameters | None) -> dict[str, Any]:
    """Return the parameters unlike the file's: those the graph was compiled with, and those given now."""
    usual = parameter_values(graph.automaton.mechanism)
    changed = {name: value for name, value in graph.values.items() if value != usual[name]}
    return {**changed, **(parameters or {})}


def coupled_graph(
    graph: ModeGraph,
    parameters: Parameters | None = None,
    admittance: bool = False,
    imposable: int = 0,
    touching: Sequence[Pair] = (),
) -> ModeGraph:
    """Return the coupled graph with these parameters, compiled if necessary; see :func:`.add_couplers`.

    ``imposable``: constraints that a hand may impose at once, if the model has no room for any; ``touching``: pairs of
    shapes that it may let touch.

    Raises
    ------
    InputError
        The graph was coupled for the other kind of devices.
    """
    mechanism = graph.automaton.mechanism
    ports = coupled_ports(mechanism)
    if not is_coupled(mechanism, ports):
        mechanism = add_couplers(mechanism, admittance)
        return compilation.compile(_with_room(mechanism, imposable, touching), parameters)
    if ports[0].axes[0].is_applied_force != admittance:
        raise InputError(
            f"'{graph.name}' is coupled for the other kind of devices",
            found="impedance" if admittance else "admittance",
            remedy="give the graph without couplers",
        )
    roomy = _with_room(mechanism, imposable, touching)
    if roomy is not mechanism:
        return compilation.compile(roomy, parameters)
    return graph_with_parameters(graph.automaton, parameters)


def _with_room(mechanism: Mechanism, imposable: int, touching: Sequence[Pair]) -> Mechanism:
    if imposable and not hand_slots(mechanism):
        mechanism = with_settings(mechanism, imposable=imposable)
    known = {frozenset(one.shapes) for one in contacts_to_impose(mechanism)}
    for name, entry in with_touching([pair for pair in touching if frozenset(pair) not in known]).items():
        mechanism = imposing(mechanism, name, **entry)
    return mechanism


def effective_limits(limits: Limits, spec: DeviceSpec) -> Limits:
    """Return the limits reduced to those of the device, with its workspace if none is given.

    A device without a stop mechanism gets a fifth of force and torque.
    """
    part = UNSTOPPED_FORCE_FRACTION if spec.stop_mechanism == NOTHING else 1.0
    names = ("speed", "angular_speed") if spec.kind == ADMITTANCE else ("force", "torque")
    reduced = {
        name: min(getattr(limits, name), most) * part
        for name, most in zip(names, (spec.force, spec.torque), strict=True)
    }
    lag = spec.velocity_lag if limits.velocity_lag is None else limits.velocity_lag
    return replace(limits, low=limits.low or spec.low, high=limits.high or spec.high, velocity_lag=lag, **reduced)


def release_time(settings: LiveSettings, spec: DeviceSpec) -> float:
    """Return the time until a device is released (s), 0 for a device without force or ticks without a clock."""
    if not settings.paced or not spec.felt or settings.release_after == 0.0:
        return 0.0
    return max(settings.release_after, LEAST_RELEASE * settings.period)


def watching_times(settings: LiveSettings) -> dict[str, float]:
    """Return the polling period of the watchdog process, and the allowed absence of ticks (s).

    ``settings``: plain, as the tick process is given them.
    """
    release, timeout = settings.release, settings.watchdog_timeout
    zero = max(ZERO_AFTER * release, LEAST_RELEASE * settings.period) if release else 0.0
    return {"timeout": timeout, "zero_after": zero, "period": min(0.002, 0.2 * timeout, (release or 1.0) / LOOKS)}


def substeps_of(settings: LiveSettings, graph: ModeGraph) -> int:
    """Return the steps of the integrator in a tick: those asked for, or as the ports of the model want them."""
    if settings.substeps is not None:
        return settings.substeps
    return usual_substeps(graph.automaton.mechanism, graph.values, settings.period)


def needed_substeps(settings: LiveSettings, stepper: LiveStepper) -> int:
    """Return the steps of a tick: those asked for, or as many as the coupled modes need at the start.

    Warns if those asked for are fewer. ``settings``: as a caller gave them; ``stepper``: with the steps of
    :func:`substeps_of`.
    """
    needed = stepper.stable_substeps()
    if settings.substeps is None:
        return needed
    if settings.substeps < needed:
        text = f"substeps {settings.substeps} of a tick of {settings.period:g} s are too few for the coupled ports"
        warn_of_start(stepper.graph.name, [f"{text}: they need {needed} at the start"])
    return settings.substeps


def assessed_substeps(settings: LiveSettings, graph: ModeGraph, port: str) -> int:
    """Return the steps of a tick of a live run with a coupled port, as :func:`needed_substeps` does."""
    n_device = max(len(known.axes) for known in graph.automaton.mechanism.coupled_ports)
    steps = substeps_of(settings, graph)
    held = LiveStepper(
        graph, n_device, settings.period, steps, mapping=DeviceMap(port=port), initial=dict(settings.initial)
    )
    return needed_substeps(settings, held)


@dataclass(frozen=True)
class Prepared:
    """Prepared live run, before any process is started or device opened."""

    stepper: LiveStepper  # of the coupled graph, with its machine code
    driver: Any
    spec: DeviceSpec
    settings: LiveSettings  # plain, as the tick process is given them


def prepare(
    graph: ModeGraph,
    driver: str = "scripted",
    options: Mapping[str, Any] | None = None,
    *,
    settings: LiveSettings | None = None,
    parameters: Parameters | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Prepared:
    """Derive and compile everything for a live run; starts and opens nothing, and can be broken off any time.

    See :meth:`fsm_dyn.live.session.LiveSession.start`.
    """
    settings = settings or LiveSettings()
    settings.check()
    parameters = merge_parameters(graph, parameters)
    device = driver_class(driver)
    options = dict(getattr(device, "complete", dict)(options or {}))  # a driver may complete its options
    spec: DeviceSpec = device.describe(options)
    if spec.kind == ADMITTANCE and settings.passivity != "off":
        raise InputError("the energy at the port is not observed with a device that follows", remedy="passivity='off'")
    progress("deriving the model with its ports held")
    graph = coupled_graph(graph, parameters, spec.kind == ADMITTANCE, settings.imposable, settings.touching)
    limits = effective_limits(settings.limits, spec)
    ready = replace(
        settings, substeps=substeps_of(settings, graph), limits=limits, axes=spec.axes,
        parts=tuple(part.axes for part in spec.parts), rotational_axes=tuple(spec.rotational_axes), driver=driver,
        options=options, parameters=parameters, device_damping=spec.handle.damping, device_delay=spec.handle.delay,
        release=release_time(settings, spec), felt=spec.felt,
    )  # fmt: skip
    progress(CODE)
    stepper = new_stepper(ready, graph)
    damped = usual_dampings(stepper, parameters, spec.handle, most_felt(settings.device_map))
    if damped:
        stepper.graph = graph_with_parameters(graph.automaton, {**graph.values, **damped})
        stepper.set_parameters(damped)
        ready = replace(ready, parameters={**parameters, **damped})
    if (needed := needed_substeps(settings, stepper)) > stepper.substeps:
        ready = replace(ready, substeps=needed)
        stepper = new_stepper(ready, stepper.graph)
    stepper.check_start()
    return Prepared(stepper, device, spec, ready)


def derives(graph: ModeGraph, settings: LiveSettings) -> bool:
    """Whether a run gets a derivation process: it may reach modes missing in the graph."""
    more = not graph.automaton.fully_enumerated and not graph.automaton.mechanism.only_listed
    wanted = settings.paced if settings.derive is None else settings.derive
    return bool(wanted) and more and os.name == "posix"


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in this thread and in the processes it starts."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def saved(graph: ModeGraph) -> str:
    """Return a graph as the text of a saved automaton."""
    return json.dumps(storage.to_data(graph.automaton))


def _guarded(spec: DeviceSpec, transport: Transport) -> list[dict[str, Any]]:
    """Return the devices with a transport for the watchdog process: transport, safe packet, packet of zero force."""
    parts = spec.parts or (spec,)
    lines = transport if isinstance(transport, Sequence) else [transport] * len(parts)
    return [
        {
            "transport": line,
            "safe_frame": part.safe_packet.hex(),  # also where it does not help for sure
            "zero_frame": part.zero_frame.hex(),
        }
        for part, line in zip(parts, lines, strict=True)
        if line is not None
    ]


def start_processes(
    graph: ModeGraph, settings: LiveSettings, spec: DeviceSpec, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start the watchdog process, which starts the tick process; return it.

    Settings and automaton go through pipes to the watchdog process and from there to the tick process, so no temporary
    file is left.
    """
    inherited = [int(settings.memory)] if settings.memory.isdigit() else []
    inherited += descriptors(settings.transport)
    inherited += settings.kernels
    given = json.dumps({"settings": settings.as_data(), "graph": storage.to_data(graph.automaton)}).encode()
    told = {
        "memory": settings.memory, "descriptors": inherited, "devices": _guarded(spec, settings.transport),
        **watching_times(settings), "privileges": settings.realtime_privileges,
        "given": len(given), "command": [sys.executable, "-m", "fsm_dyn.live.tick_process"],
        "between": settings.kernels,
        "beside": [sys.executable, "-m", "fsm_dyn.live.derivation_process", str(len(given))]
        if settings.kernels else [],
    }  # fmt: skip
    options: dict[str, Any] = {"pass_fds": inherited, "start_new_session": True} if os.name == "posix" else {}
    with _interrupts_blocked():  # until the watchdog process ignores them
        process = subprocess.Popen(
            [sys.executable, "-I", str(Path(watchdog.__file__)), json.dumps(told)],
            stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **_ALONE}, **options,
        )  # fmt: skip
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it has ended, as its return code shows
        process.stdin.write(given)
        process.stdin.flush()
    return process
