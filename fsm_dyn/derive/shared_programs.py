"""Programs and tables common to all modes, from the derived terms; corners of planar shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsm_dyn.derive.elimination import solve_symmetric
from fsm_dyn.derive.terms import ContactTerms, Terms, TransitionTerms, TreeTerms
from fsm_dyn.derive.unconstrained_system import ContactInfo, RowInfo, Tree, TreePattern, UserTransitionInfo
from fsm_dyn.language.contacts import Contact, FeatureContact, SurfaceContact
from fsm_dyn.language.model import TransitionSpec
from fsm_dyn.language.shapes import Feature, PolygonShape
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.program import Program
from fsm_dyn.runtime.abi import ConditionKind

# -- Corners of planar shapes: indices of their contacts, and contacts with a common guard -------------------

_POINTED = ("corner", "point", "vertex")  # parts with a place and without a face


def ends_of_faces(terms: Terms) -> list[tuple[int, int, int]]:
    """Return :attr:`fsm_dyn.derive.unconstrained_system.ContactInfo.ends` of all contacts.

    Corners are numbered in order of appearance; an end in a concave corner, never touched alone, has a separate number
    for each face.
    """
    numbers: dict[tuple[str, bool, int, int, int], int] = {}

    def number(feature: Feature, index: int) -> int:
        shape = terms.mechanism.shapes[feature.shape] if feature.part == "face" else None
        concave = isinstance(shape, PolygonShape) and index in shape.concave
        own = feature.index if concave else -1
        return numbers.setdefault((feature.shape, feature.part == "point", index, own, feature.copy), len(numbers))

    found = []
    for contact in terms.contacts:
        pair = _corner_and_face(contact.spec)
        if pair is None:
            found.append((-1, -1, -1))
            continue
        corner, face = pair
        one = number(corner, corner.index)
        if contact.margin_slope is None:
            found.append((one, -1, -1))
            continue
        start, end = face.index, (face.index + 1) % max(terms.mechanism.shapes[face.shape].straight_faces, 2)
        ahead, behind = (start, end) if contact.starts_ahead else (end, start)
        found.append((one, number(face, ahead), number(face, behind)))
    return found


def outlines(terms: Terms) -> list[int]:
    """Return :attr:`fsm_dyn.derive.unconstrained_system.ContactInfo.outline` of all contacts."""
    first: dict[tuple[str, Feature, str, int], int] = {}
    found = []
    for index, contact in enumerate(terms.contacts):
        pair = _corner_and_face(contact.spec)
        shape = None if pair is None else terms.mechanism.shapes[pair[1].shape]
        convex = isinstance(shape, PolygonShape) and not shape.inside and not shape.concave
        if pair is None or not convex:
            found.append(-1)
            continue
        corner, face = pair
        found.append(first.setdefault((contact.spec.entry, corner, face.shape, face.copy), index))
    return found


def _corner_and_face(contact: Contact) -> tuple[Feature, Feature] | None:
    """Return the two features of a contact between a corner, or a point, and a straight face; None for others."""
    if not isinstance(contact, FeatureContact):
        return None
    first, second = contact.features
    if second.part == "face" and first.part in _POINTED:
        return first, second
    if first.part == "face" and second.part in _POINTED:
        return second, first
    return None


# -- Programs and tables -------------------------------------------------------------------------------------
#
# Common to all modes, made from the derived terms.


@dataclass(frozen=True)
class SharedPrograms:
    """The common data of all modes of a model."""

    rows: tuple[RowInfo, ...]
    contacts: tuple[ContactInfo, ...]
    user_transitions: tuple[UserTransitionInfo, ...]
    terms: Program
    report: Program
    geometry: Program
    resets: tuple[Program | None, ...]
    pattern: TreePattern | None
    sample: Program | None


def build_shared_programs(terms: Terms) -> SharedPrograms:
    """Turn the derived terms into programs."""
    pattern, entries = (None, []) if terms.tree is None else _sparse(terms.tree).taken_apart()
    return SharedPrograms(
        rows=tuple(RowInfo(row.name, row.role, row.contact, row.residual is not None) for row in terms.rows),
        contacts=tuple(
            _contact(contact, ends, outline)
            for contact, ends, outline in zip(terms.contacts, ends_of_faces(terms), outlines(terms), strict=True)
        ),
        user_transitions=tuple(
            UserTransitionInfo(
                describe(item.spec, item.condition), index, item.crossing, item.guard is not None, item.condition
            )
            for index, item in enumerate(terms.transitions)
        ),
        terms=_terms_program(terms, entries),
        report=terms.program(
            {
                "kinetic_energy": terms.kinetic_energy,
                "potential_energy": terms.potential_energy,
                "load_powers": _array(terms.load_powers.values(), (len(terms.load_powers),)),
                "outputs": _array(terms.outputs.values(), (len(terms.outputs),)),
                "restoring": _array(
                    [terms.graph.zero if c.restoring is None else c.restoring for c in terms.contacts],
                    (len(terms.contacts),),
                ),
                "stored": _array(
                    [terms.graph.zero if c.stored is None else c.stored for c in terms.contacts],
                    (len(terms.contacts),),
                ),
            }
        ),
        geometry=terms.program(
            {
                "points": _array([x for p in terms.points.values() for x in p], (len(terms.points), 3)),
                "frames": _array(
                    [x for f in terms.frames.values() for row in f for x in row], (len(terms.frames), 3, 3)
                ),
                "measure": _array([f.measure for f in terms.followings], (len(terms.followings),)),
                "slope": _array([f.slope for f in terms.followings], (len(terms.followings),)),
                "bend": _array([f.bend for f in terms.followings], (len(terms.followings),)),
            }
        ),
        resets=tuple(_reset_program(terms, item) for item in terms.transitions),
        pattern=pattern,
        sample=None if terms.sample is None else _sample_program(terms, terms.sample),
    )


def _sparse(terms: TreeTerms) -> Tree:
    return Tree(terms.n, terms.definitions, terms.quadratic, tuple((row.form, row.gamma) for row in terms.rows))


def describe(transition: TransitionSpec, condition: ConditionKind) -> str:
    """The condition of a user-defined transition as text."""
    if transition.on is not None:
        return f"{transition.on[0]} {transition.on[1]}"
    text = transition.when.text if transition.when is not None else transition.name
    return f"{text} {transition.crossing}" if condition is ConditionKind.CROSSES else text


def _contact(contact: ContactTerms, ends: tuple[int, int, int], outline: int) -> ContactInfo:
    return ContactInfo(
        contact.name,
        contact.spec.kind,
        contact.normal_row,
        contact.tangent_row,
        contact.states,
        gated=contact.closes_if is not None,
        sticks_always=contact.infinite_friction,
        bounded_face=contact.reach is not None,
        bilateral=contact.spec.bilateral,
        poisson=isinstance(contact.spec, SurfaceContact) and contact.spec.restitution_law == "poisson",
        in_space=contact.in_space,
        lossy=contact.firm is not None,
        ends=ends,
        outline=outline,
        load_rows=contact.load_rows,
        whole_circle=contact.whole_circle,
    )


def _terms_program(terms: Terms, entries: Sequence[Node]) -> Program:
    n, n_rows, count = terms.n, len(terms.rows), len(terms.contacts)
    one, zero = terms.graph.one, terms.graph.zero
    contacts, rows = terms.contacts, terms.rows
    tree = {"tree": _array(entries, (len(entries),))} if entries else {}
    return terms.program(
        {
            "q_dot": _array(terms.q_dot, (terms.n_q,)),
            "W": _array([x for row in terms.W for x in row], (terms.n_q, n)),
            "M": _array([x for row in terms.M for x in row], (n, n)),
            "f": _array(terms.f, (n,)),
            "A": _array([x for row in rows for x in row.A], (n_rows, n)),
            "b": _array([row.b for row in rows], (n_rows,)),
            "gamma": _array([row.gamma for row in rows], (n_rows,)),
            "residual": _array([zero if row.residual is None else row.residual for row in rows], (n_rows,)),
            "static": _array([contact.static for contact in contacts], (count,)),
            "kinetic": _array([contact.kinetic for contact in contacts], (count,)),
            "restitution": _array([contact.restitution for contact in contacts], (count,)),
            "tangential_restitution": _array([contact.tangential_restitution for contact in contacts], (count,)),
            "closes_if": _array([one if c.closes_if is None else c.closes_if for c in contacts], (count,)),
            "elastic": _array([zero if c.elastic is None else c.elastic for c in contacts], (count,)),
            "energies": _array([terms.kinetic_energy, terms.potential_energy], (2,)),
            "reach": _array([one if c.reach is None else c.reach for c in contacts], (count,)),
            "reach_rate": _array([zero if c.reach_rate is None else c.reach_rate for c in contacts], (count,)),
            "margin_slope": _array([zero if c.margin_slope is None else c.margin_slope for c in contacts], (count,)),
            "aspect": _array([one if c.aspect is None else c.aspect for c in contacts], (count,)),
            "firm": _array([one if c.firm is None else c.firm for c in contacts], (count,)),
            "when": _array(
                [zero if t.guard is None else t.guard for t in terms.transitions], (len(terms.transitions),)
            ),
        }
        | tree
    )


def _reset_program(terms: Terms, item: TransitionTerms) -> Program | None:
    """All of q, u and memory after a user-defined transition; values without an assignment are copied.

    Impulses change the speeds as without constraints; the plastic impact after a reset restores the constraints and
    contacts.
    """
    if not item.reset and not item.set and not item.impulse:
        return None
    names = (*terms.layout.q, *terms.layout.u, *terms.layout.memory)
    new = {**item.reset, **item.set}
    if item.impulse:
        n = terms.n_u
        change, _ = solve_symmetric([list(row[:n]) for row in terms.M[:n]], item.impulse[:n])
        new |= {u: terms.graph.symbol(u) + more for u, more in zip(terms.layout.u, change, strict=True)}
    return terms.program({"after": _array([new.get(name, terms.graph.symbol(name)) for name in names], (len(names),))})


def _sample_program(terms: Terms, sample: Mapping[str, Node]) -> Program:
    """All memory after a sample of controllers; other values are copied."""
    names = terms.layout.memory
    return terms.program(
        {"after": _array([sample.get(name, terms.graph.symbol(name)) for name in names], (len(names),))}
    )


def _array(entries: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    flat: list[Node] = list(entries)
    array = np.empty(len(flat), dtype=object)
    array[:] = flat
    return array.reshape(shape)
