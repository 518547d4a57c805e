"""Forms of joints: one for each kind, so an editor knows the keys of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal, TypeVar

from fsm_dyn.core.errors import NOWHERE, Location, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.body_forms import AXES
from fsm_dyn.language.contact_forms import FRICTION, Friction
from fsm_dyn.language.contacts import RESTITUTION_LAW, Compliance
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.form import as_section, name
from fsm_dyn.language.keyed import KeyedMapping, in_place_of, mapping
from fsm_dyn.language.keys import (
    FLAG,
    NAME,
    VALUE,
    Schema,
    expression,
    expressions,
    key,
    leaf,
    list_of,
    part,
    reference,
)
from fsm_dyn.language.model import RANGE, read_range
from fsm_dyn.language.yaml import LocatedList, LocatedStr, Scalar, Tree, describe

EndsT = TypeVar("EndsT", bound="EndsForm")

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


_AXIS_SCHEMA: Final[Schema] = {"type": "string", "description": "a unit vector of a frame, such as B.z"}


def _one_or_two(item: Schema) -> Schema:
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 2, "maxItems": 2}]}


AXIS: Final = leaf(_axis, _AXIS_SCHEMA, "unit vector of a frame", example="B.z")
ONE_OR_TWO_AXES: Final = leaf(_one_or_two_axes, _one_or_two(_AXIS_SCHEMA), "unit vector, or one of each", example="B.z")


def _ranges(tree: Tree) -> dict[LocatedStr, tuple[Text | None, Text | None]]:
    """Return ranges by the coordinates of a joint, of which the joint's own name is left out."""
    items = as_section(tree, "the ranges of a joint", "range: {turn: [-90 deg, 90 deg]}")
    return {word: read_range(item) for word, item in items.items()}


RANGES: Final = leaf(
    _ranges, {"type": "object", "additionalProperties": list_of(VALUE, 2, 2)}, "`[lower, upper]` by coordinate",
    holds="values", example={"turn": ["-90 deg", "90 deg"]},
)  # fmt: skip
POINTS: Final = leaf(_one_or_two_names, _one_or_two(NAME), "point, or `[P, Q]`", example="P")


@mapping
class PlayForm(KeyedMapping):
    """A play, from one contact to the other, alone or as ``value`` of a mapping with the restitution of both."""

    short: ClassVar[str] = "value"

    value: Text = expression("the whole play", example="0.5 deg")
    restitution: Text | None = expression("of both contacts", None, usual="0", example="0.2")
    restitution_law: Literal["newton", "poisson"] = key(RESTITUTION_LAW, "of the impacts", "newton")
    sound_frequency: Text | None = expression("of the tone of impacts", None, example="220 Hz")


@mapping
class BacklashForm(PlayForm):
    """Contacts at both ends of the motion of one coordinate; the value may stand alone."""

    what: ClassVar[str] = "a backlash"
    example: ClassVar[str] = "backlash: {value: 0.5 deg, restitution: 0.2}"

    compliance: Compliance | None = part(Compliance, "of both contacts, in place of restitution", name="compliant")


@mapping
class ClearanceForm(PlayForm):
    """A contact of a pin with its hole; ``value``: difference of their diameters; it may stand alone."""

    what: ClassVar[str] = "a clearance"
    example: ClassVar[str] = "clearance: {value: 20 um, friction: 0.1, radius: 4 mm}"

    friction: Friction | None = key(FRICTION, "of the pin in the hole, with `radius`", None)
    radius: Text | None = expression("of the pin", None, example="4 mm")


@mapping
class EndsForm(KeyedMapping):
    """Keys of all joints: the joined frames."""

    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(parent="base base_frame body1 from", child="follower follower_frame body2 body to",
                      at="point position location pos origin", range="limits", friction="mu"),
        **dict.fromkeys(("stiffness", "damping"), "a load has it: {spring: {coordinate: hinge, stiffness: 2 N*m}}"),
        **dict.fromkeys(("lower", "upper", "stop"), "a contact: {joint_stop: {coordinate: hinge, upper: 90 deg}}"),
    }  # fmt: skip

    parent: str = reference("a frame", "frame on one side", "N")
    child: str = reference("a frame", "frame on the other side, made by a joint at one point", example="arm")


@mapping
class PlacedForm(EndsForm):
    """A joint at one point, with a new child in a tree; at two points it closes a loop."""

    at: tuple[str, ...] = key(POINTS, "point of the parent; two, of parent and child, close a loop")


@mapping
class MovableForm(PlacedForm):
    """A joint with coordinates in a tree."""

    rates: bool = key(FLAG, "`false` leaves its speeds to `speeds`", True)


@mapping
class RangedForm(MovableForm):
    """A joint with one coordinate, possibly with a range and a backlash."""

    range: tuple[Text | None, Text | None] | None = key(RANGE, "stated bounds of the coordinate", None)
    backlash: BacklashForm | None = part(BacklashForm, "play of the coordinate")


@mapping
class SeveralForm(MovableForm):
    """A joint with several coordinates, possibly with ranges."""

    range: Mapping[str, tuple[Text | None, Text | None]] | None = key(
        RANGES, "stated bounds of `slide`, `turn`, `x`, `y`, `z`, `1`, `2`, `3`", None
    )


@mapping
class RubbingForm(RangedForm):
    """A joint with optional friction in proportion to its reaction."""

    friction: Friction | None = key(FRICTION, "in proportion to the reaction", None)


@mapping
class TurningForm(RubbingForm):
    """A joint whose friction acts at a radius."""

    radius: Text | None = expression("at which the friction acts", None, example="5 mm")


@mapping
class RevoluteForm(TurningForm):
    """A hinge about an axis; with ``friction`` a journal bearing of a radius."""

    what: ClassVar[str] = "a revolute joint"
    example: ClassVar[str] = "revolute: {child: B, at: [O, P], axis: N.z}"

    axis: tuple[AxisForm, ...] = key(ONE_OR_TWO_AXES, "of the hinge; two: in parent and child")
    clearance: ClearanceForm | None = part(ClearanceForm, "play of the pin in its hole")


@mapping
class PrismaticForm(RubbingForm):
    """A guide along an axis of the parent."""

    what: ClassVar[str] = "a prismatic joint"
    example: ClassVar[str] = "prismatic: {child: B, at: [O, P], axis: N.x}"

    axis: AxisForm = key(AXIS, "of the parent, along which the child slides")


@mapping
class HelicalForm(TurningForm):
    """A screw along and about an axis of the parent, with an advance of ``lead`` per turn; its thread has a radius."""

    what: ClassVar[str] = "a helical joint"
    example: ClassVar[str] = "helical: {child: B, at: P, axis: N.z, lead: 4 mm, radius: 8 mm, friction: 0.2}"

    axis: AxisForm = key(AXIS, "of the parent")
    lead: Text = expression("advance in a turn, right-handed", example="4 mm")


@mapping
class CylindricalForm(SeveralForm):
    """A guide along an axis and a hinge about it."""

    what: ClassVar[str] = "a cylindrical joint"
    example: ClassVar[str] = "cylindrical: {child: B, at: P, axis: N.x}"

    axis: tuple[AxisForm, ...] = key(ONE_OR_TWO_AXES, "of both")


@mapping
class UniversalForm(SeveralForm):
    """Two hinges at right angles: the first axis is fixed in the parent, the second in the child."""

    what: ClassVar[str] = "a universal joint"
    example: ClassVar[str] = "universal: {child: B, at: P, axis: [N.x, B.y]}"

    axis: tuple[AxisForm, ...] = key(ONE_OR_TWO_AXES, "of parent and child", example=["N.x", "B.y"])


@mapping
class BallForm(SeveralForm):
    """A ball in its socket; turned by Euler parameters, or by angles about body-fixed axes."""

    what: ClassVar[str] = "a ball joint"
    example: ClassVar[str] = "ball: {child: B, at: P, angles: xyz}"

    angles: str | None = key(AXES, "three axes of the child", None, usual="Euler parameters", example="xyz")


@mapping
class FreeForm(BallForm):
    """A body that moves freely: three ways along the axes of the parent, and the turns of a ball joint."""

    what: ClassVar[str] = "a free joint"
    example: ClassVar[str] = "free: {child: B, at: O, angles: xyz}"


@mapping
class PlanarForm(SeveralForm):
    """A body sliding and turning on a plane across ``axis``."""

    what: ClassVar[str] = "a planar joint"
    example: ClassVar[str] = "planar: {child: B, at: P, axis: N.z}"

    axis: tuple[AxisForm, ...] = key(ONE_OR_TWO_AXES, "across the plane")


@mapping
class WeldForm(PlacedForm):
    """No motion at all."""

    what: ClassVar[str] = "a weld"
    example: ClassVar[str] = "weld: {child: B, at: P}"


@mapping
class PinSliderForm(SeveralForm):
    """A pin of the child in a slot of the parent along ``axis``, turning about ``pin``."""

    what: ClassVar[str] = "a pin-slider joint"
    example: ClassVar[str] = "pin_slider: {child: B, at: P, axis: N.x, pin: N.z}"

    axis: AxisForm = key(AXIS, "of the slot, in the parent")
    pin: tuple[AxisForm, ...] = key(ONE_OR_TWO_AXES, "of the pin")


@mapping
class GearForm(EndsForm):
    """Two bodies with a fixed ratio of turns about a carrier: child about ``axis[1]`` to parent about ``axis[0]``."""

    what: ClassVar[str] = "a gear pair"
    example: ClassVar[str] = "gear: {parent: A, child: B, axis: [A.z, B.z], ratio: -2}"

    carrier: str = reference("a frame", "against which both turn", "N")
    axis: tuple[AxisForm, ...] = key(ONE_OR_TWO_AXES, "of parent and child", example=["A.z", "B.z"])
    ratio: Text = expression("turns of the child in one of the parent", example=-2)
    backlash: BacklashForm | None = part(BacklashForm, "play of the flanks; it replaces the row")


@mapping
class RollingForm(EndsForm):
    """No slip at a point: both bodies have one velocity there, along each of the vectors ``along``."""

    what: ClassVar[str] = "a rolling joint"
    example: ClassVar[str] = "rolling: {parent: N, child: B, at: P, along: N.x}"

    at: str = reference("a point", "of contact")
    along: tuple[Text, ...] | None = expressions("vectors, up to three", None, usual="all axes", type="vector")


@mapping
class JointForm(KeyedMapping):
    """A joint; the given key is its kind."""

    what: ClassVar[str] = "a joint"
    example: ClassVar[str] = "hinge: {revolute: {child: B, at: [O, P], axis: N.z}}"
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(revolute="hinge pin rotary rotational", prismatic="slider slide translational linear",
                      weld="fixed rigid", ball="spherical", helical="screw", free="floating freejoint six_dof"),
        "type": "the kind is the key: {revolute: {child: B, at: P, axis: N.z}}",
    }  # fmt: skip

    revolute: RevoluteForm | None = part(RevoluteForm, "a hinge")
    prismatic: PrismaticForm | None = part(PrismaticForm, "a guide")
    helical: HelicalForm | None = part(HelicalForm, "a screw")
    cylindrical: CylindricalForm | None = part(CylindricalForm, "a guide and a hinge on one axis")
    universal: UniversalForm | None = part(UniversalForm, "two hinges at right angles")
    ball: BallForm | None = part(BallForm, "a ball in its socket")
    free: FreeForm | None = part(FreeForm, "a body that moves freely")
    planar: PlanarForm | None = part(PlanarForm, "a body on a plane")
    weld: WeldForm | None = part(WeldForm, "no motion")
    pin_slider: PinSliderForm | None = part(PinSliderForm, "a pin in a slot")
    gear: GearForm | None = part(GearForm, "turns in a ratio")
    rolling: RollingForm | None = part(RollingForm, "no slip at a point")


def both_axes(form: EndsForm, axes: tuple[AxisForm, ...]) -> tuple[AxisForm, AxisForm]:
    """Return the axes in parent and child; a single one means the same letter in both.

    ``form``: the joint, for its location in messages.
    """
    first = axes[0]
    return first, axes[1] if len(axes) == 2 else AxisForm(form.child, first.letter, first.sign, first.where)


def with_axes_of_ends(form: EndsT, is_fixed: Callable[[AxisForm, str], bool]) -> EndsT:
    """Return a joint between existing frames with the axes of parent and child in this order.

    A row of two axes of one and the same frame would prevent nothing. ``is_fixed``: whether an axis keeps its direction
    in a frame. Raises ModelError: an axis moves in both frames, or two axes are of one of them.
    """
    carrier = (form.carrier,) if isinstance(form, GearForm) else ()
    ends = ((form.parent, *carrier), (form.child, *carrier))
    for word in ("axis", "pin"):
        given = getattr(form, word, None)
        if given is None:
            continue
        axes = given if isinstance(given, tuple) else (given,)
        fits = [[any(is_fixed(axis, frame) for frame in end) for end in ends] for axis in axes]
        changed: dict[str, Any]
        if fits[0][0] and fits[-1][len(axes) - 1]:
            continue
        turns = isinstance(form, GearForm) or (isinstance(form, PinSliderForm) and word == "axis")  # a slot turns away
        if len(axes) == 1 and fits[0][1] and not turns:
            own = AxisForm(form.parent, axes[0].letter, axes[0].sign, axes[0].where)
            changed = {word: (own, axes[0]) if isinstance(given, tuple) else own}
        elif len(axes) == 2 and fits[0][1] and fits[1][0] and not isinstance(form, GearForm):
            changed = {word: (axes[1], axes[0])}
        else:
            raise ModelError(
                f"{form.what} that closes a loop has its {word} in {str(form.parent)!r} and in {str(form.child)!r}",
                form.key(word),
                found=", ".join(map(str, axes)),
                allowed=f"an axis of {form.parent}" + (f", or one of {form.parent} and one of {form.child}"
                                                       if isinstance(given, tuple) else ""),
                remedy=f"`{word}: [{form.parent}.{axes[0].letter}, {form.child}.{axes[-1].letter}]`"
                if isinstance(given, tuple) else f"`{word}: {form.parent}.{axes[0].letter}`",
            )  # fmt: skip
        form = replace(form, **changed)
    return form
