"""Contacts between all of several shapes: one for each pair that can touch and is not rigidly connected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations

from fsm_dyn.errors import ModelError
from fsm_dyn.spec.build.feature_pairs import can_touch, feature_list
from fsm_dyn.spec.build.shapes import shapes_of
from fsm_dyn.spec.forms.contacts import ContactForm
from fsm_dyn.spec.forms.mechanism import MechanismForm
from fsm_dyn.spec.shape import Shape
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of


def contact_entries(form: MechanismForm, shapes: Mapping[str, Shape]) -> dict[str, ContactForm]:
    """Return the entries of ``contacts``, those between all of several shapes written out.

    A pair is named after its shapes.  One that another entry lists is left to that entry.

    Raises
    ------
    ModelError
        No two of the shapes can touch, or two entries name the same pair.
    """
    listed = {frozenset(e.between) for e in form.contacts.values() if e.between is not None and len(e.between) == 2}
    entries: dict[str, ContactForm] = {}
    for name, entry in form.contacts.items():
        if entry.between is None or len(entry.between) == 2:
            written = {name: entry}
        else:
            pairs = _pairs(form, entry.between or tuple(shapes), shapes)
            if not pairs:
                raise ModelError(f"no two shapes of contact {str(name)!r} can touch", entry.key("between"))
            written = {
                LocatedStr("_".join(pair), where_of(name)): entry.model_copy(update={"between": pair})
                for pair in pairs
                if frozenset(pair) not in listed
            }
        twice = next((key for key in written if key in entries), None)
        if twice is not None:
            raise ModelError(f"contact {str(twice)!r} exists twice", where_of(twice), remedy="rename one of them")
        entries.update(written)
    return entries


def with_pairs_written_out(form: MechanismForm) -> MechanismForm:
    """Return the form of a component with the contacts of its shapes, before those of other components join them."""
    if all(entry.between is None or len(entry.between) == 2 for entry in form.contacts.values()):
        return form
    return form.model_copy(update={"contacts": contact_entries(form, shapes_of(form))})


def _pairs(form: MechanismForm, names: tuple[str, ...], shapes: Mapping[str, Shape]) -> list[tuple[str, str]]:
    features = {name: feature_list(name, shapes) for name in names}
    places = {name: (shapes[name].frame, _anchor(form, shapes[name])) for name in names}
    return [
        (a, b)
        for a, b in combinations(names, 2)
        if a != b and places[a] != places[b]
        and any(can_touch(first, second, shapes) for first in features[a] for second in features[b])
    ]  # fmt: skip


def _anchor(form: MechanismForm, shape: Shape) -> str:
    """Return the first of the points a shape's origin is reached from that does not move in the shape's frame."""
    moving = {*form.coordinates, *form.inputs, *form.memory, "t", "N", *form.frames, *form.points} - {shape.frame}
    point = shape.origin
    while point in form.points:
        place = form.points[point]
        # names, and not the letters of axes after a dot
        if moving.intersection(re.findall(r"(?<![\w.])[A-Za-z_]\w*", place.at.text)):
            break
        point = place.origin
    return point
