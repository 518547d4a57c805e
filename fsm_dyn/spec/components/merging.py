"""A model and its components as one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fsm_dyn.errors import Location, ModelError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.spec.build.acceleration_constraints import made_names
from fsm_dyn.spec.build.frames import frame_of
from fsm_dyn.spec.build.joint_expansion import JointExpansion
from fsm_dyn.spec.build.joints import joints_of
from fsm_dyn.spec.build.shape_pairs import with_pairs_written_out
from fsm_dyn.spec.components.lookup import MOST, Origin, inlined, load_component
from fsm_dyn.spec.components.prefixing import FRAME, ORIGIN, Renaming
from fsm_dyn.spec.forms.composition import PlaceForm, UseForm
from fsm_dyn.spec.forms.mechanism import MechanismForm, form_of
from fsm_dyn.spec.forms.parameter_tolerances import SIGNS
from fsm_dyn.spec.frame import EulerFrame
from fsm_dyn.spec.yaml_tree import LocatedStr, Tree

# Sections whose entries are those of the model followed by those of its components.
_SECTIONS = (
    *("parameters", "coordinates", "frames", "points", "bodies", "constraints", "shapes", "contacts"),
    *("inputs", "schedule", "memory", "controllers", "outputs", "view", "joints"),
)
# Sections of a component that declare names; `modes` and `ports` stay behind.
_DECLARING = (
    *("parameters", "coordinates", "frames", "points", "bodies", "speeds", "constraints", "shapes", "contacts"),
    *("inputs", "memory", "controllers", "outputs"),
)


def merge_components(tree: Tree, origin: Origin) -> tuple[MechanismForm, Tree]:
    """Return a model with its components joined to it, and its tree with the components written out.

    Raises
    ------
    ModelError
        A component cannot be found or does not fit; the place is that of the component's own file where the mistake
        is there.
    """
    return _joined(tree, origin, [0])


def _joined(tree: Tree, origin: Origin, count: list[int]) -> tuple[MechanismForm, Tree]:
    form = form_of(tree)
    for name, use in form.use.items():
        count[0] += 1
        if count[0] > MOST:
            raise ModelError("too many components", use.where, allowed=f"{MOST} in all")
        component_tree, place = load_component(name, use, origin)
        component, component_tree = _joined(component_tree, place, count)
        tree = inlined(tree, name, component_tree)
        form = _with_component(form, name, use, component)
    return form, tree


def _with_component(form: MechanismForm, name: str, use: UseForm, component: MechanismForm) -> MechanismForm:
    component = with_pairs_written_out(component)
    frame, point = _attachment(form, use)
    names = {str(own): f"{name}_{own}" for own in declared(component)}
    renaming = Renaming({**names, FRAME: frame, ORIGIN: point})
    _check_transitions(component)
    update: dict[str, Any] = {}
    for section in _SECTIONS:
        own, theirs = getattr(form, section), renaming.apply(getattr(component, section))
        if section == "parameters":
            theirs = _given(theirs, name, use)
        taken = next((key for key in theirs if key in own), None)
        if taken is not None:
            raise ModelError(f"component {name!r} brings {str(taken)!r}, which already exists", use.where)
        update[section] = {**own, **theirs}
    update["speeds"] = _speeds(form, component, renaming)
    # the gravity of the whole model acts on the bodies of its components
    loads = [load for load in component.loads if load.gravity is None or load.on is not None]
    update["loads"] = [*form.loads, *renaming.apply(loads)]
    update["transitions"] = [*form.transitions, *renaming.apply(list(component.transitions))]
    values = {**renaming.apply(component.initial.values), **form.initial.values}
    guess = {**renaming.apply(component.initial.guess), **form.initial.guess}
    update["initial"] = replace(
        form.initial, values=values, guess={key: text for key, text in guess.items() if key not in values}
    )
    return form.model_copy(update=update)


def declared(form: MechanismForm) -> list[str]:
    """Return every name that a form declares, derived ones included."""
    names: list[str] = [name for section in _DECLARING for name in getattr(form, section)]
    for controller in form.controllers.values():
        names += [*controller.inputs, *controller.memory, *controller.outputs]
    names += [str(load.name) for load in form.loads if load.name]
    names += [str(transition.name) for transition in form.transitions if transition.name]
    for frame in form.frames.values():
        names += [f"{frame.euler_parameters}{i}" for i in ("", *range(4))] if frame.euler_parameters else []
    made = _made(form)
    for section in (made.joints, made.coordinates, made.frames, made.points, made.speeds, made.rows, made.contacts):
        names += [str(name) for name in section]
    for turned in made.frames.values():
        names += [turned.euler, *turned.euler_names] if isinstance(turned, EulerFrame) else []
    for name, row in form.constraints.items():
        names += made_names(name) if row.acceleration is not None else ()
    if not form.speeds:
        names += [f"{coordinate}_dot" for coordinate in form.coordinates]
    return names


def _made(form: MechanismForm) -> JointExpansion:
    """What the joints of a form stand for."""
    return joints_of(form.joints, {name: frame_of(name, frame) for name, frame in form.frames.items()}, False)


def _attachment(form: MechanismForm, use: UseForm) -> tuple[str, str]:
    """The frame and the point that stand for N and O of a component."""
    if isinstance(use.attach, PlaceForm):
        place, made = use.attach, _made(form)
        for kind, name, known in (
            ("frame", place.frame, [FRAME, *form.frames, *made.frames]),
            ("point", place.point, [ORIGIN, *form.points, *made.points]),
        ):
            if name not in known:
                raise ModelError(
                    f"there is no {kind} {str(name)!r}",
                    place.key(kind),
                    found=name,
                    allowed=", ".join(known),
                    remedy=did_you_mean(name, known),
                )
        return place.frame, place.point
    if use.attach == FRAME:
        return FRAME, ORIGIN
    body = form.bodies.get(use.attach)
    if body is None or body.frame is None:
        raise ModelError(
            f"there is no body {str(use.attach)!r} with a frame to attach to",
            use.key("attach"),
            found=use.attach,
            allowed=", ".join(name for name, item in form.bodies.items() if item.frame) or "no body has a frame",
            remedy=did_you_mean(use.attach, list(form.bodies)) or "or write attach: {frame: B, point: P}",
        )
    return body.frame, body.center


def _given(parameters: Mapping[str, Any], name: str, use: UseForm) -> dict[str, Any]:
    changed = dict(parameters)
    for word, values in use.values.items():
        key = f"{name}_{word}"
        if key not in changed:
            own = [str(item).removeprefix(f"{name}_") for item in parameters]
            raise ModelError(
                f"component {name!r} has no parameter {str(word)!r}",
                _place_of(word, use),
                found=word,
                allowed=", ".join(own) or "none",
                remedy=did_you_mean(word, own),
            )
        if any(sign in text.text for text in values for sign in SIGNS):
            raise ModelError(
                "a value given to a component has no tolerance",
                _place_of(word, use),
                remedy="the component's own remains: give the value alone",
            )
        changed[key] = replace(changed[key], values=values, where=_place_of(word, use))
    return changed


def _place_of(word: str, use: UseForm) -> Location:
    return word.where if isinstance(word, LocatedStr) else use.where


def _speeds(form: MechanismForm, component: MechanismForm, renaming: Renaming) -> dict[str, Text]:
    """Speeds of both; one without speeds gets the default speeds of its coordinates."""
    if not form.speeds and not component.speeds:
        return {}
    own = dict(form.speeds) or _rates(form)
    return {**own, **renaming.apply(dict(component.speeds) or _rates(component))}


def _rates(form: MechanismForm) -> dict[str, Text]:
    return {LocatedStr(f"{name}_dot", c.where): Text(f"rate({name})", c.where) for name, c in form.coordinates.items()}


def _check_transitions(component: MechanismForm) -> None:
    for transition in component.transitions:
        if transition.source != "*" or transition.target is not None:
            key = "from" if transition.source != "*" else "to"
            raise ModelError(
                "a transition of a component names a mode, and the modes are those of the whole model",
                transition.key(key),
                allowed='from: "*"',
                remedy="write this transition in the model that uses the component",
            )
