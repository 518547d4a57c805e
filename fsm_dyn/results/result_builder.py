"""Models and records of runs, built from a compiled mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fsm_dyn import expressions
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.labels import Labels
from fsm_dyn.errors import Location
from fsm_dyn.modes.programs import RunnableMode
from fsm_dyn.results.arrays import FloatArray, InputFunction
from fsm_dyn.results.change_points import ChangePoint, change_points_of, rows_that_take_part
from fsm_dyn.results.outlines import Outlines
from fsm_dyn.results.record import ConstraintRowInfo, RunModel, RunRecord
from fsm_dyn.results.scene import NEWTONIAN, ORIGIN, Scene, SceneShape
from fsm_dyn.results.transition_causes import States, fired, selection_log, transition_cause
from fsm_dyn.results.transitions import Transition
from fsm_dyn.runtime.abi import Rank, RecordColumn, Status
from fsm_dyn.simulation.candidates import read_candidates
from fsm_dyn.simulation.numerics import Numerics
from fsm_dyn.simulation.outcomes import AT_CHANGE_POINTS, UNDECIDED
from fsm_dyn.simulation.run_arrays import RunArrays, TransitionArrays
from fsm_dyn.spec.checks.requirements import requirement_units
from fsm_dyn.spec.drawn_outline import CircleOutline, DrawnOutline
from fsm_dyn.spec.model import Body, Mechanism
from fsm_dyn.spec.values import ParameterValue, coordinate_bounds, evaluate, named_values, units

_CIRCLE = np.linspace(0.0, 2.0 * np.pi, 61)


def run_model(
    automaton: Automaton,
    names: Sequence[str],
    charts: Sequence[RunnableMode],
    parameters: FloatArray,
    values: Mapping[str, ParameterValue],
    numerics: Numerics | None = None,
) -> RunModel:
    """Return what reading a run of ``automaton`` needs.

    Parameters
    ----------
    automaton : Automaton
    names, charts : sequences
        The name of the mode and the programs behind every mode index of the run.
    parameters : ndarray, shape (n_p,)
        Values of the parameters, SI, in the order of the layout.
    values : mapping of str to float or tuple of float
        The same values by name, as ``fsm_dyn.spec.values.parameter_values`` gives them.
    numerics : Numerics, optional
        Tolerances and units of the run; by default those of its model.
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
        indeterminate=tuple(chart.indeterminate for chart in charts),
        contacts=automaton.contacts,
        text=mechanism.text,
        rows=tuple(ConstraintRowInfo(row.name, row.role) for row in automaton.rows),
        outputs=tuple(mechanism.outputs),
        loads=automaton.load_names,
        compliant=tuple((i, c.normal_row) for i, c in enumerate(automaton.contacts) if c.contact_law.compliant),
        units=units(mechanism),
        meanings={name: item.meaning for name, item in mechanism.coordinates.items() if item.meaning},
        requirements=tuple(mechanism.requirements.values()),
        requirement_units=requirement_units(mechanism),
        contact_entries=_contact_entries(mechanism),
        patterns=tuple(automaton.patterns),
        places=_places(mechanism),
    )
    return with_parameters(model, automaton, parameters, values, numerics)


def with_parameters(
    model: RunModel,
    automaton: Automaton,
    parameters: FloatArray,
    values: Mapping[str, ParameterValue],
    numerics: Numerics | None = None,
) -> RunModel:
    """Return a model of runs in the same modes with other parameters; arguments as of :func:`run_model`."""
    return replace(
        model,
        labelling=Labels(automaton.mechanism, automaton.contacts, automaton.patterns, values),
        parameters=parameters,
        automaton=automaton,
        make_scene=lambda: scene_of(automaton, parameters, values),
        values=values,
        numerics=numerics,
    )


def _places(mechanism: Mechanism) -> dict[str, Location]:
    """Return the places of what can become infinite or not a number, each by its kind and name."""
    kinds: dict[str, Iterable[Any]] = {
        "input": mechanism.inputs.values(),
        "point": mechanism.points.values(),
        "constraint": mechanism.constraints.values(),
        "contact": mechanism.contacts.values(),
        "load": mechanism.loads,
    }
    return {f"{kind} {item.name}": item.where for kind, items in kinds.items() for item in items}


def _contact_entries(mechanism: Mechanism) -> dict[str, tuple[str, ...]]:
    """Return the contacts of each entry of the model file that has another name than its contacts."""
    entries: dict[str, tuple[str, ...]] = {}
    for contact in mechanism.contacts.values():
        if contact.entry:
            entries[contact.entry] = (*entries.get(contact.entry, ()), contact.name)
    return entries


def scene_of(
    automaton: Automaton, parameters: FloatArray, values: Mapping[str, ParameterValue], *, solids: bool = True
) -> Scene:
    """Return what there is to draw of a mechanism; arguments as of :func:`run_model`.

    ``solids``: with the outlines of spheres and disks.
    """
    outlines = Outlines(automaton, parameters, values)
    return Scene(
        shapes=shapes_of(automaton.mechanism, values, outlines.planar() + (outlines.solids() if solids else ())),
        links=links_of(automaton.mechanism),
        points=automaton.point_names,
        frames=automaton.frame_names,
        geometry=automaton.geometry,
    )


def record_of(
    automaton: Automaton, names: Sequence[str], raw: RunArrays, inputs: InputFunction, labels: Labels | None = None
) -> RunRecord:
    """Return what the stepper left of a run, with its transitions as text.

    Parameters
    ----------
    automaton : Automaton
        As it was at the end of the run.
    names : sequence of str
        The name of the mode behind every mode index of the run.
    raw : RunArrays
    inputs : InputFunction
        The inputs between the rows.
    labels : Labels, optional
        What modes are called where people read them; by default with the parameters of the model.
    """
    return RunRecord(
        t=raw.t,
        x=raw.x,
        x_dot=raw.x_dot,
        x_mid=raw.x_mid,
        mode=raw.mode,
        held=raw.held,
        read_transitions=lambda: tuple(
            transition_of(automaton, names, raw.transitions, raw.tables.mode_states, i, labels)
            for i in range(len(raw.transitions))
        ),
        inputs=inputs,
        outcome=raw.outcome,
        tried=_tried(automaton, raw),
        change_points=_change_points(automaton, raw, names),
        targets=raw.records[:, RecordColumn.TARGET].astype(np.int64),
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
    names = automaton.terms.layout.contacts
    candidates = read_candidates(raw.log, raw.tried)
    more = raw.tried - len(candidates)
    return (*(item.describe(names) for item in candidates), *([f"and {more} more"] if more > 0 else []))


def _bound_left(automaton: Automaton, raw: RunArrays) -> str:
    """Return which coordinate ended a run, and at which bound: the one that is farthest outside."""
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
    )


def _impulses(automaton: Automaton, all_rows: FloatArray) -> dict[str, FloatArray]:
    """Return the impulses of the contacts and constraints that had any, in the order of the rows."""
    pushed = {automaton.rows[row].name for row in np.flatnonzero(all_rows)}
    own: dict[str, list[int]] = {}
    for number, row in enumerate(automaton.rows if pushed else ()):
        if row.name in pushed:
            own.setdefault(row.name, []).append(number)
    return {owner: all_rows[rows] for owner, rows in own.items()}


def shapes_of(
    mechanism: Mechanism, values: Mapping[str, ParameterValue], outlines: Sequence[SceneShape] = ()
) -> tuple[SceneShape, ...]:
    """Return the outlines a model asks for under ``view``, its shapes, and a dot at the centre of every other body.

    A body with a view is drawn by that alone.

    Parameters
    ----------
    values : mapping
        The parameters, which the outlines may name.
    outlines : sequence of SceneShape
        The shapes that contacts are made of.
    """
    viewed = {(mechanism.bodies[name].frame, mechanism.bodies[name].center) for name in mechanism.view if name != "N"}
    shapes = [outline for outline in outlines if (outline.frame, outline.origin) not in viewed]
    drawn = {(outline.frame, outline.origin) for outline in shapes}
    for name, body in mechanism.bodies.items():
        forms = mechanism.view.get(name, ())
        dot = [] if (body.frame or NEWTONIAN, body.center) in drawn else [_dot(body)]
        shapes.extend([_shape(name, body.frame or NEWTONIAN, body.center, form, values) for form in forms] or dot)
    shapes.extend(_shape(NEWTONIAN, NEWTONIAN, ORIGIN, form, values) for form in mechanism.view.get(NEWTONIAN, ()))
    return tuple(shapes)


def links_of(mechanism: Mechanism) -> tuple[tuple[str, str], ...]:
    """Return the pairs of points that lie at a fixed distance from each other, as the points are written."""
    coordinates = set(mechanism.coordinates)
    links = []
    for name, point in mechanism.points.items():
        names = expressions.free_names(expressions.parse(point.at))
        if not names & coordinates:
            links.append((point.origin, name))
    return tuple(links)


def _dot(body: Body) -> SceneShape:
    return SceneShape(body.name, NEWTONIAN, body.center, np.zeros((1, 2)))


def _shape(body: str, frame: str, center: str, form: DrawnOutline, values: Mapping[str, ParameterValue]) -> SceneShape:
    points = np.array([[evaluate(text, values) for text in point[:2]] for point in form.places] or [[0.0, 0.0]])
    if isinstance(form, CircleOutline):
        points = points + evaluate(form.radius, values) * np.stack([np.cos(_CIRCLE), np.sin(_CIRCLE)], axis=-1)
    return SceneShape(body, form.frame or frame, center, points, form.closed, form.label)
