"""Frames, loads and transitions from their forms: valid combinations of keys, names, defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.body_forms import DamperForm, FrameForm, ImpulseForm, LoadForm, SpringForm
from fsm_dyn.language.contact_forms import TransitionForm
from fsm_dyn.language.elements import (
    BodyFrame,
    DamperLoad,
    EulerFrame,
    ForceLoad,
    Frame,
    GravityGradientLoad,
    GravityLoad,
    LawLoad,
    Load,
    PointPair,
    SimpleFrame,
    SpaceFrame,
    SpringLoad,
    TorqueLoad,
    TorsionSpringLoad,
)
from fsm_dyn.language.expression_tree import Boolean, Compare, Node, Text, Unary
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.keyed import exactly_one, keys_of, only_with, with_mappings
from fsm_dyn.language.model import Body, Coordinate, TransitionSpec
from fsm_dyn.language.yaml import where_of

# -- Loads: valid combinations of keys, and a name for each --------------------------------------------------

_COMPANIONS: dict[str, tuple[str, ...]] = {
    "force": ("at",),
    "torque": ("on", "reaction"),
    "gravity": ("on",),
    "gravity_gradient": ("on", "at"),
    "spring": (),
    "damper": (),
    "torsion_spring": (),
    "law": ("coordinate", "between"),
}

#: Keys that go with every load.
_OF_ALL = tuple(word for word in keys_of(LoadForm) if word not in {*_COMPANIONS, *chain(*_COMPANIONS.values())})


def loads_of(forms: Sequence[LoadForm], bodies: Mapping[str, Body]) -> tuple[Load, ...]:
    """Return the loads with unique names: the given one, or one made from its point, frame or coordinate of action."""
    written = [form.name for form in forms if form.name is not None]
    for at, name in enumerate(written):
        if name in written[:at]:
            raise ModelError(f"two loads are called {str(name)!r}", where_of(name), remedy="rename one of them")
    taken = {str(name) for name in written}
    return tuple(_load(form, taken, bodies) for form in forms)


_OF_IMPULSES: dict[str, tuple[str, ...]] = {
    "linear": ("at",),
    "angular": ("on", "reaction"),
    "along": ("coordinate", "between"),
}


def impulses_of(forms: Sequence[ImpulseForm], transition: str) -> tuple[Load, ...]:
    """Return the impulses of a transition as loads whose values are time integrals; ``transition``: its name."""
    found: list[Load] = []
    for number, form in enumerate(forms, 1):
        kind = exactly_one(form, tuple(_OF_IMPULSES))
        only_with(form, kind, _OF_IMPULSES[kind])
        found += _acting(form, kind, f"{transition}_impulse_{number}", form.linear, form.angular, form.along)
    return tuple(found)


def _load(form: LoadForm, taken: set[str], bodies: Mapping[str, Body]) -> Load:
    kind = exactly_one(form, tuple(_COMPANIONS))
    if kind == "force" and form.on is not None:
        raise ModelError("a force acts at a point, not on a body", form.key("on"), found=form.on, allowed="at",
                         remedy="write `at: P`, with the body's centre or another point of it")  # fmt: skip
    only_with(form, kind, (*_COMPANIONS[kind], *_OF_ALL))
    load = replace(next(_of_kind(form, kind, bodies)), mappings=with_mappings(form))
    if form.name is None:
        name = free_name("_".join([load.kind, *map(str, load.acts_on)]), taken)
        taken.add(name)
        load = replace(load, name=name)
    return load


def _of_kind(form: LoadForm, kind: str, bodies: Mapping[str, Body]) -> Iterator[Load]:
    """Yield the one load of a form."""
    name, where = form.name or "", form.key(kind)
    yield from _acting(form, kind, name, form.force, form.torque, form.law)
    if form.gravity is not None:
        yield GravityLoad(name=name, value=form.gravity, on=form.on, where=where)
    if form.gravity_gradient is not None:
        on, of = _needed(form, kind, "on"), _needed(form, kind, "at")
        value = _gravity_gradient(form.gravity_gradient, bodies[on], of) if on in bodies else form.gravity_gradient
        yield GravityGradientLoad(name=name, value=value, on=on, strength=form.gravity_gradient, of=of, where=where)
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
    """Yield the load of a form with a force, a torque or a law, or the time integral of one."""
    where = form.key(kind)
    if force is not None:
        yield ForceLoad(name=name, value=force, at=_needed(form, kind, "at"), where=where)
    if torque is not None:
        yield TorqueLoad(name=name, value=torque, on=_needed(form, kind, "on"), reaction=form.reaction, where=where)
    if law is not None:
        yield LawLoad(name=name, value=law, along=_along(form), where=where)


def _gravity_gradient(strength: Text, body: Body, mass: str) -> Text:
    """Return the torque of a distant mass on a body about its centre, an expression."""
    if body.about not in (None, body.center):
        raise ModelError(
            "the torque of a distant mass needs the inertia about the mass centre", strength.where,
            found=f"about: {body.about}", remedy=f"give the inertia of {str(body.name)!r} without `about`",
        )  # fmt: skip
    place = f"pos({body.center}, {mass})"
    along = {axis: f"dot({place}, {body.frame}.{axis})" for axis in "xyz"}
    tensor = {frozenset(word): f"({text})" for word, text in body.inertia.items()}
    turned = {
        row: [f"{tensor[entry]}*{along[column]}" for column in "xyz" if (entry := frozenset((row, column))) in tensor]
        for row in "xyz"
    }
    parts = []
    for axis, second, third in ("xyz", "yzx", "zxy"):
        terms = [f"{along[second]}*{term}" for term in turned[third]]
        losses = [f" - {along[third]}*{term}" for term in turned[second]]
        if terms or losses:
            parts.append(f"(0{''.join(f' + {term}' for term in terms)}{''.join(losses)})*{body.frame}.{axis}")
    distance = f"dot({place}, {place})"
    return Text(f"3*({strength})/{distance}**2.5*({' + '.join(parts) or f'0*{body.frame}.x'})", strength.where)


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
    """Return a free name: the stem, or the stem with a number."""
    if stem not in taken:
        return stem
    number = 2
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


# -- Frames: one kind each, as many angles as axes -----------------------------------------------------------


def frame_of(name: str, form: FrameForm) -> Frame:
    """Return the frame `name`.

    Parameters
    ----------
    form : FrameForm
        Its entry.

    Raises
    ------
    ModelError
        Its keys are not compatible, or an axis is unknown.
    """
    kind = exactly_one(form, ("rotate", "body", "space", "euler_parameters"))
    where = where_of(name)
    if form.rotate is not None:
        only_with(form, kind, ("parent",))
        if len(form.rotate) != 1:
            raise ModelError(
                "`rotate` has one axis",
                form.key(kind),
                found=", ".join(form.rotate) or "none",
                allowed="{z: angle}",
                remedy="for several rotations write `body: zx, angles: [a, b]`",
            )
        ((axis, angle),) = form.rotate.items()
        if axis not in ("x", "y", "z"):
            raise ModelError(f"{str(axis)!r} is no axis", where_of(axis), found=axis, allowed="x, y, z")
        return SimpleFrame(name=name, parent=form.parent, rotations=((str(axis), angle),), where=where)
    if form.euler_parameters is not None:
        only_with(form, kind, ("parent",))
        return EulerFrame(name=name, parent=form.parent, euler=form.euler_parameters, where=where)
    return _sequence(name, form, kind)


def _sequence(name: str, form: FrameForm, kind: str) -> Frame:
    only_with(form, kind, ("parent", "angles"))
    axes = form.body or form.space or ""
    angles = form.angles or ()
    if len(angles) != len(axes):
        raise ModelError(
            f"frame {str(name)!r} has {len(axes)} axes and {len(angles)} angles",
            form.key("angles"),
            allowed=f"{len(axes)} angles for {str(axes)!r}",
        )
    rotations = tuple(zip(axes, angles, strict=True))
    made = SpaceFrame if form.body is None else BodyFrame
    return made(name=name, parent=form.parent, rotations=rotations, where=where_of(name))


# -- Transitions: valid combinations of keys, and a name for each ---------------------------------------------


def transitions_of(forms: Sequence[TransitionForm]) -> tuple[TransitionSpec, ...]:
    """Return the transitions with unique names."""
    taken: set[str] = set()
    found: list[TransitionSpec] = []
    for form in forms:
        transition = _transition(form, taken)
        if transition.name in taken:
            raise ModelError(
                f"two transitions are called {transition.name!r}", form.key("name"), remedy="rename one of them"
            )
        taken.add(transition.name)
        found.append(transition)
    return tuple(found)


def _transition(form: TransitionForm, taken: set[str]) -> TransitionSpec:
    exactly_one(form, ("when", "on"))
    if form.on is not None and "crossing" in form.written_keys():
        raise ModelError("'crossing' does not go with 'on'", form.key("crossing"), remedy="it belongs to `when`")
    if form.when is not None and "crossing" in form.written_keys() and _is_comparison(parse(form.when)):
        raise ModelError(
            "a comparison already has a direction of crossing",
            form.key("crossing"),
            found=f"when: {form.when}",
            remedy="remove `crossing`, or write the difference: `when: a - b`",
        )
    if form.reset and form.impulse:
        raise ModelError(
            "'impulse' does not go with 'reset'",
            form.key("impulse"),
            remedy="write two transitions: the impulse would depend on which came first",
        )
    if form.target is None and not (form.stop or form.reset or form.set or form.impulse):
        raise ModelError(
            "a transition without an effect",
            form.key(""),
            allowed="to, stop, reset, set, impulse",
            remedy="add `to: <mode>`, `reset`, `set`, `impulse` or `stop: true`",
        )
    name = form.name or _free_name(form, taken)
    return TransitionSpec(
        name,
        form.source,
        form.target,
        when=form.when,
        crossing=form.crossing,
        on=form.on,
        reset=form.reset or {},
        set=form.set or {},
        impulses=impulses_of(form.impulse or (), name),
        stop=form.stop,
        because=form.because,
        where=form.key(""),
    )


def _is_comparison(tree: Node) -> bool:
    return isinstance(tree, (Compare, Boolean)) or (isinstance(tree, Unary) and tree.op == "not")


def _free_name(form: TransitionForm, taken: set[str]) -> str:
    stem = "_".join(
        [
            "any" if form.source == "*" else str(form.source),
            *([] if form.on is None else [str(form.on[0]), form.on[1]]),
            *([] if form.target is None else ["to", str(form.target)]),
            *(["stops"] if form.stop else []),
        ]
    )
    number = 1
    while (name := stem if number == 1 else f"{stem}_{number}") in taken:
        number += 1
    return name


def range_transitions(coordinates: Mapping[str, Coordinate]) -> tuple[TransitionSpec, ...]:
    """Return the transitions that end a run at the end of a coordinate's range, one for each bound."""
    found = []
    for name, coordinate in coordinates.items():
        for bound, sign, side in zip(coordinate.range, "<>", ("lower", "upper"), strict=False):
            if bound is not None:
                when = Text(f"{name} {sign} {bound.text}", bound.where)
                because = f"{name} leaves its range at the {side} bound {bound.text}"
                found.append(
                    TransitionSpec(
                        f"{name}_leaves_range_{side}", "*", None, when=when, stop=True, because=because,
                        range_of=str(name), where=bound.where,
                    )
                )  # fmt: skip
    return tuple(found)
