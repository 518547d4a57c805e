"""The mechanism as data: a model file, checked for form, frozen, its expressions still text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from fsm_dyn.core.errors import NOWHERE, InputError, Location, ModelError
from fsm_dyn.language.contacts import Contact
from fsm_dyn.language.elements import Constraint, CoupledPort, Frame, Input, Joint, Load, Schedule
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.phases import PartName, RunPhase
from fsm_dyn.language.requirement import Requirement
from fsm_dyn.language.shapes import DrawnOutline, Shape
from fsm_dyn.language.units import DIMENSIONLESS, Dimension, dimension

# -- Parameters of a model, with the tolerances for studies --------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParameterTolerance:
    """Deviations of a manufactured part's parameter from its value, as expressions of parameters.

    ``lower`` and ``upper`` limit the deviation, uniform between them; or ``sigma`` is the standard deviation of a
    normal distribution.
    """

    lower: Text | None = None
    upper: Text | None = None
    sigma: Text | None = None

    @property
    def texts(self) -> tuple[Text, ...]:
        """Its expressions: both limits, or the standard deviation."""
        return tuple(text for text in (self.lower, self.upper, self.sigma) if text is not None)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A constant of the model, scalar (one value) or vector; it may depend on earlier ones."""

    name: str
    values: tuple[Text, ...]
    is_vector: bool = False
    where: Location = NOWHERE
    tolerance: ParameterTolerance | None = None


# -- The mechanism as data -----------------------------------------------------------------------------------
#
# The content of a model file, checked for form; expressions are still text. Everything here is immutable and has its
# location in the file, for later errors in expressions.

POLAR, PARAMETER = "phi", "s"  # arguments of the formula of a curve


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A configuration variable; ``unit`` is the text given in the file (empty: none).

    ``range`` holds the stated bounds, lower before upper, None for no bound; empty without a statement. ``meaning`` is
    a word for the quantity, next to its name; empty without a statement.
    """

    name: str
    unit: str = ""
    range: tuple[Text | None, ...] = ()
    where: Location = NOWHERE
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A point: its position from ``origin`` (another point, ``"O"`` for the Newtonian origin)."""

    name: str
    origin: str
    at: Text
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class Body:
    """A rigid body, or a particle when ``frame`` is None.

    ``inertia`` maps ``xx yy zz xy yz xz`` to expressions, resolved in ``frame``, about ``about`` or the centre.
    """

    name: str
    center: str
    mass: Text
    frame: str | None = None
    inertia: Mapping[str, Text] = field(default_factory=dict)
    about: str | None = None
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class ModePattern:
    """A name for a pattern of contact states; a contact not mentioned may be in any state."""

    name: str
    states: Mapping[str, str]
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class DiscreteVariable:
    """A bounded integer or boolean, changed only by transitions."""

    name: str
    initial: int
    is_boolean: bool = False
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class ControllerQuantity:
    """An input, a memory or an output of a controller, with its new value at a sample.

    ``start``: before the first sample, 0 if not given.  ``quantum``: it is rounded to whole multiples of this.
    """

    name: str
    value: Text
    unit: str = ""
    start: Text | None = None
    quantum: Text | None = None


@dataclass(frozen=True, slots=True)
class Controller:
    """A sampled controller: every ``period`` it reads inputs, updates memory and computes outputs, constant between.

    ``delay``: number of samples before an output takes its computed value.
    """

    name: str
    period: Text
    delay: int
    inputs: tuple[ControllerQuantity, ...]
    memory: tuple[ControllerQuantity, ...]
    outputs: tuple[ControllerQuantity, ...]
    where: Location = NOWHERE

    @property
    def quantities(self) -> tuple[ControllerQuantity, ...]:
        """Inputs, memory and outputs."""
        return (*self.inputs, *self.memory, *self.outputs)


@dataclass(frozen=True, slots=True)
class TransitionSpec:
    """A user-defined transition: a scalar crosses zero (``when``, ``crossing``), or an event of a contact (``on``).

    ``impulses`` change the speeds, together with the impulses of closed contacts and of constraints.

    ``range_of`` names the coordinate, in transitions made from stated ranges; ``kink`` gives the initial value of the
    assigned memory, in transitions made from kinks of held rows.
    """

    name: str
    source: str
    target: str | None = None
    when: Text | None = None
    crossing: Literal["rising", "falling", "both"] = "rising"
    on: tuple[str, str] | None = None
    reset: Mapping[str, Text] = field(default_factory=dict)
    set: Mapping[str, Text] = field(default_factory=dict)
    impulses: tuple[Load, ...] = ()
    stop: bool = False
    because: str = ""
    range_of: str = ""
    kink: Text | None = None
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class Port:
    """A coupling point for a device: a point of a body along axes, with or without rotation, or a coordinate.

    ``kinematic``: the device prescribes the coordinate; the bandwidth (Hz) of the filter its motion goes through.
    ``stiffness``, ``damping``: of the coupler along each of the axes or of the coordinate; not of the rotation.
    ``press``: two places of the hand along the first axis, relative to the model's start: with the key up, and with the
    key pressed. ``step``: longest step of a run coupled to a device, a time.
    """

    name: str
    point: str | None = None
    body: str | None = None
    axes: tuple[Text, ...] = ()
    rotation: Text | None = None
    coordinate: str | None = None
    kinematic: Text | None = None
    stiffness: Text | None = None
    damping: Text | None = None
    press: tuple[Text, ...] = ()
    step: Text | None = None
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class Initial:
    """Start of a run: a mode (or None: deduced), values of coordinates and speeds, ``settle``.

    ``guess`` holds coordinates for the closure of loops; unlike ``values`` they may move.
    """

    mode: str | None = None
    values: Mapping[str, Text] = field(default_factory=dict)
    settle: bool = False
    guess: Mapping[str, Text] = field(default_factory=dict)
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True, repr=False)
class Mechanism:
    """A whole model file, checked for form and cross references."""

    name: str
    summary: str = ""
    source: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)
    frames: Mapping[str, Frame] = field(default_factory=dict)
    points: Mapping[str, Point] = field(default_factory=dict)
    bodies: Mapping[str, Body] = field(default_factory=dict)
    joints: Mapping[str, Joint] = field(default_factory=dict)
    speeds: Mapping[str, Text] = field(default_factory=dict)
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    contacts: Mapping[str, Contact] = field(default_factory=dict)
    inputs: Mapping[str, Input] = field(default_factory=dict)
    scenarios: Mapping[str, Mapping[str, Schedule]] = field(default_factory=dict)  # named schedules of some inputs
    loads: tuple[Load, ...] = ()
    modes: Mapping[str, ModePattern] = field(default_factory=dict)
    only_listed: bool = False
    memory: Mapping[str, DiscreteVariable] = field(default_factory=dict)
    controllers: Mapping[str, Controller] = field(default_factory=dict)
    transitions: tuple[TransitionSpec, ...] = ()
    impacts: Literal["simultaneous", "sequential"] = "simultaneous"
    on_inconsistent: Literal["stop", "impact"] = "stop"
    on_nonunique: Literal["stop", "prefer_previous"] = "stop"
    numerics: Mapping[str, Text] = field(default_factory=dict)  # tolerances of its runs
    ports: Mapping[str, Port] = field(default_factory=dict)
    coupled_ports: tuple[CoupledPort, ...] = ()  # if their couplers are parts of the mechanism
    initial: Initial = field(default_factory=Initial)
    outputs: Mapping[str, Text] = field(default_factory=dict)
    requirements: Mapping[str, Requirement] = field(default_factory=dict)
    names: Mapping[str, PartName] = field(default_factory=dict)  # words of contacts, shapes and bodies
    phases: Mapping[str, RunPhase] = field(default_factory=dict)  # of runs, the first true one applies
    view: Mapping[str, tuple[DrawnOutline, ...]] = field(default_factory=dict)
    variants: tuple[str, ...] = ()
    uses_units: bool = False
    where: Location = NOWHERE
    digest: str = ""
    text: str = ""  # the YAML it was read from: a saved automaton carries it

    def __repr__(self) -> str:
        kinds = ("coordinates", "bodies", "constraints", "contacts", "inputs", "loads")
        counts = ", ".join(f"{len(getattr(self, kind))} {kind}" for kind in kinds if getattr(self, kind))
        return f"<Mechanism {self.name}: {counts or 'empty'}>"

    @property
    def written_transitions(self) -> tuple[TransitionSpec, ...]:
        """The transitions of the file, without those made from stated ranges and kinks."""
        return tuple(item for item in self.transitions if not item.range_of and item.kink is None)

    @property
    def kinks(self) -> Mapping[str, Text]:
        """Initial value of the memory of every kink of a held row, by name: an expression of coordinates."""
        return {str(name): item.kink for item in self.transitions if item.kink is not None for name in item.set}

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """All configuration variables: the declared ones, then the Euler parameters frame by frame."""
        return (*self.coordinates, *(name for frame in self.frames.values() for name in frame.euler_names))


# -- A place for errors without a line of the file -----------------------------------------------------------


@contextmanager
def placed(mechanism: Mechanism) -> Iterator[None]:
    """Give errors of a model without a place the place of ``initial``, else of the model.

    Parameters
    ----------
    mechanism : Mechanism
        Gives the places.

    Yields
    ------
    None

    Raises
    ------
    ModelError
        Also if arithmetic fails inside, by an overflow or a division by zero.
    """
    where = mechanism.initial.where if mechanism.initial.where.file else mechanism.where
    try:
        with np.errstate(all="ignore"):  # results are checked for NaN later
            yield
    except InputError as error:
        if not error.where.file:
            error.where = where
        raise
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise ModelError(
            "the numbers of this model cannot be calculated with",
            where,
            found=str(error),
            remedy="look for a division by zero and for numbers beyond all measure",
        ) from error


# -- The names of tolerances in a model file, and their dimensions -------------------------------------------

_LENGTH, _TIME = dimension(m=1), dimension(s=1)
_SPEED, _ACCELERATION = dimension(m=1, s=-1), dimension(m=1, s=-2)

#: Dimension of each tolerance. Their meaning: ``fsm_dyn.Tolerances``.
NUMERICS: Final[Mapping[str, Dimension]] = {
    "rtol": DIMENSIONLESS,
    "atol": DIMENSIONLESS,
    "gap": _LENGTH,
    "speed": _SPEED,
    "acceleration": DIMENSIONLESS,
    "multiplier": DIMENSIONLESS,
    "energy": DIMENSIONLESS,
    "pivot": DIMENSIONLESS,
    "hysteresis": DIMENSIONLESS,
    "time": _TIME,
    "coincidence": _TIME,
    "graze": DIMENSIONLESS,
    "projection": _LENGTH,
    "drift": _LENGTH,
    "impact": DIMENSIONLESS,
    "slip": _SPEED,
    "least_acceleration": _ACCELERATION,
    "redundancy": DIMENSIONLESS,
    "length_scale": _LENGTH,
    "mass_scale": dimension(kg=1),
    "time_scale": _TIME,
}
