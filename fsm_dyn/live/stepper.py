"""Live stepper: advances a coupled model tick by tick, without processes and clocks."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import initial_state, parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.core.errors import InputError, RunError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.elements import CoupledPort
from fsm_dyn.language.memory import check_tick, parameters_of_periods
from fsm_dyn.language.values import check_values, parameter_values
from fsm_dyn.live.device_map import DeviceMap, DeviceMaps, Limits, coupled_ports
from fsm_dyn.live.mode_pool import OwnKernels, PooledExecutable
from fsm_dyn.live.tick import (
    MOST_SUBSTEPS,
    WORK_PER_SUBSTEP,
    bandwidths,
    couple_ports,
    new_tick,
    plain,
    set_limits,
    usual_work,
)  # fmt: skip
from fsm_dyn.programs.kernels import Kernels, compile_programs
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import support
from fsm_dyn.run import structures as st
from fsm_dyn.run.input_signals import InputSignals, PiecewiseCubic, resolve_inputs
from fsm_dyn.run.input_signals import assemble_inputs as join_inputs
from fsm_dyn.run.integrators import METHOD, METHODS, Tableau
from fsm_dyn.run.loop_state import LoopState, Workspace, asks_for_kernels, begin, provide_requested
from fsm_dyn.run.structures import Bundle, Packed
from fsm_dyn.runtime import abi
from fsm_dyn.runtime.abi import (
    CHECKPOINTS_MOST,
    CheckpointCounts,
    Clock,
    Counters,
    OptionNumbers,
    Phase,
    Status,
    TickCounts,
    TickNumbers,
    TickPlaces,
)
from fsm_dyn.runtime.layouts import Checkpoints, Options, Tick
from fsm_dyn.runtime.library import move

# -- Checkpoints of a live run: copies of the stepper's state every few ticks, to rewind to ------------------


CHECKPOINTS: Final = Bundle(Checkpoints)


def new_marks(block: Integers, inputs: int, old: Checkpoints | None) -> Checkpoints:
    """Return empty checkpoints for a run with its state in ``block``; memory of the run before is reused."""
    if old is not None and old.states.shape[1] == len(block):
        return old._replace(counts=np.zeros(CheckpointCounts.COUNT, np.int64), block=block)
    marks = Checkpoints(
        np.zeros(CheckpointCounts.COUNT, np.int64),
        block,
        np.empty((CHECKPOINTS_MOST, len(block)), np.int64),
        np.empty((CHECKPOINTS_MOST, 1 + inputs)),
    )
    marks.states.fill(0)  # page faults here, not in a tick
    marks.inputs.fill(0.0)
    return marks


def last_before(marks: Checkpoints, t: float) -> int:
    """Return the row of the last checkpoint not after ``t`` (s), or of the first; later ones are dropped."""
    made, room = int(marks.counts[CheckpointCounts.SAVED]), len(marks.states)
    oldest = max(0, made - room)
    number = next((k for k in range(made - 1, oldest, -1) if marks.inputs[k % room, 0] <= t), oldest)
    marks.counts[CheckpointCounts.SAVED] = number + 1
    return number % room


# -- Bounds on parameters of a live run for stable steps of a tick -------------------------------------------
#
# A step of length ``h`` multiplies a motion ``exp(l t)`` by the stability function ``R(l h)`` of the method; if ``l
# h`` is beyond the interval of ``|R| <= 1``, rounding grows to any size within some ticks. ``l`` are the eigenvalues
# of the modes linearised about the present state, with the couplers closed.

_DIFFERENCE: Final = 1e-6  # of a coordinate or speed, relative to the larger of it and 1
_GROWS: Final = 1.01  # times the largest eigenvalue of the values before: less is rounding
_MOST: Final = 10.0  # beyond the interval of every method here
_RIGHT: Final = 1.5  # of an eigenvalue times a step: the method of Runge and Kutta is 5 % off in a step
_HALVINGS: Final = 60
RATES: Final = ctypes.CFUNCTYPE(None, ctypes.c_double, *3 * [ctypes.POINTER(ctypes.c_double)])


def stability_interval(method: Tableau) -> float:
    """Return the length of the interval of the negative real axis on which a method is stable."""
    n = len(method.b)
    a = np.zeros((n, n))
    for i, row in enumerate(method.a):
        a[i, : len(row)] = [float(value) for value in row]
    b = np.array([float(value) for value in method.b])

    def factor(z: float) -> float:
        return abs(1.0 - z * float(b @ np.linalg.solve(np.eye(n) + z * a, np.ones(n))))

    inside, outside = 1.0, _MOST
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if factor(middle) <= 1.0 else (inside, middle)
    return inside


class StabilityBounds:
    """Bounds on the parameters of a coupled model.

    ``rates``: addresses of the kernels of the modes, which give the rates of the state; ``x``, shape (n_x,): state
    about which the modes are linearised; ``step``: of the integrator, s of model time.
    """

    def __init__(self, rates: Sequence[int], x: Floats, step: float, method: Tableau) -> None:
        self._rates, self._x, self._step = [RATES(address) for address in rates], x.copy(), step
        self._interval = stability_interval(method)

    def check(self, context: Floats, changes: Mapping[str, tuple[int, float]]) -> None:
        """Raise InputError if a parameter makes a mode too stiff for the steps of a tick.

        ``context``, shape (n_c,): with the values before, and the couplers closed; ``changes``: index in the context
        and new value of each parameter.
        """
        now = context.copy()
        for name, (index, value) in changes.items():
            before = self._largest(now)
            allowed = [max(self._interval, _GROWS * self._step * most) / self._step for most in before]
            usual, now[index] = float(now[index]), value
            if self._within(now, allowed):
                continue
            raise InputError(
                f"'{name}' is more than the steps of a tick can carry",
                found=f"{value:g}",
                allowed=f"about {self._bound(now, index, usual, value, allowed):.3g} at steps of {self._step:g} s",
                remedy="shorter steps carry more: substeps, or a shorter period",
            )

    def fastest(self, context: Floats) -> float:
        """Return the absolute value of the largest eigenvalue of all modes, 1/s."""
        return max(self._largest(context), default=0.0)

    def _bound(self, context: Floats, index: int, usual: float, value: float, allowed: Sequence[float]) -> float:
        """Return the stable value farthest from the default one, on the way to the new one."""
        here = context.copy()
        logarithmic = usual > 0.0 and value > 0.0
        inside, outside = (math.log(usual), math.log(value)) if logarithmic else (usual, value)
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            here[index] = math.exp(middle) if logarithmic else middle
            inside, outside = (middle, outside) if self._within(here, allowed) else (inside, middle)
        return math.exp(inside) if logarithmic else inside

    def _within(self, context: Floats, allowed: Sequence[float]) -> bool:
        """Whether the largest eigenvalue of every mode is allowed, 1/s."""
        return all(most <= limit for most, limit in zip(self._largest(context), allowed, strict=True))

    def _largest(self, context: Floats) -> list[float]:
        """Return the absolute value of the largest eigenvalue of each mode, 1/s; 0 for a mode without rates here."""
        found = []
        for rates in self._rates:
            jacobian = self._jacobian(rates, context)
            found.append(float(np.abs(np.linalg.eigvals(jacobian)).max()) if np.isfinite(jacobian).all() else 0.0)
        return found

    def _jacobian(self, rates: Any, context: Floats) -> Floats:
        """Return the derivatives of the rates of the state by the state."""
        n = len(self._x)
        columns, ends = np.empty((n, n)), np.empty((2, n))
        for i in range(n):
            size = _DIFFERENCE * max(1.0, abs(float(self._x[i])))
            for k, sign in enumerate((1.0, -1.0)):
                x = self._x.copy()
                x[i] += sign * size
                rates(0.0, *(array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for array in (x, context, ends[k])))
            with np.errstate(invalid="ignore", over="ignore"):  # nonfinite values mark a mode without rates here
                columns[:, i] = (ends[0] - ends[1]) / (2.0 * size)
        return columns


# -- Live stepper: advances a coupled model tick by tick, without processes and clocks -----------------------
#
# A :class:`LiveStepper` advances the model by one period per call, with the stepper of offline runs. The inputs
# contain every action on the model; they are linear from tick to tick, or cubic if their rates enter the equations:
# with the inputs of a run as ``sampled`` tables, :func:`fsm_dyn.run.simulator.simulate` makes the same transitions bit
# for bit.

TURNS_PER_TICK: Final = 1000  # most steps and transitions in a tick; the work limit ends it earlier
NO_LIMIT: Final = 2**62
MOST_INSTANT: Final = 40  # transitions in one instant


@dataclass
class LiveStepper:
    """A coupled model, advanced tick by tick.

    Parameters
    ----------
    graph : ModeGraph
        Compiled from the result of :func:`fsm_dyn.live.device_map.add_couplers`.
    n_device : int
        Number of axes of the device.
    period : float
        Length of a tick, s.
    substeps : int
        Steps of the integrator in a tick.
    method : str
        ``rk4``, ``heun`` or ``euler``.
    mapping : DeviceMap or tuple of DeviceMap
    limits : Limits
    schedule : bool
        Whether scheduled inputs of the model follow their schedule, sampled at the ticks.
    turns : tuple of int
        The rotational axes of the device, in rad.
    initial : mapping
        Replacements for entries of the model's ``initial``.
    work_per_tick : int, optional
        Work limit of a tick, complete or not, besides the work of two trial steps for each of the ``substeps``; 0: no
        limit; None: by the number of contacts, see :func:`fsm_dyn.live.tick.usual_work`.  Costs:
        :data:`fsm_dyn.run.structures.WORK_OF_TRANSITION` and its neighbours.
    parts : tuple of int
        Number of axes of each device, for combined devices.
    """

    graph: ModeGraph
    n_device: int = 1
    period: float = 1e-3
    substeps: int = 1
    method: str = "rk4"
    mapping: DeviceMaps = field(default_factory=DeviceMap)
    limits: Limits = field(default_factory=Limits)
    schedule: bool = False
    turns: tuple[int, ...] = ()
    initial: Mapping[str, float | str] = field(default_factory=dict)
    work_per_tick: int | None = None
    parts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.method not in METHODS or METHODS[self.method].adaptive:
            fixed = [name for name, method in METHODS.items() if not method.adaptive]
            raise InputError(f"no fixed-step method '{self.method}'", allowed=", ".join(fixed))
        layout = self.graph.automaton.terms.layout
        self.ports: tuple[CoupledPort, ...] = coupled_ports(self.graph.automaton.mechanism)
        self.axes = tuple(axis for port in self.ports for axis in port.axes)
        missing = [name for port in self.ports for name in port.inputs if name not in layout.w]
        if missing or not self.ports:
            remedy = "compile what fsm_dyn.live.device_map.add_couplers returns"
            raise InputError(f"'{self.graph.name}' has no couplers", remedy=remedy)
        check_tick(self.graph.automaton.mechanism, self.graph.values, self.period)
        self.smooth = self.graph.automaton.inputs_with_rates
        graph = self.graph
        # copies: other runs of the graph keep their parameters
        self.values, self.parameters = dict(graph.values), graph.parameters.copy()
        home = initial_state(graph.automaton, graph.values, graph.parameters, self.initial)
        self.executable = PooledExecutable(graph.automaton, (home.x, home.context), derived=graph.automaton.modes)
        self._workspace = Workspace()
        self._method = METHODS[self.method].arrays()
        self._method_packed = METHOD.pack(self._method)
        self._scheduled = resolve_inputs(self.graph.automaton, self.graph.values, {}, (0.0, 3600.0))
        self._start: InitialState | None = None
        self._marks: Checkpoints | None = None
        self._kernels = self._port_kernel()
        self._make_tick()
        self.set_device_map(self.mapping)
        self.reset()

    # -- building ------------------------------------------------------------------------------------------

    def _port_kernel(self) -> Kernels:
        """Compile the outputs of the ports: forces of the couplers (zero without one), positions, rates."""
        automaton = self.graph.automaton
        graph, _, nodes = automaton.report.graph()
        outputs = dict(zip(automaton.mechanism.outputs, nodes["outputs"], strict=True))
        wanted = [axis.outputs[k] for k in range(3) for axis in self.axes]
        table = np.array([outputs.get(name, graph.constant(0.0)) for name in wanted], dtype=object)
        return compile_programs([Program.from_nodes(automaton.terms.layout, {"ports": table})])

    def _make_tick(self) -> None:
        """Allocate the data of a tick and write the constants of a run."""
        self.limits.check(self.n_device)
        self.tick_data: Tick
        self.tick_data, self._tick_packed = new_tick(
            self.graph.automaton, self.executable.tables, self.axes, self.smooth, self.n_device
        )
        applied = {axis.is_applied_force for axis in self.axes}
        set_limits(self.tick_data, self.limits, self.period, applied == {True})
        tick = self.tick_data
        tick.bandwidth[:] = bandwidths(self.smooth, self.axes, self.values, self.period)
        tick.turns[:] = [i in self.turns for i in range(self.n_device)]
        tick.part[:] = np.repeat(range(len(self.parts) or 1), self.parts or self.n_device)
        tick.counts[TickCounts.SUBSTEPS], tick.counts[TickCounts.SCHEDULED] = self.substeps, self.schedule
        tick.counts[TickCounts.KERNEL] = self._kernels[0].address
        tick.counts[TickCounts.WATCHDOG_BEATS] = -1
        tick.numbers[TickNumbers.SPEED] = 1.0

    def set_device_map(self, mapping: DeviceMaps) -> None:
        """Couple the device, or each of several, to a port; only while it is disengaged.

        Raises
        ------
        InputError
            There is no such port, or the axes do not fit.
        """
        parts = self.parts or (self.n_device,)
        maps = mapping if isinstance(mapping, tuple) else (mapping,)
        couple_ports(self.tick_data, self.ports, maps, parts, self.values)
        self.mapping = mapping

    def reset(self) -> None:
        """Return to the model's initial state, with the present parameters and commanded inputs."""
        layout, tick = self.graph.automaton.terms.layout, self.tick_data
        self.executable.reset_charts()  # a run does not depend on the runs before it
        n_w, n_s, n_a = len(layout.w), len(self.smooth), len(self.axes)
        rates = np.zeros(n_w)
        if self.schedule:
            scheduled = self._scheduled(0.0, self._parameters())[0]
            tick.targets[:], rates[:] = scheduled[:n_w], scheduled[n_w : 2 * n_w]
            tick.counts[TickCounts.SEGMENT] = 0
        held = [layout.w.index(name) for port in self.ports for name in port.inputs]
        tick.targets[held], rates[held] = 0.0, 0.0
        tick.now[:] = tick.targets
        tick.motion[:n_s], tick.motion[n_s:] = rates[tick.smooth], 0.0
        tick.numbers[TickNumbers.ENGAGEMENT] = tick.numbers[TickNumbers.ENGAGEMENT_TARGET] = tick.counts[
            TickCounts.ENGAGED
        ] = 0
        start = self._begin_at(np.concatenate([tick.now, rates, np.zeros(n_w)]))
        self.ports_at(start.x, start.context)
        coupled = np.flatnonzero(tick.row == -1)
        tick.now[tick.slot[coupled]] = tick.ports[n_a + coupled]  # the couplers begin unstretched
        tick.next[:], tick.motion_next[:] = tick.now, tick.motion
        self._take(start)

    def _parameters(self) -> Floats:
        """Return a context with the parameters alone."""
        context = np.zeros(self.graph.automaton.terms.layout.n_c)
        context[: len(self.parameters)] = self.parameters
        return context

    def _begin_at(self, inputs: Floats) -> InitialState:
        """Return the initial state with these inputs, rates and second rates, shape (3 n_w,)."""
        graph = self.graph
        return initial_state(graph.automaton, self.values, self.parameters, self.initial, lambda t, c: inputs[None, :])

    def ports_at(self, x: Floats, context: Floats) -> None:
        """Evaluate forces, positions and rates of the ports at a state into ``tick_data.ports``."""
        tick = self.tick_data
        tick.ports[:] = self._kernels[0](0.0, x, context)
        tick.left[:] = tick.ports[len(self.axes) : 2 * len(self.axes)]

    def begin_at(self, t: float, start: InitialState) -> None:
        """Begin a run at a time (s) and state, with the inputs in ``tick_data.now``."""
        self._take(start)
        self.loop.state.clock[Clock.TIME] = t
        self.set_speed(float(self.tick_data.numbers[TickNumbers.SPEED]))

    def _take(self, start: InitialState) -> None:
        """Begin a new run of the stepper."""
        layout = self.graph.automaton.terms.layout
        self._start = start
        zero = PiecewiseCubic(np.zeros(1), np.zeros((1, 4)), np.zeros(1, dtype=np.bool_))
        self._drive: InputSignals = join_inputs(layout.w, len(layout.p), dict.fromkeys(layout.w, zero))
        self._drive.arrays.counts[abi.InputCounts.CONSTANT] = 0
        number = self.executable.mode_index(start.states)
        context = start.context.copy()
        context[layout.w_slice] = self.tick_data.now
        context[layout.w_slice.start + len(layout.w) + self.tick_data.smooth] = self.tick_data.motion[
            : len(self.smooth)
        ]
        stages = int(self._method.counts[abi.MethodCounts.STAGES])
        self.loop: LoopState = begin(
            self.executable.tables, 0.0, start.x, context, number, self._drive, stages, self._workspace
        )
        if self.executable.stocked and len(self.graph.automaton.contacts) > abi.FEW:
            most = len(self.graph.automaton.contacts)
            self.loop.work, self.loop.work_packed = st.new_work(self.executable.tables, self.loop.stages, most)
        self.loop.state.counters[Counters.SEGMENT] = 0
        self.loop.buffers.transitions[:] = 0.0  # unused entries of a record are then reproducible
        given = self.work_per_tick
        work = usual_work(len(self.graph.automaton.contacts)) if given is None else given
        most = work + WORK_PER_SUBSTEP * self.substeps if work else NO_LIMIT
        self.options = Options(
            np.array([0.0, 0.0, np.inf, 1.0]),
            np.array([TURNS_PER_TICK + 2 * self.substeps, NO_LIMIT, MOST_INSTANT, most, 0], dtype=np.int64),
            np.ones(len(start.x)),
            np.ones((1, len(start.x)), dtype=np.int8),
        )
        self._options_packed = st.OPTIONS.pack(self.options)
        self.tick_data.counts[TickCounts.INCOMPLETE] = 0
        self._look_up()
        self.set_speed(float(self.tick_data.numbers[TickNumbers.SPEED]))

    def _look_up(self) -> None:
        """Update the addresses of all bundles; they change with the loop or its tables."""
        loop, tick = self.loop, self.tick_data
        bundles = (
            loop.tables_packed, self._drive.packed, self._method_packed, self._options_packed, loop.state_packed,
            loop.work_packed, loop.buffers_packed,
        )  # fmt: skip
        tick.places[: len(bundles)] = [packed.address for packed in bundles]
        tick.places[TickPlaces.SCHEDULE] = self._scheduled.packed.address
        if self._marks is None or self._marks.block is not loop.state_packed.table:
            self._marks = new_marks(loop.state_packed.table, len(tick.now) + len(tick.motion), self._marks)
            self._marks_packed = CHECKPOINTS.pack(self._marks)
        tick.places[TickPlaces.CHECKPOINTS] = self._marks_packed.address
        self.counters = plain(loop.state.counters)
        self.executable.under_way = lambda: (int(self.counters[Counters.MODE]), self.loop.state.spent)

    def publish_to(self, ring: Packed) -> None:
        """Let every live tick write its row to this ring buffer."""
        self._ring = ring
        self.tick_data.places[TickPlaces.RING] = ring.address

    # -- running -------------------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        """Address of the data of a tick; it is constant."""
        return self._tick_packed.address

    def tick(self, shown: bool = True, again: bool = False) -> int:
        """Advance by one period if ``tick_data.counts[ADVANCING]`` says so; return a status of the outcomes.

        ``DONE`` if the tick was completed, ``PAUSED`` if it reached its work limit and continues with the next call.
        ``again``: continue within the tick, after its request was supplied.
        """
        if not again:
            self.counters[Counters.WORK_DONE] = 0
        status: int = move(self._tick_packed.address, shown)
        return status

    def supply(self, status: int) -> int | None:
        """Supply a missing mode or chart, of any duration; see :func:`.loop_state.provide_requested`."""
        tables, known = self.loop.tables, len(self.executable.charts)
        try:
            refused = provide_requested(self.loop, status, self.executable)
        except RunError:  # not a listed mode
            return Status.MODE_NOT_LISTED
        if len(self.executable.charts) > known or status != Status.NEED_MODE:  # not for one that rested
            self.counters[Counters.WORK_DONE] += abi.WORK_OF_MODE
        if self.loop.tables is not tables or status == Status.BUFFER_FULL:
            self._look_up()
        return refused

    def is_available(self, status: int) -> bool:
        """Whether a requested mode or chart can be supplied within the tick."""
        wanted = status in (Status.NEED_MODE, Status.NEED_CHART)
        return wanted and (self.executable.stocked or asks_for_kernels(self.loop, status))

    def take_over(self, states: tuple[int, ...], kernels: OwnKernels) -> int | None:
        """Switch a mode to derived kernels; see :meth:`.PooledExecutable.take_over`."""
        return self.executable.take_over(states, kernels, self.loop.state.spent)

    def prepare(self) -> None:
        """Do the slow work before the first paced tick: mode pool, memory for all contacts at one event."""
        self.executable.prepare()
        self.reset()

    def rewind(self, t: float) -> float:
        """Return to the last checkpoint not after model time ``t`` (s), or to the first; return its time.

        Raises
        ------
        InputError
            There is none: the run has just begun.
        """
        marks, tick, state = self._marks, self.tick_data, self.loop.state
        if marks is None or marks.counts[abi.CheckpointCounts.SAVED] == 0:
            raise InputError("there is nowhere to go back to", found=f"{t:g} s", remedy="reset begins anew")
        slot = last_before(marks, t)
        parameters = state.c[: len(self.parameters)].copy()
        marks.block[:] = marks.states[slot]
        self.executable.wake(int(self.counters[Counters.MODE]))
        n_w = len(tick.now)
        tick.now[:], tick.motion[:] = marks.inputs[slot, 1 : 1 + n_w], marks.inputs[slot, 1 + n_w :]
        tick.next[:], tick.motion_next[:] = tick.now, tick.motion
        tick.counts[TickCounts.INCOMPLETE] = 0
        for index, value in enumerate(parameters):  # parameters set meanwhile are kept
            self._apply(index, float(value))
        self.ports_at(state.x, state.c)
        self.set_speed(float(tick.numbers[TickNumbers.SPEED]))
        return self.t

    def set_speed(self, speed: float) -> None:
        """Let model time pass ``speed`` times as fast as the wall clock; begins a new grid of steps here."""
        state, tick = self.loop.state, self.tick_data
        tick.numbers[TickNumbers.SPEED] = speed
        self.restart_grid(float(state.clock[Clock.TIME]), self.period * speed / self.substeps)

    def restart_grid(self, t: float, step: float) -> None:
        """Begin a grid of steps of this length (s) at time ``t``."""
        self.loop.state.clock[Clock.PUT_OFF] = 0.0
        self.loop.state.clock[Clock.BEGIN] = t
        self.loop.state.counters[Counters.GRID] = 0
        counts = self.tick_data.counts
        counts[TickCounts.STEPS], counts[TickCounts.BEHIND], counts[TickCounts.PERIODS] = 0, 0, 1
        self.options.numbers[OptionNumbers.FIXED_STEP] = step

    def set_parameters(self, values: Mapping[str, float]) -> tuple[str, ...]:
        """Set parameters (SI); return the names of those effective after a reset.

        A parameter of gaps, constraints or inertia would violate constraints or change the energy, one of a
        controller's period the order of its samples: it takes effect at the next reset.

        Raises
        ------
        InputError
            A name is unknown, or a value would be invalid in the file; then none is set.
        """
        layout = self.graph.automaton.terms.layout
        for name, value in values.items():
            if name not in layout.p:
                raise InputError(
                    f"no parameter '{name}'", allowed=", ".join(layout.p), remedy=did_you_mean(name, layout.p)
                )
            if not np.isfinite(value):
                raise InputError(f"parameter '{name}' wants a finite number", found=repr(value))
        before = self.values.copy()
        try:
            for name, value in values.items():
                self._note(name, value)
            check_values(self.graph.automaton.mechanism, self.values, values)
            check_tick(self.graph.automaton.mechanism, self.values, self.period)
            changes = {name: (layout.p.index(name), value) for name, value in values.items()}
            self._check_bounds(self.loop.state.c, changes)
        except InputError:
            self.values = before  # all or none
            raise
        waiting = []
        for name, value in values.items():
            self.parameters[layout.p.index(name)] = value
            if name in self.structural:
                waiting.append(name)
            else:
                self._apply(layout.p.index(name), value)
        return tuple(waiting)

    def check_start(self) -> None:
        """Raise InputError if parameters unlike the file's are too large for stable ticks."""
        layout, context = self.graph.automaton.terms.layout, self.loop.state.c.copy()
        usual = parameter_vector(parameter_values(self.graph.automaton.mechanism))
        given = self.parameters
        changes = {layout.p[i]: (int(i), float(given[i])) for i in np.flatnonzero(given != usual)}
        context[: len(usual)] = usual
        self._check_bounds(context, changes)

    def _check_bounds(self, context: Floats, changes: Mapping[str, tuple[int, float]]) -> None:
        """Raise InputError if a new value is too large for stable ticks, or invalid for a coupler."""
        for axis in (axis for axis in self.axes if not axis.prescribed_coordinate and not axis.is_applied_force):
            for name, above in ((axis.stiffness, True), (axis.damping, False)):
                value = changes.get(name, (0, 1.0))[1]
                if value < 0.0 or (above and value == 0.0):
                    raise InputError(
                        f"'{name}' of a coupler", found=f"{value:g}", allowed="above 0" if above else "from 0",
                    )  # fmt: skip
        if changes and self.executable.own_kernels():
            self._bounds().check(self._closed(context), changes)

    def _bounds(self) -> StabilityBounds:
        step = float(self.options.numbers[OptionNumbers.FIXED_STEP])
        return StabilityBounds(self.executable.own_kernels(), self.loop.state.x, step, METHODS[self.method])

    def _closed(self, context: Floats) -> Floats:
        """Return a context with the couplers closed, the device where its ports are."""
        tick, closed = self.tick_data, context.copy()
        inputs, n_a = self.graph.automaton.terms.layout.w_slice.start, len(self.axes)
        self.ports_at(self.loop.state.x, context)
        for a in np.flatnonzero(tick.row == -1):
            closed[inputs + tick.slot[a]] = tick.ports[n_a + a]
            closed[inputs + tick.slot[2 * n_a + a]] = 1.0
        return closed

    def stable_substeps(self) -> int:
        """Return the steps of a tick that the coupled modes need at the start, no fewer than it has.

        A light port on its coupler may be stiffer than the model: halved steps keep such a motion bounded, not right.
        """
        if not self.executable.own_kernels():
            return self.substeps
        fastest = self._bounds().fastest(self._closed(self.loop.state.c.copy()))
        return min(MOST_SUBSTEPS, max(self.substeps, math.ceil(self.period * fastest / _RIGHT)))

    def _note(self, name: str, value: float) -> None:
        """Write a parameter, or the element ``name[i]`` of one, to the values for the next initial state."""
        whole, _, place = name.partition("[")
        known = self.values.get(whole)
        if isinstance(known, tuple):
            at = int(place.rstrip("]"))
            self.values[whole] = (*known[:at], value, *known[at + 1 :])
        elif known is not None:
            self.values[name] = value

    def _apply(self, index: int, value: float) -> None:
        """Set a parameter of the running model: forces may jump, so contact states are resolved again."""
        state = self.loop.state
        if state.c[index] != value:
            state.c[index] = value
            if state.counters[Counters.STARTED] and state.counters[Counters.PHASE] == Phase.STEPPING:
                state.counters[Counters.PHASE], state.counters[Counters.REASON] = (
                    Phase.RESOLVING,
                    abi.Reason.INPUT_JUMP,
                )
                state.counters[Counters.FIRED] = 0

    def states_after(self, transition: str) -> tuple[int, ...]:
        """Return the contact states that a user-defined transition, by its name, makes of the present ones.

        Impacts and contacts that follow from it may change more of them.
        """
        executable = self.executable
        number = [item.name for item in self.graph.automaton.mechanism.transitions].index(transition)
        asked = executable.tables.transition_states[number]
        present = executable.charts[int(self.counters[Counters.MODE])].programs.states
        return tuple(int(new) if new >= 0 else old for new, old in zip(asked, present, strict=True))

    @property
    def structural(self) -> frozenset[str]:
        """Parameters of gaps, constraints, inertia or periods of controllers."""
        if not hasattr(self, "_structural"):
            self._structural = structural_parameters(self.graph.automaton)
        return self._structural

    @property
    def t(self) -> float:
        """Model time, s."""
        return float(self.loop.state.clock[Clock.TIME])

    @property
    def mode(self) -> str:
        """Name of the present mode."""
        chart = self.executable.charts[self.loop.state.counters[Counters.MODE]]
        return self.executable.mode_name(chart.programs.states).name

    def records(self) -> Floats:
        """Return the records of the transitions of the last tick, shape (k, width)."""
        return self.loop.buffers.transitions[: self.loop.state.counters[Counters.TRANSITIONS]]


_STRUCTURE: Final[Sequence[str]] = ("W", "M", "A", "b", "gamma", "residual", "closes_if", "reach", "when")


def structural_parameters(automaton: Automaton) -> frozenset[str]:
    """Return the parameters of gaps, constraints, inertia or periods of controllers."""
    nodes = automaton.system.nodes
    wanted = [node for name in _STRUCTURE for node in nodes[name].ravel()]
    return frozenset(symbol.name for symbol in support(wanted)) | parameters_of_periods(automaton.mechanism)
