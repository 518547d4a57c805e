"""Loads: which keys go together, and a name for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions.text import Text
from fsm_dyn.spec.forms.form import exactly_one, only_with
from fsm_dyn.spec.forms.loads import DamperForm, ImpulseForm, LoadForm, SpringForm
from fsm_dyn.spec.loads import (
    DamperLoad,
    ForceLoad,
    GravityLoad,
    LawLoad,
    Load,
    PointPair,
    SpringLoad,
    TorqueLoad,
    TorsionSpringLoad,
)
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
    for number, form in enumerate(forms, 1):
        kind = exactly_one(form, tuple(_OF_IMPULSES))
        only_with(form, kind, _OF_IMPULSES[kind])
        found += _acting(form, kind, f"{transition}_impulse_{number}", form.linear, form.angular, form.along)
    return tuple(found)


def _load(form: LoadForm, taken: set[str]) -> Load:
    kind = exactly_one(form, tuple(_COMPANIONS))
    only_with(form, kind, (*_COMPANIONS[kind], "name"))
    load = next(_of_kind(form, kind))
    if form.name is None:
        name = free_name("_".join([load.kind, *map(str, load.acts_on)]), taken)
        taken.add(name)
        load = replace(load, name=name)
    return load


def _of_kind(form: LoadForm, kind: str) -> Iterator[Load]:
    """Yield the one load of a form."""
    name, where = form.name or "", form.key(kind)
    yield from _acting(form, kind, name, form.force, form.torque, form.law)
    if form.gravity is not None:
        yield GravityLoad(name=name, value=form.gravity, on=form.on, where=where)
    if (spring := form.spring) is not None:
        yield SpringLoad(
            name=name, along=_along(spring), stiffness=spring.stiffness, free=spring.free, damping=spring.damping,
            where=where,
        )  # fmt: skip
    if form.damper is not None:
        yield DamperLoad(name=name, along=_along(form.damper), damping=form.damper.damping, where=where)
    if (twist := form.torsion_spring) is not None:
        yield TorsionSpringLoad(
            name=name, along=twist.coordinate, stiffness=twist.stiffness, free=twist.free, damping=twist.damping,
            where=where,
        )  # fmt: skip


def _acting(
    form: LoadForm | ImpulseForm, kind: str, name: str, force: Text | None, torque: Text | None, law: Text | None
) -> Iterator[Load]:
    """Yield the load of a form that gives a force, a torque or a law, or the time integral of one."""
    where = form.key(kind)
    if force is not None:
        yield ForceLoad(name=name, value=force, at=_needed(form, kind, "at"), where=where)
    if torque is not None:
        yield TorqueLoad(name=name, value=torque, on=_needed(form, kind, "on"), reaction=form.reaction, where=where)
    if law is not None:
        yield LawLoad(name=name, value=law, along=_along(form), where=where)


def _along(form: LoadForm | ImpulseForm | SpringForm | DamperForm) -> PointPair | Text:
    key: str = exactly_one(form, ("coordinate", "between"))
    found: PointPair | Text = getattr(form, key)
    return found


def _needed(form: LoadForm | ImpulseForm, kind: str, key: str) -> str:
    value: str | None = getattr(form, key)
    if value is None:
        raise ModelError(f"a {kind} lacks the key {key!r}", form.key(kind), remedy=_WHAT[key])
    return value


_WHAT = {"at": "name the point it acts at", "on": "name the body it acts on"}


def free_name(stem: str, taken: set[str]) -> str:
    """Return a name that is not taken: the stem, or the stem with a number."""
    if stem not in taken:
        return stem
    number = 2
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"
