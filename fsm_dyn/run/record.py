"""Record of a run: plain arrays, names and the programs to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.labels import Labels
from fsm_dyn.core.arrays import Floats, InputFunction, Integers
from fsm_dyn.core.errors import Location
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.enumeration import Pattern
from fsm_dyn.derive.mode_programs import Evaluates, RunnableMode
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language.check_references import requirement_units
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.interfaces import listed_outputs
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.requirement import Requirement, RunPhase
from fsm_dyn.language.scales import force_units
from fsm_dyn.language.values import coordinate_bounds, named_values, units
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import reachable, support
from fsm_dyn.run.loop_state import Rows, RunArrays, TransitionArrays
from fsm_dyn.run.outcomes import AT_CHANGE_POINTS, OUTCOMES, UNDECIDED, Outcome, read_candidates
from fsm_dyn.run.scene import Scene, scene_of
from fsm_dyn.run.tolerances import Numerics
from fsm_dyn.run.transitions import (
    ChangePoint,
    States,
    Transition,
    change_points_of,
    fired,
    rows_that_take_part,
    selection_log,
    transition_cause,
)
from fsm_dyn.runtime.abi import Rank, RecordColumn, Status

# -- Record of a run: plain arrays, names and the programs to read them --------------------------------------


@dataclass(frozen=True, slots=True)
class ConstraintRowInfo:
    """One constraint row: its constraint or contact, and its part in it.

    ``role`` is ``kinematic``, ``velocity``, ``position``, ``normal``, ``tangent``, ``tangent2``, ``friction`` or
    ``lock``.
    """

    owner: str
    role: str


_JUMPS: Final = frozenset({"floor", "mod", "sign", "lt", "le"})


@lru_cache(maxsize=64)
def _jumps(report: Program) -> bool:
    _, symbols, nodes = report.graph()
    moving = {symbols[name] for name in report.layout.q}
    choices = (node for node in reachable(list(np.ravel(nodes["potential_energy"]))) if node.op in _JUMPS)
    return any(not moving.isdisjoint(support([node])) for node in choices)


@dataclass(frozen=True)
class RunModel:
    """The model as far as reading a run needs it."""

    name: str
    layout: Layout  # names of the states and of everything in the context, in the order of the columns
    modes: tuple[str, ...]  # by mode index; charts of one mode share its name
    # `A` (n_rows, n): the rows over all speeds, the kinematic ones (held at zero) last; `b` (n_rows,): at zero speeds
    terms: Program
    # `kinetic_energy` (), `potential_energy` (), `load_powers` (n_loads,), `outputs` (n_outputs,), and of compliant
    # contacts with a potential `restoring` forces and `stored` energies (n_contacts,)
    report: Evaluates
    full: Sequence[Evaluates]  # by mode index, giving `multipliers` (n_rows,), zero for inactive rows
    parameters: Floats = field(default_factory=lambda: np.zeros(0))  # (n_p,), SI, in the order of the layout
    rows: tuple[ConstraintRowInfo, ...] = ()
    outputs: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()  # those whose power is no part of the potential energy
    units: Mapping[str, str] = field(default_factory=dict)  # of coordinates, speeds, inputs and outputs with one
    automaton: Automaton | None = None
    charts: tuple[RunnableMode, ...] = ()  # by mode index, like ``full``
    indeterminate: Sequence[tuple[int, ...]] = ()  # by mode: rows whose forces others can take over
    labelling: Labels | None = None  # what modes are called where people read them
    values: Mapping[str, ParameterValue] = field(default_factory=dict)  # the parameters by name, SI
    numerics: Numerics | None = None  # tolerances and units of the run; None: those of its model

    @property
    def mechanism(self) -> Mechanism | None:
        """The model file as data."""
        return None if self.automaton is None else self.automaton.mechanism

    @property
    def text(self) -> str:
        """The model file; a saved run carries it."""
        return "" if self.mechanism is None else self.mechanism.text

    @property
    def contacts(self) -> tuple[ContactInfo, ...]:
        """All contacts, by their numbers."""
        return () if self.automaton is None else self.automaton.contacts

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Patterns of modes with names."""
        return () if self.automaton is None else tuple(self.automaton.patterns)

    @cached_property
    def potential_jumps(self) -> bool:
        """Whether the potential energy jumps with a choice of coordinates, as of a spring on ``mod``."""
        return isinstance(self.report, Program) and _jumps(self.report)

    @property
    def phases(self) -> tuple[RunPhase, ...]:
        """The phases of the model."""
        return () if self.mechanism is None else tuple(self.mechanism.phases.values())

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements of the model."""
        return () if self.mechanism is None else tuple(self.mechanism.requirements.values())

    @cached_property
    def requirement_units(self) -> Mapping[str, str]:
        """Units of the margins of requirements."""
        return {} if self.mechanism is None else requirement_units(self.mechanism)

    @cached_property
    def compliant(self) -> tuple[tuple[int, int], ...]:
        """Contact and normal row of each compliant contact."""
        return tuple((i, c.normal_row) for i, c in enumerate(self.contacts) if c.contact_law.compliant)

    @cached_property
    def meanings(self) -> Mapping[str, str]:
        """Meaning of a coordinate, in a word, if the model gives it."""
        items = {} if self.mechanism is None else self.mechanism.coordinates
        return {name: item.meaning for name, item in items.items() if item.meaning}

    @cached_property
    def contact_entries(self) -> Mapping[str, tuple[str, ...]]:
        """The contacts of each entry of the model file with another name than its contacts."""
        entries: dict[str, tuple[str, ...]] = {}
        for contact in () if self.mechanism is None else self.mechanism.contacts.values():
            if contact.entry:
                entries[contact.entry] = (*entries.get(contact.entry, ()), contact.name)
        return entries

    @cached_property
    def places(self) -> Mapping[str, Location]:
        """The places of quantities with possible values infinite or not a number: of "load weight", "point P", ..."""
        if self.mechanism is None:
            return {}
        kinds: dict[str, Iterable[Any]] = {
            "input": self.mechanism.inputs.values(),
            "point": self.mechanism.points.values(),
            "constraint": self.mechanism.constraints.values(),
            "contact": self.mechanism.contacts.values(),
            "load": self.mechanism.loads,
        }
        return {f"{kind} {item.name}": item.where for kind, items in kinds.items() for item in items}

    @cached_property
    def scene(self) -> Scene | None:
        """The scene of the motion, if any."""
        return None if self.automaton is None else scene_of(self.automaton, self.parameters, self.values)

    @cached_property
    def pin_outputs(self) -> tuple[str, ...]:
        """Columns of connections listed in the model."""
        return () if self.mechanism is None else tuple(column for _, column in listed_outputs(self.mechanism.pins))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What each mode index is called where people read it; modes between which handovers lead share it."""
        if self.labelling is None:
            return self.modes
        return tuple(self.labelling.of(chart.states) for chart in self.charts)

    @cached_property
    def force_units(self) -> tuple[str, ...]:
        """Units of the multipliers of the rows: N, or N*m along an angle; empty texts where they are unknown."""
        if self.automaton is None:
            return ("",) * len(self.rows)
        return force_units(self.automaton.mechanism, [(row.owner, row.role) for row in self.rows])

    def row_labels(self) -> tuple[str, ...]:
        """Return a name for every row: its owner's, with the role where the owner has several."""
        owners = [row.owner for row in self.rows]
        return tuple(row.owner if owners.count(row.owner) == 1 else f"{row.owner}.{row.role}" for row in self.rows)


@dataclass  # not frozen: a frozen one takes six times as long to fill
class RunRecord(Rows):
    """Rows of a run with its transitions, inputs and outcome."""

    read_transitions: Callable[[], tuple[Transition, ...]]  # with their causes, in order; called on first use
    inputs: InputFunction  # for times between the rows
    outcome: Outcome = OUTCOMES[Status.DONE]
    tried: tuple[str, ...] = ()  # of an undecided end: combinations of contact states; or the bound that was left
    change_points: tuple[ChangePoint, ...] = ()  # passages in order
    targets: Integers | None = None  # mode index after each transition, (m,); None if known as text alone
    warnings: tuple[str, ...] = ()  # defects of a completed run: an open energy balance
    time_stepping: bool = False  # steps end with the speeds without impulses, at coordinates with them

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


def modes_visited(names: Sequence[str]) -> tuple[str, ...]:
    """Return a sequence of modes without repetitions of the one before."""
    return tuple(mode for k, mode in enumerate(names) if not k or mode != names[k - 1])


def joined(before: RunRecord, after: RunRecord, rows: int, transitions: int, change_points: int) -> RunRecord:
    """Return a run and its continuation as one.

    ``after``: its first row stands for row ``rows - 1`` of ``before``; the modes of both have the same numbers.
    ``rows``, ``transitions``, ``change_points``: how many of ``before`` are kept.
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
        time_stepping=after.time_stepping,
    )


# -- Models and records of runs, built from a compiled mechanism ---------------------------------------------


@dataclass(frozen=True)
class IndeterminateRows(Sequence[tuple[int, ...]]):
    """Rows with forces that others can take over, by mode; found when they are asked for."""

    charts: Sequence[RunnableMode]

    def __len__(self) -> int:
        return len(self.charts)

    def __getitem__(self, index: Any) -> Any:
        return self.charts[index].indeterminate


def run_model(
    automaton: Automaton,
    names: Sequence[str],
    charts: Sequence[RunnableMode],
    parameters: Floats,
    values: Mapping[str, ParameterValue],
    numerics: Numerics | None = None,
) -> RunModel:
    """Return the data for reading a run of ``automaton``.

    ``names``, ``charts``: the name of the mode and the programs behind every mode index of the run. ``parameters``,
    shape (n_p,): values of the parameters, SI, in the order of the layout. ``values``: the same values by name, as
    ``fsm_dyn.language.values.parameter_values`` gives them. ``numerics``: tolerances and units of the run; by default
    those of its model.
    """
    mechanism = automaton.mechanism
    model = RunModel(
        name=mechanism.name,
        layout=automaton.terms.layout,
        modes=tuple(names),
        terms=automaton.terms,
        report=automaton.report,
        full=tuple(chart.full for chart in charts),
        charts=tuple(charts),
        indeterminate=IndeterminateRows(charts),
        rows=tuple(ConstraintRowInfo(row.name, row.role) for row in automaton.rows),
        outputs=tuple(mechanism.outputs),
        loads=automaton.load_names,
        units=units(mechanism),
    )
    return with_parameters(model, automaton, parameters, values, numerics)


def with_parameters(
    model: RunModel,
    automaton: Automaton,
    parameters: Floats,
    values: Mapping[str, ParameterValue],
    numerics: Numerics | None = None,
) -> RunModel:
    """Return a model of runs in the same modes with other parameters; arguments as of :func:`run_model`."""
    return replace(
        model,
        labelling=Labels(automaton.mechanism, automaton.contacts, automaton.patterns, values),
        parameters=parameters,
        automaton=automaton,
        values=values,
        numerics=numerics,
    )


def record_of(
    automaton: Automaton, names: Sequence[str], raw: RunArrays, inputs: InputFunction, labels: Labels | None = None
) -> RunRecord:
    """Return the record of a run by the stepper, with its transitions as text.

    ``automaton``: as it was at the end of the run. ``names``: the name of the mode behind every mode index of the run.
    ``inputs``: the inputs between the rows. ``labels``: what modes are called where people read them; by default with
    the parameters of the model.
    """
    return RunRecord(
        t=raw.t,
        x=raw.x,
        x_dot=raw.x_dot,
        x_mid=raw.x_mid,
        mode=raw.mode,
        held=raw.held,
        begin=raw.begin,
        read_transitions=lambda: tuple(
            transition_of(automaton, names, raw.transitions, raw.tables.mode_states, i, labels)
            for i in range(len(raw.transitions))
        ),
        inputs=inputs,
        outcome=raw.outcome,
        tried=_tried(automaton, raw),
        change_points=_change_points(automaton, raw, names),
        targets=raw.records[:, RecordColumn.TARGET].astype(np.int64),
        time_stepping=raw.time_stepping,
    )


def _change_points(automaton: Automaton, raw: RunArrays, names: Sequence[str]) -> tuple[ChangePoint, ...]:
    return change_points_of(raw.passages, [row.name for row in automaton.rows], names) if len(raw.passages) else ()


def _tried(automaton: Automaton, raw: RunArrays) -> tuple[str, ...]:
    if raw.outcome.code == Status.MODE_NOT_LISTED:
        return (automaton.name_of(raw.requested_states.tolist()).name,)
    if raw.outcome.code in AT_CHANGE_POINTS:
        return _limit(automaton, raw)
    if raw.outcome.code == Status.LEFT_RANGE:
        return (_bound_left(automaton, raw),)
    if raw.outcome.code not in UNDECIDED:
        return ()
    candidates = read_candidates(raw.log, raw.tried)
    more = raw.tried - len(candidates)
    return (*(item.describe(automaton.contacts) for item in candidates), *([f"and {more} more"] if more > 0 else []))


def _bound_left(automaton: Automaton, raw: RunArrays) -> str:
    """Return which coordinate ended a run, and at which bound: the one farthest outside."""
    layout, mechanism = automaton.terms.layout, automaton.mechanism
    bounds = coordinate_bounds(mechanism, named_values(mechanism, list(raw.c_end[layout.p_slice])))
    sides = []
    for number, (name, unit) in enumerate(zip(layout.q, automaton.units.q, strict=True)):
        lower, upper = bounds.get(name, (-np.inf, np.inf))
        value = raw.x[-1, number]
        sides += [((lower - value) / unit, name, "lower", lower), ((value - upper) / unit, name, "upper", upper)]
    _, name, side, bound = max(sides)
    unit_text = units(mechanism).get(name, "")
    return f"{name} leaves its range at the {side} bound {bound:.9g} {unit_text}".rstrip()


def _limit(automaton: Automaton, raw: RunArrays) -> tuple[str, ...]:
    """Return which rows a run ended by, and for one stretched to its limit when that is."""
    n_rows = len(automaton.rows)
    weights = raw.rank[Rank.COUNT + n_rows :]
    rows = f"rows {', '.join(rows_that_take_part(weights, [row.name for row in automaton.rows]))}"
    if raw.outcome.code == Status.STRETCHED:
        return (f"{rows}; the limit is at t = {raw.t[-1] + raw.rank[Rank.AHEAD]:.12g} s",)
    return (rows,)


def transition_of(
    automaton: Automaton,
    names: Sequence[str],
    found: TransitionArrays,
    states: States,
    number: int,
    labels: Labels | None = None,
) -> Transition:
    """Return transition ``number`` as text; ``names`` and ``states`` are those of the modes by their numbers."""
    labels = labels or automaton.labels
    return Transition(
        time=float(found.time[number]),
        source=names[found.source[number]],
        target=names[found.target[number]],
        cause=transition_cause(automaton, found, states, number, labels),
        impulse=_impulses(automaton, found.impulse[number]),
        energy_before=float(found.energy_before[number]),
        energy_after=float(found.energy_after[number]),
        u_before=found.u_before[number],
        u_after=found.u_after[number],
        consistent_count=int(found.candidates[number]),
        guard_value=float(found.value[number, 0]),
        slope=float(found.slope[number, 0]),
        selection=selection_log(automaton, found, number),
        fired=fired(automaton, found, number),
        source_label=labels.of(states[found.source[number]]),
        target_label=labels.of(states[found.target[number]]),
        written=int(found.written[number]),
    )


def _impulses(automaton: Automaton, all_rows: Floats) -> dict[str, Floats]:
    """Return the impulses of the contacts and constraints with impulses, in the order of the rows."""
    own = automaton.rows_by_name
    pushed = {automaton.rows[row].name for row in np.flatnonzero(all_rows)}
    return {owner: all_rows[own[owner]] for owner in sorted(pushed, key=lambda name: own[name][0])}
