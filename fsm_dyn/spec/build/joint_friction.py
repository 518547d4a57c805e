"""Friction of joints in proportion to their reactions: journal bearings, guides and threads, as contacts.

A bearing or guide keeps its rows across the axis, and a contact with the law ``bearing`` bounds its friction by the
resultant of their forces.  The flanks of a thread transmit one normal force, of either sign: a slot with friction along
the thread at its mean radius (docs/theory.md, "Friction of joints").
"""

from __future__ import annotations

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.contact import BearingContact, Contact, GapContact
from fsm_dyn.spec.forms.joints import HelicalForm, PrismaticForm, RevoluteForm, RubbingForm, TurningForm
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of


def check_friction(name: str, form: RubbingForm) -> None:
    """Refuse infinite friction, and of friction and radius one without the other.

    Raises
    ------
    ModelError
    """
    if form.friction is not None and getattr(form, "clearance", None) is not None:
        raise ModelError(
            f"joint {str(name)!r} has a friction and a clearance", form.key("friction"),
            remedy="give it to the contacts of the pin: `clearance: {value: 20 um, friction: 0.1, radius: 4 mm}`",
        )  # fmt: skip
    if form.friction is not None and form.friction.infinite:
        raise ModelError(
            f"joint {str(name)!r} has infinite friction", form.key("friction"), found="inf",
            allowed="a coefficient, or {static: ..., kinetic: ...}", remedy="a joint that never moves is a `weld`",
        )  # fmt: skip
    if isinstance(form, TurningForm) and (form.friction is None) != (form.radius is None):
        given, missing = ("friction", "radius") if form.radius is None else ("radius", "friction")
        raise ModelError(
            f"joint {str(name)!r} has a {given} but no {missing}", form.key(given),
            remedy="friction of a turning joint acts at a radius: add `radius: 10 mm`"
            if given == "friction" else "add `friction: {static: ..., kinetic: ...}`, or remove `radius`",
        )  # fmt: skip


def refused_friction(name: str, form: RubbingForm) -> ModelError:
    """Return the error for the friction of a joint that has no rows across its axis."""
    return ModelError(
        f"joint {str(name)!r} cannot have friction where it closes a loop in space, or in absolute coordinates",
        form.key("friction"),
        remedy="let it make its child: `at: P`, without `joint_coordinates: absolute`",
    )


def friction_name(name: str) -> LocatedStr:
    """Return the name of the contact that stands for the friction of a joint."""
    return LocatedStr(f"{name}_friction", where_of(name))


def pitch(form: HelicalForm) -> str:
    """Return the advance of a screw per radian, an expression."""
    return f"({form.lead.text})/(2*pi)"


def thread_of(form: HelicalForm) -> tuple[Text, Text, Text] | None:
    """Return lead, radius and static friction of a screw; None without friction."""
    if form.friction is None or form.radius is None:
        return None
    assert form.friction.static is not None
    return form.lead, form.radius, form.friction.static


def thread(name: str, form: HelicalForm, turn: str, slide: str) -> Contact:
    """Return the contact of the flanks of a thread, given the coordinates of the screw."""
    assert form.friction is not None
    assert form.radius is not None
    where, radius = form.key("friction"), f"({form.radius.text})"
    flank = f"sqrt({radius}**2 + ({pitch(form)})**2)"
    return GapContact(
        name=friction_name(name),
        gap=Text(f"{radius}*({slide} - {pitch(form)}*{turn})/{flank}", where),
        slip=Text(f"({radius}**2*rate({turn}) + {pitch(form)}*rate({slide}))/{flank}", where),
        static=form.friction.static,
        kinetic=form.friction.kinetic,
        bilateral=True,
        where=where_of(name),
    )


def bearing(name: str, form: RevoluteForm | PrismaticForm, rate: str, rows: tuple[str, ...]) -> Contact:
    """Return the contact of a journal bearing or guide on the speed `rate`, loaded by the forces of constraint rows."""
    assert form.friction is not None
    where = form.key("friction")
    arm = f"*({form.radius.text})" if isinstance(form, RevoluteForm) and form.radius is not None else ""
    static, kinetic = (
        None if text is None else Text(f"({text.text}){arm}", text.where)
        for text in (form.friction.static, form.friction.kinetic)
    )
    return BearingContact(
        name=friction_name(name),
        slip=Text(rate, where),
        static=static,
        kinetic=kinetic,
        loaded_by=rows,
        where=where_of(name),
    )
