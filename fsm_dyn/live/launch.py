"""Launch of a live session: settings, coupled graph, stepper, effective limits, processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from fsm_dyn.automaton import compilation, storage
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.hand_constraints import hand_slots
from fsm_dyn.language.loader import imposing, with_settings
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.live import watchdog
from fsm_dyn.live.device_map import Limits, add_couplers, coupled_ports, is_coupled
from fsm_dyn.live.driver_protocol import (
    ADMITTANCE,
    NOTHING,
    UNSTOPPED_FORCE_FRACTION,
    DeviceSpec,
    Transport,
    descriptors,
    driver_class,
)
from fsm_dyn.live.hand_contacts import Pair, contacts_to_impose, with_touching
from fsm_dyn.live.live_settings import ZERO_AFTER, LiveSettings
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import usual_substeps
from fsm_dyn.live.tick_process import new_stepper
from fsm_dyn.live.usual_damping import most_felt, usual_dampings

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

    Parameters
    ----------
    settings : mapping
        Plain, as the tick process is given them.
    """
    release, timeout = settings.release, settings.watchdog_timeout
    zero = max(ZERO_AFTER * release, LEAST_RELEASE * settings.period) if release else 0.0
    return {"timeout": timeout, "zero_after": zero, "period": min(0.002, 0.2 * timeout, (release or 1.0) / LOOKS)}


def substeps_of(settings: LiveSettings, graph: ModeGraph) -> int:
    """Return the steps of the integrator in a tick: those asked for, or as the ports of the model want them."""
    if settings.substeps is not None:
        return settings.substeps
    return usual_substeps(graph.automaton.mechanism, graph.values, settings.period)


@dataclass(frozen=True)
class Prepared:
    """Prepared live run, before any process is started or device opened.

    Attributes
    ----------
    stepper : LiveStepper
        Of the coupled graph, with its machine code.
    driver : type
    spec : DeviceSpec
        Of the device.
    settings : dict
        Plain, as the tick process is given them.
    """

    stepper: LiveStepper
    driver: Any
    spec: DeviceSpec
    settings: LiveSettings


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
    if settings.substeps is None and (needed := stepper.stable_substeps()) > stepper.substeps:
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
