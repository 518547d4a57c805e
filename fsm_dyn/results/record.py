"""Record of a run: plain arrays, names and the programs to read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.labels import Labels
from fsm_dyn.errors import Location
from fsm_dyn.modes.mode_names import Pattern
from fsm_dyn.modes.programs import Evaluates, RunnableMode
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.programs import Layout, Program
from fsm_dyn.results.arrays import BoolArray, FloatArray, InputFunction, IntArray
from fsm_dyn.results.change_points import ChangePoint
from fsm_dyn.results.scene import Scene
from fsm_dyn.results.transitions import Transition
from fsm_dyn.runtime.abi import Status
from fsm_dyn.simulation.numerics import Numerics
from fsm_dyn.simulation.outcomes import OUTCOMES, Outcome
from fsm_dyn.spec.evaluate import ParameterValue
from fsm_dyn.spec.requirement import Requirement


@dataclass(frozen=True, slots=True)
class ConstraintRowInfo:
    """One constraint row: the constraint or contact that owns it, and its part in it.

    ``role`` is ``kinematic``, ``velocity``, ``position``, ``normal``, ``tangent``, ``tangent2``, ``friction`` or
    ``lock``.
    """

    owner: str
    role: str


@dataclass(frozen=True)
class RunModel:
    """The model as far as reading a run needs it.

    Attributes
    ----------
    name : str
        The model's name.
    layout : Layout
        Names of the states and of everything in the context, in the order of the columns.
    parameters : ndarray, shape (n_p,)
        The values this run was made with, in the order of the kernels' arguments, SI.
    rows : tuple of Row
        All constraint rows, n_rows.
    modes : tuple of str
        The name of each mode index; charts of one mode share its name.
    outputs, loads : tuple of str
        Names of the written outputs and of the loads whose power is no part of the potential energy.
    terms : Program
        Gives ``A``, shape (n_rows, n): the rows over all speeds, the kinematic ones (held at zero) last; and ``b``,
        shape (n_rows,): what remains at rest.
    report : Evaluates
        Gives ``kinetic_energy`` (), ``potential_energy`` (), ``load_powers`` (n_loads,), ``outputs`` (n_outputs,),
        ``restoring`` and ``stored`` (n_contacts,): the forces of compliant contacts that have a potential, and that.
    full : sequence of Evaluates
        One per mode index, giving ``multipliers`` (n_rows,), zero for rows that are not active.
    units : mapping of str to str
        Unit of a coordinate, speed, input or output, for labels; missing ones are left out.
    meanings : mapping of str to str
        What a coordinate is, in a word, if the model gives it.
    automaton : Automaton, optional
        The compiled mechanism; figures locate contact forces with it.
    make_scene : callable, optional
        Returns what to draw of the motion; called when ``scene`` is first used.
    """

    name: str
    layout: Layout
    modes: tuple[str, ...]
    terms: Program
    report: Evaluates
    full: Sequence[Evaluates]
    parameters: FloatArray = field(default_factory=lambda: np.zeros(0))
    rows: tuple[ConstraintRowInfo, ...] = ()
    outputs: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)
    automaton: Automaton | None = None
    make_scene: Callable[[], Scene] | None = None
    contacts: tuple[ContactInfo, ...] = ()
    charts: tuple[RunnableMode, ...] = ()  # by mode index, like ``full``
    text: str = ""  # the model file: a saved run carries it
    compliant: tuple[tuple[int, int], ...] = ()  # contact and normal row of each compliant contact
    indeterminate: tuple[tuple[int, ...], ...] = ()  # by mode: rows whose forces others can take over
    labelling: Labels | None = None  # what modes are called where people read them
    requirements: tuple[Requirement, ...] = ()
    requirement_units: Mapping[str, str] = field(default_factory=dict)  # of their margins
    contact_entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # feature pairs by entry
    patterns: tuple[Pattern, ...] = ()
    values: Mapping[str, ParameterValue] = field(default_factory=dict)  # the parameters by name, SI
    numerics: Numerics | None = None  # tolerances and units of the run; None: those of its model
    places: Mapping[str, Location] = field(default_factory=dict)  # in the model file, of "load weight", "point P", ...

    @cached_property
    def scene(self) -> Scene | None:
        """What to draw of the motion, if anything."""
        return None if self.make_scene is None else self.make_scene()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What each mode index is called where people read it; modes between which handovers lead share it."""
        if self.labelling is None:
            return self.modes
        return tuple(self.labelling.of(chart.states) for chart in self.charts)

    def row_labels(self) -> tuple[str, ...]:
        """Return a name for every row: its owner's, with the role where the owner has several."""
        owners = [row.owner for row in self.rows]
        return tuple(row.owner if owners.count(row.owner) == 1 else f"{row.owner}.{row.role}" for row in self.rows)


@dataclass  # not frozen: to fill one that is takes six times as long
class RunRecord:
    """A run as the stepper left it: one row per accepted step, two at a transition (before and after).

    Attributes
    ----------
    t : ndarray, shape (n,)
        Times, never decreasing; equal neighbours are the two sides of a transition or of an input's jump.
    x, x_dot : ndarray, shape (n, n_q + n_u)
        States and their rates, SI.
    x_mid : ndarray, shape (n, n_q + n_u)
        State in the middle of the step that ends at this row; not read for a row that begins one.
    mode : ndarray of int, shape (n,)
        Mode index; a row that ends a step carries the mode of that step.
    held : ndarray, shape (n, 4 n_w + n_contacts + n_memory)
        The context without the parameters: inputs, two rates, slip directions, memory, third rates; from the right at a
        row that begins an interval, else from the left.
    read_transitions : callable
        Returns the transitions with their causes, in order; called on first use.
    inputs : InputFunction
        For times between the rows.
    outcome : Outcome
        Why the run ended.
    tried : tuple of str
        Where it ended undecided: the combinations of contact states that were tried, as text; where a coordinate left
        its range: which, and at which bound.
    change_points : tuple of ChangePoint
        Passages through change points, in order.
    targets : ndarray of int, shape (m,), optional
        Mode index after each transition; None where these are known as text alone.
    warnings : tuple of str
        Defects of a run that ended as asked: an energy balance that does not close.
    """

    t: FloatArray
    x: FloatArray
    x_dot: FloatArray
    x_mid: FloatArray
    mode: IntArray
    held: FloatArray
    read_transitions: Callable[[], tuple[Transition, ...]]
    inputs: InputFunction
    outcome: Outcome = OUTCOMES[Status.DONE]
    tried: tuple[str, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()
    targets: IntArray | None = None
    warnings: tuple[str, ...] = ()

    @property
    def named_outcome(self) -> Outcome:
        """The outcome; where a coordinate left its range, with its name and the bound in the sentence."""
        if self.outcome.code != Status.LEFT_RANGE or not self.tried:
            return self.outcome
        return replace(self.outcome, sentence=f"{self.tried[0]}.")

    @cached_property
    def transitions(self) -> tuple[Transition, ...]:
        """Every transition in order of time."""
        return self.read_transitions()

    def mode_sequence(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the modes visited, in order, each different from the one before; ``names`` by mode index."""
        if self.targets is None:
            visited = [names[self.mode[0]], *(item.target for item in self.transitions)]
        else:
            visited = [names[number] for number in (self.mode[0], *self.targets.tolist())]
        return modes_visited(visited)

    @cached_property
    def starts(self) -> BoolArray:
        """Which rows begin an interval: the first, and the later of two rows at one time; shape (n,)."""
        begins = np.ones(len(self.t), dtype=np.bool_)
        begins[1:] = self.t[1:] == self.t[:-1]
        return begins


def modes_visited(names: Sequence[str]) -> tuple[str, ...]:
    """Return a sequence of modes without those that follow themselves."""
    return tuple(mode for k, mode in enumerate(names) if not k or mode != names[k - 1])


def joined(before: RunRecord, after: RunRecord, rows: int, transitions: int, change_points: int) -> RunRecord:
    """Return a run and its continuation as one.

    Parameters
    ----------
    before : RunRecord
    after : RunRecord
        Its first row stands for row ``rows - 1`` of ``before``; the modes of both have the same numbers.
    rows, transitions, change_points : int
        How many of ``before`` are kept.
    """

    def both(name: str) -> Any:
        return np.concatenate([getattr(before, name)[: rows - 1], getattr(after, name)])

    return RunRecord(
        **{name: both(name) for name in ("t", "x", "x_dot", "x_mid", "mode", "held")},
        read_transitions=lambda: (*before.transitions[:transitions], *after.transitions),
        inputs=after.inputs,
        outcome=after.outcome,
        tried=after.tried,
        change_points=(*before.change_points[:change_points], *after.change_points),
    )
