"""Backlash and clearance of joints as contacts: two stops of one motion, or a pin within its hole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text, is_name
from fsm_dyn.spec.build.contacts import compliance_of, two_limits
from fsm_dyn.spec.contact import Contact, GapContact
from fsm_dyn.spec.forms.contacts import Friction
from fsm_dyn.spec.forms.joints import (
    AxisForm,
    BacklashForm,
    ClearanceForm,
    GearForm,
    PlayForm,
    RevoluteForm,
    both_axes,
)
from fsm_dyn.spec.frame import SimpleFrame
from fsm_dyn.spec.model import Frame
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

NEWTONIAN = "N"


def play_of(form: PlayForm | None) -> Text | None:
    """Return the whole play, an angle or a length; None without a play."""
    return None if form is None else form.value


def backlash_contacts(name: str, form: BacklashForm, travel: str) -> dict[str, Contact]:
    """Return the contacts ``<name>_lower`` and ``<name>_upper`` half the backlash from where `travel` is zero.

    Parameters
    ----------
    name : str
        Of the joint.
    travel : str
        The motion that has play, an expression (rad or m).

    Raises
    ------
    ModelError
        It is compliant and has a restitution.
    """
    half, q = f"({form.value.text})/2", travel if is_name(travel) else f"({travel})"
    lower = replace(_contact(name, form, f"{q} + {half}"), limit="lower")
    upper = replace(_contact(name, form, f"{half} - {q}"), limit="upper")
    found = two_limits(name, [lower, upper])
    if form.compliant is not None:
        compliance = compliance_of(f"the backlash of {str(name)!r}", form, form.compliant)
        found = [replace(contact, compliance=compliance) for contact in found]
    return {contact.name: contact for contact in found}


def clearance_contacts(
    name: str, joint: RevoluteForm, form: ClearanceForm, points: tuple[str, ...]
) -> dict[str, Contact]:
    """Return the contact ``<name>_clearance`` of a pin of the child with a hole of the parent.

    With the radial clearance c and the distance r between their centres the gap is (c² - r²)/2c: at r = c it is zero
    and its gradient has the length 1, and it is smooth where the centres coincide, which c - r is not.

    Parameters
    ----------
    name : str
        Of the joint.
    points : tuple of str
        The joint's point of the parent and that of the child.

    Raises
    ------
    ModelError
        It has friction without the radius of the pin, or the radius alone.
    """
    if (form.friction is None) != (form.radius is None):
        known, lacking = ("radius", "friction") if form.friction is None else ("friction", "radius")
        raise ModelError(
            f"the clearance of {str(name)!r} has the key {known!r} but not {lacking!r}", form.key(known),
            remedy="friction acts at the radius of the pin: give both or none",
        )  # fmt: skip
    hole, pin = points
    axis, width, away = joint.axis[0], f"({form.value.text})", f"pos({pin}, {hole})"
    square = " + ".join(f"dot({away}, {axis.frame}.{letter})**2" for letter in axis.across)
    contact = _contact(LocatedStr(f"{name}_clearance", where_of(name)), form, f"{width}/4 - ({square})/{width}")
    if form.friction is not None and form.radius is not None:
        friction: Friction = form.friction
        fixed = joint.parent == NEWTONIAN
        sliding = f"vel({pin}, {joint.child})" + ("" if fixed else f" - vel({pin}, {joint.parent})")
        spin = f"omega({joint.child})" + ("" if fixed else f" - omega({joint.parent})")
        along = f"2*dot({sliding}, cross({axis}, {away}))/{width}"
        slip = f"{along} + ({form.radius.text})*dot({spin}, {axis})"
        contact = replace(
            contact, slip=Text(slip, form.value.where), static=friction.static, kinetic=friction.kinetic,
            infinite_friction=friction.infinite,
        )  # fmt: skip
    return {contact.name: contact}


def gear_travel(name: str, form: GearForm, frames: Mapping[str, Frame]) -> str:
    """Return by which angle the child of a gear pair is ahead of the ratio, an expression (rad).

    Parameters
    ----------
    name : str
        Of the gear pair.
    frames : mapping
        Those of the model, in which it is looked up how its parts turn against the carrier.

    Raises
    ------
    ModelError
        The frames between do not all turn about its axis alone.
    """
    first, second = both_axes(form, form.axis)
    child, parent = _turn(name, form, "child", second, frames), _turn(name, form, "parent", first, frames)
    return f"{child} - ({form.ratio.text})*{parent}"


def _turn(name: str, form: GearForm, key: str, axis: AxisForm, frames: Mapping[str, Frame]) -> str:
    """Return the angle of parent or child against the carrier about an axis.

    Raises
    ------
    ModelError
        The frames between do not all turn about this axis alone.
    """
    own, carrier = _ancestry(getattr(form, key), frames), _ancestry(form.carrier, frames)
    turns = [("", frame) for frame in own if frame not in carrier]
    turns += [("-", frame) for frame in carrier if frame not in own]
    known = {*own, *carrier}
    steps = [(sign, frames[frame]) for sign, frame in turns if frame in frames]
    simple = [(sign, frame) for sign, frame in steps if isinstance(frame, SimpleFrame) and frame.axis == axis.letter]
    if axis.frame not in known or len(simple) != len(steps):
        raise ModelError(
            f"the backlash of gear {str(name)!r} needs the angle of its {key} against the carrier",
            form.key("backlash"),
            allowed=f"frames between {getattr(form, key)} and {form.carrier} that turn about {axis.letter}",
            remedy="write the contacts of the flanks by their `gap`",
        )
    terms = [f"{sign}({frame.angle.text})" for sign, frame in simple]
    return f"({'-' if axis.sign < 0 else ''}({' + '.join(terms) or '0'}))"


def _ancestry(frame: str, frames: Mapping[str, Frame]) -> list[str]:
    """Return a frame and those it turns against, up to N."""
    found = [frame]
    while found[-1] in frames and frames[found[-1]].parent not in found:
        found.append(frames[found[-1]].parent)
    return found


def _contact(name: str, form: PlayForm, gap: str) -> GapContact:
    where = where_of(name)
    return GapContact(
        name=name, gap=Text(gap, form.value.where), restitution=form.restitution,
        restitution_law=form.restitution_law, sound_frequency=form.sound_frequency, where=where,
    )  # fmt: skip
