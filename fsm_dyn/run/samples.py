"""Rows of a run with derived quantities: forces, energies, outputs, computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import BoolArray, FloatArray, InputFunction, IntArray
from fsm_dyn.core.errors import UnknownColumnError, did_you_mean
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import substitute, tangent
from fsm_dyn.run.extremes import state_within
from fsm_dyn.run.pins import Pins
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.reported_forces import reported_forces
from fsm_dyn.run.rows import Rows

# -- Power of the drives -------------------------------------------------------------------------------------
#
# Power of the drives of points and frames by time or inputs (docs/theory.md, "The energy balance").

_KEPT = 64  # automata whose program is kept


class _Programs:
    """The programs of an automaton as a key: runs of other modes and parameters share them."""

    def __init__(self, automaton: Automaton) -> None:
        self.report, self.terms = automaton.report, automaton.terms

    def __hash__(self) -> int:
        return id(self.report)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Programs) and self.report is other.report and self.terms is other.terms


def drive_program(automaton: Automaton) -> Program | None:
    """Return the power of the drives as a program, None if everything rests while all speeds are zero.

    With ``u_dot = 0`` it is ``rest`` (W), and each acceleration adds its entry of ``momentum``, shape (n_u,), times it:
    the momentum along the speed by the driven motion alone.

    A point whose place depends on time moves while all speeds are zero.  Its drive does the work by which the
    energies change beyond the work of loads and constraint rows,

        P = d(T + V)/dt - sum of the loads' powers - u . (M u_dot - f).

    Parameters
    ----------
    automaton : Automaton

    Returns
    -------
    Program or None
    """
    return _program(_Programs(automaton))


@lru_cache(maxsize=_KEPT)
def _program(programs: _Programs) -> Program | None:
    report, terms = programs.report, programs.terms
    graph = ExpressionGraph()
    symbols, energies = report.nodes(graph)
    _, known = terms.nodes(graph)
    layout = terms.layout
    u = [symbols[name] for name in layout.u]
    kinetic, powers = energies["kinetic_energy"].item(), list(energies["load_powers"])
    potential = energies["potential_energy"].item()
    for stored in energies["stored"]:  # the forces of contacts are rows
        potential = potential - stored
    flow = _flow(graph, symbols, layout.q, list(known["q_dot"]), layout.w)
    still = dict.fromkeys(u, graph.zero)
    (changed,) = tangent([potential], flow)
    at_rest = substitute([kinetic, changed, *powers], still)
    if all(node.is_zero for node in at_rest):
        return None
    (gained,) = tangent([kinetic], flow)
    rest = gained + changed
    for power in powers:
        rest = rest - power
    for speed, force in zip(u, known["f"], strict=False):
        rest = rest + speed * force
    momentum = [tangent([kinetic], {speed: graph.one})[0] for speed in u]
    return Program.from_nodes(layout, {"rest": rest, "momentum": substitute(momentum, still)})


def _flow(
    graph: ExpressionGraph, symbols: dict[str, Node], q: tuple[str, ...], rates: list[Node], inputs: tuple[str, ...]
) -> dict[Node, Node]:
    """Return the rates of coordinates, of time and of inputs, while no speed changes."""
    flow = dict(zip((symbols[name] for name in q), rates, strict=True))
    flow[symbols["t"]] = graph.one
    for name in inputs:
        flow[symbols[name]], flow[symbols[f"{name}.rate"]] = symbols[f"{name}.rate"], symbols[f"{name}.rate2"]
    return flow


# -- Rows of a run with derived quantities: forces, energies, outputs, computed on demand --------------------

_MOTION: Final = {"x_dot": None, "multipliers": None}  # of the programs of modes, without their guards
_RANK: Final = 1e-9  # part of the largest singular value below which a direction is lost


@dataclass(frozen=True, slots=True)
class State:
    """One instant of a run: time (s), mode, coordinates ``q`` (n_q,) and speeds ``u`` (n_u,), SI."""

    t: float
    mode: str
    q: FloatArray
    u: FloatArray
    find_next: Callable[[float], tuple[Any, ...]] | None = field(default=None, repr=False, compare=False)

    def next(self, horizon: float = 0.1) -> tuple[Any, ...]:
        """Return the guards of the mode in the order of the times at which they would fire if nothing else changed.

        Parameters
        ----------
        horizon : float
            Time looked ahead, s.

        Returns
        -------
        tuple of fsm_dyn.run.explanation.Prospect
            ``event``, ``guard``, ``margin`` (present value), ``slope`` and ``time`` (s; None beyond the horizon).
            The motion of the mode continues beyond other guards, and inputs keep their present rates.

        Raises
        ------
        InputError
            The horizon is not positive.
        """
        return () if self.find_next is None else self.find_next(horizon)


@dataclass(frozen=True)
class Samples:
    """Rows of a run, recorded or sampled.

    Attributes
    ----------
    model : RunModel
    t : ndarray, shape (n,)
        Times, s.
    x : ndarray, shape (n, n_q + n_u)
        Coordinates and speeds, SI.
    mode : ndarray of int, shape (n,)
        Mode index per row.
    context : ndarray, shape (n, n_c)
        The programs' context per row: parameters, inputs and their rates, slip directions, memory.
    """

    model: RunModel
    t: FloatArray
    x: FloatArray
    mode: IntArray
    context: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    def only(self, rows: IntArray) -> Samples:
        """Return some of the rows, by their numbers."""
        return Samples(self.model, self.t[rows], self.x[rows], self.mode[rows], self.context[rows])

    @property
    def q(self) -> FloatArray:
        """Coordinates, shape (n, n_q), in declared order."""
        return self.x[:, self.model.layout.q_slice]

    @property
    def u(self) -> FloatArray:
        """Generalized speeds, shape (n, n_u), in declared order."""
        return self.x[:, self.model.layout.u_slice]

    @property
    def modes(self) -> tuple[str, ...]:
        """Name of the mode per row."""
        return tuple(map(self.model.modes.__getitem__, self.mode.tolist()))

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of the mode of each row; a handover changes the mode, not its label."""
        return tuple(map(self.model.labels.__getitem__, self.mode.tolist()))

    @cached_property
    def inputs(self) -> Mapping[str, FloatArray]:
        """Inputs by name, each of shape (n,)."""
        layout = self.model.layout
        return dict(zip(layout.w, self.context[:, layout.w_slice].T, strict=True))

    @cached_property
    def memory(self) -> Mapping[str, FloatArray]:
        """Memory by name, each of shape (n,)."""
        layout = self.model.layout
        return dict(zip(layout.memory, self.context[:, layout.memory_slice].T, strict=True))

    @cached_property
    def multiplier_table(self) -> FloatArray:
        """Multipliers of all rows, shape (n, n_rows), in the sense of M u̇ = f + Σ Aᵀ λ; zero if not active.

        Of the forces of redundant rows the smallest within the contact laws (:mod:`fsm_dyn.run.samples`).
        """
        return self._forces[0]

    @property
    def admissible(self) -> BoolArray:
        """Whether the forces of redundant contacts keep the contact laws, shape (n,); if none do, the smallest."""
        return self._forces[1]

    @cached_property
    def _forces(self) -> tuple[FloatArray, BoolArray]:
        admissible = np.ones(len(self), dtype=np.bool_)
        if not self.model.rows:
            return np.zeros((len(self), 0)), admissible
        table = self._motion[1].copy()
        for index in self._modes_met:
            if self.model.indeterminate and self.model.indeterminate[index]:
                chosen = self.mode == index
                table[chosen], admissible[chosen] = self._shared(index, chosen, table[chosen])
        self._fill_change_points(table)
        return table, admissible

    def _fill_change_points(self, table: FloatArray) -> None:
        """Replace forces without a chart, in a change point, by the smallest ones of the remaining rows."""
        for k in np.flatnonzero(~np.isfinite(table).all(axis=1)):
            at = slice(k, k + 1)
            terms = self.model.terms.evaluate(self.t[at], self.x[at], self.context[at])
            M, A, f, gamma = (terms[name][0] for name in ("M", "A", "f", "gamma"))
            known = np.isfinite(table[k])
            held = A[~known]
            matrix = np.block([[M, -held.T], [held, np.zeros((len(held), len(held)))]])
            right = np.concatenate([f + A[known].T @ table[k, known], -gamma[~known]])
            if np.isfinite(matrix).all() and np.isfinite(right).all():
                table[k, ~known] = np.linalg.lstsq(matrix, right, rcond=_RANK)[0][len(M) :]

    def _shared(self, index: int, chosen: BoolArray, forces: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the forces to be reported at the rows ``chosen``, of one mode, and whether they are admissible."""
        model, t, x, context = self.model, self.t[chosen], self.x[chosen], self.context[chosen]
        return reported_forces(
            model.layout, model.contacts, model.charts[index].states,
            lambda which, only: model.terms.evaluate(t[which], x[which], context[which], only), x, context, forces,
        )  # fmt: skip

    @cached_property
    def multipliers(self) -> Mapping[str, FloatArray]:
        """Multipliers by constraint or contact, each of shape (n, rows of that item): forces (N) or torques (N·m)."""
        owners = [row.owner for row in self.model.rows]
        return {
            owner: self.multiplier_table[:, [i for i, name in enumerate(owners) if name == owner]]
            for owner in dict.fromkeys(owners)
        }

    @cached_property
    def report(self) -> Mapping[str, FloatArray]:
        """Outputs of the model's report program, evaluated once over all rows."""
        out = self.model.report.evaluate(self.t, self.x, self.context)
        return {name: np.broadcast_to(value, (len(self), *np.shape(value)[1:])) for name, value in out.items()}

    @property
    def kinetic_energy(self) -> FloatArray:
        """Kinetic energy in the Newtonian frame, shape (n,), J."""
        return self.report["kinetic_energy"]

    @property
    def potential_energy(self) -> FloatArray:
        """Energy of gravity and springs, shape (n,), J."""
        return self.report["potential_energy"]

    @cached_property
    def outputs(self) -> Mapping[str, FloatArray]:
        """The model's outputs by name, each of shape (n,)."""
        return {name: self.report["outputs"][:, i] for i, name in enumerate(self.model.outputs)}

    @cached_property
    def row_powers(self) -> FloatArray:
        """Power of every constraint row's force on the motion, λ (A u), shape (n, n_rows), W.

        Of a compliant contact only the work of its moving surface, -λ b: the rest is stored or lost.
        """
        if not self.model.rows:
            return np.zeros((len(self), 0))
        velocity, remainder = self._row_speeds
        power: FloatArray = self.multiplier_table * velocity
        for _, r in self.model.compliant:
            power[:, r] = -self.multiplier_table[:, r] * remainder[:, r]
        return power

    @cached_property
    def losses(self) -> FloatArray:
        """Heat made in every compliant contact, shape (n, n_compliant), W (docs/theory.md, "Compliant contacts")."""
        heat = np.zeros((len(self), len(self.model.compliant)))
        if not self.model.compliant:
            return heat
        velocity, remainder = self._row_speeds
        for i, (contact, r) in enumerate(self.model.compliant):
            beyond = self.multiplier_table[:, r] - self.report["restoring"][:, contact]
            heat[:, i] = -beyond * (velocity[:, r] + remainder[:, r])
        return heat

    @cached_property
    def drive_powers(self) -> FloatArray:
        """Power of the drives of points and frames by time or inputs, shape (n,), W."""
        automaton = self.model.automaton
        program = None if automaton is None else drive_program(automaton)
        if program is None:
            return np.zeros(len(self))
        drive = program.evaluate(self.t, self.x, self.context)
        power: FloatArray = drive["rest"] + np.einsum("...r,...r->...", drive["momentum"], self.u_dot)
        return power

    @property
    def u_dot(self) -> FloatArray:
        """Rates of the generalized speeds in the mode of each row, shape (n, n_u)."""
        return self._motion[0]

    @property
    def _modes_met(self) -> list[int]:
        """Modes of the rows; np.unique would import numpy.ma."""
        return np.flatnonzero(np.bincount(self.mode)).tolist()

    @cached_property
    def _motion(self) -> tuple[FloatArray, FloatArray]:
        """Rates of the speeds, (n, n_u), and multipliers as the programs of the modes give them, (n, n_rows)."""
        rates, table = np.zeros_like(self.u), np.zeros((len(self), len(self.model.rows)))
        for index in self._modes_met:
            chosen = self.mode == index
            out = self.model.full[index].evaluate(self.t[chosen], self.x[chosen], self.context[chosen], _MOTION)
            rates[chosen] = out["x_dot"][..., self.model.layout.u_slice]
            table[chosen] = out["multipliers"]
        return rates, table

    @cached_property
    def pins(self) -> Pins:
        """Forces and torques in the connections, by name; derived when they are first asked for."""
        return Pins(self)

    @cached_property
    def _row_speeds(self) -> tuple[FloatArray, FloatArray]:
        """``A u`` and ``b`` of every row with a force, shape (n, n_rows) each; zero for others."""
        rows = np.flatnonzero(self.multiplier_table.any(axis=0)).tolist()
        terms = self.model.terms.evaluate(self.t, self.x, self.context, {"A": rows, "b": rows})
        n_u = len(self.model.layout.u)
        velocity, remainder = np.zeros((2, len(self), len(self.model.rows)))
        # The speeds of the kinematic rows are zero by definition, so their columns add nothing.
        velocity[:, rows] = np.einsum("...rk,...k->...r", terms["A"][..., :n_u], self.u)
        remainder[:, rows] = terms["b"]
        return velocity, remainder

    def columns(self) -> Iterator[tuple[str, FloatArray]]:
        """Yield every column by name: states, inputs, memory, multipliers (``lambda.<name>``), outputs, energies."""
        for names, block in ((self.model.layout.q, self.q), (self.model.layout.u, self.u)):
            for i, name in enumerate(names):
                yield name, block[:, i]
        yield from self.inputs.items()
        yield from self.memory.items()
        for i, label in enumerate(self.model.row_labels()):
            yield f"lambda.{label}", self.multiplier_table[:, i]
        yield from self.outputs.items()
        yield "energy.kinetic", self.kinetic_energy
        yield "energy.potential", self.potential_energy
        for name in self.model.pin_outputs:
            yield name, self.pins.column(name)

    def __getitem__(self, name: str) -> FloatArray:
        """Return the column ``name``, shape (n,); also one of the connections, ``pin.<name>.force``.

        Raises
        ------
        UnknownColumnError
            If there is no such column; it is an InputError and a KeyError.
        """
        for names, block in ((self.model.layout.q, self.q), (self.model.layout.u, self.u)):
            if name in names:
                return block[:, names.index(name)]
        for table in (self.inputs, self.memory):
            if name in table:
                return table[name]
        if name.startswith("pin."):
            return self.pins.column(name)
        found = dict(self.columns())
        if name not in found:
            raise UnknownColumnError(
                f"this run has no column '{name}'",
                found=name,
                allowed=", ".join(found),
                remedy=did_you_mean(name, found),
            )
        return found[name]


SampleBetween: TypeAlias = Callable[[FloatArray, IntArray], Samples]
"""Samples the steps that start at given rows, the second argument, at times within them (s), both of shape (m,)."""


def kernel_context(model: RunModel, held: FloatArray) -> FloatArray:
    """Return the programs' context, shape (n, n_c): the parameters before the recorded part.

    Parameters
    ----------
    model : RunModel
        Of the run.
    held : ndarray, shape (n, n_held)
        Inputs, discrete variables and slip directions, recorded with the rows.
    """
    parameters = np.broadcast_to(model.parameters, (len(held), len(model.parameters)))
    return np.hstack([parameters, held])


@dataclass
class RecordedSamples:
    """Samples of recorded runs: of all rows, of some, within the steps.

    Parameters
    ----------
    model : RunModel
        Of all runs.
    rows : Rows
    inputs : callable
        The inputs with their rates at times (m,), shape (m, 3 n_w), of all runs.
    vectors : ndarray, shape (runs, n_p), optional
        Parameters of each run, SI; by default those of the model.
    """

    model: RunModel
    rows: Rows
    inputs: InputFunction
    vectors: FloatArray | None = None

    @cached_property
    def all(self) -> Samples:
        """All rows."""
        rows = self.rows
        return Samples(self.model, rows.t, rows.x, rows.mode, self._context(None, rows.held))

    def at(self, numbers: IntArray) -> Samples:
        """Return some rows, by their numbers, shape (m,)."""
        rows = self.rows
        context = self._context(numbers, rows.held[numbers])
        return Samples(self.model, rows.t[numbers], rows.x[numbers], rows.mode[numbers], context)

    def between(self, times: FloatArray, first: IntArray) -> Samples:
        """Return the state at times (m,) within the steps from the rows ``first`` (m,).

        The very last row of a run stands for itself.
        """
        rows = self.rows
        x, theta = state_within(rows.t, rows.x, rows.x_dot, rows.x_mid, times, first, slice(None))
        held = rows.held[first]
        inside = theta > 0.0  # at a row itself its own record is exact, and knows from which side it is meant
        held[inside, : 3 * len(self.model.layout.w)] = self.inputs(times[inside])
        return Samples(self.model, times, x, rows.mode[first], self._context(first, held))

    def _context(self, numbers: IntArray | None, held: FloatArray) -> FloatArray:
        """Return the context of some rows, or of all."""
        if self.vectors is None:
            return kernel_context(self.model, held)
        run = self.rows.runs_of(np.arange(len(self.rows.t)) if numbers is None else numbers)
        return np.hstack([self.vectors[run], held])
