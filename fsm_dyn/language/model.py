"""The mechanism as data: a model file, checked for form, frozen, its expressions still text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from fsm_dyn.core.errors import NOWHERE, InputError, Location, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.contacts import Contact
from fsm_dyn.language.elements import Constraint, CoupledPort, Frame, Input, Joint, Load, Schedule
from fsm_dyn.language.expression_tree import Text, is_name
from fsm_dyn.language.form import expression, name
from fsm_dyn.language.interfaces import Controller, PinEntry, Port
from fsm_dyn.language.keyed import KeyedMapping, NamedEntry, in_place_of, keys_of
from fsm_dyn.language.keys import (
    EXPRESSION,
    FLAG,
    NAMES,
    NOT_NEGATIVE,
    POSITIVE,
    REFERENCE,
    TEXT,
    UNIT,
    VALUE,
    Schema,
    key,
    leaf,
    list_of,
    one_of,
    others,
    part,
    reference,
    section,
)
from fsm_dyn.language.keys import expression as expression_key
from fsm_dyn.language.requirement import PartName, Requirement, RunPhase
from fsm_dyn.language.shapes import DrawnOutline, Shape
from fsm_dyn.language.units import DENSITY, INERTIA, LENGTH, MASS
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Tree, describe, where_of

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


def read_range(tree: Tree) -> tuple[Text | None, Text | None]:
    """Return the bounds ``[lower, upper]`` of a coordinate; None for ``-inf`` and ``inf``."""
    if not isinstance(tree, LocatedList) or len(tree) != 2:
        raise ModelError(
            "a range has a lower and an upper bound", tree.where, found=describe(tree),
            allowed="such as [0 mm, 60 mm], or [0, inf] where one side is open",
        )  # fmt: skip
    lower, upper = (expression(item) for item in tree)
    return None if lower.text == "-inf" else lower, None if upper.text == "inf" else upper


RANGE: Final = leaf(read_range, list_of(VALUE, 2, 2), "`[lower, upper]`", example=["0 mm", "60 mm"], expressions=True)


@dataclass(frozen=True, kw_only=True)
class Coordinate(NamedEntry):
    """A configuration variable.

    ``range`` holds the stated bounds, lower before upper, None for no bound; empty without a statement.
    """

    what: ClassVar[str] = "a coordinate"
    example: ClassVar[str] = "q: {unit: rad, range: [0, 90 deg]}"
    first: ClassVar[tuple[str, ...]] = ("unit", "meaning", "range")
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(range="limits bounds", meaning="label description"),
        **dict.fromkeys(("start", "initial", "value"), "give it under `initial`"),
    }

    unit: str = key(UNIT, "an SI unit", "", example="m")
    range: tuple[Text | None, ...] = key(
        RANGE, "stated bounds, where runs end", (), unit=lambda coordinate, found: [found.named[coordinate.name]],
        noun="a bound of {of}",
    )  # fmt: skip
    meaning: str = key(TEXT, "a word for the quantity, in figures and exported columns", "", example="carriage")


@dataclass(frozen=True, kw_only=True)
class Point(NamedEntry):
    """A point: its position from another point or the Newtonian origin ``O``."""

    what: ClassVar[str] = "a point"
    example: ClassVar[str] = "P: {from: O, at: x*N.x}"
    hints: ClassVar[Mapping[str, str]] = in_place_of(**{"from": "parent of origin", "at": "offset position pos vector"})

    origin: str = reference("a point", "point that it is given from", name="from", example="O")
    at: Text = expression_key(
        "vector from there", unit=LENGTH, scope="configuration", type="vector", noun="the position of {of}",
        example="x*N.x",
    )  # fmt: skip


_ENTRIES: Final = ("xx", "yy", "zz", "xy", "yz", "xz")
_moment: Final = partial(
    expression_key, "entry of the tensor", None, unit=INERTIA, noun="the inertia {key} of {of}", usual="0",
    example="0.01 kg*m^2",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class InertiaTensor(KeyedMapping):
    """An inertia tensor in the body's frame."""

    what: ClassVar[str] = "an inertia"
    example: ClassVar[str] = "inertia: {zz: 0.01 kg*m^2}"

    xx: Text | None = _moment(bounds=NOT_NEGATIVE)
    yy: Text | None = _moment(bounds=NOT_NEGATIVE)
    zz: Text | None = _moment(bounds=NOT_NEGATIVE)
    xy: Text | None = _moment()
    yz: Text | None = _moment()
    xz: Text | None = _moment()
    about: str | None = reference("a point", "point that it is taken about", None, usual="the centre")

    @property
    def entries(self) -> dict[str, Text]:
        """The given entries, in the order xx yy zz xy yz xz."""
        found = {name: getattr(self, name) for name in _ENTRIES}
        return {name: value for name, value in found.items() if value is not None}

    def taken_about(self, point: Callable[[str], str]) -> Self:
        """Return the tensor about another name of its point, if it has one."""
        return self if self.about is None else replace(self, about=point(self.about))


#: Keys of bodies with and without an outline, and remedies for missing ones.
_OF_BODIES: Final = {
    "center": "name the point at which the mass centre is", "mass": "add it: `mass: 1 kg`", "frame": "", "inertia": "",
}  # fmt: skip
_OF_PLATES: Final = {"thickness": "add it: `thickness: 3 mm`", "density": "add it: `density: 7850 kg/m^3`"}


@dataclass(frozen=True, kw_only=True)
class Body(NamedEntry):
    """A rigid body, or a particle when ``frame`` is None."""

    what: ClassVar[str] = "a body"
    example: ClassVar[str] = "ball: {center: P, mass: 1 kg}"
    hints: ClassVar[Mapping[str, str]] = in_place_of(
        center="centre com cg cog cm origin position at pos",
        mass="weight m",
        inertia="I J Izz ip moment_of_inertia tensor diaginertia fullinertia",
        frame="orientation rotation",
    )
    first: ClassVar[tuple[str, ...]] = ("frame", "center", "mass", "inertia", "outline", "thickness", "density")
    digested: ClassVar[tuple[str, ...]] = ("name", "center", "mass", "frame", "inertia", "about")

    @classmethod
    def schema(cls) -> Schema:
        """Return its JSON Schema: of a body with a centre and a mass, or of a plate."""
        required = [[name for name, remedy in _OF_BODIES.items() if remedy], ["outline", *_OF_PLATES]]
        return {**super().schema(), "oneOf": [{"required": names} for names in required]}

    outline: str | None = reference(
        "a shape",
        "polygon or circle of a plate: mass, centre, inertia and frame are those of the plate",
        None,
        later=True,
    )
    thickness: Text | None = expression_key(
        "of the plate", None, unit=LENGTH, bounds=POSITIVE, example="3 mm", later=True
    )
    density: Text | None = expression_key(
        "of the plate", None, unit=DENSITY, bounds=POSITIVE, example="7850 kg/m^3", later=True
    )
    center: str = reference("a point", "its mass centre, required without `outline`", "")
    mass: Text = expression_key("its mass, required without `outline`", Text(""), unit=MASS, bounds=NOT_NEGATIVE)
    frame: str | None = reference("a frame", "frame that it turns with; without one it is a particle", None)
    tensor: InertiaTensor | None = part(InertiaTensor, "of a body with a frame", name="inertia")

    @property
    def inertia(self) -> Mapping[str, Text]:
        """The given entries of the tensor: ``xx yy zz xy yz xz``, in its frame, about ``about`` or the centre."""
        return {} if self.tensor is None else self.tensor.entries

    @property
    def about(self) -> str | None:
        """The point that the inertia is taken about; None: the centre."""
        return None if self.tensor is None else self.tensor.about

    def checked(self) -> Self:
        """Return the body if it has a frame for its inertia, and a mass or an outline.

        Raises ModelError: it has none, or both.
        """
        plate = self.outline is not None
        needed, others = (_OF_PLATES, _OF_BODIES) if plate else (_OF_BODIES, _OF_PLATES)
        written = self.written_keys()
        for word in filter(written.__contains__, others):
            raise ModelError(
                f"body {str(self.name)!r} has the {word} of its outline" if plate
                else f"body {str(self.name)!r} has a {word} but no outline",
                self.key(word), remedy=f"leave out `{word}`" if plate else "add `outline`, or leave it out",
            )  # fmt: skip
        for word in (word for word, remedy in needed.items() if remedy and word not in written):
            raise ModelError(
                f"{self.name} lacks the key {word!r}", self.where, allowed=", ".join(self.first), remedy=needed[word]
            )
        if self.tensor is not None and self.frame is None:
            raise ModelError(
                f"body {str(self.name)!r} has an inertia but no frame", self.key("inertia"),
                remedy="add `frame: ...`; without one it is a particle",
            )  # fmt: skip
        return self


@dataclass(frozen=True, kw_only=True)
class ModePattern(NamedEntry):
    """A name for a pattern of contact states; a contact not mentioned may be in any state."""

    what: ClassVar[str] = "a mode"
    example: ClassVar[str] = "locked: {bolt: stick}"
    digested: ClassVar[tuple[str, ...]] = ("name", "states", "independent")

    states: Mapping[str, str] = others(REFERENCE, "contact", "its state")
    independent: tuple[str, ...] = key(
        NAMES,
        "speeds to be independent in the first chart of its modes, as far as they are named",
        (),
        example=["q_dot"],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class DiscreteVariable:
    """A bounded integer or boolean, changed only by transitions."""

    name: str
    initial: int
    is_boolean: bool = False
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class TransitionSpec:
    """A user-defined transition: a scalar crosses zero (``when``, ``crossing``), or an event of a contact (``on``).

    ``impulses`` change the speeds, together with the impulses of closed contacts and of constraints.

    ``range_of`` names the coordinate, in transitions made from stated ranges; ``kink`` gives the initial value of the
    assigned memory, in transitions made from kinks of held rows; ``switches`` states of locks by name, in those made
    from constraints to impose.
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
    switches: Mapping[str, str] = field(default_factory=dict)
    where: Location = NOWHERE


@dataclass(frozen=True, kw_only=True)
class Initial(KeyedMapping):
    """Start of a run: values of coordinates and speeds, by name, and keys.

    Without ``mode`` it is deduced. ``guess`` holds coordinates for the closure of loops; unlike ``values`` they may
    move.
    """

    what: ClassVar[str] = "initial"
    example: ClassVar[str] = "initial: {x: 0.1 m}"
    first: ClassVar[tuple[str, ...]] = ("mode", "settle", "guess")
    digested: ClassVar[tuple[str, ...]] = ("mode", "values", "settle", "guess")

    where: Location = NOWHERE
    mode: str | None = reference("a mode", "of the start", None, usual="deduced from the values")
    settle: bool = key(FLAG, "whether the start is a rest found from the values", False)
    guess: Mapping[str, Text] = key(
        section(EXPRESSION, "guess", name=name), "coordinates that may move for loops to close", factory=dict,
        example={"q2": "30 deg"},
    )  # fmt: skip
    values: Mapping[str, Text] = others(
        replace(EXPRESSION, example="0.1 m"), "coordinate or speed", "its initial value"
    )
    misfits: Mapping[str, ModelError] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def read(cls, tree: Tree, at: LocatedStr | None = None, **more: Any) -> Self:
        """Return the start, with its place; invalid values wait until it is known whether their words are names."""
        misfits: dict[str, ModelError] = {}
        for word, value in tree.items() if isinstance(tree, LocatedMapping) else ():
            try:
                if is_name(word) and word not in keys_of(cls):
                    EXPRESSION.read(value, word)
            except ModelError as error:
                misfits[word] = error
        if isinstance(tree, LocatedMapping):
            tree = LocatedMapping({word: value for word, value in tree.items() if word not in misfits}, tree.where)
        return super().read(tree, at, **more, where=tree.where, misfits=misfits)

    def checked(self) -> Self:
        """Return the start if nothing is both given and guessed. Raises ModelError: something is."""
        for given in (word for word in self.guess if word in self.values):
            raise ModelError(
                f"{str(given)!r} is given and guessed", where_of(given), remedy="keep one: what is given is held"
            )
        return self


@dataclass(frozen=True, kw_only=True)
class ModelSettings(KeyedMapping):
    """Keys of the top level with one value, the same in the file and in the model."""

    summary: str = key(TEXT, "what it is", "")
    source: str = key(TEXT, "where it comes from", "")
    impacts: Literal["simultaneous", "sequential"] = key(
        one_of("simultaneous", "sequential"), "order of impacts in one instant", "simultaneous"
    )
    on_inconsistent: Literal["stop", "impact"] = key(
        one_of("stop", "impact"), "what follows if no motion satisfies all contact laws", "stop"
    )
    on_nonunique: Literal["stop", "prefer_previous"] = key(
        one_of("stop", "prefer_previous"), "what follows if several motions satisfy all contact laws", "stop"
    )


@dataclass(frozen=True, repr=False)
class Mechanism(ModelSettings):
    """A whole model file, checked for form and cross references."""

    digested: ClassVar[tuple[str, ...]] = (
        "name", "summary", "source", "parameters", "coordinates", "frames", "points", "bodies", "joints",
        "speeds", "constraints", "shapes", "contacts", "inputs", "scenarios", "loads", "modes", "only_listed",
        "memory", "controllers", "transitions", "impacts", "on_inconsistent", "on_nonunique", "numerics",
        "ports", "initial", "outputs", "requirements", "view", "uses_units",
    )  # fmt: skip

    name: str
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
    numerics: Mapping[str, Text] = field(default_factory=dict)  # tolerances of its runs
    ports: Mapping[str, Port] = field(default_factory=dict)
    coupled_ports: tuple[CoupledPort, ...] = ()  # if their couplers are parts of the mechanism
    initial: Initial = field(default_factory=Initial)
    outputs: Mapping[str, Text] = field(default_factory=dict)
    imposed: Mapping[str, Any] = field(default_factory=dict)  # constraints to impose: Imposition
    pins: Mapping[str, PinEntry] = field(default_factory=dict)  # what is stated and asked of connections
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

    Raises ModelError: also if arithmetic fails inside, by an overflow or a division by zero.
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
