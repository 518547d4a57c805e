"""Launch of a live session: settings, coupled graph, stepper, effective limits, processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from fsm_dyn.automaton import compilation, storage
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.live import watchdog
from fsm_dyn.live.device_map import DeviceMap, DeviceMaps, Limits, add_couplers, coupled_ports, is_coupled
from fsm_dyn.live.driver_protocol import (
    ADMITTANCE,
    NOTHING,
    SAFE_FRAME,
    UNSTOPPED_FORCE_FRACTION,
    DeviceSpec,
    Transport,
    descriptors,
    driver_class,
)
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import MOST_SUBSTEPS, PASSIVITY_WORDS, usual_substeps
from fsm_dyn.live.tick_process import new_stepper
from fsm_dyn.live.usual_damping import most_felt, usual_dampings

# -- Settings of a live run ----------------------------------------------------------------------------------

MOST_TICKS: Final = 2**53  # which a double counts


@dataclass(frozen=True)
class Settings:
    """Settings of a live run.

    Attributes
    ----------
    period : float
        Of the tick, s of the wall clock.
    substeps : int
        Steps of the integrator in a tick.  None: by the ``step`` of the model's ports, 1 without one.
    method : str
        ``rk4``, ``heun`` or ``euler``.
    device_map : DeviceMap or tuple of DeviceMap
        One for each device of the driver ``combined``, with the numbers of the axes of that device.
    limits : Limits
    schedule : bool
        Whether the model's scheduled inputs run; otherwise they are zero until commanded.
    paused : bool
        Whether to begin paused.
    overrun : str
        Consequence of a late tick: ``slow`` (time slows down) or ``stop`` (a fault).
    ticks : int
        Number of ticks after which the run ends, -1: no end; in the last ticks the device disengages.
    paced : bool
        Whether to keep to the wall clock; otherwise ticks follow each other as fast as they can.
    realtime_privileges : bool
        Whether to ask for real-time scheduling and locked memory.
    stall_ticks : int
        Ticks without a new sample after which the device counts as stalled.
    watchdog_timeout : float
        Time without a heartbeat of the tick process until the watchdog process ends it, or of the watchdog process
        until the run ends, s.
    release_after : float
        Time without samples, ticks or heartbeats of the watchdog process until the device is released, s: without
        force, until they are back and it engages again.  At least three ticks; 0: never.
    owner_timeout : float
        Time without a heartbeat of the owner until the device disengages and the model rests, s; it engages again
        when the heartbeat is back.  0: no limit.
    lag_limit : float
        Largest lag of the model behind the clock, s; more is a fault; 0: no limit. It does not apply to a device
        without force, or to an unpaced run.
    initial : mapping
        Replacements for entries of the model's ``initial``, ``mode`` among them.
    passivity : str
        Whether to ``observe`` the energy that the device gains by sampling, or also to ``control`` it by damping.
    work_per_tick : int
        Work limit of a tick; a tick at its limit ends before reaching its model time, and the next one continues
        (docs/theory.md, "The work of a tick").  None: by the number of contacts, see
        :func:`fsm_dyn.live.tick.usual_work`; 0: no limit.
    derive : bool, optional
        Whether modes missing in the graph are derived in another process while the run embeds them online and later
        switches to their kernels; not on Windows. None: if the run is paced, because the time of the switch depends on
        the clock, and unpaced runs are reproducible.
    """

    period: float = 1e-3
    substeps: int | None = None
    method: str = "rk4"
    device_map: DeviceMaps = field(default_factory=DeviceMap)
    limits: Limits = field(default_factory=Limits)
    schedule: bool = False
    paused: bool = False
    overrun: str = "slow"
    ticks: int = -1
    paced: bool = True
    realtime_privileges: bool = True
    stall_ticks: int = 100
    watchdog_timeout: float = 0.1
    release_after: float = 0.012
    owner_timeout: float = 0.5
    lag_limit: float = 0.1
    initial: Mapping[str, float | str] = field(default_factory=dict)
    passivity: str = "off"
    work_per_tick: int | None = None
    derive: bool | None = None

    def check(self) -> None:
        """Raise InputError for invalid values."""
        for name, value, good in (
            ("period", self.period, 1e-5 <= self.period <= 0.1),
            ("work_per_tick", self.work_per_tick, 0 <= (self.work_per_tick or 0) <= 10**9),
            ("substeps", self.substeps, self.substeps is None or 1 <= self.substeps <= MOST_SUBSTEPS),
            ("overrun", self.overrun, self.overrun in ("slow", "stop")),
            ("passivity", self.passivity, self.passivity in PASSIVITY_WORDS),
            ("watchdog_timeout", self.watchdog_timeout, self.watchdog_timeout > 2.0 * self.period),
            ("ticks", self.ticks, -1 <= self.ticks <= MOST_TICKS),
            ("stall_ticks", self.stall_ticks, 0 <= self.stall_ticks <= MOST_TICKS),
            ("release_after", self.release_after, self.release_after >= 0.0),
            ("lag_limit", self.lag_limit, self.lag_limit == 0.0 or self.lag_limit >= 2.0 * self.period),
            ("owner_timeout", self.owner_timeout, self.owner_timeout == 0.0 or self.owner_timeout >= 0.1),
        ):
            if not good:
                raise InputError(
                    f"{name} of a live run", found=str(value)[:20], remedy="see fsm_dyn.live.launch.Settings"
                )


# -- Launch of a live session: coupled graph, stepper, effective limits, processes ---------------------------

CODE: Final = "making machine code of the modes: once for a model, then it is kept"
LEAST_RELEASE: Final = 3.0  # periods
ZERO_AFTER: Final = 1.0 / 3.0  # of the time to a release: without a tick the watchdog process sends a force of zero
LOOKS: Final = 8.0  # of the watchdog process in the time to a release
# the libraries behind NumPy start a thread per processor, of no use here
_ALONE: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def merge_parameters(graph: ModeGraph, parameters: Parameters | None) -> dict[str, Any]:
    """Return the parameters unlike the file's: those the graph was compiled with, and those given now."""
    usual = parameter_values(graph.automaton.mechanism)
    changed = {name: value for name, value in graph.values.items() if value != usual[name]}
    return {**changed, **(parameters or {})}


def coupled_graph(graph: ModeGraph, parameters: Parameters | None = None, admittance: bool = False) -> ModeGraph:
    """Return the coupled graph with these parameters, compiled if necessary; see :func:`.add_couplers`.

    Raises
    ------
    InputError
        The graph was coupled for the other kind of devices.
    """
    mechanism = graph.automaton.mechanism
    ports = coupled_ports(mechanism)
    if not is_coupled(mechanism, ports):
        return compilation.compile(add_couplers(mechanism, admittance), parameters)
    if ports[0].axes[0].is_applied_force != admittance:
        raise InputError(
            f"'{graph.name}' is coupled for the other kind of devices",
            found="impedance" if admittance else "admittance",
            remedy="give the graph without couplers",
        )
    return graph_with_parameters(graph.automaton, parameters)


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
    return replace(limits, low=limits.low or spec.low, high=limits.high or spec.high, **reduced)


def release_time(settings: Settings, spec: DeviceSpec) -> float:
    """Return the time until a device is released (s), 0 for a device without force or ticks without a clock."""
    if not settings.paced or not spec.felt or settings.release_after == 0.0:
        return 0.0
    return max(settings.release_after, LEAST_RELEASE * settings.period)


def watching_times(settings: Mapping[str, Any]) -> dict[str, float]:
    """Return how often the watchdog process looks for ticks, and for how long they may be missing (s).

    Parameters
    ----------
    settings : mapping
        Plain, as the tick process is given them.
    """
    release, timeout = settings["release"], settings["watchdog_timeout"]
    zero = max(ZERO_AFTER * release, LEAST_RELEASE * settings["period"]) if release else 0.0
    return {"timeout": timeout, "zero_after": zero, "period": min(0.002, 0.2 * timeout, (release or 1.0) / LOOKS)}


def substeps_of(settings: Settings, graph: ModeGraph) -> int:
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
    settings: dict[str, Any]


def prepare(
    graph: ModeGraph,
    driver: str = "scripted",
    options: Mapping[str, Any] | None = None,
    *,
    settings: Settings | None = None,
    parameters: Parameters | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Prepared:
    """Derive and compile everything for a live run; starts and opens nothing, and can be broken off any time.

    See :meth:`fsm_dyn.live.session.LiveSession.start`.
    """
    settings = settings or Settings()
    settings.check()
    parameters = merge_parameters(graph, parameters)
    device = driver_class(driver)
    options = dict(getattr(device, "complete", dict)(options or {}))  # a driver may complete its options
    spec: DeviceSpec = device.describe(options)
    if spec.kind == ADMITTANCE and settings.passivity != "off":
        raise InputError("the energy at the port is not observed with a device that follows", remedy="passivity='off'")
    progress("deriving the model with its ports held")
    graph = coupled_graph(graph, parameters, spec.kind == ADMITTANCE)
    limits = effective_limits(settings.limits, spec)
    plain = {
        **asdict(settings), "substeps": substeps_of(settings, graph),
        "limits": asdict(limits), "axes": spec.axes,
        "parts": [part.axes for part in spec.parts], "rotational_axes": spec.rotational_axes, "driver": driver,
        "options": options, "parameters": parameters, "device_damping": spec.handle.damping,
        "device_delay": spec.handle.delay, "release": release_time(settings, spec), "felt": spec.felt,
    }  # fmt: skip
    progress(CODE)
    stepper = new_stepper(plain, graph)
    damped = usual_dampings(stepper, parameters, spec.handle, most_felt(settings.device_map))
    if damped:
        stepper.graph = graph_with_parameters(graph.automaton, {**graph.values, **damped})
        stepper.set_parameters(damped)
        plain["parameters"] = {**parameters, **damped}
    stepper.check_start()
    return Prepared(stepper, device, spec, plain)


def derives(graph: ModeGraph, settings: Mapping[str, Any]) -> bool:
    """Whether a run gets a derivation process: it may reach modes missing in the graph."""
    more = not graph.automaton.fully_enumerated and not graph.automaton.mechanism.only_listed
    wanted = settings["paced"] if settings["derive"] is None else settings["derive"]
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
            "safe_frame": part.safe_packet.hex() if part.stop_mechanism == SAFE_FRAME else "",
            "zero_frame": part.zero_frame.hex(),
        }
        for part, line in zip(parts, lines, strict=True)
        if line is not None
    ]


def start_processes(
    graph: ModeGraph, plain: dict[str, Any], spec: DeviceSpec, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start the watchdog process, which starts the tick process; return it.

    Settings and automaton go through pipes to the watchdog process and from there to the tick process, so no temporary
    file is left.
    """
    inherited = [int(plain["memory"])] if plain["memory"].isdigit() else []
    inherited += descriptors(plain["transport"])
    inherited += plain["kernels"]
    given = json.dumps({"settings": plain, "graph": storage.to_data(graph.automaton)}).encode()
    told = {
        "memory": plain["memory"], "descriptors": inherited, "devices": _guarded(spec, plain["transport"]),
        **watching_times(plain), "privileges": plain["realtime_privileges"],
        "given": len(given), "command": [sys.executable, "-m", "fsm_dyn.live.tick_process"],
        "between": plain["kernels"],
        "beside": [sys.executable, "-m", "fsm_dyn.live.derivation_process", str(len(given))]
        if plain["kernels"] else [],
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
