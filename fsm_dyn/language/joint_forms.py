"""Forms of joints: one for each kind, so an editor knows the keys of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from fsm_dyn.core.errors import NOWHERE, Location, ModelError
from fsm_dyn.language.body_forms import Axes, CoordinateRange
from fsm_dyn.language.contact_forms import ComplianceForm, FrictionField
from fsm_dyn.language.form import Expression, Expressions, Flag, Form, Law, Reference, name
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

_AXIS = re.compile(r"\s*(-?)\s*([A-Za-z][A-Za-z0-9_]*)\.([xyz])\s*")
_CYCLE = "xyzxyz"


@dataclass(frozen=True, slots=True)
class AxisForm:
    """A unit vector of a frame, or its opposite."""

    frame: str
    letter: str
    sign: int = 1
    where: Location = NOWHERE

    def __str__(self) -> str:
        """Return it as an expression of the language."""
        return f"{'-' if self.sign < 0 else ''}{self.frame}.{self.letter}"

    @property
    def across(self) -> tuple[str, str]:
        """The frame's other two letters, in cyclic order."""
        at = _CYCLE.index(self.letter)
        return _CYCLE[at + 1], _CYCLE[at + 2]


def _axis(tree: Tree) -> AxisForm:
    found = _AXIS.fullmatch(tree.text) if isinstance(tree, Scalar) and isinstance(tree.value, str) else None
    if found is None:
        raise ModelError(
            "the axis of a joint is a unit vector of a frame",
            tree.where,
            found=describe(tree),
            allowed="such as B.z or -B.x",
            remedy="for another direction turn a frame into it: `S: {parent: B, rotate: {z: 30 deg}}`",
        )
    return AxisForm(LocatedStr(found[2], tree.where), found[3], -1 if found[1] else 1, tree.where)


def _one_or_two_axes(tree: Tree) -> tuple[AxisForm, ...]:
    if isinstance(tree, LocatedList):
        if len(tree) != 2:
            raise ModelError("one axis or two are wanted", tree.where, found=describe(tree), allowed="v, or [v, w]")
        return tuple(_axis(item) for item in tree)
    return (_axis(tree),)


def _one_or_two_names(tree: Tree) -> tuple[str, ...]:
    if isinstance(tree, LocatedList):
        if len(tree) != 2:
            raise ModelError("one point or two are wanted", tree.where, found=describe(tree), allowed="P, or [P, Q]")
        return tuple(name(item) for item in tree)
    return (name(tree),)


_AXIS_SCHEMA: dict[str, Any] = {"type": "string", "description": "a unit vector of a frame, such as B.z"}
_NAME: dict[str, Any] = {"type": "string"}


def _pairs(item: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item, "minItems": 2, "maxItems": 2}]})


OneAxis: TypeAlias = Annotated[AxisForm, PlainValidator(_axis), WithJsonSchema(_AXIS_SCHEMA)]
OneOrTwoAxes: TypeAlias = Annotated[tuple[AxisForm, ...], PlainValidator(_one_or_two_axes), _pairs(_AXIS_SCHEMA)]
OneOrTwoNames: TypeAlias = Annotated[tuple[str, ...], PlainValidator(_one_or_two_names), _pairs(_NAME)]


class PlayForm(Form):
    """A play, from one contact to the other, alone or as ``value`` of a mapping with the restitution of both."""

    value: Expression
    restitution: Expression | None = None
    restitution_law: Law = "newton"
    sound_frequency: Expression | None = None

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Return the schema of the mapping or of the value alone."""
        return {
            "anyOf": [{"type": ["string", "number"], "description": "expression, with units"}, handler(core_schema)]
        }


class BacklashForm(PlayForm):
    """Contacts at both ends of the motion of one coordinate."""

    what: ClassVar[str] = "a backlash"
    compliant: ComplianceForm | None = None


class ClearanceForm(PlayForm):
    """A contact of a pin with its hole; ``value``: difference of their diameters, ``radius``: of the pin."""

    what: ClassVar[str] = "a clearance"
    friction: FrictionField | None = None
    radius: Expression | None = None


def _with_value(tree: Tree) -> Tree:
    return LocatedMapping({LocatedStr("value", tree.where): tree}, tree.where) if isinstance(tree, Scalar) else tree


Backlash: TypeAlias = Annotated[BacklashForm, BeforeValidator(_with_value)]
Clearance: TypeAlias = Annotated[ClearanceForm, BeforeValidator(_with_value)]


class EndsForm(Form):
    """Keys of all joints: the joined frames."""

    parent: Reference = "N"
    child: Reference


class PlacedForm(EndsForm):
    """A joint at one point, with a new child in a tree; at two points it closes a loop."""

    at: OneOrTwoNames


class MovableForm(PlacedForm):
    """A joint with coordinates in a tree; ``rates: false`` leaves the speeds to ``speeds``."""

    rates: Flag = True


class RangedForm(MovableForm):
    """A joint with one coordinate, possibly with a range and a backlash."""

    range: CoordinateRange | None = None
    backlash: Backlash | None = None


class RubbingForm(RangedForm):
    """A joint with optional friction in proportion to its reaction."""

    friction: FrictionField | None = None


class TurningForm(RubbingForm):
    """A joint whose friction acts at a radius."""

    radius: Expression | None = None


class RevoluteForm(TurningForm):
    """A hinge about an axis; with ``friction`` a journal bearing of a radius."""

    what: ClassVar[str] = "a revolute joint"
    axis: OneOrTwoAxes
    clearance: Clearance | None = None


class PrismaticForm(RubbingForm):
    """A guide along an axis of the parent."""

    what: ClassVar[str] = "a prismatic joint"
    axis: OneAxis


class HelicalForm(TurningForm):
    """A screw along and about an axis of the parent, with an advance of ``lead`` per turn; its thread has a radius."""

    what: ClassVar[str] = "a helical joint"
    axis: OneAxis
    lead: Expression


class CylindricalForm(MovableForm):
    """A guide along an axis and a hinge about it."""

    what: ClassVar[str] = "a cylindrical joint"
    axis: OneOrTwoAxes


class UniversalForm(MovableForm):
    """Two hinges at right angles: the first axis is fixed in the parent, the second in the child."""

    what: ClassVar[str] = "a universal joint"
    axis: OneOrTwoAxes


class BallForm(MovableForm):
    """A ball in its socket; turned by Euler parameters, or by angles about body-fixed axes."""

    what: ClassVar[str] = "a ball joint"
    angles: Axes | None = None


class PlanarForm(MovableForm):
    """A body sliding and turning on a plane across ``axis``."""

    what: ClassVar[str] = "a planar joint"
    axis: OneOrTwoAxes


class WeldForm(PlacedForm):
    """No motion at all."""

    what: ClassVar[str] = "a weld"


class PinSliderForm(MovableForm):
    """A pin of the child in a slot of the parent along ``axis``, turning about ``pin``."""

    what: ClassVar[str] = "a pin-slider joint"
    axis: OneAxis
    pin: OneOrTwoAxes


class GearForm(EndsForm):
    """Two bodies with a fixed ratio of turns about a carrier: child about ``axis[1]`` to parent about ``axis[0]``."""

    what: ClassVar[str] = "a gear pair"
    carrier: Reference = "N"
    axis: OneOrTwoAxes
    ratio: Expression
    backlash: Backlash | None = None


class RollingForm(EndsForm):
    """No slip at a point: both bodies have one velocity there, along each of the vectors ``along``."""

    what: ClassVar[str] = "a rolling joint"
    at: Reference
    along: Expressions | None = None


class JointForm(Form):
    """A joint; the given key is its kind."""

    what: ClassVar[str] = "a joint"

    revolute: RevoluteForm | None = None
    prismatic: PrismaticForm | None = None
    helical: HelicalForm | None = None
    cylindrical: CylindricalForm | None = None
    universal: UniversalForm | None = None
    ball: BallForm | None = None
    planar: PlanarForm | None = None
    weld: WeldForm | None = None
    pin_slider: PinSliderForm | None = None
    gear: GearForm | None = None
    rolling: RollingForm | None = None


def both_axes(form: EndsForm, axes: tuple[AxisForm, ...]) -> tuple[AxisForm, AxisForm]:
    """Return the axes in parent and child; a single one means the same letter in both.

    Parameters
    ----------
    form : EndsForm
        The joint, for its location in messages.
    """
    first = axes[0]
    return first, axes[1] if len(axes) == 2 else AxisForm(form.child, first.letter, first.sign, first.where)
