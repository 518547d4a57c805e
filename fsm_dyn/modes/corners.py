"""Corners of planar shapes: indices of their contacts, and contacts that share a guard."""

from __future__ import annotations

from fsm_dyn.spec.contact import Contact, FeatureContact
from fsm_dyn.spec.shape import Feature, PolygonShape
from fsm_dyn.symbolic.terms import Terms

_POINTED = ("corner", "point", "vertex")  # parts that have a place, and no face


def ends_of_faces(terms: Terms) -> list[tuple[int, int, int]]:
    """Return :attr:`fsm_dyn.modes.unconstrained_system.ContactInfo.ends` of all contacts.

    Corners are numbered in the order in which they appear; an end in a concave corner, which belongs to both faces
    without being touched by itself, has a number of its own.
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
    """Return :attr:`fsm_dyn.modes.unconstrained_system.ContactInfo.outline` of all contacts."""
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
