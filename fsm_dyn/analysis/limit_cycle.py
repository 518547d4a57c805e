"""Limit cycles: motions that repeat, found as fixed points of a return map by Newton's method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.jacobians import Array
from fsm_dyn.analysis.poincare_sections import read_section
from fsm_dyn.analysis.return_map import Return, ReturnMap, SectionPoint
from fsm_dyn.analysis.symmetry import Relabelling
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, RunError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.programs import support
from fsm_dyn.renamed import RenamedAttribute, renamed_keywords
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.run_inputs import InputValue
from fsm_dyn.spec.evaluate import evaluate
from fsm_dyn.spec.values import Parameters

PLAIN_RETURNS = 3  # before Newton's method begins, and wherever it leads nowhere
ITERATIONS = 40
HALVINGS = 6


@dataclass(frozen=True)
class LimitCycle:
    """A motion that repeats.

    Attributes
    ----------
    period : float
        From one return to the next, s; with ``symmetry`` that of a step, not of a full cycle.
    q, u : ndarray, shapes (n_q,), (n_u,)
        The state just after the section, SI.
    mode : str
        The mode there.
    memory : mapping of str to float
        The memory there.
    floquet_multipliers : ndarray of complex, shape (d,)
        Eigenvalues of the return map on its section of dimension d, the largest first: how much of a deviation is
        left after one return.  The cycle is stable if all are below 1 in magnitude.
    states : tuple of str
        Names of coordinates, speeds and memory that varies with them, the order of the rows of ``monodromy``.
    monodromy : ndarray, shape (n_z, n_z)
        The derivative of the return map, saltation at all transitions included.
    residual : float
        Largest difference between the states of two successive returns, relative to 1 plus their size.
    returns : int
        How many returns were computed to find it.
    trajectory : Trajectory
        One period.
    """

    period: float
    q: Array
    u: Array
    mode: str
    memory: Mapping[str, float]
    floquet_multipliers: npt.NDArray[np.complex128]
    states: tuple[str, ...]
    monodromy: Array = field(repr=False)
    residual: float
    returns: int
    trajectory: Trajectory = field(repr=False)
    multipliers = RenamedAttribute("floquet_multipliers")

    @property
    def stable(self) -> bool:
        """Whether every Floquet multiplier is below 1 in magnitude."""
        return bool(np.all(np.abs(self.floquet_multipliers) < 1.0))

    @property
    def initial(self) -> dict[str, float | str]:
        """The state just after the section, to hand to ``fsm_dyn.simulate`` as ``initial``."""
        values = dict(zip(self.states, map(float, (*self.q, *self.u)), strict=False))
        return {**values, **self.memory, "mode": self.mode}


@renamed_keywords(modulo="advancing", relabel="symmetry", longest="max_return_time")
def limit_cycle(
    graph: ModeGraph,
    section: str,
    *,
    advancing: Sequence[str] | Mapping[str, float | str] = (),
    symmetry: Mapping[str, str] | None = None,
    parameters: Parameters | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    initial: Mapping[str, float | str] | None = None,
    guess: Mapping[str, float | str] | None = None,
    tol: float = 1e-10,
    max_return_time: float = 100.0,
    rtol: float = 1e-11,
    atol: float = 1e-13,
) -> LimitCycle:
    """Find a periodic motion and its Floquet multipliers.

    Parameters
    ----------
    graph : ModeGraph
    section : str
        Where the motion is looked at: ``"left_foot closes"`` (opens, sticks, slides), the name of a
        user-defined transition, or an expression that crosses zero, ``"theta falling"``.
    advancing : sequence of str, or mapping of str to float or str
        Coordinates and memory that grow from return to return, on which the motion does not depend: a distance walked,
        an angle turned, a count.  As a mapping, by how much each grows (SI, or an expression of parameters):
        ``{"wheel": "pitch", "tooth": 1}``, where the mechanism repeats itself after so much, and the contacts of the
        next tooth take the place of those of the last.
    symmetry : mapping of str to str, optional
        New names after each return, for cycles of symmetric halves: ``{"qL": "qR", "qR": "qL"}``.  Speeds
        ``<q>_dot`` and the contacts follow.
    parameters, inputs
        As for ``fsm_dyn.simulate``; the inputs must be constant.
    initial : mapping, optional
        Where the search begins: it runs from here to the section; by default the model's own start.
    guess : mapping, optional
        A state just after the section, from which Newton's method begins at once.
    tol : float
        Largest residual of a return, relative to 1 plus the size of the state.
    max_return_time : float
        Longest time until a return, s.
    rtol, atol : float
        Tolerances of the runs.

    Returns
    -------
    LimitCycle

    Raises
    ------
    InputError
        The section or a name is unknown, or the model depends on time.
    RunError
        The motion does not return, with the memory that it began with, or no cycle is found; the message has the
        residual.

    Notes
    -----
    Memory is part of the state: a return is the next one at which memory has its values again, be it the first
    crossing of the section or a later one.  Memory on which no motion depends, as a mere count, is left out.
    """
    setting = AnalysisSetup.of(graph, parameters, inputs, rtol, atol)
    automaton = setting.executable.automaton
    layout = automaton.terms.layout
    begin = read_section(automaton, section)
    for name in advancing:
        if name not in (*layout.q, *layout.memory):
            known = (*layout.q, *layout.memory)
            raise InputError(f"advancing: no coordinate or memory '{name}'", remedy=did_you_mean(name, known))
    growth = _growth(advancing, setting) if isinstance(advancing, Mapping) else {}
    _require_autonomous(setting)
    start = setting.start(guess if guess is not None else initial)
    point = SectionPoint(start.x, start.context, start.states)
    renaming = Relabelling.of(automaton, symmetry or {}, growth, start.x, start.context)
    left_out = [name for name in advancing if name not in growth]
    returns = ReturnMap(setting, begin, renaming.section(begin), renaming, max_return_time, left_out)
    states = (*layout.x, *setting.kept)
    search = _Search(returns, [i for i, name in enumerate(states) if name not in left_out])
    if guess is None:
        point = returns.reach(point).point
        for _ in range(PLAIN_RETURNS):
            point = search.again(point, search.go(point, settled=False).point)
    point, found = search.newton(point, tol)
    derivative, basis = returns.derivative(found)
    kept = search.kept
    reduced = np.linalg.qr(basis[kept])[0][:, : np.linalg.matrix_rank(basis[kept], 1e-9)] if basis.size else basis[kept]
    multipliers = np.linalg.eigvals(reduced.T @ derivative[np.ix_(kept, kept)] @ reduced).astype(np.complex128)
    whole = setting.run(point.x, point.context, point.states, found.time)
    return LimitCycle(
        period=returns.period(found, point),
        q=point.x[: len(layout.q)],
        u=point.x[len(layout.q) :],
        mode=setting.executable.automaton.name_of(point.states).name,
        memory=dict(zip(layout.memory, point.context[layout.memory_slice].tolist(), strict=True)),
        floquet_multipliers=multipliers[np.argsort(-np.abs(multipliers), kind="stable")],
        states=states,
        monodromy=derivative,
        residual=search.size(search.residual(point, found)),
        returns=search.count,
        trajectory=setting.trajectory(whole),
    )


class _Search:
    """Newton's method on a return map, on the states whose return matters."""

    def __init__(self, returns: ReturnMap, kept: list[int]) -> None:
        self.returns = returns
        self.kept = kept
        self.count = 0
        self.scale = np.ones(len(kept))

    def go(self, point: SectionPoint, *, settled: bool = True) -> Return:
        self.count += 1
        found = self.returns(point, settled=settled)
        self.scale = 1.0 + np.abs(self.returns.state(found.point)[self.kept])
        return found

    def residual(self, point: SectionPoint, found: Return) -> Array:
        return (self.returns.state(found.point) - self.returns.state(point))[self.kept]

    def size(self, residual: Array) -> float:
        return float(np.abs(residual / self.scale).max(initial=0.0))

    def again(self, point: SectionPoint, new: SectionPoint) -> SectionPoint:
        """A point of return to start from: what grows is set back, and memory on which nothing depends."""
        x = new.x.copy()
        held = [i for i in range(len(x)) if i not in self.kept]
        x[held] = point.x[held]
        memory = self.returns.system.layout.memory_slice
        context = new.context.copy()
        idle = [k for k in range(memory.start, memory.stop) if k not in (*self.returns.kept, *self.returns.separate)]
        context[idle] = point.context[idle]
        return SectionPoint(x, context, new.states)

    def newton(self, point: SectionPoint, tol: float) -> tuple[SectionPoint, Return]:
        """Return the fixed point, and the return that proves it."""
        found = self.go(point)
        best = self.size(self.residual(point, found))
        for _ in range(ITERATIONS):
            residual = self.residual(point, found)
            size = self.size(residual)
            best = min(best, size)
            if size <= tol:
                return point, found
            derivative, _ = self.returns.derivative(found)
            matrix = np.eye(len(self.kept)) - derivative[np.ix_(self.kept, self.kept)]
            step = np.asarray(np.linalg.lstsq(matrix, residual, rcond=1e-13)[0], dtype=np.float64)
            trial = self._damped(point, found, step, size)
            if trial is None:
                # a plain return keeps to motions that there are
                point = self.again(point, found.point)
                found = self.go(point)
            else:
                point, found = trial
        raise RunError(
            f"no cycle through '{self.returns.begin.text}' was found: after {self.count} returns the nearest came"
            f" within {best:.3g} of itself (relative), where {tol:g} was asked for\n  remedy: start nearer"
            " (initial= or guess=); name coordinates that grow under advancing; a motion may repeat after several"
            " returns only, or not at all"
        )

    def _damped(
        self, point: SectionPoint, found: Return, step: Array, size: float
    ) -> tuple[SectionPoint, Return] | None:
        """Take as much of Newton's step as brings the returns nearer; None if no part of it does."""
        base = self.again(point, found.point)
        part = 1.0
        for _ in range(HALVINGS):
            z = self.returns.state(point)
            z[self.kept] += part * step
            try:
                trial = self.returns.point(z, base)
                there = self.go(trial)
            except RunError:
                part *= 0.5
                continue
            if self.size(self.residual(trial, there)) < size:
                return trial, there
            part *= 0.5
        return None


def _growth(advancing: Mapping[str, float | str], setting: AnalysisSetup) -> dict[str, float]:
    """Return by how much coordinates grow from return to return (SI)."""
    return {
        name: evaluate(Text(value), setting.numbers) if isinstance(value, str) else float(value)
        for name, value in advancing.items()
    }


def _require_autonomous(setting: AnalysisSetup) -> None:
    """Refuse a motion that depends on the time: it returns to no state, but to a state and a time."""
    arrays = setting.drive.arrays
    _, symbols, nodes = setting.executable.automaton.terms.graph()
    moving = len(arrays.kernels) > 0 or bool(np.any(arrays.pieces[:, :, 1:] != 0.0)) or len(arrays.pieces) > 1
    read = support([node for table in nodes.values() for node in table.ravel()])
    resets = (reset.graph()[2]["after"] for reset in setting.executable.automaton.resets if reset is not None)
    timed = symbols["t"] in read or any(symbol.name == "t" for after in resets for symbol in support(after))
    if timed or (moving and setting.drive.names):
        raise InputError(
            "the motion depends on the time itself, and so does any return",
            remedy="give constant inputs, or make the time a coordinate of the model: phase, with speed rate(phase)",
        )
