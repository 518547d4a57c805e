"""Runs for analyses, from any state in any mode, and their variations at the start and at switches."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from fsm_dyn.analysis.linearisation import ModeDerivatives, jacobian, mode_derivatives, time_derivative
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import InitialState, assembled_states, fixed_codes
from fsm_dyn.automaton.initial_values import initial_state, parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.static_equilibrium import statics_nodes
from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.core.errors import InputError, RunError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.assembly import free_directions
from fsm_dyn.derive.elimination import dependent_columns
from fsm_dyn.derive.embedding import ActiveSet
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.language.evaluate import ParameterValue, ScalarAlgebra
from fsm_dyn.language.expression_tree import CASE_FUNCTIONS, Text
from fsm_dyn.language.memory import refuse_controllers
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import gradient, reachable, support
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.extremes import quartic
from fsm_dyn.run.input_signals import InputSignals, InputValue, resolve_inputs
from fsm_dyn.run.loop import run_automaton
from fsm_dyn.run.loop_state import RunArrays, renumbered
from fsm_dyn.run.record import record_of, run_model
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.run.simulator import Simulator, simulator_of
from fsm_dyn.run.tolerances import numerics_of
from fsm_dyn.run.trajectory import Trajectory

# -- Runs as plain arrays --------------------------------------------------------------------------------------


# -- Roles of memory in a motion -----------------------------------------------------------------------------
#
# Memory is a continuously varying part of the state of a motion, a part with separate values, or a mere count.


def kept_quantities(automaton: Automaton) -> tuple[str, ...]:
    """Return the memory varying with the motion: a transition sets it from a state, a parameter or the time.

    Counts and switches take separate values, common to neighbouring motions.
    """
    layout = automaton.terms.layout
    found: tuple[str, ...] = ()
    while True:
        sources = {layout.arguments[0], *layout.x, *layout.p, *layout.w, *found}
        more = tuple(
            name
            for k, name in enumerate(layout.memory)
            if name in found or any(_varies(reset, layout.n_x + k, sources) for reset in automaton.resets if reset)
        )
        if more == found:
            return found
        found = more


def _varies(reset: Program, entry: int, sources: set[str]) -> bool:
    """Whether an entry after a reset has a derivative by one of some arguments."""
    nodes = reset.graph()[2]
    node = nodes["after"][entry]
    met = [symbol for symbol in support([node]) if symbol.name in sources]
    return any(not slope.is_zero for slope in gradient([node], met)[0])


def memory_of_motion(automaton: Automaton) -> tuple[str, ...]:
    """Return the memory that affects the motion, without mere counts and printed values."""
    layout = automaton.terms.layout
    read = _names(node for table in automaton.terms.graph()[2].values() for node in table.ravel())
    sets = []
    for reset in automaton.resets:
        if reset is not None:
            after = reset.graph()[2]["after"]
            read |= _names(after[: layout.n_x])
            sets += list(zip(layout.memory, after[layout.n_x :], strict=True))
    while True:
        more = read.union(*(_names([node]) for name, node in sets if name in read))
        if more == read:
            return tuple(name for name in layout.memory if name in read)
        read = more


def _names(nodes: Iterable[Any]) -> set[str]:
    return {symbol.name for symbol in support(nodes)}


# -- Runs for the purposes of analysis: from any state, in any mode, as plain arrays -------------------------

LONGEST = 1e4  # s; longest table of a Python callable as an input


@dataclass(frozen=True)
class AnalysisSetup:
    """A graph with the values of parameters and inputs of the studied motions."""

    graph: ModeGraph
    simulator: Simulator
    executable: Executable
    numbers: Mapping[str, ParameterValue]
    vector: Floats
    drive: InputSignals
    rtol: float
    atol: float  # in the mechanism's own units
    # parameters of the derivatives by their names in the kernels, each independent of the others
    names: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()  # memory varying with the motion, a part of the state

    @property
    def constants(self) -> tuple[str, ...]:
        """Constants of a motion within a mode: memory, then parameters."""
        return (*self.kept, *self.names)

    @property
    def variations(self) -> int:
        """Number of rows of a variation: states, varying memory, parameters."""
        return self.executable.automaton.terms.layout.n_x + len(self.constants)

    @classmethod
    def of(
        cls,
        graph: ModeGraph,
        parameters: Parameters | None = None,
        inputs: Mapping[str, InputValue] | None = None,
        rtol: float = 1e-10,
        atol: float = 1e-12,
        names: tuple[str, ...] = (),
    ) -> AnalysisSetup:
        """Return the setting for a user's arguments.

        Raises InputError: a parameter or an input is unknown, or the model has a sampled controller.
        """
        automaton = graph.automaton
        refuse_controllers(automaton.mechanism, "an analysis of derivatives")
        numbers = parameter_values(automaton.mechanism, parameters) if parameters else graph.values
        for name in names:
            if name not in automaton.terms.layout.p:
                raise InputError(
                    f"'{name}' is no parameter of '{graph.name}'",
                    allowed=", ".join(automaton.terms.layout.p),
                    remedy=did_you_mean(name, automaton.terms.layout.p),
                )
        vector = parameter_vector(numbers)
        drive = resolve_inputs(automaton, numbers, inputs or {}, (0.0, LONGEST))
        simulator = simulator_of(graph)
        executable = simulator.take("derived")
        executable.use(numerics_of(automaton, numbers))
        kept = kept_quantities(automaton)
        setting = cls(graph, simulator, executable, numbers, vector, drive, rtol, atol, names, kept)
        # the executable belongs to the setting for its lifetime
        weakref.finalize(setting, simulator.give_back, executable, "derived")
        return setting

    def start(self, initial: Mapping[str, float | str] | None = None, vector: Floats | None = None) -> InitialState:
        """Return the start of a run; ``vector`` may replace the parameters in the order of the layout."""
        if vector is None:
            return initial_state(self.executable.automaton, self.numbers, self.vector, initial, self.drive)
        numbers = dict(self.numbers)
        at = 0
        for name, value in self.numbers.items():
            size = len(value) if isinstance(value, tuple) else 1
            numbers[name] = tuple(vector[at : at + size]) if isinstance(value, tuple) else float(vector[at])
            at += size
        return initial_state(self.executable.automaton, numbers, vector, initial, self.drive)

    def run(self, x: Floats, context: Floats, states: tuple[int, ...], until: float, since: float = 0.0) -> RunArrays:
        """Run from a state in the mode with these contact states; refuse one of which the least forces leave a cone."""
        programs = self.executable.derived(states).programs
        if programs.least_forces_slip(self.executable.automaton.contacts, since, x, context):
            raise InputError(
                "contacts of a mode share friction in space, and their least forces, of which this analysis takes "
                "derivatives, leave its cones",
                found=f"a start in '{self.executable.mode_name(states).name}'",
                remedy="take differences of runs, which look for other forces within the cones",
            )
        number, states_atol = self.executable.mode_index(states), self.atol * self.executable.numerics.states
        options = RunOptions(until, rtol=self.rtol, atol=states_atol)
        return run_automaton(
            self.executable.tables, x, context, number, since, options, drive=self.drive, mode_source=self.executable,
            workspace=self.simulator.workspace,
        )  # fmt: skip

    def context(self, held: Floats) -> Floats:
        """Return contexts, shape (..., n_c), from the recorded values of a run and the parameters."""
        parameters = np.broadcast_to(self.vector, (*held.shape[:-1], len(self.vector)))
        return np.concatenate([parameters, held], axis=-1)

    def derivatives(self, number: int) -> ModeDerivatives:
        """Return the derivative programs behind a mode number of a run, made once."""
        programs = self.executable.charts[number].programs
        if not isinstance(programs, ModePrograms):
            raise TypeError("a mode embedded online has no programs to differentiate")
        return self.simulator.remember(
            ("derivatives", programs.full.digest, self.constants), lambda: mode_derivatives(programs, self.constants)
        )

    def trajectory(self, raw: RunArrays) -> Trajectory:
        """Return a run in its public form."""
        executable, drive, context = self.executable, self.drive, raw.c_end
        raw, order = renumbered(raw, len(self.graph.automaton.modes))
        charts = [executable.charts[number].programs for number in order]
        names = [executable.mode_name(chart.states).name for chart in charts]
        model = run_model(executable.automaton, names, charts, self.vector, self.numbers)
        return Trajectory(model, record_of(executable.automaton, names, raw, lambda times: drive(times, context)))


# -- Variations within a mode ----------------------------------------------------------------------------------


# -- Exact derivatives of a start: by given values, and by the parameters, through its assembly --------------

SOLVED = 1e-9  # relative to the largest singular value: smaller ones determine nothing
ROUNDING = 1e-12  # of the largest unknown
CONTRADICTS = 1e-6  # relative to its terms; a row with a larger remainder has no solution


def parameter_derivatives(
    mechanism: Mechanism, layout: Layout, vector: Floats, names: Sequence[str], fixed: Sequence[str]
) -> Floats:
    """Return derivatives of all parameters by some of them, shape (n_p, n_names): a file's may depend on others.

    ``vector``, shape (n_p,): values of the parameters, SI; ``names``: variables, by their names in the layout;
    ``fixed``: parameters given as numbers for these runs.
    """
    graph = ExpressionGraph()
    symbols = {name: graph.symbol(name) for name in names}
    known: dict[str, Any] = {"pi": graph.constant(float(np.pi))}
    values, nodes = dict(zip(layout.p, vector.tolist(), strict=True)), []
    for name, parameter in mechanism.parameters.items():
        for k, text in enumerate(parameter.values):
            own = f"{name}[{k}]" if parameter.is_vector else str(name)
            varies = own not in symbols and name not in fixed
            known[own] = ScalarAlgebra(graph, known).scalar(text) if varies else graph.constant(values[own])
            known[own] = symbols.get(own, known[own])
            nodes.append(known[own])
    slopes = Program.from_nodes(Layout(p=tuple(names)), {"slopes": jacobian(nodes, list(symbols.values()))})
    found: Floats = slopes.evaluate(0.0, np.zeros(0), np.array([values[name] for name in names]))["slopes"]
    return found


def start_derivatives(
    setting: AnalysisSetup, start: InitialState, initial: Mapping[str, float | str], names: Sequence[str]
) -> Floats:
    """Return variations of a start, shape (n_z, k + n_m): by k given values, then by each parameter.

    ``setting``: setting with the parameters of differentiation; ``initial``: values instead of the model's own initial
    ones; ``names``: coordinates and speeds as variables of differentiation. Raises RunError: the start is one point of
    a continuum of rests, or rows lose rank there.
    """
    layout, n_m = setting.executable.automaton.terms.layout, len(setting.names)
    given = _Given(setting, initial)
    solved = _Rest(setting, start, given) if given.settles else _Assembly(setting, start, given)
    columns = []
    for name in names:
        unit = np.zeros(layout.n_x)
        unit[layout.x.index(name)] = 1.0
        columns.append(solved.variation(unit, np.zeros(n_m), (name,)))
    for k, slopes in enumerate(given.slopes.T):
        columns.append(solved.variation(slopes, np.eye(n_m)[k], ()))
    found = np.zeros((setting.variations, len(columns)))
    found[: layout.n_x] = np.array(columns).reshape(len(columns), layout.n_x).T
    found[setting.variations - n_m :, len(names) :] = np.eye(n_m)
    return found


class _Given:
    """Given values of a start: their names, and the derivatives of values and guesses by the parameters."""

    def __init__(self, setting: AnalysisSetup, initial: Mapping[str, float | str]) -> None:
        mechanism = setting.executable.automaton.mechanism
        layout = setting.executable.automaton.terms.layout
        own = mechanism.initial
        texts: dict[str, Any] = {**own.guess, **own.values, **initial}
        mode = initial.get("mode", own.mode)
        self.mode = None if mode is None else str(mode)
        self.settles = bool(initial.get("settle", own.settle))
        self.names = frozenset(name for name in {*own.values, *initial} if name in layout.x)
        graph = ExpressionGraph()
        symbols = {name: graph.symbol(name) for name in layout.p}
        algebra = ScalarAlgebra(graph, {**symbols, "pi": graph.constant(float(np.pi))})
        zero = graph.constant(0.0)
        nodes = [
            algebra.scalar(text if isinstance(text, Text) else Text(text)) if isinstance(text, str | Text) else zero
            for text in (texts.get(name) for name in layout.x)
        ]
        slopes = Program.from_nodes(
            Layout(p=layout.p), {"slopes": jacobian(nodes, [symbols[name] for name in setting.names])}
        )
        #: derivatives of the values, shape (n_x, n_m)
        self.slopes: Floats = slopes.evaluate(0.0, np.zeros(0), setting.vector)["slopes"]


class _Assembly:
    """The variation of a start assembled from given values."""

    def __init__(self, setting: AnalysisSetup, start: InitialState, given: _Given) -> None:
        self.automaton = automaton = setting.executable.automaton
        self.system, self.layout, self.given = automaton.system, automaton.terms.layout, given
        self.active = list(
            ActiveSet.of(self.system, assembled_states(automaton, fixed_codes(automaton, given.mode))).rows
        )
        self.positional = [r for r in self.active if self.system.rows[r].positional]
        self.x = start.x
        curves = [self.layout.q[i] for i in automaton.curve_parameters]
        arguments = (*self.layout.x, *setting.names)
        program = setting.simulator.remember(
            ("start derivatives", tuple(self.active), setting.names), lambda: self._program(arguments)
        )
        self.values = program.evaluate(0.0, start.x, start.context)
        self.curves = [self.layout.q.index(name) for name in curves]

    def _program(self, arguments: Sequence[str]) -> Program:
        """Residuals and speeds of rows, and the slopes of the contact points on curves, by states and parameters."""
        _, symbols, nodes = self.automaton.terms.graph()
        by = [symbols[name] for name in arguments]
        n_u = len(self.layout.u)
        speeds = [
            sum((nodes["A"][r, j] * symbols[self.layout.u[j]] for j in range(n_u)), start=nodes["b"][r])
            for r in self.active
        ]
        outputs = {"gaps": jacobian(nodes["residual"][self.positional], by), "speeds": jacobian(speeds, by)}
        if self.automaton.curve_parameters:
            _, symbols, nodes = self.automaton.geometry.graph()
            outputs["places"] = jacobian(nodes["slope"], [symbols[name] for name in arguments])
        return Program.from_nodes(self.layout, outputs)

    def variation(self, values: Floats, parameters: Floats, more: Sequence[str]) -> Floats:
        """Return the variation (n_x,) with those of the values given (n_x,) and of the parameters (n_m,).

        ``more``: additional given names.
        """
        layout, n_q, n_x = self.layout, len(self.layout.q), self.layout.n_x
        given = dict.fromkeys((*self.given.names, *more), 0.0)
        dx = values.copy()
        dx[:n_q] = self._normalised(dx[:n_q], given)
        ways = free_directions(self.system, self.x[:n_q], given)
        gaps = self.values["gaps"]
        chosen = ways[:, dependent_columns(gaps[:, :n_q] @ ways, range(ways.shape[1]))]
        unknown = np.hstack([chosen, np.eye(n_q)[:, self.curves]])
        rows = np.vstack([gaps, self.values["places"]]) if self.curves else gaps
        terms = np.hstack([rows[:, :n_q] * dx[:n_q], rows[:, n_x:] * parameters])
        moved, wrong = _solved(rows[:, :n_q] @ unknown, terms)
        if wrong >= 0:
            raise self._contradicted(self.positional[wrong], rows[wrong], given)
        dx[:n_q] += unknown @ moved
        speeds = self.values["speeds"]
        free = [i for i, name in enumerate(layout.u) if name not in given]
        A = speeds[:, n_q:n_x]
        dependent = [n_q + i for i in dependent_columns(A, free)]
        dx[dependent] = 0.0
        terms = np.hstack([speeds[:, :n_x] * dx, speeds[:, n_x:] * parameters])
        dx[dependent], wrong = _solved(speeds[:, dependent], terms)
        if wrong >= 0:
            raise self._contradicted(self.active[wrong], speeds[wrong], given)
        return dx

    def _contradicted(self, row: int, slopes: Floats, given: Mapping[str, float]) -> RunError:
        """Return the error for a row satisfied by the given values at this start alone."""
        held = [name for name, slope in zip(self.layout.x, slopes, strict=False) if slope != 0.0 and name in given]
        return RunError(
            f"the start has no derivative: with {', '.join(held) or 'what is'} given it satisfies"
            f" '{self.system.rows[row].name}' for these values alone\n  remedy: leave {' or '.join(held) or 'values'}"
            " out under initial, and it is solved for; or write it as an expression of the parameters"
        )

    def _normalised(self, dq: Floats, given: Mapping[str, float]) -> Floats:
        """Return the variation of coordinates with Euler parameters kept on their sphere."""
        for first in self.system.quaternions:
            part = slice(first, first + 4)
            e = self.x[part]
            turn = self.layout.q[first]
            if turn not in given and turn not in self.automaton.mechanism.initial.guess and e[0] != 0.0:
                dq[first] = -float(e[1:] @ dq[first + 1 : first + 4]) / e[0]
            dq[part] -= e * float(e @ dq[part])
        return dq


class _Rest:
    """The variation of a static equilibrium: forces stay in balance, active rows stay at zero."""

    def __init__(self, setting: AnalysisSetup, start: InitialState, given: _Given) -> None:
        self.automaton, self.given, self.x = setting.executable.automaton, given, start.x
        layout = self.layout = self.automaton.terms.layout
        self.system = self.automaton.system
        self.active = list(ActiveSet.of(self.system, start.states).rows)
        for r in self.active:
            if not self.system.rows[r].positional and self.system.rows[r].contact >= 0:
                raise RunError(
                    f"the start rests by the friction of '{self.system.rows[r].name}', one rest of many: it has no"
                    " derivative\n  remedy: give the start itself under initial, without settle"
                )
        by = (*layout.q, *setting.names)
        wider, nodes, total, table = statics_nodes(self.automaton, by)
        _, symbols, own = self.automaton.terms.graph()
        rows = jacobian(own["residual"][self.active], [symbols[name] for name in by])
        forces = Program.from_nodes(
            wider, {"W": nodes["W"], "A": nodes["A"], "force": np.array(total, dtype=object), "forces": table}
        )
        n_p, n_u = len(layout.p), len(layout.u)

        def balanced(multipliers: Floats) -> dict[str, Floats]:
            context = np.concatenate([start.context[:n_p], multipliers, start.context[n_p:]])
            return forces.evaluate(0.0, np.append(start.x[: len(layout.q)], np.zeros(n_u)), context)

        without = np.zeros(len(self.automaton.rows))
        A = balanced(without)["A"][self.active, :n_u]
        without[self.active] = np.linalg.lstsq(A.T, -balanced(without)["force"], rcond=SOLVED)[0]
        found = balanced(without)
        self.W, self.A, self.forces = found["W"][:, :n_u], A, found["forces"]
        self.rows = Program.from_nodes(layout, {"rows": rows}).evaluate(0.0, start.x, start.context)["rows"]

    def variation(self, values: Floats, parameters: Floats, more: Sequence[str]) -> Floats:
        """Return the variation (n_x,): given coordinates are the start of the search, without effect."""
        del more
        n_q, n_u, m = len(self.layout.q), len(self.layout.u), len(self.active)
        matrix = np.block([[self.forces[:, :n_q] @ self.W, self.A.T], [self.rows[:, :n_q] @ self.W, np.zeros((m, m))]])
        moved, wrong = _solved(matrix, np.vstack([self.forces[:, n_q:], self.rows[:, n_q:]]) * parameters)
        if wrong >= 0:
            raise RunError(
                "the start has no derivative: it is one rest of many\n  remedy: give the"
                " start itself under initial, without settle"
            )
        speeds = np.array([name in self.given.names for name in self.layout.u], dtype=np.float64)
        return np.concatenate([self.W @ moved[:n_u], values[n_q:] * speeds])


def _solved(matrix: Floats, terms: Floats) -> tuple[Floats, int]:
    """Return the solution of least norm of equations, the matrix times it and the sum of all terms being zero.

    ``matrix``, shape (m, n); ``terms``, shape (m, k). Returns shape (n,); the equation with the largest remainder, -1
    if all are solved.
    """
    right = terms.sum(axis=1)
    found: Floats = np.linalg.lstsq(matrix, -right, rcond=SOLVED)[0]
    left = np.abs(matrix @ found + right)
    sizes = np.abs(terms).sum(axis=1) + np.abs(matrix * found).sum(axis=1)
    rounding = ROUNDING * np.abs(matrix).max(axis=1, initial=0.0) * np.abs(found).max(initial=0.0)
    wrong = (left > CONTRADICTS * sizes) & (left > rounding)
    return found, int(np.argmax(np.where(wrong, left, -1.0))) if wrong.any() else -1


# -- Choices of the state within a mode: instants of the switches in a run -----------------------------------

PARTS: Final = 8  # of a step; choices are evaluated at their ends
BISECTIONS: Final = 60
OFFSET: Final = 1e-9  # margin of the evaluation of the flow next to a switch, relative to its terms
SAME: Final = 1e-7  # largest relative difference of two equal flows or delays
GRAZING: Final = 1e-9  # relative to the terms of a margin; with a slower rate no neighbour meets it
_COUNTING: Final = ("floor", "mod")


class _Choices(NamedTuple):
    """The choices of a mode: a program of ``margins``, their derivatives and the flow; flags of counting ones."""

    program: Program
    counting: Floats


@dataclass(frozen=True)
class FlowSwitch:
    """An instant of a switch of the flow within a step: the row at the begin of the step, and the elapsed fraction.

    ``jump`` (n_x,): the flow before less that after; ``delay`` (n_z,): of the switches of neighbours.
    """

    row: int
    fraction: float
    jump: Floats
    delay: Floats


@lru_cache(maxsize=256)
def _choices(programs: ModePrograms, constants: tuple[str, ...], guard: int | None = None) -> _Choices | None:
    """Return the choices of the state in the flow of a mode, or in a guard by its number, None if there are none."""
    layout = programs.full.layout
    graph, symbols, nodes = programs.full.graph()
    ops = CASE_FUNCTIONS | {"lt", "le"}
    moving, margins, counting = {symbols[name] for name in layout.x}, [], []
    for node in reachable(list(nodes["x_dot"]) if guard is None else [nodes["guards"][guard]]):
        if node.op in ops and not moving.isdisjoint(support([node])):
            margin = _margin(node)
            if margin not in margins:
                margins.append(margin)
                counting.append(float(node.op in _COUNTING))
    if not margins:
        return None
    outputs = {
        "margins": margins,
        "by_state": jacobian(margins, [symbols[name] for name in layout.x]),
        "by_constants": jacobian(margins, [symbols[name] for name in constants]),
        "by_time": time_derivative(margins, layout, symbols, graph),
        "x_dot": nodes["x_dot"],
    }
    return _Choices(Program.from_nodes(layout, outputs), np.array(counting))


def _margin(node: Node) -> Node:
    """Return the margin of a choice: zero, or whole, at a switch."""
    first, last = node.operands[0], node.operands[-1]
    if node.op in ("abs", "sign", "floor"):
        return first
    return first / last if node.op == "mod" else first - last


def delay_at_choice(
    setting: AnalysisSetup, number: int, guard: int, t: float, x: Floats, context: Floats
) -> Floats | None:
    """Return the delay of neighbouring motions at a guard that jumps with a choice of the state, shape (n_z,).

    ``number``, ``guard``: of the mode, and of the guard in it; ``t``: of the jump, s; ``x``, shape (n_x,): just behind
    it; ``context``, shape (n_c,). None if no choice of the state switches there. Raises RunError: the motion grazes the
    switch, or neighbouring motions meet one of two switches before the other.
    """
    programs = setting.executable.charts[number].programs
    choices = _choices(programs, setting.constants, guard) if isinstance(programs, ModePrograms) else None
    if choices is None:
        return None
    found = choices.program.evaluate(t, x, context)
    margins, gradients = found["margins"], found["by_state"]
    distance = np.abs(margins - np.where(choices.counting > 0.0, np.round(margins), 0.0))
    terms = np.abs(gradients * x).sum(axis=1) + np.abs(gradients * found["x_dot"]).sum(axis=1) * abs(t)
    rates = gradients @ found["x_dot"] + found["by_time"]
    delays = []
    for k in np.flatnonzero((distance <= OFFSET * terms) & gradients.any(axis=1)):
        if not abs(rates[k]) > GRAZING * np.abs(gradients[k] * found["x_dot"]).sum():
            raise RunError(
                f"the motion grazes a choice of the model at t = {t:.9g} s: neighbouring motions do not follow it"
            )
        delays.append(-np.append(gradients[k], found["by_constants"][k]) / rates[k])
    for other in delays[1:]:
        if (np.abs(other - delays[0]) > SAME * (np.abs(other) + np.abs(delays[0])).max()).any():
            raise RunError(
                f"the motion cannot be differentiated at t = {t:.9g} s, where two choices of the model switch:"
                " neighbouring motions meet one before the other"
            )
    return delays[0] if delays else None


def flow_switches(setting: AnalysisSetup, raw: RunArrays, first: int, last: int) -> list[FlowSwitch]:
    """Return the switches of the flow between two rows of a run without a change of mode, in order.

    Raises RunError: neighbouring motions do not switch like the run: it grazes a switch, stays in it, or meets two
    together.
    """
    found: list[FlowSwitch] = []
    steps = np.arange(first, last)
    for number in np.unique(raw.mode[first + 1 : last + 1]):
        programs = setting.executable.charts[int(number)].programs
        choices = _choices(programs, setting.constants) if isinstance(programs, ModePrograms) else None
        if choices is not None:
            rows = steps[(raw.mode[steps + 1] == number) & (raw.t[steps + 1] > raw.t[steps])]
            found += _Switching(setting, raw, choices).switches(rows)
    return sorted(found, key=lambda item: (item.row, item.fraction))


@dataclass(frozen=True)
class _Switching:
    setting: AnalysisSetup
    raw: RunArrays
    choices: _Choices

    def at(self, rows: Integers, fractions: Floats) -> dict[str, Floats]:
        """Return the choices and their sides at fractions of the steps beginning at ``rows``, both (m,)."""
        times, x, context = self._states(rows, fractions)
        values = self.choices.program.evaluate(times, x, context)
        return values | {"marks": self._marks(values["margins"])}

    def _states(self, rows: Integers, fractions: Floats) -> tuple[Floats, Floats, Floats]:
        """Return times, states and contexts at fractions of steps."""
        raw, setting = self.raw, self.setting
        h = raw.t[rows + 1] - raw.t[rows]
        times = raw.t[rows] + fractions * h
        ends = raw.x[rows], raw.x_dot[rows], raw.x_mid[rows + 1], raw.x[rows + 1], raw.x_dot[rows + 1]
        context = setting.context(raw.held[rows])
        if setting.drive.names:
            n_p = len(setting.vector)
            context[:, n_p : n_p + 3 * len(setting.drive.names)] = setting.drive(times, context[0])
        return times, quartic(fractions, h, *ends), context

    def _marks(self, margins: Floats) -> Floats:
        """Return the sides of choices at their switches."""
        return np.where(self.choices.counting > 0.0, np.floor(margins), margins > 0.0)

    def _next_to(self, row: int, fraction: float, k: int, here: dict[str, Floats], sign: float) -> dict[str, Floats]:
        """Return the choices on one side of the switch ``k``, a little along its gradient."""
        raw, gradient = self.raw, here["by_state"][k]
        step = np.array([row])
        times, x, context = (part[0] for part in self._states(step, np.array([fraction])))
        terms = np.abs(gradient * x).sum() + np.abs(gradient * here["x_dot"]).sum() * (raw.t[-1] - raw.t[0])
        margin = here["margins"][k]
        zero = np.round(margin) if self.choices.counting[k] else 0.0
        x = x + gradient * (zero + sign * OFFSET * terms - margin) / (gradient @ gradient)
        values = self.choices.program.evaluate(times, x, context)
        return values | {"marks": self._marks(values["margins"])}

    def switches(self, rows: Integers) -> list[FlowSwitch]:
        """Return the switches in steps beginning at ``rows``."""
        fractions = np.linspace(0.0, 1.0, PARTS + 1)
        marks = self.at(np.repeat(rows, PARTS + 1), np.tile(fractions, len(rows)))["marks"]
        marks = marks.reshape(len(rows), PARTS + 1, -1)
        steps, parts = np.nonzero((marks[:, 1:] != marks[:, :-1]).any(axis=2))
        return [
            self._switch(int(rows[step]), fractions[part], fractions[part + 1])
            for step, part in zip(steps, parts, strict=True)
        ]

    def _switch(self, row: int, low: float, high: float) -> FlowSwitch:
        """Return the first switch between two fractions of a step."""
        step = np.array([row])

        def here(fraction: float) -> dict[str, Floats]:
            return {name: value[0] for name, value in self.at(step, np.array([fraction])).items()}

        before, after = here(low), here(high)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            there = here(middle)
            if (there["marks"] != before["marks"]).any():
                high, after = middle, there
            else:
                low, before = middle, there
        changed = np.flatnonzero(before["marks"] != after["marks"])
        k = int(changed[0])
        if not before["by_state"][k].any():
            return FlowSwitch(row, high, np.zeros(len(before["x_dot"])), np.zeros(self.setting.variations))
        sign = 1.0 if after["marks"][k] > before["marks"][k] else -1.0
        before, after = (self._next_to(row, high, k, before, side) for side in (-sign, sign))
        jump = before["x_dot"] - after["x_dot"]
        size = np.abs(before["x_dot"]) + np.abs(after["x_dot"])
        if not (np.abs(jump) > SAME * (size + SAME)).any():  # a kink
            return FlowSwitch(row, high, np.zeros(len(jump)), np.zeros(self.setting.variations))
        delays = [self._delay(int(k), before, after, row, high) for k in changed]
        for other in delays[1:]:
            if (np.abs(other - delays[0]) > SAME * (np.abs(other) + np.abs(delays[0])).max()).any():
                raise RunError(
                    self._refusal(row, high, "neighbouring motions meet one of two switches before the other")
                )
        return FlowSwitch(row, high, jump, delays[0])

    def _delay(self, k: int, before: dict[str, Floats], after: dict[str, Floats], row: int, fraction: float) -> Floats:
        gradient, own = before["by_state"][k], before["by_time"][k]
        rates = [float(gradient @ side["x_dot"] + own) for side in (before, after)]
        terms = np.abs(gradient * before["x_dot"]).sum() + abs(own)
        if not abs(rates[0]) > GRAZING * terms or not abs(rates[1]) > GRAZING * terms or rates[0] * rates[1] < 0.0:
            raise RunError(self._refusal(row, fraction, "the motion grazes the switch or stays in it"))
        delay: Floats = -np.append(gradient, before["by_constants"][k]) / rates[0]
        return delay

    def _refusal(self, row: int, fraction: float, why: str) -> str:
        raw = self.raw
        time = raw.t[row] + fraction * (raw.t[row + 1] - raw.t[row])
        return (
            f"the motion cannot be differentiated at t = {time:.9g} s, where a choice of the model between forces"
            f" switches: {why}\n  remedy: write the choice as a contact, a `dry_friction`, or a transition that sets"
            " memory"
        )
