"""The whole mechanism from the whole form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from fsm_dyn.errors import ModelError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.spec.build.absolute_coordinates import reattached, substituted, substituted_points
from fsm_dyn.spec.build.acceleration_constraints import with_accelerations
from fsm_dyn.spec.build.contacts import contacts_of
from fsm_dyn.spec.build.controllers import controllers_of
from fsm_dyn.spec.build.frames import frame_of
from fsm_dyn.spec.build.joints import joints_of
from fsm_dyn.spec.build.kinks import with_kinks
from fsm_dyn.spec.build.loads import loads_of
from fsm_dyn.spec.build.port_couplers import coupled
from fsm_dyn.spec.build.shape_pairs import contact_entries
from fsm_dyn.spec.build.shapes import shapes_of
from fsm_dyn.spec.build.transitions import port_of, range_transitions, transitions_of
from fsm_dyn.spec.build.whole_turns import refuse_whole_turns
from fsm_dyn.spec.checks.unit_usage import uses_units
from fsm_dyn.spec.constraint import AccelerationConstraint, Constraint, PositionConstraint, VelocityConstraint
from fsm_dyn.spec.forms.form import exactly_one, only_with
from fsm_dyn.spec.forms.geometry import BodyForm, ConstraintForm
from fsm_dyn.spec.forms.mechanism import MechanismForm
from fsm_dyn.spec.model import Body, Contact, Coordinate, Frame, Input, Mechanism, Point, Schedule
from fsm_dyn.spec.shape import Shape
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

T = TypeVar("T")


def build(form: MechanismForm, default_name: str) -> Mechanism:
    """Return the mechanism that `form` describes, before any cross-reference is checked.

    Parameters
    ----------
    default_name : str
        Of a model without a name.

    Raises
    ------
    ModelError
        Where keys contradict each other or what must be there is missing.
    """
    frames = {name: frame_of(name, entry) for name, entry in form.frames.items()}
    if not form.bodies:
        raise ModelError("the model has no bodies", form.key("bodies"), remedy="`ball: {center: P, mass: 1 kg}`")
    if not form.coordinates and not form.joints and not any(frame.euler_names for frame in frames.values()):
        raise ModelError(
            "the model has no coordinates",
            form.key("coordinates"),
            remedy="add a section such as `coordinates: {x: m, q: rad}`, or joints",
        )
    shapes = shapes_of(form)
    mechanism = Mechanism(
        name=form.name or default_name,
        summary=form.summary,
        source=form.source,
        parameters=form.parameters,
        coordinates=form.coordinates,
        frames=frames,
        points={name: Point(name, p.origin, p.at, where_of(name)) for name, p in form.points.items()},
        bodies={name: _body(name, body) for name, body in form.bodies.items()},
        speeds=dict(form.speeds) or _default_speeds(form.coordinates, frames.values()),
        constraints={name: _constraint(name, entry) for name, entry in form.constraints.items()},
        shapes=shapes,
        contacts=_contacts(form, shapes),
        inputs=_scheduled(form.inputs, form.schedule),
        scenarios=_scenarios(form),
        loads=loads_of(form.loads),
        modes=form.modes.modes,
        only_listed=form.modes.only_listed,
        memory=form.memory,
        controllers=controllers_of(form.controllers),
        transitions=transitions_of(form.transitions),
        impacts=form.impacts,
        on_inconsistent=form.on_inconsistent,
        on_nonunique=form.on_nonunique,
        numerics=form.numerics,
        ports={name: port_of(name, port) for name, port in form.ports.items()},
        initial=form.initial,
        outputs=form.outputs,
        requirements=form.requirements,
        view=form.view,
        variants=tuple(form.variants),
        where=form.where,
    )
    if form.port_coupling != "none":
        expanded = _with_joints(mechanism, form) if form.joints else mechanism
        mechanism = coupled(mechanism, expanded, form.port_coupling == "admittance", bool(form.speeds))
    mechanism = with_kinks(with_accelerations(_with_joints(mechanism, form) if form.joints else mechanism))
    ends = range_transitions(mechanism.coordinates)
    return replace(mechanism, transitions=(*mechanism.transitions, *ends)) if ends else mechanism


def _with_joints(mechanism: Mechanism, form: MechanismForm) -> Mechanism:
    """Return the mechanism with what its joints stand for after what is written by hand.

    Raises
    ------
    ModelError
        A joint cannot be what it is to be, or makes a name that exists.
    """
    absolute = form.joint_coordinates == "absolute"
    made = joints_of(form.joints, mechanism.frames, uses_units(mechanism), absolute)
    if absolute:
        refuse_whole_turns(mechanism, made.relative)
        points = substituted_points(mechanism.points, made.relative, made.points)
        mechanism = reattached(substituted(replace(mechanism, points=points), made.relative), made.joints)
    return replace(
        mechanism,
        joints=made.joints,
        coordinates=_joined(mechanism.coordinates, made.coordinates),
        frames=_joined(mechanism.frames, made.frames),
        points=_joined(mechanism.points, made.points),
        speeds=_joined(mechanism.speeds, made.speeds),
        constraints=_joined(mechanism.constraints, made.rows),
        contacts=_joined(mechanism.contacts, made.contacts),
    )


def _joined(written: Mapping[str, T], made: Mapping[str, T]) -> dict[str, T]:
    for name in made:
        if name in written:
            raise ModelError(
                f"a joint makes {str(name)!r}, which already exists", where_of(name), remedy="rename the joint"
            )
    return {**written, **made}


def _body(name: str, form: BodyForm) -> Body:
    if form.inertia is not None and form.frame is None:
        raise ModelError(
            f"body {str(name)!r} has an inertia but no frame",
            form.key("inertia"),
            remedy="add `frame: ...`; without one it is a particle",
        )
    entries = form.inertia.entries() if form.inertia is not None else {}
    about = form.inertia.about if form.inertia is not None else None
    return Body(name, form.center, form.mass, form.frame, entries, about, where_of(name))


def _default_speeds(coordinates: Mapping[str, Coordinate], frames: Iterable[Frame]) -> dict[str, Text]:
    for frame in frames:
        if frame.euler_names:
            raise ModelError(
                f"frame {str(frame.name)!r} has Euler parameters, so `speeds` must be given",
                frame.where,
                remedy='such as `w1: "dot(omega(B), B.x)"`',
            )
    return {LocatedStr(f"{name}_dot", c.where): Text(f"rate({name})", c.where) for name, c in coordinates.items()}


def _constraint(name: str, form: ConstraintForm) -> Constraint:
    kind = exactly_one(form, ("velocity", "position", "acceleration"))
    where = where_of(name)
    if form.acceleration is not None:
        only_with(form, kind, ("of",))
        if form.of is None:
            raise ModelError(
                f"constraint {str(name)!r} lacks the speed whose rate it states", form.key("acceleration"),
                remedy='add `of: "dot(vel(P), N.x)"`',
            )  # fmt: skip
        return AccelerationConstraint(name=name, expression=form.of, acceleration=form.acceleration, where=where)
    only_with(form, kind, ("kinematic",))
    if form.velocity is not None:
        return VelocityConstraint(name=name, expression=form.velocity, kinematic=form.kinematic, where=where)
    if form.position is None:
        raise ModelError(
            f"constraint {str(name)!r} has no content", where, allowed="velocity, position or acceleration"
        )
    if form.kinematic:
        raise ModelError(
            f"constraint {str(name)!r} is kinematic but on positions",
            form.key("kinematic"),
            remedy="only `velocity` rows can complete the speeds; remove `kinematic`",
        )
    return PositionConstraint(name=name, expression=form.position, where=where)


def _contacts(form: MechanismForm, shapes: Mapping[str, Shape]) -> dict[str, Contact]:
    found: dict[str, Contact] = {}
    for name, entry in contact_entries(form, shapes).items():
        for contact in contacts_of(name, entry, shapes):
            if contact.name in found:
                raise ModelError(
                    f"contact {str(contact.name)!r} exists twice", contact.where, remedy="rename one of them"
                )
            found[contact.name] = contact
    return found


def _scenarios(form: MechanismForm) -> dict[str, Mapping[str, Schedule]]:
    for schedules in form.scenarios.values():
        for name in schedules:
            _require_input(name, form.inputs)
    return dict(form.scenarios)


def _require_input(name: str, inputs: Mapping[str, Input]) -> None:
    if name not in inputs:
        raise ModelError(
            f"there is no input {str(name)!r} to schedule",
            where_of(name),
            found=name,
            allowed=", ".join(inputs) or "declare it under `inputs`",
            remedy=did_you_mean(name, inputs),
        )


def _scheduled(inputs: Mapping[str, Input], schedules: Mapping[str, Schedule]) -> dict[str, Input]:
    found = dict(inputs)
    for name, schedule in schedules.items():
        _require_input(name, found)
        if found[name].schedule is not None:
            raise ModelError(f"input {str(name)!r} is scheduled twice", where_of(name), remedy="remove one of them")
        found[name] = replace(found[name], schedule=schedule)
    return found
