"""The whole mechanism from the whole form, with the couplers of its ports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, TypeVar

from fsm_dyn.core.errors import ModelError, did_you_mean
from fsm_dyn.language.body_forms import ConstraintForm, DamperForm, FrameForm, ImpulseForm, LoadForm, SpringForm
from fsm_dyn.language.build_contacts import contact_entries, contacts_of, imposed_touching, shapes_of
from fsm_dyn.language.contact_forms import TransitionForm
from fsm_dyn.language.contacts import Contact
from fsm_dyn.language.dimensions import uses_units
from fsm_dyn.language.elements import (
    AccelerationConstraint,
    BodyFrame,
    ConstantSchedule,
    Constraint,
    CoupledPort,
    DamperLoad,
    EulerFrame,
    ForceLoad,
    Frame,
    GravityGradientLoad,
    GravityLoad,
    Input,
    LawLoad,
    Load,
    PointPair,
    PortAxis,
    PositionConstraint,
    Schedule,
    SimpleFrame,
    SpaceFrame,
    SpringLoad,
    TorqueLoad,
    TorsionSpringLoad,
    VelocityConstraint,
)
from fsm_dyn.language.expression_tree import Boolean, Compare, Node, Text, Unary
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.impositions import Imposition, imposed_inputs, with_hand, with_imposed
from fsm_dyn.language.interfaces import Port
from fsm_dyn.language.joint_expansion import refuse_whole_turns
from fsm_dyn.language.joint_kinds import joints_of
from fsm_dyn.language.keyed import exactly_one, keys_of, only_with, with_mappings
from fsm_dyn.language.mechanism_form import CONSTRAINTS, MechanismForm
from fsm_dyn.language.model import Body, Coordinate, Mechanism, ModelSettings, Parameter, TransitionSpec
from fsm_dyn.language.requirement import Requirement
from fsm_dyn.language.rewriting import (
    origins_from_centers,
    reattached,
    substituted,
    substituted_points,
    with_accelerations,
    with_kinks,
)
from fsm_dyn.language.shapes import Shape
from fsm_dyn.language.yaml import LocatedStr, where_of

# -- Frames, loads and transitions from their forms ------------------------------------------------------------


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

    ``form``: its entry. Raises ModelError: its keys are not compatible, or an axis is unknown.
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


# -- The whole mechanism ---------------------------------------------------------------------------------------


# -- Ports coupled to a device -------------------------------------------------------------------------------
#
# Virtual couplers as inputs, parameters, loads and outputs of the mechanism.
#
# The coupler is a spring and damper between the device and the port (Colgate, Stanley and Brown 1995, "Issues in the
# haptic display of tool use").  Every mode is derived with it, the integrator sees its stiffness, and the same model
# runs offline with the recorded inputs of a device.  Per axis of a port ``P``, the device at ``w``, the port at ``p``::
#
#     force = P_1_engagement (P_1_stiffness (w - p) + P_1_damping (w' - p'))
#
# acts on the model; the device gets the opposite. Along a body-fixed axis there is no such ``p``: the displacement
# along it is an additional coordinate, whose rate is the velocity of the port along the axis.
#
# A kinematic port has no coupler: a constraint makes its coordinate follow the input ``P_1_device``, and the device
# gets the multiplier (docs/theory.md, "Kinematic ports").

T = TypeVar("T")

ROTATION: Final = "rotation"
STIFFNESS: Final = 200.0  # N/m, default
DAMPING: Final = 2.0  # N s/m
TURNING: Final = 0.02  # share of these for a rotational axis, per rad

# suffixes of the name of an axis, for the parts of its coupler
SUFFIXES: Final = {
    "device": "_device", "rate": "_device_rate", "engagement": "_engagement", "applied_force": "_applied_force",
    "stiffness": "_stiffness", "damping": "_damping", "initial": "_initial", "force": "_force",
    "position": "_position", "velocity": "_velocity", "constraint": "_constraint", "displacement": "_displacement",
    "displacement_row": "_displacement_row",
}  # fmt: skip

_DIRECTION: Final = re.compile(r"([A-Za-z_]\w*)\s*\.\s*([xyz])")
_NEXT: Final = {"x": ("y", "z"), "y": ("z", "x"), "z": ("x", "y")}


def axes_of(mechanism: Mechanism, admittance: bool = False) -> tuple[CoupledPort, ...]:
    """Return the ports of a mechanism with their axes for coupling.

    ``mechanism``: with its joints as coordinates; ``admittance``: whether the force of the hand is an input, for
    devices with a force sensor that follow the motion of the port.
    """

    def axis(
        port: str, own: int | str, is_rotational: bool, coordinate: str = "", bandwidth: Text | None = None
    ) -> PortAxis:
        name = f"{port}_{own}"
        names = {role: name + suffix for role, suffix in SUFFIXES.items()}
        return PortAxis(
            port=port, name=name, is_rotational=is_rotational, prescribed_coordinate=coordinate, bandwidth=bandwidth,
            is_applied_force=admittance, **names,
        )  # fmt: skip

    def axes(port: Port) -> list[PortAxis]:
        if port.coordinate is not None:
            turns = mechanism.coordinates[port.coordinate].unit in ("rad", "deg")
            kinematic = None if admittance else port.kinematic
            return [axis(port.name, 1, turns, port.coordinate if kinematic is not None else "", kinematic)]
        found = [axis(port.name, i + 1, False) for i in range(len(port.axes))]
        return found if port.rotation is None else [*found, axis(port.name, ROTATION, True)]

    return tuple(CoupledPort(port.name, tuple(axes(port))) for port in mechanism.ports.values())


def coupled(written: Mechanism, expanded: Mechanism, admittance: bool, own_speeds: bool) -> Mechanism:
    """Return a mechanism with the couplers of its ports after its written entries.

    ``written``: mechanism without expanded joints. ``expanded``: mechanism with expanded joints. ``admittance``:
    whether the force of the hand is an input, for devices with a force sensor that follow the motion of the port.
    ``own_speeds``: whether the file declares speeds; otherwise every coordinate has a speed. Raises ModelError: there
    is no port; the body of a rotation has no frame; a name is taken.
    """
    if not written.ports:
        raise ModelError(
            f"'{written.name}' has no port to hold it by",
            written.where,
            remedy="give it one: ports: {handle: {point: P, body: B, axes: [N.x, N.y]}} or {handle: {coordinate: q}}",
        )
    ports = axes_of(expanded, admittance)
    couplers = _Couplers(written, expanded, own_speeds)
    for port, own in zip(written.ports.values(), ports, strict=True):
        couplers.couple(port, own.axes)
    return replace(
        written,
        coordinates=couplers.coordinates,
        speeds=couplers.speeds,
        inputs=couplers.inputs,
        parameters=couplers.parameters,
        constraints=couplers.constraints,
        outputs=couplers.outputs,
        loads=tuple(couplers.loads),
        initial=replace(written.initial, values=couplers.initial),
        coupled_ports=ports,
    )


class _Couplers:
    """The sections of a mechanism with added couplers."""

    def __init__(self, written: Mechanism, expanded: Mechanism, own_speeds: bool) -> None:
        self._expanded, self._own_speeds, self._units = expanded, own_speeds, uses_units(expanded)
        self.coordinates, self.speeds = dict(written.coordinates), dict(written.speeds)
        self.inputs, self.parameters = dict(written.inputs), dict(written.parameters)
        self.constraints, self.outputs = dict(written.constraints), dict(written.outputs)
        self.loads, self.initial = list(written.loads), dict(written.initial.values)

    def couple(self, port: Port, axes: tuple[PortAxis, ...]) -> None:
        """Add the couplers of one port."""
        if port.coordinate is not None:
            self._coordinate(port, axes[0], port.coordinate)
            return
        parts = []
        for axis, text in zip(axes, port.axes, strict=False):
            rate = f"dot(vel({port.point}), {text.text})"
            at = self._displacement(port, axis, rate) if self._moves(text) else f"dot(pos({port.point}), {text.text})"
            parts.append(f"({self._force(port, axis, at, rate, f'{axis.device} - {at}')})*({text.text})")
        force = Text(" + ".join(parts), port.where)
        self._load(ForceLoad(name="", value=force, at=port.point or "", where=port.where))
        if port.rotation is not None:
            self._rotation(port, axes[-1], port.rotation)

    def _coordinate(self, port: Port, axis: PortAxis, at: str) -> None:
        if not axis.prescribed_coordinate:
            force = self._force(port, axis, at, f"rate({at})", f"{axis.device} - {at}")
            self._load(LawLoad(name="", value=Text(force, port.where), along=Text(at, port.where), where=port.where))
            return
        zero = ("0 rad" if axis.is_rotational else "0 m") if self._units else "0"
        self._parameter(port, axis.initial, self.initial.get(at, Text(zero, port.where)))
        self._input(port, axis.device, "rad" if axis.is_rotational else "m")
        residual = Text(f"{at} - {axis.initial} - {axis.device}", port.where)
        self._constraint(port, PositionConstraint(name=axis.constraint, expression=residual, where=port.where))
        for name, text in self._expanded.speeds.items():
            if text.text == f"rate({at})":  # the device engages at rest
                self.initial.pop(name, None)
        self._outputs(port, axis.outputs[1:], (at, f"rate({at})"))

    def _moves(self, text: Text) -> bool:
        """Whether a direction is body-fixed."""
        return any(name in self._expanded.frames for name, _ in _DIRECTION.findall(text.text))

    def _displacement(self, port: Port, axis: PortAxis, rate: str) -> str:
        """Add the displacement along an axis as a coordinate, which makes the coupler conserve power."""
        name, length = axis.displacement, "rad" if axis.is_rotational else "m"
        self._put(
            self.coordinates, port, name, Coordinate(name=name, unit=length if self._units else "1", where=port.where)
        )
        if not self._own_speeds:
            self._put(self.speeds, port, f"{name}_dot", Text(f"rate({name})", port.where))
        row = Text(f"rate({name}) - {rate}", port.where)
        self._constraint(
            port,
            VelocityConstraint(
                name=axis.displacement_row, expression=row, kinematic=self._own_speeds, where=port.where
            ),
        )
        return name

    def _rotation(self, port: Port, axis: PortAxis, text: Text) -> None:
        """Couple the rotation of the port's body: about an axis of N by its angle, else by an added coordinate."""
        name, about = port.body or "", text.text.strip()
        body = self._expanded.bodies.get(name)
        if body is None or body.frame is None:
            raise ModelError(
                f"the rotation of port '{port.name}' cannot be held", port.where, found=f"'{name}' has no frame"
            )
        rate = f"dot(omega({name}), {text.text})"
        if about not in ("N.x", "N.y", "N.z"):
            at = self._displacement(port, axis, rate)
            torque = f"({self._force(port, axis, at, rate, f'{axis.device} - {at}')})*({text.text})"
        else:
            first, second = _NEXT[about[-1]]
            arm = f"{body.frame}.{first}"
            across, along = f"dot({arm}, N.{second})", f"dot({arm}, N.{first})"
            # the angle from the body to the device, between -pi and pi: no jump if the body's own angle wraps
            lead = (
                f"atan2({along}*sin({axis.device}) - {across}*cos({axis.device}), "
                f"{along}*cos({axis.device}) + {across}*sin({axis.device}))"
            )
            torque = f"({self._force(port, axis, f'atan2({across}, {along})', rate, lead)})*{text.text}"
        self._load(TorqueLoad(name="", value=Text(torque, port.where), on=name, where=port.where))

    def _force(self, port: Port, axis: PortAxis, at: str, rate: str, lead: str) -> str:
        """Declare inputs, parameters and outputs of one axis; return the force along it."""
        length, force = ("rad", "N*m") if axis.is_rotational else ("m", "N")
        if axis.is_applied_force:
            self._input(port, axis.applied_force, force)
            self._outputs(port, axis.outputs, (axis.applied_force, at, rate))
            return axis.applied_force
        self._input(port, axis.device, length)
        self._input(port, axis.rate, f"{length}/s")
        self._input(port, axis.engagement, "1")
        scale = TURNING if axis.is_rotational else 1.0
        own = (None, None) if axis.is_rotational and port.coordinate is None else (port.stiffness, port.damping)
        for name, given, value, unit in (
            (axis.stiffness, own[0], STIFFNESS * scale, f"{force}/{length}"),
            (axis.damping, own[1], DAMPING * scale, f"{force}*s/{length}"),
        ):
            usual = Text(f"{value} {unit}" if self._units else repr(value), port.where)
            self._parameter(port, name, usual if given is None else given)
        text = f"{axis.engagement}*({axis.stiffness}*({lead}) + {axis.damping}*({axis.rate} - {rate}))"
        self._outputs(port, axis.outputs, (text, at, rate))
        return text

    # -- added entries -----------------------------------------------------------------------------------------

    def _input(self, port: Port, name: str, unit: str) -> None:
        self._put(self.inputs, port, name, Input(name, unit if self._units else "1", where=port.where))

    def _parameter(self, port: Port, name: str, value: Text) -> None:
        self._put(self.parameters, port, name, Parameter(name, (value,), where=port.where))

    def _outputs(self, port: Port, names: tuple[str, ...], texts: tuple[str, ...]) -> None:
        for name, text in zip(names, texts, strict=True):
            self._put(self.outputs, port, name, Text(text, port.where))

    def _constraint(self, port: Port, row: Constraint) -> None:
        self._put(self.constraints, port, row.name, row)

    def _load(self, load: Load) -> None:
        taken = {other.name for other in self.loads}
        self.loads.append(replace(load, name=free_name("_".join([load.kind, *load.acts_on]), taken)))

    def _put(self, section: dict[str, T], port: Port, name: str, value: T) -> None:
        if name in section:
            raise ModelError(
                f"holding port '{port.name}' needs the name '{name}', which is taken",
                port.where,
                remedy="rename the port, or what has this name",
            )
        section[name] = value


# -- The whole mechanism from the whole form -----------------------------------------------------------------


def build(form: MechanismForm, default_name: str) -> Mechanism:
    """Return the mechanism of `form`, before the check of cross-references.

    ``default_name``: of a model without a name. Raises ModelError: keys contradict each other, or a required one is
    missing.
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
    shapes, imposed = shapes_of(form), _imposed(form)
    inputs = {**form.inputs, **imposed_inputs(imposed)}
    mechanism = Mechanism(
        name=form.name or default_name,
        parameters=form.parameters,
        coordinates=form.coordinates,
        frames=frames,
        points=form.points,
        bodies=form.bodies,
        speeds=dict(form.speeds) or _default_speeds(form.coordinates, frames.values()),
        constraints={name: _constraint(name, entry) for name, entry in form.constraints.items()},
        shapes=shapes,
        contacts=_contacts(form, shapes, imposed),
        inputs=_scheduled(inputs, form.schedule, form.parameters),
        scenarios=_scenarios(form, inputs),
        loads=loads_of(form.loads, form.bodies),
        modes=form.modes.modes,
        only_listed=form.modes.only_listed,
        memory=form.memory,
        controllers=form.controllers,
        transitions=transitions_of(form.transitions),
        numerics=form.numerics.values_given(),
        ports=form.ports,
        initial=form.initial,
        outputs=form.outputs,
        pins=form.pins,
        requirements=_requirements(form),
        names=form.names,
        phases=form.phases,
        view=form.view,
        variants=tuple(form.variants),
        where=form.key(""),
        **{attribute: getattr(form, attribute) for attribute, _ in keys_of(ModelSettings).values()},
    )
    if form.port_coupling != "none":
        expanded = _with_joints(mechanism, form) if form.joints else mechanism
        mechanism = coupled(mechanism, expanded, form.port_coupling == "admittance", bool(form.speeds))
    mechanism = with_accelerations(_with_joints(mechanism, form) if form.joints else mechanism)
    mechanism = with_kinks(with_hand(with_imposed(mechanism, imposed), form.imposable))
    ends = range_transitions(mechanism.coordinates)
    return replace(mechanism, transitions=(*mechanism.transitions, *ends)) if ends else mechanism


def _requirements(form: MechanismForm) -> dict[str, Requirement]:
    """Return the requirements of a file, after the limits of connections as such."""
    limits = {item.name: item for entry in form.pins.values() for item in entry.requirements}
    return {**limits, **form.requirements}


def _with_joints(mechanism: Mechanism, form: MechanismForm) -> Mechanism:
    """Return the mechanism with its expanded joints after its written entries.

    Raises ModelError: a joint cannot be expanded, or creates an existing name.
    """
    absolute = form.joint_coordinates != "relative"
    moving = (*mechanism.coordinates, *mechanism.inputs, "t")
    made = joints_of(form.joints, mechanism.frames, uses_units(mechanism), absolute, moving)
    if form.joint_coordinates == "centers":
        variable = (*moving, *made.relative)
        made.points |= origins_from_centers(mechanism, made.joints, made.points, variable)
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


def _contacts(
    form: MechanismForm, shapes: Mapping[str, Shape], imposed: Mapping[str, Imposition]
) -> dict[str, Contact]:
    found: dict[str, Contact] = {}
    groups: list[Sequence[Contact]] = [
        *(contacts_of(name, entry, shapes) for name, entry in contact_entries(form, shapes).items()),
        *(imposed_touching(form, entry, shapes) for entry in imposed.values() if entry.contact is not None),
    ]
    for contact in chain.from_iterable(groups):
        if contact.name in found:
            raise ModelError(f"contact {str(contact.name)!r} exists twice", contact.where, remedy="rename one of them")
        found[contact.name] = contact
    return found


def _imposed(form: MechanismForm) -> dict[str, Imposition]:
    """Return the constraints to impose, those of scenarios after those of the section.

    Raises ModelError: one has the name of an input, or of another one.
    """
    found = dict(form.imposed)
    for scenario in form.scenarios.values():
        for name, entry in scenario.get(CONSTRAINTS, {}).items():
            if name in found:
                raise ModelError(
                    f"the constraint {str(name)!r} is imposed twice", where_of(name),
                    remedy="rename it, or schedule the one of `imposed` by its name",
                )  # fmt: skip
            found[name] = replace(entry, at=None, until=None)
    for name in found:
        if name in form.inputs:
            raise ModelError(
                f"the constraint {str(name)!r} has the name of an input", where_of(name),
                remedy="rename it: it makes an input of the same name",
            )  # fmt: skip
    return found


def _scenarios(form: MechanismForm, inputs: Mapping[str, Input]) -> dict[str, Mapping[str, Schedule]]:
    found: dict[str, Mapping[str, Schedule]] = {}
    for scenario, entries in form.scenarios.items():
        schedules = {name: schedule for name, schedule in entries.items() if name != CONSTRAINTS}
        for name in schedules:
            _require_input(name, inputs, form.parameters)
        for name, entry in entries.get(CONSTRAINTS, {}).items():
            schedules[name] = entry.schedule or ConstantSchedule(value=Text("1", entry.where), where=entry.where)
        found[scenario] = schedules
    return found


def _require_input(name: str, inputs: Mapping[str, Input], parameters: Mapping[str, Parameter]) -> None:
    if name not in inputs:
        changed = f"it is a parameter: a variant changes it, `variants: {{other: {{parameters: {{{name}: ...}}}}}}`"
        raise ModelError(
            f"there is no input {str(name)!r} to schedule",
            where_of(name),
            found=name,
            allowed=", ".join(inputs) or "declare it under `inputs`",
            remedy=changed if name in parameters else did_you_mean(name, inputs),
        )


def _scheduled(
    inputs: Mapping[str, Input], schedules: Mapping[str, Schedule], parameters: Mapping[str, Parameter]
) -> dict[str, Input]:
    found = dict(inputs)
    for name, schedule in schedules.items():
        _require_input(name, found, parameters)
        if found[name].schedule is not None:
            raise ModelError(f"input {str(name)!r} is scheduled twice", where_of(name), remedy="remove one of them")
        found[name] = replace(found[name], schedule=schedule)
    return found
