"""Contacts: which keys go together; a joint stop becomes one gap contact per limit, shapes one per pair of features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text, is_name
from fsm_dyn.spec.build.feature_pairs import feature_list, touching
from fsm_dyn.spec.forms.base import Form, exactly_one, only_with
from fsm_dyn.spec.forms.contacts import ENTRIES, ComplianceForm, ContactForm, Friction, JointStopForm
from fsm_dyn.spec.model import Compliance, Contact
from fsm_dyn.spec.shape import Feature, Shape
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

KINDS = ("gap", "between", "point", "joint_stop", *ENTRIES)
RESTITUTION = ("restitution", "restitution_law")  # of rigid contacts


def contacts_of(name: str, form: ContactForm, shapes: Mapping[str, Shape]) -> list[Contact]:
    """Return the contacts that the entry `name` stands for."""
    kind = exactly_one(form, KINDS)
    found = _stiff(name, form, kind, shapes) if form.compliant is None else _yielding(name, form, kind, shapes)
    return (
        [replace(contact, sound_frequency=form.sound_frequency) for contact in found]
        if form.sound_frequency is not None
        else found
    )


def _yielding(name: str, form: ContactForm, kind: str, shapes: Mapping[str, Shape]) -> list[Contact]:
    """Return compliant contacts."""
    assert form.compliant is not None
    compliance = compliance_of(f"contact {str(name)!r}", form, form.compliant)
    return [replace(c, kind="compliant", compliance=compliance) for c in _stiff(name, form, kind, shapes)]


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


def _stiff(name: str, form: ContactForm, kind: str, shapes: Mapping[str, Shape]) -> list[Contact]:
    """Return the contacts as if they were rigid."""
    if kind == "gap":
        return [_by_gap(name, form)]
    if kind in ("between", "point"):
        return _by_shapes(name, form, kind, shapes)
    if form.joint_stop is not None:
        only_with(form, kind, _properties(form))
        return _stops(name, form, form.joint_stop)
    only_with(form, kind, ())
    return [_by_entry(name, form, kind)]


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
    return Contact(name, law.name, where=where_of(name), **fields)


def _by_gap(name: str, form: ContactForm) -> Contact:
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
    friction = form.friction or Friction()
    slip, across = (*(form.slip or ()), None, None)[:2]
    if across is not None and form.bilateral:
        raise ModelError(
            f"contact {str(name)!r} is bilateral and slips in two directions",
            form.key("slip"),
            remedy="write two contacts that face each other instead of `bilateral`",
        )
    return Contact(
        name,
        "gap",
        gap=form.gap,
        slip=slip,
        across=across,
        static=friction.static,
        kinetic=friction.kinetic,
        restitution=form.restitution,
        infinite_friction=friction.infinite,
        restitution_law=form.restitution_law,
        closes_if=form.closes_if,
        bilateral=form.bilateral,
        where=where_of(name),
    )


def _by_shapes(name: str, form: ContactForm, kind: str, shapes: Mapping[str, Shape]) -> list[Contact]:
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
    friction = form.friction or Friction()
    return [
        replace(
            contact,
            static=friction.static,
            kinetic=friction.kinetic,
            infinite_friction=friction.infinite,
            restitution=form.restitution,
            restitution_law=form.restitution_law,
            closes_if=form.closes_if,
        )
        for contact in touching(name, first, second, shapes)
    ]


def _stops(name: str, form: ContactForm, stop: JointStopForm) -> list[Contact]:
    limits = [(side, text) for side, text in (("lower", stop.lower), ("upper", stop.upper)) if text is not None]
    if not limits:
        raise ModelError(f"joint stop {name!r} has no limit", form.key("joint_stop"), allowed="lower, upper or both")
    found: list[Contact] = []
    for side, limit in limits:
        q, bound = _bracketed(stop.coordinate), _bracketed(limit)
        found.append(
            Contact(
                name if len(limits) == 1 else LocatedStr(f"{name}_{side}", where_of(name)),
                "gap",
                gap=Text(f"{q} - {bound}" if side == "lower" else f"{bound} - {q}", limit.where),
                restitution=form.restitution,
                restitution_law=form.restitution_law,
                closes_if=form.closes_if,
                where=where_of(name),
            )
        )
    return found


def _bracketed(text: Text) -> str:
    return text.text if is_name(text.text) else f"({text})"
