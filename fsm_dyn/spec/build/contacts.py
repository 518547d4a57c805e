"""Contacts: which keys go together; a joint stop becomes one gap contact per limit, shapes one per pair of features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text, is_name
from fsm_dyn.spec.build.feature_pairs import feature_list, touching
from fsm_dyn.spec.contact import Compliance, Contact, FeatureContact, GapContact, LawContact
from fsm_dyn.spec.forms.contacts import ENTRIES, ComplianceForm, ContactForm, Friction, JointStopForm
from fsm_dyn.spec.forms.form import Form, exactly_one, only_with
from fsm_dyn.spec.shape import Feature, Shape
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

KINDS = ("gap", "between", "point", "joint_stop", *ENTRIES)
RESTITUTION = ("restitution", "restitution_law")  # of rigid contacts


def contacts_of(name: str, form: ContactForm, shapes: Mapping[str, Shape]) -> list[Contact]:
    """Return the contacts that the entry `name` stands for."""
    kind = exactly_one(form, KINDS)
    if kind in ENTRIES:
        only_with(form, kind, ())
        return [_by_entry(name, form, kind)]
    surfaces = _surfaces(name, form)
    if form.joint_stop is not None:
        only_with(form, kind, _properties(form))
        return [replace(contact, **surfaces) for contact in _stops(name, form, form.joint_stop)]
    friction = form.friction or Friction()
    found = [_by_gap(name, form)] if kind == "gap" else _by_shapes(name, form, kind, shapes)
    return [
        replace(
            contact, static=friction.static, kinetic=friction.kinetic, infinite_friction=friction.infinite, **surfaces
        )
        for contact in found
    ]


def _surfaces(name: str, form: ContactForm) -> dict[str, Any]:
    """Return the properties of a pair of surfaces, without gap and friction."""
    compliant = form.compliant
    return {
        "compliance": None if compliant is None else compliance_of(f"contact {str(name)!r}", form, compliant),
        "restitution": form.restitution,
        "restitution_law": form.restitution_law,
        "closes_if": form.closes_if,
        "sound_frequency": form.sound_frequency,
    }


def compliance_of(what: str, form: Form, compliant: ComplianceForm) -> Compliance:
    """Return the compliance of what `form` describes.

    Raises
    ------
    ModelError
        It has a restitution too.
    """
    for key in RESTITUTION:
        if key in form.given():
            raise ModelError(
                f"{what} is compliant and has the key {form.spelling(key)!r}",
                form.key(key),
                remedy="remove it; energy is lost by `dissipation` under `compliant`",
            )
    return Compliance(compliant.stiffness, compliant.exponent, compliant.dissipation)


def _properties(form: ContactForm) -> tuple[str, ...]:
    always = ("compliant", "closes_if", "sound_frequency")
    return always if form.compliant is not None else (*RESTITUTION, *always)


def _by_entry(name: str, form: ContactForm, key: str) -> Contact:
    """Return the contact with the law that has all it needs in the entry `key`."""
    entry = form.entry(key)
    if entry is None:
        raise ModelError(f"contact {name!r} has no content", where_of(name), allowed=", ".join(KINDS))
    given = set(entry.given())
    laws = [law for law in ENTRIES[key] if law.entry and {option.key for option in law.entry.needs} <= given]
    law = max(laws, key=lambda law: len(law.entry.needs) if law.entry else 0)
    assert law.entry is not None
    if law.entry.one_of:
        exactly_one(entry, tuple(option.key for option in law.entry.one_of))
    fields = {option.field: getattr(entry, option.key) for option in law.entry.options if option.key in given}
    return LawContact(name=name, law=law.name, where=where_of(name), **fields)


def _by_gap(name: str, form: ContactForm) -> GapContact:
    extras = ("bilateral",) if form.bilateral else _properties(form)
    only_with(form, "gap", ("slip", "friction", *extras))
    if form.friction is not None and form.slip is None:
        raise ModelError(
            f"contact {name!r} has friction but no slip",
            form.key("friction"),
            remedy='add the sliding speed: `slip: "dot(vel(P), N.x)"`, or remove `friction`',
        )
    if form.slip is not None and form.friction is None:
        raise ModelError(
            f"contact {name!r} has a slip but no friction",
            form.key("slip"),
            remedy="add `friction: {static: ..., kinetic: ...}`, or remove `slip`",
        )
    slip, across = (*(form.slip or ()), None, None)[:2]
    if across is not None and form.bilateral:
        raise ModelError(
            f"contact {str(name)!r} is bilateral and slips in two directions",
            form.key("slip"),
            remedy="write two contacts that face each other instead of `bilateral`",
        )
    return GapContact(name=name, gap=form.gap, slip=slip, across=across, bilateral=form.bilateral, where=where_of(name))


def _by_shapes(name: str, form: ContactForm, kind: str, shapes: Mapping[str, Shape]) -> list[FeatureContact]:
    if form.pair is not None:
        only_with(form, kind, ("friction", *_properties(form)))
        if form.pair[0] == form.pair[1]:
            raise ModelError("a contact of a shape with itself", form.key(kind), found=form.pair[1])
        first, second = (feature_list(shape, shapes) for shape in form.pair)
    else:
        only_with(form, kind, ("on", "friction", *_properties(form)))
        if form.point is None or form.on is None:
            raise ModelError(f"contact {str(name)!r} lacks the shape that its point touches", form.key(kind),
                             remedy="add `on: shape`")  # fmt: skip
        first, second = [Feature(form.point, "point")], feature_list(form.on, shapes)
    return touching(name, first, second, shapes)


def _stops(name: str, form: ContactForm, stop: JointStopForm) -> list[GapContact]:
    where, q, found = where_of(name), _bracketed(stop.coordinate), []
    if stop.lower is not None:
        gap = Text(f"{q} - {_bracketed(stop.lower)}", stop.lower.where)
        found.append(GapContact(name=name, gap=gap, limit="lower", where=where))
    if stop.upper is not None:
        gap = Text(f"{_bracketed(stop.upper)} - {q}", stop.upper.where)
        found.append(GapContact(name=name, gap=gap, limit="upper", where=where))
    if not found:
        raise ModelError(f"joint stop {name!r} has no limit", form.key("joint_stop"), allowed="lower, upper or both")
    return two_limits(name, found) if len(found) == 2 else found


def two_limits(stop: str, contacts: list[GapContact]) -> list[GapContact]:
    """Return the contacts of both limits of a stop under names of their own."""
    return [replace(c, name=LocatedStr(f"{stop}_{c.limit}", c.where), stop=stop) for c in contacts]


def _bracketed(text: Text) -> str:
    return text.text if is_name(text.text) else f"({text})"
