"""Contacts as data, one class for each form of statement in a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from fsm_dyn.core.errors import NOWHERE, Location
from fsm_dyn.language.contact_law import Law
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.laws import law_of
from fsm_dyn.language.shapes import Feature


@dataclass(frozen=True, slots=True)
class Compliance:
    """Force of a contact at penetration δ: ``stiffness δ**exponent (1 + dissipation δ')`` (Hunt and Crossley 1975)."""

    stiffness: Text
    exponent: Text | None = None  # None: 1
    dissipation: Text | None = None  # None: 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact(ABC):
    """A switching constraint, by the expressions of its rows and bounds.

    ``gap`` is an expression of coordinates, ``slip`` of speeds; ``static`` and ``kinetic`` bound a force.  The law
    defines their meaning.
    """

    name: str
    gap: Text | None = None
    slip: Text | None = None
    static: Text | None = None
    kinetic: Text | None = None
    where: Location = NOWHERE

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LawContact(Contact):
    """A contact with an entry of its law.

    ``dry_friction``: friction on the speed ``slip`` bounded by the forces ``static`` and ``kinetic``; ``lock``: a
    bilateral row on ``gap`` (position) or ``slip`` (velocity), engaged and released by transitions; ``limited_lock``: a
    lock with a release at the force ``static``; ``one_way``: a speed, the rate of ``gap`` or ``slip``, without negative
    values.
    """

    law: str

    @property
    def kind(self) -> str:
        """The law of the entry."""
        return self.law


@dataclass(frozen=True, slots=True, kw_only=True)
class BearingContact(Contact):
    """Friction on the speed ``slip`` of a joint.

    ``static`` and ``kinetic`` are coefficients of the resultant of the forces of the constraints ``loaded_by``.
    """

    loaded_by: tuple[str, ...]

    @property
    def kind(self) -> str:
        """``bearing``."""
        return "bearing"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceContact(Contact):
    """Two surfaces: ``gap`` ≥ 0, with friction along ``slip``, in space along ``across`` too.

    Without a ``compliance`` it is rigid; else its force under compression follows the compliance, friction a part of
    it.
    """

    across: Text | None = None
    infinite_friction: bool = False
    restitution: Text | None = None
    restitution_law: Literal["newton", "poisson"] = "newton"
    closes_if: Text | None = None
    compliance: Compliance | None = None
    sound_frequency: Text | None = None

    @property
    def kind(self) -> str:
        """``gap`` or ``compliant``."""
        return "gap" if self.compliance is None else "compliant"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapContact(SurfaceContact):
    """Two surfaces given by their gap; a ``bilateral`` one is a slot, always closed.

    A joint stop becomes one such contact per limit (``<name>_lower``, ``<name>_upper`` when both are given, else
    ``<name>``) with ``gap`` = ``coordinate - lower`` or ``upper - coordinate``.  Each has the name of its ``stop`` and
    its ``limit``, lower or upper; a backlash has two as well.
    """

    bilateral: bool = False
    stop: str = ""
    limit: Literal["", "lower", "upper"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureContact(SurfaceContact):
    """Two ``features`` of shapes, the source of gap and slip.

    ``limited``: a face of them ends.
    """

    features: tuple[Feature, Feature]
    limited: bool = False
    entry: str = ""

    @property
    def parameter(self) -> str:
        """A name after the contact's own, if a curve is among the features."""
        return f"{self.name}.xi" if any(feature.part == "curve" for feature in self.features) else ""

    @property
    def events(self) -> tuple[str, ...]:
        """With the event at the end of a face."""
        return self.contact_law.events(self.has_friction, self.infinite_friction, self.limited)
