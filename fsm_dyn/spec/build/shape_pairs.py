"""Contacts between all of several shapes: one for each pair that can touch and is not rigidly connected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations, product

from fsm_dyn.errors import Location, ModelError
from fsm_dyn.spec.build.feature_pairs import can_touch, feature_list
from fsm_dyn.spec.build.shapes import shapes_of
from fsm_dyn.spec.forms.contacts import ContactForm
from fsm_dyn.spec.forms.mechanism import MechanismForm
from fsm_dyn.spec.shape import Shape
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

_SOLIDS = ("box", "sphere", "disk", "curve", "circle", "polygon")


def contact_entries(form: MechanismForm, shapes: Mapping[str, Shape]) -> dict[str, ContactForm]:
    """Return the entries of ``contacts``, those between all of several shapes written out.

    A pair is named after its shapes.  One that another entry lists is left to that entry.

    Raises
    ------
    ModelError
        No two of the shapes can touch, two entries name the same pair, or two solids would pass through each other,
        because contacts between their kinds are unknown.
    """
    listed = {frozenset(entry.pair) for entry in form.contacts.values() if entry.pair is not None}
    entries: dict[str, ContactForm] = {}
    for name, entry in form.contacts.items():
        if entry.between is None or entry.pair is not None:
            written = {name: entry}
        else:
            groups = entry.between or tuple((shape,) for shape in shapes)
            pairs = _pairs(form, groups, shapes, entry.key("between"))
            if not pairs:
                raise ModelError(f"no two shapes of contact {str(name)!r} can touch", entry.key("between"))
            written = {
                LocatedStr("_".join(pair), where_of(name)): entry.model_copy(
                    update={"between": tuple((shape,) for shape in pair)}
                )
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
    if all(entry.between is None or entry.pair is not None for entry in form.contacts.values()):
        return form
    return form.model_copy(update={"contacts": contact_entries(form, shapes_of(form))})


def _pairs(
    form: MechanismForm, groups: tuple[tuple[str, ...], ...], shapes: Mapping[str, Shape], where: Location
) -> list[tuple[str, str]]:
    """Return the pairs of shapes of different groups that move against each other and can touch."""
    names = dict.fromkeys(name for group in groups for name in group)
    features = {name: feature_list(name, shapes) for name in names}
    places = {name: (shapes[name].frame, _anchor(form, shapes[name])) for name in names}
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for one, other in combinations(groups, 2):
        for a, b in product(one, other):
            if places[a] == places[b] or frozenset((a, b)) in pairs:
                continue
            if any(can_touch(first, second, shapes) for first in features[a] for second in features[b]):
                pairs[frozenset((a, b))] = a, b
            elif _is_solid(shapes[a]) and _is_solid(shapes[b]) and shapes[a].spatial == shapes[b].spatial:
                raise ModelError(
                    f"the {shapes[a].kind} {a!r} and the {shapes[b].kind} {b!r} would pass through each other",
                    where,
                    allowed="shapes of kinds between which there are contacts",
                    remedy="give groups of shapes, [[...], [...]], that keep the two apart, or list the pairs",
                )
    return list(pairs.values())


def _is_solid(shape: Shape) -> bool:
    """Whether a shape is the outline of a body from outside, which nothing may enter."""
    if shape.kind == "circle" and all(feature.part == "corner" for feature in shape.features()):
        return False  # a point
    return shape.kind in _SOLIDS and not getattr(shape, "inside", False)


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
