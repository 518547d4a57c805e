"""Loads: which keys go together, and a name for each."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from fsm_dyn.errors import ModelError
from fsm_dyn.spec.forms.base import Form, exactly_one, only_with
from fsm_dyn.spec.forms.loads import ImpulseForm, LoadForm
from fsm_dyn.spec.model import Load
from fsm_dyn.spec.yaml_tree import where_of

_COMPANIONS: dict[str, tuple[str, ...]] = {
    "force": ("at",),
    "torque": ("on", "reaction"),
    "gravity": ("on",),
    "spring": (),
    "damper": (),
    "torsion_spring": (),
    "law": ("coordinate", "between"),
}


def loads_of(forms: list[LoadForm]) -> tuple[Load, ...]:
    """Return the loads with unique names: the given one, or one made from what it acts on."""
    written = [form.name for form in forms if form.name is not None]
    for at, name in enumerate(written):
        if name in written[:at]:
            raise ModelError(f"two loads are called {str(name)!r}", where_of(name), remedy="rename one of them")
    taken = {str(name) for name in written}
    return tuple(_load(form, taken) for form in forms)


_OF_IMPULSES: dict[str, tuple[str, ...]] = {
    "linear": ("at",),
    "angular": ("on", "reaction"),
    "along": ("coordinate", "between"),
}


def impulses_of(forms: list[ImpulseForm], transition: str) -> tuple[Load, ...]:
    """Return the impulses of a transition as loads whose values are time integrals; ``transition``: its name."""
    found: list[Load] = []
    for form in forms:
        kind = exactly_one(form, tuple(_OF_IMPULSES))
        only_with(form, kind, _OF_IMPULSES[kind])
        name, where = f"{transition}_impulse_{len(found) + 1}", form.key(kind)
        if form.linear is not None:
            load = Load(name, "force", value=form.linear, at=_needed(form, kind, "at"), where=where)
        elif form.angular is not None:
            on = _needed(form, kind, "on")
            load = Load(name, "torque", value=form.angular, on=on, reaction=form.reaction, where=where)
        else:
            exactly_one(form, ("coordinate", "between"))
            load = Load(name, "law", value=form.along, coordinate=form.coordinate, between=form.between, where=where)
        found.append(load)
    return tuple(found)


def _load(form: LoadForm, taken: set[str]) -> Load:
    kind = exactly_one(form, tuple(_COMPANIONS))
    only_with(form, kind, (*_COMPANIONS[kind], "name"))
    load = _of_kind(form, kind)
    if form.name is None:
        name = _free_name(_described(load), taken)
        taken.add(name)
        load = replace(load, name=name)
    return load


def _of_kind(form: LoadForm, kind: str) -> Load:
    name, where = form.name or "", form.key(kind)
    if form.force is not None:
        return Load(name, "force", value=form.force, at=_needed(form, kind, "at"), where=where)
    if form.torque is not None:
        return Load(
            name, "torque", value=form.torque, on=_needed(form, kind, "on"), reaction=form.reaction, where=where
        )
    if form.gravity is not None:
        return Load(name, "gravity", value=form.gravity, on=form.on, where=where)
    if form.law is not None:
        exactly_one(form, ("coordinate", "between"))
        return Load(name, "law", value=form.law, coordinate=form.coordinate, between=form.between, where=where)
    if form.spring is not None:
        exactly_one(form.spring, ("coordinate", "between"))
        return Load(name, "spring", where=where, **_parts(form.spring))
    if form.damper is not None:
        exactly_one(form.damper, ("coordinate", "between"))
        return Load(name, "damper", where=where, **_parts(form.damper))
    if form.torsion_spring is not None:
        return Load(name, "torsion_spring", where=where, **_parts(form.torsion_spring))
    raise ModelError("a load has no content", form.where, allowed=", ".join(_COMPANIONS))


def _parts(form: Form) -> dict[str, Any]:
    return {key: getattr(form, key) for key in type(form).allowed_keys()}


def _needed(form: Form, kind: str, key: str) -> str:
    value: str | None = getattr(form, key)
    if value is None:
        raise ModelError(f"a {kind} lacks the key {key!r}", form.key(kind), remedy=_WHAT[key])
    return value


_WHAT = {"at": "name the point it acts at", "on": "name the body it acts on"}


def _described(load: Load) -> str:
    """Return words for what a load acts on: ``force_P1``, ``spring_P_Q``, ``gravity``."""
    parts = [load.at, load.on, load.reaction, *(load.between or ())]
    if load.coordinate is not None:
        parts.append("_".join(re.findall("[A-Za-z0-9]+", load.coordinate.text))[:20])
    return "_".join([load.kind, *(str(part) for part in parts if part)])


def _free_name(stem: str, taken: set[str]) -> str:
    if stem not in taken:
        return stem
    number = 2
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"
