"""Transitions and ports: which keys go together, and a name for each transition."""

from __future__ import annotations

from collections.abc import Mapping

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Boolean, Compare, Node, Text, Unary, parse
from fsm_dyn.spec.build.loads import impulses_of
from fsm_dyn.spec.forms.form import exactly_one, only_with
from fsm_dyn.spec.forms.hybrid import PortForm, TransitionForm
from fsm_dyn.spec.model import Coordinate, Port, TransitionSpec
from fsm_dyn.spec.yaml_tree import where_of


def transitions_of(forms: list[TransitionForm]) -> tuple[TransitionSpec, ...]:
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
    if form.on is not None and "crossing" in form.given():
        raise ModelError("'crossing' does not go with 'on'", form.key("crossing"), remedy="it belongs to `when`")
    if form.when is not None and "crossing" in form.given() and _is_comparison(parse(form.when)):
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
            form.where,
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
        impulses=impulses_of(form.impulse or [], name),
        stop=form.stop,
        because=form.because,
        where=form.where,
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
    """Return the transitions that end a run where a coordinate leaves its range, one for each bound."""
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


def port_of(name: str, form: PortForm) -> Port:
    """Return the port `name`."""
    kind = exactly_one(form, ("point", "coordinate"))
    own = ("kinematic",) if kind == "coordinate" else ("body", "axes", "rotation")
    only_with(form, kind, (*own, "stiffness", "damping", "press", "step"))
    if kind == "point":
        for key in ("body", "axes"):
            if key not in form.given():
                raise ModelError(
                    f"port {str(name)!r} lacks the key {key!r}", form.where, allowed="point, body, axes, rotation"
                )
    axes = form.axes or ()
    if len(axes) > 3:
        raise ModelError(f"port {str(name)!r} has {len(axes)} axes", form.key("axes"), allowed="1 to 3")
    _check_coupler(name, form)
    return Port(
        name, form.point, form.body, axes, form.rotation, form.coordinate, form.kinematic, form.stiffness, form.damping,
        form.press or (), form.step, where_of(name),
    )  # fmt: skip


def _check_coupler(name: str, form: PortForm) -> None:
    """Refuse what a port without a coupler has no use for, and a `press` that is not from one place to another."""
    if form.kinematic is not None:
        for key in ("stiffness", "damping", "press"):
            if key in form.given():
                raise ModelError(
                    f"port {str(name)!r} is kinematic: no coupler holds it", form.key(key), found=key,
                    remedy=f"remove {key}, or kinematic",
                )  # fmt: skip
    if form.press is not None and len(form.press) != 2:
        raise ModelError(
            f"`press` of port {str(name)!r} has {len(form.press)} places", form.key("press"),
            allowed="2: where a hand is that has let up, and one that presses, from where the model begins",
        )  # fmt: skip
