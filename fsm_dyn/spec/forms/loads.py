"""Forms of loads."""

from __future__ import annotations

from typing import ClassVar

from fsm_dyn.spec.forms.fields import Expression, NewName, Pair, Reference
from fsm_dyn.spec.forms.form import Form


class SpringForm(Form):
    """A spring between two points or on a coordinate; ``damping`` acts on the rate of its length."""

    what: ClassVar[str] = "a spring"

    between: Pair | None = None
    coordinate: Expression | None = None
    stiffness: Expression
    free: Expression | None = None
    damping: Expression | None = None


class DamperForm(Form):
    """A damper between two points or on a coordinate."""

    what: ClassVar[str] = "a damper"

    between: Pair | None = None
    coordinate: Expression | None = None
    damping: Expression


class TorsionSpringForm(Form):
    """A spring on an angle."""

    what: ClassVar[str] = "a torsion spring"

    coordinate: Expression
    stiffness: Expression
    free: Expression | None = None
    damping: Expression | None = None


class ImpulseForm(Form):
    """An impulse of a transition: ``linear`` at a point, ``angular`` on a body, or ``along`` a length or coordinate."""

    what: ClassVar[str] = "an impulse"

    linear: Expression | None = None
    at: Reference | None = None
    angular: Expression | None = None
    on: Reference | None = None
    reaction: Reference | None = None
    along: Expression | None = None
    between: Pair | None = None
    coordinate: Expression | None = None


class LoadForm(Form):
    """A load; its kind is the key that is given."""

    what: ClassVar[str] = "a load"

    name: NewName | None = None
    force: Expression | None = None
    at: Reference | None = None
    torque: Expression | None = None
    on: Reference | None = None
    reaction: Reference | None = None
    gravity: Expression | None = None
    spring: SpringForm | None = None
    damper: DamperForm | None = None
    torsion_spring: TorsionSpringForm | None = None
    law: Expression | None = None
    between: Pair | None = None
    coordinate: Expression | None = None
