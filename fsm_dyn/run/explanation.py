"""Explanation of one time of a run, the transitions possible from there, and report of a failed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.initial_values import massless_bodies
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.guards import Guard
from fsm_dyn.derive.unconstrained_system import ContactInfo, shared_name
from fsm_dyn.draw.svg import element, escaped, html_table, table
from fsm_dyn.language.memory import sample_counts
from fsm_dyn.language.values import named_values
from fsm_dyn.run import outcomes
from fsm_dyn.run.encounters import depths
from fsm_dyn.run.online import ModeEvaluator, OnlineFull
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.run import Run
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.tolerances import Tolerances
from fsm_dyn.run.transitions import ChangePoint, Transition
from fsm_dyn.runtime.abi import Event, Status

# -- Which transition is possible: guards of a mode along its motion, if nothing else changed ----------------

STEPS: Final = 64  # of the horizon
_HALVINGS: Final = 50


@dataclass(frozen=True)
class Prospect:
    """A guard of the present mode, and the time at which it would fire if nothing else changed."""

    # event, guard: the event, and the guard as a text
    event: str
    guard: str
    margin: float  # present value of the guard, SI: it fires at zero
    slope: float  # its present rate, 1/s of its unit
    time: float | None  # time of the event, s; None: not within the horizon


def prospects(model: RunModel, at: Samples, horizon: float) -> tuple[Prospect, ...]:
    """Return the guards of one row's mode in the order of the times at which they would fire.

    The motion of the mode continues beyond every other guard; inputs keep their present rates. Guards that are below
    zero wait until they have risen, as in a run. A gap is listed where its contact could not close, too: beyond the end
    of a face, or while its ``closes_if`` is false. ``at``: a single row; ``horizon``: time looked ahead, s. Raises
    InputError: the horizon is not positive.
    """
    if not 0.0 < horizon < np.inf:
        raise InputError("the horizon of a look ahead", found=f"{horizon:g} s", allowed="a time above 0 s")
    chart = model.charts[int(at.mode[0])]
    start, x, c = float(at.t[0]), at.x[0].copy(), at.context[0].copy()
    layout, h = model.layout, horizon / STEPS

    full = chart.full
    evaluate = ModeEvaluator(full) if isinstance(full, OnlineFull) else full.evaluate

    def mode(t: float, state: Floats) -> Mapping[str, Floats]:
        c[layout.w_slice] = at.context[0][layout.w_slice] + (t - start) * at.context[0][layout.w_rate_slice]
        return evaluate(t, state, c)

    found = mode(start, x)
    values, slopes = found["guards"], found["slopes"]
    margins, rising = values, slopes
    times: list[float | None] = [None] * len(values)
    for k in range(STEPS):
        t = start + k * h
        x = _step(mode, t, x, h)
        if not np.isfinite(x).all():
            break
        found = mode(t + h, x)
        later, after = found["guards"], found["slopes"]
        for i in np.flatnonzero((values > 0.0) & (later <= 0.0)):
            if times[i] is None:
                times[i] = t + h * _zero(values[i], slopes[i] * h, later[i], after[i] * h)
        values, slopes = later, after
    listed = [
        Prospect(event_text(model, guard), guard.text, float(margins[i]), float(rising[i]), times[i])
        for i, guard in enumerate(chart.guards)
    ]
    return tuple(sorted(listed, key=lambda item: np.inf if item.time is None else item.time))


def _step(mode: Callable[[float, Floats], Mapping[str, Floats]], t: float, x: Floats, h: float) -> Floats:
    """Take a step of the classical Runge-Kutta method."""
    first = mode(t, x)["x_dot"]
    second = mode(t + h / 2, x + h / 2 * first)["x_dot"]
    third = mode(t + h / 2, x + h / 2 * second)["x_dot"]
    fourth = mode(t + h, x + h * third)["x_dot"]
    return x + h / 6 * (first + 2 * second + 2 * third + fourth)


def _zero(a: float, da: float, b: float, db: float) -> float:
    """Return the first zero of the cubic with values a > 0 and b <= 0 and these slopes at 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        s = 0.5 * (low + high)
        value = a * (1 + 2 * s) * (1 - s) ** 2 + da * s * (1 - s) ** 2 + b * s**2 * (3 - 2 * s) - db * s**2 * (1 - s)
        low, high = (s, high) if value > 0.0 else (low, s)
    return high


# -- Explanation of one time, report of a failed run ---------------------------------------------------------

# -- Explanation of one time of a run: cause of the mode, contact forces, guards -----------------------------

MANY: Final = 24  # contacts, or guards, up to which all are listed
FEW: Final = 12  # open contacts, or guards, listed of more
ROUNDING: Final = 1e-12  # fraction of the numbers compared below which a difference of them is zero in a text


@dataclass(frozen=True)
class ContactReport:
    """A contact at an instant, SI units; None if it has no such quantity.

    ``gap``, ``slip`` (speed), ``normal`` and ``friction`` forces, and the ``limit`` of the friction force: static if
    it sticks, kinetic if it slides.  ``indeterminate`` states that other contacts or constraints could take its forces
    over: those given are then the smallest that the contact laws admit, or, where it is not ``admissible``, the
    smallest.  ``normal_unit``, ``friction_unit``: N, or N*m along an angle; empty in a model without units.
    """

    name: str
    state: str
    gap: float | None
    slip: float | None
    normal: float | None
    friction: float | None
    limit: float | None
    indeterminate: bool = False
    admissible: bool = True
    normal_unit: str = ""
    friction_unit: str = ""


@dataclass(frozen=True)
class GuardReport:
    """A guard at one time: its event, value and slope, and the time to its zero by linear extrapolation (s)."""

    event: str
    guard: str
    value: float
    slope: float
    time_to_zero: float | None


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a mechanism is in its mode at an instant.

    Attributes
    ----------
    model, mode, label : str
        Names of the model and the mode, and the label of the mode.
    time : float
        s
    preceding : tuple of Transition
        Those of the last instant of transition up to this time, in order; empty before the first.
    next_transition : Transition or None
        The next one in the run.
    contacts : tuple of ContactReport
    constraints : mapping of str to list of float
        Forces of the constraints (N, N m).
    guards : tuple of GuardReport
        Guards of the mode, the one with the earliest zero first.
    passed : tuple of ChangePoint
        Change points passed since the mode began.
    phase : str
        Visit at the time: its name, begin and cause; empty without contacts.
    sentences : tuple of str
        Causes of the preceding transitions as sentences.
    """

    model: str
    time: float
    mode: str
    preceding: tuple[Transition, ...]
    next_transition: Transition | None
    contacts: tuple[ContactReport, ...]
    constraints: dict[str, list[float]]
    guards: tuple[GuardReport, ...]
    passed: tuple[ChangePoint, ...] = ()
    label: str = ""
    phase: str = ""
    sentences: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        # for notebooks only
        head = f"{self.model} at {self.time:g} s: {self.label or self.mode}"
        forces = [
            (item.name, item.state, _cell(item.gap), _cell(item.normal, item.normal_unit),
             _cell(item.friction, item.friction_unit))
            for item in self.contacts[:MANY]
        ]  # fmt: skip
        guards = [
            (item.event, f"{item.value:.4g}", "" if item.time_to_zero is None else f"{item.time_to_zero:.3g} s")
            for item in self.guards[:MANY]
        ]
        parts = [element("p", f"{element('b', escaped(head))}")]
        if self.phase:
            parts.append(element("p", escaped(self.phase)))
        if self.preceding:
            parts.append(element("p", escaped(f"since {self.preceding[-1].time:.6g} s: {self.preceding[-1].cause}")))
        if forces:
            parts.append(html_table(("contact", "state", "gap", "normal force", "friction"), forces))
        if guards:
            parts.append(html_table(("guard", "value", "zero in"), guards))
        return element("div", parts)

    def as_data(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return {
            "model": self.model,
            "time": self.time,
            "mode": self.mode,
            "label": self.label,
            "phase": self.phase,
            "preceding_transitions": [_transition_data(item) for item in self.preceding],
            "next_transition": None if self.next_transition is None else _transition_data(self.next_transition),
            "contacts": [asdict(contact) for contact in self.contacts],
            "constraints": self.constraints,
            "guards": [asdict(guard) for guard in self.guards],
            "passed": [asdict(item) for item in self.passed],
        }


def _cell(value: float | None, unit: str = "") -> str:
    return "" if value is None else f"{value:.4g} {unit}".rstrip()


def explain(
    model: RunModel, at: Samples, transitions: Sequence[Transition], change_points: Sequence[ChangePoint] = ()
) -> Explanation:
    """Explain the one row ``at`` of a run with these transitions and passages through change points.

    ``model``: the modes of the run; ``at``: a single row; ``transitions``: of the run, in order.
    """
    time, x, context = float(at.t[0]), at.x[0], at.context[0]
    chart = model.charts[int(at.mode[0])]
    terms = model.terms.evaluate(time, x, context)
    full = chart.full.evaluate(time, x, context)
    speeds = terms["A"][:, : len(model.layout.u)] @ at.u[0] + terms["b"]
    forces = at.multiplier_table[0]
    past = [item for item in transitions if item.time <= time]
    guards = [
        GuardReport(event_text(model, guard), guard.text, float(value), float(slope), _zero_in(value, slope))
        for guard, value, slope in zip(chart.guards, full["guards"], full["slopes"], strict=True)
    ]
    contact_names = {contact.name for contact in model.contacts}
    return Explanation(
        model=model.name,
        time=time,
        mode=model.modes[int(at.mode[0])],
        label=model.labels[int(at.mode[0])],
        preceding=tuple(item for item in past if item.time == past[-1].time),
        next_transition=next((item for item in transitions if item.time > time), None),
        contacts=tuple(
            _contact(contact, code, {name: float(terms[name][k]) for name in ("static", "kinetic", "elastic")},
                     terms["residual"], speeds, forces, chart.indeterminate, bool(at.admissible[0]), model.force_units)
            for k, (contact, code) in enumerate(zip(model.contacts, chart.states, strict=True))
        ),
        constraints={
            name: [float(forces[i]) for i, row in enumerate(model.rows) if row.owner == name]
            for name in dict.fromkeys(row.owner for row in model.rows)
            if name not in contact_names
        },
        guards=tuple(sorted(guards, key=lambda guard: np.inf if guard.time_to_zero is None else guard.time_to_zero)),
        passed=tuple(item for item in change_points if (past[-1].time if past else -np.inf) <= item.time <= time),
    )  # fmt: skip


def _contact(
    contact: ContactInfo,
    code: int,
    own: dict[str, float],
    residual: Floats,
    speeds: Floats,
    forces: Floats,
    indeterminate: Sequence[int],
    admissible: bool,
    units: Sequence[str],
) -> ContactReport:
    normal, tangent = contact.normal_row, contact.tangent_row
    load = {"constraint": abs(float(forces[normal])), "force law": own["elastic"]}.get(contact.contact_law.normal, 1.0)
    limit = own["static" if code == 1 else "kinetic"] * load
    shared = normal in indeterminate or tangent in indeterminate
    bounded = code > 0 and (contact.contact_law.force_limit or (tangent >= 0 and not contact.sticks_always))
    return ContactReport(
        name=contact.name,
        state=contact.states[code],
        gap=float(residual[normal]) if contact.contact_law.has_gap else None,
        slip=_size(speeds, contact),
        normal=float(forces[normal]) if normal >= 0 and code > 0 else None,
        friction=_size(forces, contact) if code > 0 else None,
        limit=limit if bounded else None,
        indeterminate=shared,
        admissible=admissible or not shared,
        normal_unit=units[normal] if normal >= 0 else "",
        friction_unit=units[tangent] if tangent >= 0 else "",
    )


def _size(values: Floats, contact: ContactInfo) -> float | None:
    """Return the component along the slip of a contact with its sign, in space its length; None without friction."""
    own = values[list(contact.tangent_rows)]
    if not len(own):
        return None
    return float(np.linalg.norm(own)) if contact.in_space else float(own[0])


def event_text(model: RunModel, guard: Guard) -> str:
    """Return the event of a guard as text; of a user-defined transition its name."""
    if guard.event is Event.TRANSITION:
        return "user-defined transition"
    contact = model.contacts[guard.subject]
    name = contact.name
    if guard.event is Event.CLOSES:
        name = shared_name(model.contacts, guard.subject)
    direction = "" if contact.in_space or not guard.direction else " (+)" if guard.direction > 0 else " (−)"
    return f"{name} {contact.contact_law.verb(guard.event)}{direction}"


def _zero_in(value: float, slope: float) -> float | None:
    return float(-value / slope) if slope < 0.0 <= value else None


def _transition_data(item: Transition) -> dict[str, Any]:
    return {
        "time": item.time,
        "source": item.source,
        "target": item.target,
        "handover": item.is_handover,
        "cause": item.cause,
        "fired": [{"guard": text, "value": value, "slope": slope} for text, value, slope in item.fired],
        "consistent_count": item.consistent_count,
        "selection": item.selection[0] if item.selection else "",
        "candidates": list(item.selection[1:]),
        "impulse": {name: values.tolist() for name, values in item.impulse.items()},
        "energy_before": item.energy_before,
        "energy_after": item.energy_after,
    }


def _text(found: Explanation) -> str:
    """Return an explanation as text."""
    lines = [f"{found.model} at t = {found.time:.6f} s: {found.label or found.mode}", *filter(None, [found.phase])]
    if not found.preceding:
        lines += ["", "in this mode since the start"]
    for number, item in enumerate(found.preceding):
        sentence = found.sentences[number] if number < len(found.sentences) else ""
        lines += ["", *filter(None, [sentence]), *_transition_lines(item)]
    lines += ["", *(str(item) for item in found.passed)] if found.passed else []
    if found.contacts:
        headings = ("contact", "state", "gap", "slip", "normal force", "friction", "friction limit")
        shown = _nearest(found.contacts)
        most = max((abs(force) for contact in shown for force in _forces(contact)), default=0.0)
        lines += ["", "contacts, SI units:", table(headings, [_contact_cells(contact, most) for contact in shown])]
        if len(shown) < len(found.contacts):
            lines.append(f"and {len(found.contacts) - len(shown)} more, open, farther away")
    shared = [contact.name for contact in found.contacts if contact.indeterminate]
    if shared:
        kind = "minimum-norm admissible" if all(contact.admissible for contact in found.contacts) else "minimum-norm"
        lines.append(f"indeterminate multipliers of {', '.join(shared)}: the {kind} ones are given")
        if kind == "minimum-norm":
            lines.append("no multipliers of these contacts satisfy all contact laws")
    for name, forces in found.constraints.items():
        lines.append(f"force of {name}: " + " / ".join(f"{force:.6g}" for force in forces))
    lines += _guard_lines(found.guards)
    if found.next_transition is not None:
        item = found.next_transition
        lines += ["", f"next: {item.time:.6f} s  {item.change}  {item.cause}"]
    return "\n".join(lines)


def _guard_lines(guards: Sequence[GuardReport]) -> Iterator[str]:
    """Yield the table of guards."""
    known = _once(guards)
    if not known:
        return
    rows = [
        (
            ", ".join(events),
            guard.guard,
            _shown(guard.value, 1.0),
            "0" if abs(guard.slope) <= ROUNDING else f"{guard.slope:+.6g}",
            "" if guard.time_to_zero is None else f"{guard.time_to_zero:.3g} s",
        )
        for events, guard in known[: None if len(known) <= MANY else FEW]
    ]
    yield from ("", "guards, SI units:", table(("event", "guard", "value", "slope", "time to zero"), rows))
    if len(rows) < len(known):
        yield f"and {len(known) - len(rows)} more, later or never by their slopes"


def _once(guards: Sequence[GuardReport]) -> list[tuple[list[str], GuardReport]]:
    """Return every guard once, with the events of the contacts that share it, in their order."""
    found: dict[tuple[str, float, float], tuple[list[str], GuardReport]] = {}
    for guard in guards:
        found.setdefault((guard.guard, guard.value, guard.slope), ([], guard))[0].append(guard.event)
    return list(found.values())


def _nearest(contacts: Sequence[ContactReport]) -> list[ContactReport]:
    """Return the contacts to list, in their order: of many the closed ones, and open ones of the smallest gaps."""
    if len(contacts) <= MANY:
        return list(contacts)
    is_open = [contact.gap is not None and contact.normal is None for contact in contacts]
    gaps = sorted(
        (contact.gap, k)
        for k, contact in enumerate(contacts)
        if is_open[k] and contact.gap is not None and contact.gap >= 0
    )
    near = {k for _, k in gaps[:FEW]}
    return [contact for k, contact in enumerate(contacts) if not is_open[k] or k in near]


def _transition_lines(item: Transition) -> list[str]:
    """Return a transition with the fired guards, the candidates examined and the selection."""
    lines = [f"{item.time:.6f} s  {item.change}  {item.cause}"]
    if item.is_handover:
        lines.append("  a handover: other features carry the same contact, the mode stays")
    fired = {text: (value, slope) for text, value, slope in reversed(item.fired)}  # one contact may have several guards
    lines += [
        f"  fired: {text}, at {_shown(value, 1.0)} with slope {slope:+.6g}"
        for text, (value, slope) in reversed(fired.items())
    ]
    most = max((float(np.abs(values).max()) for values in item.impulse.values()), default=0.0)
    for name, values in item.impulse.items():
        lines.append(f"  impulse of {name}: " + " / ".join(_shown(value, most) for value in values))
    if item.impulse:
        lines.append(f"  energy: {item.energy_before:.6g} J before, {item.energy_after:.6g} J after")
    if item.selection:
        lines.append(f"  selected: {item.selection[0]}")
        lines += [f"  examined: {line}" for line in item.selection[1:]]
    return lines


def _forces(contact: ContactReport) -> list[float]:
    return [force for force in (contact.normal, contact.friction, contact.limit) if force is not None]


def _contact_cells(contact: ContactReport, most: float) -> tuple[str, ...]:
    """Return a contact's line; ``most``: the largest force of all contacts."""
    motion, forces = (contact.gap, contact.slip), (contact.normal, contact.friction, contact.limit)
    cells = [*((number, 1.0) for number in motion), *((number, most) for number in forces)]
    return (contact.name, contact.state, *("" if number is None else _shown(number, scale) for number, scale in cells))


def _shown(value: float, scale: float) -> str:
    """Return a number as text; rounding of numbers of the size ``scale`` is zero."""
    return "0" if abs(value) <= ROUNDING * scale else f"{value:.6g}"


# -- Report of a failed run: final state, candidates examined, residuals, remedy -----------------------------

MOST: Final = 6  # gaps and transitions listed
WEIGHTLESS: Final = 1e-12  # eigenvalue of the scaled mass matrix up to which a direction has no inertia
_GAP: Final = Tolerances().scaled().gap or 0.0


def describe_outcome(run: Run) -> tuple[str, ...]:
    """Return the outcome of a run as lines of text; of a failed run with state, candidates, residuals and remedy.

    ``run``: its last row is described.
    """
    rows, record = run.all, run.record
    outcome, layout = record.outcome, rows.model.layout
    head = f"{outcome.name} at t = {rows.t[-1]:.9g} s in mode '{rows.labels[-1]}'"
    if not outcome.failed:
        return (head, *record.tried)
    state = ", ".join(f"{name} = {value:.6g}" for name, value in zip(layout.x, rows.x[-1], strict=True))
    lines = [head, outcome.sentence, f"state: {state}", *_numbers(rows, record.transitions, outcome.code)]
    word = "by" if outcome.code in outcomes.AT_CHANGE_POINTS else "tried"
    lines += [f"{word}: {text}" for text in record.tried]
    remedy = outcome.remedy
    if outcome.code == Status.NON_FINITE:
        remedy = (
            "give the bodies that move with it a mass, or an inertia about their axis"
            if _massless_speeds(rows)
            else "look for a division by zero or a root of a negative number in what is named, or shorten the step"
        )
    if remedy:
        lines.append(f"remedy: {remedy}")
    return tuple(lines)


def _numbers(rows: Samples, transitions: Sequence[Transition], code: int) -> Iterator[str]:
    """Yield the residuals of an outcome."""
    if code == Status.CHATTERING:
        for item in transitions[-MOST:]:
            yield f"t = {item.time:.12g} s: {item.change}: {item.cause}"
        return
    if code == Status.NON_FINITE:
        yield from _non_finite(rows)
        massless = _massless_speeds(rows)
        yield from (f"no body that moves with {name} has mass or inertia" for name in massless)
        if massless and rows.model.automaton is not None:
            for what, where in massless_bodies(rows.model.automaton, rows.context[-1]).items():
                yield f"{what}{f' ({where})' if where.file else ''}"
        return
    if code == Status.TOO_MANY_STEPS:
        yield from _frequent_samples(rows)
    deep = (Status.PENETRATION, Status.PENETRATION_LATER)
    if code not in (*deep, Status.SINGULAR, Status.IMPACTS_DIVERGE, Status.PROJECTION_FAILED):
        return
    model = rows.model
    terms = model.terms.evaluate(rows.t[-1], rows.x[-1], rows.context[-1])
    if code in deep:
        yield from _gaps(model, terms["residual"], deepest=-_GAP)
    elif code == Status.PROJECTION_FAILED:
        residuals = zip(model.row_labels(), model.rows, terms["residual"], strict=True)
        for label, row, value in residuals:
            if row.role == "position" and abs(value) > _GAP:
                yield f"constraint {label}: residual {value:.6g}"
    elif code == Status.SINGULAR:
        yield from _massless_directions(model, terms["M"])
    else:
        speeds = terms["A"][:, : len(model.layout.u)] @ rows.u[-1] + terms["b"]
        for contact in model.contacts:
            if contact.contact_law.rigid and abs(terms["residual"][contact.normal_row]) <= _GAP:
                yield f"{contact.name}: approach velocity {-speeds[contact.normal_row]:.6g} m/s"


def _frequent_samples(rows: Samples) -> Iterator[str]:
    """Yield the controllers whose samples, each of which ends a step, are half of the steps of a run or more."""
    automaton = rows.model.automaton
    if automaton is None or not automaton.mechanism.controllers:
        return
    values = named_values(automaton.mechanism, rows.model.parameters.tolist())
    for name, count in sample_counts(automaton.mechanism, values, rows.t[-1] - rows.t[0]).items():
        if 2.0 * count >= np.count_nonzero(np.diff(rows.t)):
            where = automaton.mechanism.controllers[name].period.where
            yield f"controller {name}{f' ({where})' if where else ''}: sampled {count:.4g} times, where steps end"


def _non_finite(rows: Samples) -> Iterator[str]:
    """Yield the nonfinite quantities of the last row, each with its location in the model file.

    Inputs, else points, else constraints and contacts, else loads without a potential: each can make the later ones so.
    """
    model, layout, now = rows.model, rows.model.layout, (rows.t[-1], rows.x[-1], rows.context[-1])
    terms, contacts = model.terms.evaluate(*now), {contact.name for contact in model.contacts}
    owners = [f"{'contact' if row.owner in contacts else 'constraint'} {row.owner}" for row in model.rows]
    groups = [
        zip([f"input {name}" for name in layout.w], now[2][layout.w_slice], strict=True),
        zip(owners, np.column_stack([terms["residual"], terms["A"], terms["b"]]), strict=True),
        zip([f"load {name}" for name in model.loads], model.report.evaluate(*now)["load_powers"], strict=True),
    ]
    if model.scene is not None:
        points = [f"point {name}" for name in model.scene.points]
        groups.insert(1, zip(points, model.scene.geometry.evaluate(*now)["points"], strict=True))
    for group in groups:
        found = dict.fromkeys(label for label, value in group if not np.isfinite(value).all())
        for label in found:
            where = model.places.get(label)
            yield f"{label}{f' ({where})' if where else ''}: not finite in this state"
        if found:
            return


def _massless_speeds(rows: Samples) -> list[str]:
    """Return the speeds whose row of the unconstrained mass matrix, in the last row of the run, is zero."""
    names = rows.model.layout.u
    mass = rows.model.terms.evaluate(rows.t[-1], rows.x[-1], rows.context[-1])["M"][: len(names), : len(names)]
    return [name for name, row in zip(names, mass, strict=True) if not row.any()]


def _gaps(model: RunModel, residual: Floats, deepest: float) -> Iterator[str]:
    """Yield the gaps below ``deepest`` (m), the deepest first."""
    written = {} if model.automaton is None else model.automaton.mechanism.contacts
    for depth, name in depths(model.contacts, written, residual)[:MOST]:
        if depth > -deepest:
            yield f"{name}: penetration {depth:.6g} m"


def _massless_directions(model: RunModel, mass: Floats) -> Iterator[str]:
    """Yield the combinations of speeds along which the unconstrained mass matrix is singular."""
    names = model.layout.u
    mass = mass[: len(names), : len(names)]
    own = np.diagonal(mass)
    scale = 1.0 / np.sqrt(np.where(own > 0.0, own, 1.0))
    values, vectors = np.linalg.eigh(mass * np.outer(scale, scale))
    for value, vector in zip(values, vectors.T, strict=True):
        if value < WEIGHTLESS:
            part = np.abs(scale * vector)
            moving = [name for name, share in zip(names, part, strict=True) if share > 1e-6 * part.max()]
            yield f"mass matrix singular along {' and '.join(moving)} unless a contact constrains it"
