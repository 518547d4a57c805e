"""Contacts as data, one class for each form of statement in a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final, Literal

from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.keyed import KeyedMapping, NamedEntry, in_place_of
from fsm_dyn.language.keys import NOT_NEGATIVE, Bounds, KnownUnits, expression, key, one_of, part
from fsm_dyn.language.laws import Law, law_of
from fsm_dyn.language.shapes import Feature
from fsm_dyn.language.units import DIMENSIONLESS, LENGTH, POWER, TIME, Dimension, divide, power

_SHARE: Final = Bounds(0.0, 1.0, "is impossible", "0 to 1", found="{:g}")
_AUDIBLE: Final = Bounds(20.0, 20e3, "is outside the audible range", "20 to 20000 Hz", found="{:g} Hz")
_FROM_ONE: Final = Bounds(
    1.0, float("inf"), "is below 1", "1 or more: the force begins at zero with a finite slope", found="{:g}"
)


def _stiffness(compliance: Compliance, found: KnownUnits) -> list[Dimension] | None:
    """The unit of a stiffness follows from the gap's unit, a length between shapes, and from the exponent."""
    gap, exponent = found.dimension("gap", LENGTH), found.type("exponent")
    order = 1.0 if exponent is None else exponent.value
    if gap is None or order is None:
        return None
    return [divide(divide(divide(POWER, gap), power(gap, order)), power(TIME, -1.0))]


def _dissipation(compliance: Compliance, found: KnownUnits) -> list[Dimension] | None:
    gap = found.dimension("gap", LENGTH)
    return None if _stiffness(compliance, found) is None or gap is None else [divide(TIME, gap)]


@dataclass(frozen=True, kw_only=True)
class Compliance(KeyedMapping):
    """Force of a contact at penetration δ: ``stiffness δ**exponent (1 + dissipation δ')`` (Hunt and Crossley 1975)."""

    what: ClassVar[str] = "a compliance"
    example: ClassVar[str] = "compliant: {stiffness: 2e4 N/m, dissipation: 0.1 s/m}"
    hints: ClassVar[Mapping[str, str]] = in_place_of(stiffness="k", exponent="power n", dissipation="damping loss c")

    stiffness: Text = expression(
        "force per penetration to the power of the exponent", unit=_stiffness, bounds=NOT_NEGATIVE, example="2e4 N/m"
    )
    exponent: Text | None = expression(
        "power of the penetration", None, unit=DIMENSIONLESS, bounds=_FROM_ONE, at_once=True, usual="1", example=1.5
    )
    dissipation: Text | None = expression(
        "increase of the force per speed of approach", None, unit=_dissipation, bounds=NOT_NEGATIVE, usual="0",
        example="0.1 s/m",
    )  # fmt: skip


RESTITUTION_LAW: Final = one_of("newton", "poisson")


@dataclass(frozen=True, kw_only=True)
class SurfaceProperties(KeyedMapping):
    """Keys of a pair of surfaces, however it is given."""

    restitution: Text | None = expression(
        "share of the approach speed, or of the impulse, returned by an impact", None, unit=DIMENSIONLESS,
        scope="logic", bounds=_SHARE, usual="0", example=0.3,
    )  # fmt: skip
    restitution_law: Literal["newton", "poisson"] = key(
        RESTITUTION_LAW, "restitution of the speed, or of the impulse", "newton"
    )
    tangential_restitution: Text | None = expression(
        "share of the slip that an impact returns, as far as friction can", None, unit=DIMENSIONLESS,
        scope="logic", bounds=_SHARE, usual="0", example=0.5, later=True,
    )  # fmt: skip
    closes_if: Text | None = expression(
        "condition for closing; a closed contact stays closed until its force vanishes", None, scope="logic",
        type="condition", noun="`closes_if` of {of}",
    )  # fmt: skip
    compliance: Compliance | None = part(
        Compliance, "it yields, with this force, in place of restitution", name="compliant"
    )
    sound_frequency: Text | None = expression(
        "of the tone of its impacts on the page", None, unit=divide(DIMENSIONLESS, TIME), bounds=_AUDIBLE,
        example="220 Hz",
    )  # fmt: skip


def _gap(contact: Contact, found: KnownUnits) -> list[Dimension] | None:
    return [LENGTH, DIMENSIONLESS] if contact.contact_law.has_gap else None


def _gap_scope(contact: Contact) -> str:
    """Memory is constant between transitions: a gap may jump with it, a held row may only in its reference."""
    imposed = isinstance(contact, LawContact) and contact.imposed
    return "gap" if imposed or (contact.contact_law.has_gap and not contact.bilateral) else "configuration"


def _second_slip(contact: Contact, found: KnownUnits) -> list[Dimension] | None:
    slip = found.dimension("slip")
    return None if slip is None else [slip]


def _bound(contact: Contact, found: KnownUnits) -> list[Dimension] | None:
    """A coefficient turns the force along the gap into one along the slip; on a speed alone it is the force."""
    law, gap, slip = contact.contact_law, found.dimension("gap"), found.dimension("slip")
    if law.friction_only or law.force_limit:
        rate = slip if slip is not None else None if gap is None else divide(gap, TIME)
        return None if rate is None else [divide(divide(LENGTH, TIME) if law.loaded else POWER, rate)]
    if gap is not None and slip is not None:
        return [divide(divide(gap, TIME), slip)]
    return [DIMENSIONLESS] if isinstance(contact, FeatureContact) else None


_bound_key: Final = partial(expression, default=None, unit=_bound, scope="logic", bounds=NOT_NEGATIVE)


@dataclass(frozen=True, kw_only=True)
class Contact(NamedEntry, ABC):
    """A switching constraint, by the expressions of its rows and bounds, of which the law defines the meaning."""

    what: ClassVar[str] = "a contact as data"
    digested: ClassVar[tuple[str, ...]] = ("name", "gap", "slip", "static", "kinetic")

    gap: Text | None = expression(
        "of coordinates", None, unit=_gap, scope=_gap_scope, noun="the {entry.contact_law.normal_noun} {of}"
    )
    slip: Text | None = expression("of speeds", None, scope="state")
    static: Text | None = _bound_key("bound of a force", noun="the {entry.contact_law.bound_noun} of {of}")
    kinetic: Text | None = _bound_key("bound of a force", noun="the kinetic friction of {of}")

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of its law (:mod:`fsm_dyn.language.laws`)."""

    @property
    def bilateral(self) -> bool:
        """Whether its normal force may have either sign."""
        return False

    @property
    def infinite_friction(self) -> bool:
        """Whether it sticks whenever closed."""
        return False

    @property
    def contact_law(self) -> Law:
        """Its law, with states, guards and events."""
        return law_of(self.kind, self.bilateral)

    @property
    def has_friction(self) -> bool:
        """Whether the contact has a tangential (or is only a) friction force."""
        rubs = self.slip is not None or self.static is not None or self.infinite_friction
        return self.contact_law.friction_only or (self.contact_law.has_gap and rubs)

    @property
    def states(self) -> tuple[str, ...]:
        """State names in the order of their codes: 0 free, 1 held, 2 sliding."""
        return self.contact_law.states(self.has_friction, self.infinite_friction)

    @property
    def events(self) -> tuple[str, ...]:
        """Words of the events for transitions."""
        return self.contact_law.events(self.has_friction, self.infinite_friction, False)

    @property
    def entry(self) -> str:
        """The name of its entry in the file; empty if it is the contact's own name."""
        return ""

    @property
    def parameter(self) -> str:
        """The curve parameter of the contact point; empty if none is needed."""
        return ""


@dataclass(frozen=True, kw_only=True)
class LawContact(Contact):
    """A contact with an entry of its law.

    ``dry_friction``: friction on the speed ``slip`` bounded by the forces ``static`` and ``kinetic``; ``lock``: a
    bilateral row on ``gap`` (position) or ``slip`` (velocity), engaged and released by transitions; ``limited_lock``: a
    lock with a release at the force ``static``; ``one_way``: a speed, the rate of ``gap`` or ``slip``, without negative
    values. ``imposed`` names the constraint to impose of a lock made from one.
    """

    digested: ClassVar[tuple[str, ...]] = (*Contact.digested, "law")

    law: str
    imposed: str = ""

    @property
    def kind(self) -> str:
        """The law of the entry."""
        return self.law


@dataclass(frozen=True, kw_only=True)
class BearingContact(Contact):
    """Friction on the speed ``slip`` in proportion to a load.

    ``static`` and ``kinetic`` are coefficients of the load: the resultant of the forces of the constraints
    ``loaded_by``, or the normal force of the contact of this name.
    """

    digested: ClassVar[tuple[str, ...]] = (*Contact.digested, "loaded_by")

    loaded_by: tuple[str, ...]
    across: Text | None = expression(
        "of speeds", None, unit=_second_slip, scope="state", noun="the second slip of {of}", later=True
    )

    @property
    def kind(self) -> str:
        """``bearing``, or ``resistance`` in space."""
        return "bearing" if self.across is None else "resistance"


@dataclass(frozen=True, kw_only=True)
class SurfaceContact(Contact, SurfaceProperties):
    """Two surfaces: ``gap`` ≥ 0, with friction along ``slip``, in space along ``across`` too.

    Without a ``compliance`` it is rigid; else its force under compression follows the compliance, friction a part of
    it.
    """

    first: ClassVar[tuple[str, ...]] = ("gap", "slip", "across", "static", "kinetic", "restitution", "restitution_law",
                                        "tangential_restitution", "sound_frequency", "compliant",
                                        "closes_if")  # fmt: skip
    digested: ClassVar[tuple[str, ...]] = (
        *Contact.digested, "across", "infinite_friction", "restitution", "restitution_law", "closes_if", "compliance",
        "sound_frequency", "tangential_restitution",
    )  # fmt: skip

    across: Text | None = expression(
        "of speeds", None, unit=_second_slip, scope="state", noun="the second slip of {of}"
    )
    infinite_friction: bool = False

    @property
    def kind(self) -> str:
        """``gap`` or ``compliant``."""
        return "gap" if self.compliance is None else "compliant"


@dataclass(frozen=True, kw_only=True)
class GapContact(SurfaceContact):
    """Two surfaces given by their gap; a ``bilateral`` one is a slot, always closed.

    A joint stop becomes one such contact per limit (``<name>_lower``, ``<name>_upper`` when both are given, else
    ``<name>``) with ``gap`` = ``coordinate - lower`` or ``upper - coordinate``.  Each has the name of its ``stop`` and
    its ``limit``, lower or upper; a backlash has two as well.
    """

    digested: ClassVar[tuple[str, ...]] = (*SurfaceContact.digested, "bilateral", "stop", "limit")

    bilateral: bool = False
    stop: str = ""
    limit: Literal["", "lower", "upper"] = ""


@dataclass(frozen=True, kw_only=True)
class FeatureContact(SurfaceContact):
    """Two ``features`` of shapes, the source of gap and slip.

    ``limited``: a face of them ends.  ``imposed`` names the constraint to impose that lets them touch.
    """

    digested: ClassVar[tuple[str, ...]] = (*SurfaceContact.digested, "features", "limited", "entry")

    features: tuple[Feature, Feature]
    limited: bool = False
    entry: str = ""
    imposed: str = ""

    @property
    def parameter(self) -> str:
        """A name after the contact's own, if a curve is among the features."""
        return f"{self.name}.xi" if any(feature.part == "curve" for feature in self.features) else ""

    @property
    def events(self) -> tuple[str, ...]:
        """With the event at the end of a face."""
        return self.contact_law.events(self.has_friction, self.infinite_friction, self.limited)
