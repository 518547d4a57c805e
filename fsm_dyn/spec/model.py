"""The mechanism as data: what a model file says, checked for form, frozen, expressions still text.

Everything here is immutable and has its location in the file, so that later errors in an
expression can report it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions.text import Text
from fsm_dyn.spec.constraint import Constraint as Constraint
from fsm_dyn.spec.contact import Contact as Contact
from fsm_dyn.spec.coupled_port import CoupledPort
from fsm_dyn.spec.drawn_outline import DrawnOutline as DrawnOutline
from fsm_dyn.spec.frame import Frame as Frame
from fsm_dyn.spec.input_declarations import Input as Input
from fsm_dyn.spec.input_declarations import Schedule as Schedule
from fsm_dyn.spec.joint import Joint as Joint
from fsm_dyn.spec.loads import Load as Load
from fsm_dyn.spec.parameter import Parameter as Parameter
from fsm_dyn.spec.requirement import Requirement as Requirement
from fsm_dyn.spec.shape import Feature as Feature
from fsm_dyn.spec.shape import Shape as Shape

POLAR, PARAMETER = "phi", "s"  # what the formula of a curve is a function of


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A configuration variable; ``unit`` is the text given in the file (empty: none).

    ``range`` holds the bounds that the model states, lower before upper, None for no bound; empty without a statement.
    ``meaning`` is a word for what the coordinate is, next to its name; empty without a statement.
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
    """A bounded integer or boolean that only transitions change."""

    name: str
    initial: int
    is_boolean: bool = False
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class ControllerQuantity:
    """An input, a memory or an output of a controller: what it becomes at a sample.

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

    ``delay``: samples after which an output takes the value computed.
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

    ``impulses`` change the speeds, together with those of the contacts that are closed and of the constraints.

    ``range_of`` names the coordinate of which a bound is crossed, in the transitions that stated ranges stand for;
    ``kink`` gives the initial value of the memory that is set, in those that kinks of held rows stand for.
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
    ``press``: along the first axis, from where the model begins, where a hand is that has let a key up, and one that
    presses it.  ``step``: the longest step of a run that a device holds, a time.
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
    """Where a run starts: a mode (or None: deduced), values of coordinates and speeds, ``settle``.

    ``guess`` holds coordinates from which loops are closed; unlike ``values`` they may move.
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
    coupled_ports: tuple[CoupledPort, ...] = ()  # where what couples them to a device is part of the mechanism
    initial: Initial = field(default_factory=Initial)
    outputs: Mapping[str, Text] = field(default_factory=dict)
    requirements: Mapping[str, Requirement] = field(default_factory=dict)
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
        """The transitions of the file, without those that stated ranges stand for."""
        return tuple(item for item in self.transitions if not item.range_of and item.kink is None)

    @property
    def kinks(self) -> Mapping[str, Text]:
        """What the memory of every kink of a held row begins with, by name: an expression of coordinates."""
        return {str(name): item.kink for item in self.transitions if item.kink is not None for name in item.set}

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """All configuration variables: the declared ones, then the Euler parameters frame by frame."""
        return (*self.coordinates, *(name for frame in self.frames.values() for name in frame.euler_names))
