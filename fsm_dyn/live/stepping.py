"""One tick after another: the model held by a device, without processes and clocks.

A :class:`Stepper` advances the model by one period per call, with the stepper that off-line runs use.  All that acts
on the model stands in its inputs, which run straight from tick to tick: given the inputs of a run as ``sampled``
tables, :func:`fsm_dyn.running.simulate` makes the same transitions to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.graph import ModeGraph
from fsm_dyn.automaton.start import Start
from fsm_dyn.compiling import initial_start
from fsm_dyn.driving import make_drive
from fsm_dyn.errors import InputError, nearest
from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live.holding import HeldPort, held_ports
from fsm_dyn.live.memory import plain
from fsm_dyn.programs import Kernels, Program, compile_programs, support
from fsm_dyn.running import ready_machine
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation.drive import Drive, Pieces
from fsm_dyn.simulation.drive import make_drive as join_inputs
from fsm_dyn.simulation.integrators import METHOD, METHODS, STAGES
from fsm_dyn.simulation.loop import Loop, begin, supply
from fsm_dyn.simulation.stepper import advance

Floats = NDArray[np.float64]

TURNS_PER_TICK: Final = 60  # steps and transitions in a tick; what is left waits for the next one
MOST_INSTANT: Final = 40  # transitions in one instant


@dataclass(frozen=True)
class DeviceMap:
    """How a device's axes move a port.

    Attributes
    ----------
    port : str
        The port in use; empty: the first of the model.
    axes : tuple of int
        For each axis of the port the device's axis, -1 for none; empty: in order, as far as the device goes.
    scale : float
        Model metres per metre of the device.
    force_scale : float
        Device newtons per newton of the model, beyond what conjugate power asks for (which is ``scale``).
    """

    port: str = ""
    axes: tuple[int, ...] = ()
    scale: float = 1.0
    force_scale: float = 1.0


@dataclass(frozen=True)
class Limits:
    """What a device may be asked to do, and when it is let go.

    Attributes
    ----------
    force : float
        Norm of the force shown, N.
    slew : float
        Rate of change of the force, N/s.
    velocity : float
        Norm of the device's velocity beyond which it is let go, m/s.
    low, high : tuple of float
        The workspace, m or rad; empty: unbounded.
    ramp : float
        How long the grip takes to close and to open, s.
    dead_man : int
        Number of the button that must be pressed, -1 for none.
    clutch : int
        Number of the button that lets go of the port while it is pressed, -1 for none.
    """

    force: float = 8.0
    slew: float = 2000.0
    velocity: float = 3.0
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    ramp: float = 0.2
    dead_man: int = -1
    clutch: int = -1


@dataclass
class Stepper:
    """A held mechanism that advances tick by tick.

    Parameters
    ----------
    graph : ModeGraph
        Compiled from what :func:`fsm_dyn.live.holding.hold` returned.
    n_device : int
        Number of axes of the device.
    period : float
        Length of a tick, s.
    substeps : int
        Steps of the integrator in a tick.
    method : str
        ``rk4``, ``heun`` or ``euler``.
    mapping, limits
        See there.
    schedule : bool
        Whether the inputs that the model schedules follow their schedule, sampled at the ticks.
    """

    graph: ModeGraph
    n_device: int = 1
    period: float = 1e-3
    substeps: int = 1
    method: str = "rk4"
    mapping: DeviceMap = field(default_factory=DeviceMap)
    limits: Limits = field(default_factory=Limits)
    schedule: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS or METHODS[self.method].adaptive:
            fixed = [name for name, method in METHODS.items() if not method.adaptive]
            raise InputError(f"no fixed-step method '{self.method}'", allowed=", ".join(fixed))
        layout = self.graph.automaton.terms.layout
        self.ports: tuple[HeldPort, ...] = held_ports(self.graph.automaton.mechanism)
        self.axes = tuple(axis for port in self.ports for axis in port.axes)
        missing = [name for port in self.ports for name in port.inputs if name not in layout.w]
        if missing or not self.ports:
            raise InputError(f"'{self.graph.name}' is not held", remedy="compile what fsm_dyn.live.hold returns")
        self.machine = ready_machine(self.graph)
        self._method = METHODS[self.method].arrays()
        self._method_packed = METHOD.pack(self._method)
        self._scheduled = make_drive(self.graph.automaton, self.graph.values, {}, (0.0, 3600.0))
        self._start: Start | None = None
        self._kernels = self._port_kernel()
        self._make_tick()
        self.reset()

    # -- building ------------------------------------------------------------------------------------------

    def _port_kernel(self) -> Kernels:
        """Compile what the ports report: forces of the couplers, positions and rates."""
        automaton = self.graph.automaton
        _, _, nodes = automaton.report.graph()
        names = list(automaton.mechanism.outputs)
        wanted = [axis.outputs[k] for k in range(3) for axis in self.axes]
        table = np.array([nodes["outputs"][names.index(name)] for name in wanted], dtype=object)
        return compile_programs([Program.from_nodes(automaton.terms.layout, {"ports": table})])

    def _make_tick(self) -> None:
        n_a, n_d, n_w = len(self.axes), self.n_device, len(self.graph.automaton.terms.layout.w)
        lengths = (
            ct.NUMBER_COUNT,
            ct.COUNT_COUNT,
            n_w,
            n_w,
            n_w,
            2 * n_d,
            n_a,
            3 * n_a,
            n_a,
            n_a,
            3 * n_a,
            n_d,
            n_d,
            n_d,
            n_d,
        )
        self.tick_data: ct.Tick
        self.tick_data, self._tick_packed = ct.TICK.allocate(*lengths)
        tick, limits = self.tick_data, self.limits
        w = self.graph.automaton.terms.layout.w
        tick.slot[:] = [
            w.index(name)
            for names in ((a.name for a in self.axes), (a.rate for a in self.axes), (a.grip for a in self.axes))
            for name in names
        ]
        tick.counts[ct.SUBSTEPS] = self.substeps
        tick.counts[ct.KERNEL] = self._kernels[0].address
        tick.numbers[ct.SPEED] = 1.0
        tick.numbers[ct.GRIP_STEP] = min(self.period / limits.ramp, 1.0) if limits.ramp > 0.0 else 1.0
        tick.numbers[ct.FORCE_LIMIT] = limits.force
        tick.numbers[ct.SLEW_LIMIT] = limits.slew * self.period
        tick.numbers[ct.VELOCITY_LIMIT] = limits.velocity
        tick.low[:] = limits.low or -np.inf
        tick.high[:] = limits.high or np.inf
        self.use(self.mapping)

    def use(self, mapping: DeviceMap) -> None:
        """Put the device at another port; only while the grip is open.

        Raises
        ------
        InputError
            There is no such port, or the axes do not fit.
        """
        names = [port.name for port in self.ports]
        name = mapping.port or names[0]
        if name not in names:
            raise InputError(f"no port '{name}'", allowed=", ".join(names), remedy=nearest(name, names))
        port = self.ports[names.index(name)]
        axes = mapping.axes or tuple(i if i < self.n_device else -1 for i in range(len(port.axes)))
        if len(axes) != len(port.axes) or any(not -1 <= axis < self.n_device for axis in axes):
            raise InputError(
                f"the axes of the device do not fit port '{name}'",
                found=str(axes),
                allowed=f"{len(port.axes)} numbers from -1 to {self.n_device - 1}",
            )
        tick = self.tick_data
        tick.source[:] = -1
        first = self.axes.index(port.axes[0])
        tick.source[first : first + len(axes)] = axes
        tick.scale[:] = [1.0 if axis.turns else mapping.scale for axis in self.axes]
        tick.numbers[ct.FORCE_SCALE] = mapping.force_scale
        self.mapping, self.port = mapping, port

    def reset(self) -> None:
        """Go back to the model's start, with the parameters and the inputs set from outside as they are now."""
        graph, tick = self.graph, self.tick_data
        names = graph.automaton.terms.layout.w
        self.machine.forget_charts()  # a run does not depend on the runs before it
        if self.schedule:
            scheduled = self._scheduled(0.0, np.zeros(graph.automaton.terms.layout.n_c))[0]
            held = {name for port in self.ports for name in port.inputs}
            for i, name in enumerate(names):
                tick.targets[i] = 0.0 if name in held else scheduled[i]
        tick.now[:] = tick.targets
        tick.numbers[ct.GRIP] = tick.numbers[ct.GRIP_TARGET] = 0.0
        start = self._begin_at(tick.now)
        self.ports_at(start.x, start.context)
        n_a = len(self.axes)
        tick.now[tick.slot[:n_a]] = tick.ports[n_a : 2 * n_a]  # the couplers begin unstretched
        tick.next[:] = tick.now
        self._take(start)

    def _begin_at(self, inputs: Floats) -> Start:
        graph = self.graph
        row = np.zeros((1, 3 * len(inputs)))
        row[0, : len(inputs)] = inputs
        return initial_start(graph.automaton, graph.values, graph.parameters, {}, lambda t, c: row)

    def ports_at(self, x: Floats, context: Floats) -> None:
        """Evaluate forces, positions and rates of the ports at a state into ``tick_data.ports``."""
        self.tick_data.ports[:] = self._kernels[0](0.0, x, context)

    def _take(self, start: Start) -> None:
        """Begin a new run of the stepper."""
        layout = self.graph.automaton.terms.layout
        self._start = start
        zero = Pieces(np.zeros(1), np.zeros((1, 4)), np.zeros(1, dtype=np.bool_))
        self._drive: Drive = join_inputs(layout.w, len(layout.p), dict.fromkeys(layout.w, zero))
        self._drive.arrays.counts[2] = 0  # never constant
        number = self.machine.number_of(start.states)
        context = start.context.copy()
        context[layout.w_slice] = self.tick_data.now
        self.loop: Loop = begin(
            self.machine.tables, 0.0, start.x, context, number, self._drive, int(self._method.counts[STAGES])
        )
        self.loop.state.counters[st.SEGMENT] = 0
        self.loop.buffers.transitions[:] = 0.0  # what a record leaves out is then always the same
        self.options = st.Options(
            np.array([0.0, 0.0, np.inf, 1.0]),
            np.array([TURNS_PER_TICK, 2**62, MOST_INSTANT], dtype=np.int64),
            np.ones(len(start.x)),
            np.ones((1, len(start.x)), dtype=np.int8),
        )
        self._options_packed = st.OPTIONS.pack(self.options)
        self.tick_data.counts[ct.UNFINISHED] = 0
        self._look_up()
        self.set_speed(float(self.tick_data.numbers[ct.SPEED]))

    def _look_up(self) -> None:
        """Look up the addresses of all bundles; they change when the loop or its tables do."""
        loop = self.loop
        bundles = (
            loop.tables_packed, self._drive.packed, self._method_packed, self._options_packed, loop.state_packed,
            loop.work_packed, loop.buffers_packed, self._tick_packed,
        )  # fmt: skip
        self.addresses: tuple[int, ...] = tuple(packed.address for packed in bundles)
        self.counters = plain(loop.state.counters)

    # -- running -------------------------------------------------------------------------------------------

    def tick(self, shown: bool = True) -> int:
        """Advance by one period if ``tick_data.counts[ADVANCING]`` says so; return a status of the outcomes.

        ``DONE`` where the tick was completed, ``PAUSED`` where it took more than its share of work and goes on with
        the next call.
        """
        tables_at, drive_at, method_at, options_at, state_at, work_at, buffers_at, tick_at = self.addresses
        status: int = ct.begin_tick(tables_at, drive_at, options_at, state_at, work_at, tick_at)
        if status == 1:
            status = advance(tables_at, drive_at, method_at, options_at, state_at, work_at, buffers_at)
            self.tick_data.counts[ct.UNFINISHED] = status != outcomes.DONE
        else:
            status = outcomes.DONE if status == 0 else outcomes.NON_FINITE
        ct.end_tick(state_at, tick_at, shown)
        return status

    def supply(self, status: int) -> int | None:
        """Give the stepper a mode or chart that it lacks, however long it takes; see :func:`loop.supply`."""
        refused = supply(self.loop, status, self.machine)
        self._look_up()
        self.graph.automaton = self.machine.automaton
        return refused

    def set_speed(self, speed: float) -> None:
        """Let model time pass ``speed`` times as fast as the wall clock; begins a new grid of steps here."""
        state, tick = self.loop.state, self.tick_data
        tick.numbers[ct.SPEED] = speed
        self.restart_grid(float(state.clock[st.TIME]), self.period * speed / self.substeps)

    def restart_grid(self, t: float, step: float) -> None:
        """Begin a grid of steps of this length (s) at time ``t``."""
        self.loop.state.clock[st.BEGIN] = t
        self.loop.state.counters[st.GRID] = 0
        self.tick_data.counts[ct.STEPS] = 0
        self.options.numbers[st.FIXED_STEP] = step

    def set_parameters(self, values: Mapping[str, float]) -> tuple[str, ...]:
        """Set parameters (SI); return the names of those that wait for a reset.

        A parameter that enters gaps, constraints or inertia would move the mechanism or its energy: it is taken at
        the next reset.
        """
        layout = self.graph.automaton.terms.layout
        waiting = []
        for name, value in values.items():
            if name not in layout.p:
                raise InputError(f"no parameter '{name}'", allowed=", ".join(layout.p), remedy=nearest(name, layout.p))
            self.graph.parameters[layout.p.index(name)] = value
            if name in self.structural:
                waiting.append(name)
            else:
                self.loop.state.c[layout.p.index(name)] = value
        return tuple(waiting)

    @property
    def structural(self) -> frozenset[str]:
        """Parameters that enter gaps, constraints or inertia."""
        if not hasattr(self, "_structural"):
            nodes = self.graph.automaton.system.nodes
            wanted = [node for name in _STRUCTURE for node in nodes[name].ravel()]
            self._structural = frozenset(symbol.name for symbol in support(wanted))
        return self._structural

    def follow_schedule(self) -> None:
        """Set the inputs that no device gives to their schedule at the end of the tick to come."""
        end = (
            self.loop.state.clock[st.BEGIN]
            + (self.tick_data.counts[ct.STEPS] + self.substeps) * self.options.numbers[st.FIXED_STEP]
        )
        names = self.graph.automaton.terms.layout.w
        values = self._scheduled(end, self.loop.state.c)[0, : len(names)]
        for i, name in enumerate(names):
            if name in self.graph.automaton.mechanism.inputs and not self._is_held(name):
                self.tick_data.targets[i] = values[i]

    def _is_held(self, name: str) -> bool:
        return any(name in port.inputs for port in self.ports)

    @property
    def t(self) -> float:
        """Model time, s."""
        return float(self.loop.state.clock[st.TIME])

    @property
    def mode(self) -> str:
        """The mode the model is in."""
        return str(self.machine.chart_names[self.loop.state.counters[st.MODE]])

    def records(self) -> Floats:
        """Return the records of the transitions of the last tick, shape (k, width)."""
        return self.loop.buffers.transitions[: self.loop.state.counters[st.TRANSITIONS]]


_STRUCTURE: Final[Sequence[str]] = ("W", "M", "A", "b", "gamma", "residual", "closes_if", "reach", "when")
