"""Report of a failed run: final state, candidates examined, residuals, remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from fsm_dyn.automaton.initial_values import massless_bodies
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.record import RunModel, RunRecord
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.transitions import Transition
from fsm_dyn.runtime.abi import Status
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation.tolerances import Tolerances
from fsm_dyn.spec.controller_memory import sample_counts
from fsm_dyn.spec.values import named_values

MOST: Final = 6  # gaps and transitions listed
WEIGHTLESS: Final = 1e-12  # eigenvalue of the scaled mass matrix up to which a direction has no inertia
_GAP: Final = Tolerances().scaled().gap or 0.0


def describe_outcome(rows: Samples, transitions: Sequence[Transition], record: RunRecord) -> tuple[str, ...]:
    """Return the outcome of a run as lines of text; of a failed run with state, candidates, residuals and remedy.

    Parameters
    ----------
    rows : Samples
        Of the run; the last is described.
    transitions : Sequence[Transition]
        Of the run, in order.
    record : RunRecord
        The run as recorded.
    """
    outcome, layout = record.outcome, rows.model.layout
    head = f"{outcome.name} at t = {rows.t[-1]:.9g} s in mode '{rows.labels[-1]}'"
    if not outcome.failed:
        return (head, *record.tried)
    state = ", ".join(f"{name} = {value:.6g}" for name, value in zip(layout.x, rows.x[-1], strict=True))
    lines = [head, outcome.sentence, f"state: {state}", *_numbers(rows, transitions, outcome.code)]
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
    """Yield the residuals that belong to an outcome."""
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
    """Yield what is not finite in the last row, each with its location in the model file.

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


def _gaps(model: RunModel, residual: FloatArray, deepest: float) -> Iterator[str]:
    """Yield the gaps below ``deepest`` (m), the deepest first."""
    found = [(residual[contact.normal_row], contact.name) for contact in model.contacts if contact.contact_law.rigid]
    for gap, name in sorted(found)[:MOST]:
        if gap < deepest:
            yield f"{name}: penetration {-gap:.6g} m"


def _massless_directions(model: RunModel, mass: FloatArray) -> Iterator[str]:
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
