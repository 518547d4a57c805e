"""Ports for devices, sampled controllers, and the section ``pins``: statements on connections, their outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Self

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.form import as_items, name, one_of, pair_of_names
from fsm_dyn.language.keyed import (
    KeyedMapping,
    NamedEntry,
    exactly_one,
    in_place_of,
    keys_of,
    only_with,
    stating_something,
)
from fsm_dyn.language.keys import (
    NAME,
    POSITIVE,
    UNIT,
    KnownUnits,
    entries,
    expression,
    expressions,
    key,
    leaf,
    list_of,
    part,
    reference,
    whole,
    whole_number,
)
from fsm_dyn.language.requirement import IMPULSE, LOADS, Requirement, read_formula
from fsm_dyn.language.units import DIMENSIONLESS, ENERGY, FORCE, LENGTH, TIME, Dimension, divide, multiply, power
from fsm_dyn.language.yaml import LocatedList, Tree

# -- Statements on connections ---------------------------------------------------------------------------------


DRIVE: Final = "drive"
OUTPUTS: Final = (*LOADS, DRIVE)


def _names(tree: Tree) -> tuple[str, ...]:
    items = as_items(tree, "the points of a connection") if isinstance(tree, LocatedList) else [tree]
    return tuple(map(name, items))


def _quantities(tree: Tree) -> tuple[str, ...]:
    items = as_items(tree, "the outputs of a connection") if isinstance(tree, LocatedList) else [tree]
    return tuple(dict.fromkeys(map(one_of(*OUTPUTS), items)))


_WORD: Final = {"enum": list(OUTPUTS)}
POINTS: Final = leaf(_names, {"anyOf": [NAME, list_of(NAME, 1)]}, "name, or several", example=["P"])
SEGMENTS: Final = leaf(pair_of_names, list_of(NAME, 2, 2), "two segments", example=["thigh", "shank"])
QUANTITIES: Final = leaf(
    _quantities, {"anyOf": [_WORD, list_of(_WORD, 1)]}, ", ".join(f"`{item}`" for item in OUTPUTS), holds="words",
    example=["force"],
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LoadLimits(KeyedMapping):
    """Largest loads of a connection, as requirements."""

    what: ClassVar[str] = "the limits of a connection"
    example: ClassVar[str] = "limits: {force: 200 N}"

    force: Text | None = expression("of its magnitude", None, unit=FORCE, bounds=POSITIVE)
    torque: Text | None = expression("of its magnitude", None, unit=ENERGY, bounds=POSITIVE)
    impulse: Text | None = expression("of its magnitude", None, unit=multiply(FORCE, TIME), bounds=POSITIVE)

    def checked(self) -> Self:
        """Return the limits, if there is one."""
        return stating_something(self, self.what)

    def by_quantity(self) -> Iterator[tuple[str, Text]]:
        """Yield the limits that there are, by their quantities."""
        for quantity, bound in (("force", self.force), ("torque", self.torque), (IMPULSE, self.impulse)):
            if bound is not None:
                yield quantity, bound


@dataclass(frozen=True, kw_only=True)
class Wear(KeyedMapping):
    """Archard's law of a connection: depth = rate * integral of force times sliding speed / area."""

    what: ClassVar[str] = "a wear"
    example: ClassVar[str] = "wear: {rate: 1e-15 m^2/N, area: 40 mm^2, radius: 4 mm}"

    rate: Text = expression(
        "volume worn off by force and distance", unit=divide(power(LENGTH, 2.0), FORCE), bounds=POSITIVE
    )
    area: Text = expression("worn", unit=power(LENGTH, 2.0), bounds=POSITIVE)
    radius: Text | None = expression("at which a turning joint slides", None, unit=LENGTH, bounds=POSITIVE)


@dataclass(frozen=True, kw_only=True)
class PinEntry(NamedEntry):
    """A connection: that of its name, or that between two segments, which gets this name."""

    what: ClassVar[str] = "a connection"
    example: ClassVar[str] = "knee: {between: [thigh, shank], at: K}"

    between: tuple[str, str] | None = key(SEGMENTS, "parent and child, by their frames or bodies", None)
    at: str | None = reference("a point", "place of the connection", None)
    owns: tuple[str, ...] = key(POINTS, "points of the child, where several bodies meet", ())
    outputs: tuple[str, ...] = key(QUANTITIES, "columns of runs, and outputs of exports", ())
    limits: LoadLimits | None = part(LoadLimits, "largest loads")
    wear: Wear | None = part(Wear, "by Archard's law")

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"connection {str(self.name)!r}"

    def checked(self) -> Self:
        """Return the entry, if it states or asks anything."""
        return stating_something(self, self.label)

    @property
    def bounds(self) -> Mapping[str, Text]:
        """The limits by their quantities."""
        return {} if self.limits is None else dict(self.limits.by_quantity())

    @property
    def requirements(self) -> Iterator[Requirement]:
        """The limits as requirements, ``<name>_<quantity>_limit``."""
        for quantity, bound in self.bounds.items():
            size = f"pin.{self.name}.{quantity}"
            formula = f"peak({size}) < {bound.text}" if quantity == IMPULSE else f"always {size} < {bound.text}"
            claim = read_formula(Text(formula, bound.where))
            yield Requirement(f"{self.name}_{quantity}_limit", formula, claim, where=bound.where)


def listed_outputs(pins: Mapping[str, PinEntry]) -> list[tuple[str, str]]:
    """Return the outputs of connections.

    ``pins``: entries of the model by name. Each is the name of the output and that of its column,
    ``pin.<name>.<quantity>``.
    """
    return [
        (f"pin_{entry.name}_{quantity}", f"pin.{entry.name}.{quantity}")
        for entry in pins.values()
        for quantity in entry.outputs
    ]


# -- Ports and controllers -------------------------------------------------------------------------------------


# -- Ports ---------------------------------------------------------------------------------------------------


def _way(port: Port, found: KnownUnits) -> list[Dimension]:
    return [LENGTH if port.coordinate is None else found.named[port.coordinate]]


def _stiffness(port: Port, found: KnownUnits) -> list[Dimension]:
    return [divide(ENERGY, power(_way(port, found)[0], 2.0))]


def _damping(port: Port, found: KnownUnits) -> list[Dimension]:
    return [multiply(_stiffness(port, found)[0], TIME)]


@dataclass(frozen=True, kw_only=True)
class Port(NamedEntry):
    """A coupling point for a device: a point of a body along axes, with or without rotation, or a coordinate."""

    what: ClassVar[str] = "a port"
    example: ClassVar[str] = "hand: {coordinate: x}"
    hints: ClassVar[dict[str, str]] = {"twist": "the key is 'rotation'"}

    point: str | None = reference("a point", "where the device holds the model", None)
    body: str | None = reference("a body", "of the point", None)
    axes: tuple[Text, ...] = expressions(
        "one to three unit vectors along which the point is held; they may turn with a body", (), unit=DIMENSIONLESS,
        scope="configuration", type="vector", noun="an axis of {of}", example=["N.x", "N.y"],
    )  # fmt: skip
    rotation: Text | None = expression(
        "unit vector about which the body is held too", None, unit=DIMENSIONLESS, scope="configuration", type="vector"
    )
    coordinate: str | None = reference("a coordinate", "held by the device, instead of a point", None)
    kinematic: Text | None = expression(
        "the device prescribes the coordinate: bandwidth of the filter of its motion", None,
        unit=divide(DIMENSIONLESS, TIME), noun="the bandwidth of {of}", example="20 Hz",
    )  # fmt: skip
    stiffness: Text | None = expression(
        "of the coupler along each axis or of the coordinate, not of the rotation", None, unit=_stiffness,
        usual="200 N/m or 4 N*m/rad",
    )  # fmt: skip
    damping: Text | None = expression("likewise", None, unit=_damping, usual="2 N*s/m or 0.04 N*m*s")
    press: tuple[Text, ...] = expressions(
        "two places of the hand along the first axis, from the model's start: with the key up, and pressed", (),
        unit=_way, example=["-5 mm", "0 mm"],
    )  # fmt: skip
    step: Text | None = expression("longest step of a run coupled to a device", None, unit=TIME, bounds=POSITIVE)

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"port {str(self.name)!r}"

    def checked(self) -> Self:
        """Return the port if its keys go together. Raises ModelError: they do not."""
        kind = exactly_one(self, ("point", "coordinate"))
        of_other = ("point", "body", "axes", "rotation") if kind == "coordinate" else ("coordinate", "kinematic")
        only_with(self, kind, tuple(word for word in keys_of(Port) if word not in (kind, *of_other)))
        for word in ("body", "axes") if kind == "point" else ():
            if word not in self.written_keys():
                allowed = "point, body, axes, rotation"
                raise ModelError(f"{self.label} lacks the key {word!r}", self.written.where, allowed=allowed)
        if len(self.axes) > 3:
            raise ModelError(f"{self.label} has {len(self.axes)} axes", self.key("axes"), allowed="1 to 3")
        for word in ("stiffness", "damping", "press") if self.kinematic is not None else ():
            if word in self.written_keys():
                raise ModelError(
                    f"{self.label} is kinematic: no coupler holds it", self.key(word), found=word,
                    remedy=f"remove {word}, or kinematic",
                )  # fmt: skip
        if len(self.press) not in (0, 2):
            raise ModelError(
                f"`press` of {self.label} has {len(self.press)} places", self.key("press"),
                allowed="2: where a hand is that has let up, and one that presses, from where the model begins",
            )  # fmt: skip
        return self


# -- Sampled controllers -------------------------------------------------------------------------------------

MOST_DELAY = 100


def _own(item: ControllerQuantity, found: KnownUnits) -> list[Dimension]:
    return [found.named[item.name]]


def _value(doc: str, noun: str, **more: Any) -> Any:
    return expression(doc, scope="logic", noun=noun, example="k*x", **more)


def _start() -> Any:
    return expression("before the first sample", None, unit=_own, noun="the start of {of}", usual="0")


def _quantum() -> Any:
    return expression(
        "it is rounded to whole multiples of this", None, unit=_own, bounds=POSITIVE, noun="the quantum of {of}"
    )


@dataclass(frozen=True, kw_only=True)
class ControllerQuantity(NamedEntry):
    """An input, a memory or an output of a controller, with its new value at a sample."""

    digested: ClassVar[tuple[str, ...]] = ("name", "value", "unit", "start", "quantum")

    value: Text
    unit: str = ""
    start: Text | None = None
    quantum: Text | None = None


@dataclass(frozen=True, kw_only=True)
class SampledInput(ControllerQuantity):
    """An input sampled by a controller; its value may stand alone."""

    what: ClassVar[str] = "an input of a controller"
    example: ClassVar[str] = "e: {value: goal - x, quantum: 10 um}"
    short: ClassVar[str] = "value"

    value: Text = _value(
        "of coordinates, speeds, inputs, memory, and of the inputs above it", "input {name!r} of {owner}"
    )
    quantum: Text | None = _quantum()


@dataclass(frozen=True, kw_only=True)
class ControllerMemory(ControllerQuantity):
    """A number kept by a controller from sample to sample."""

    what: ClassVar[str] = "a memory of a controller"
    example: ClassVar[str] = "last: {unit: m, update: e}"
    first: ClassVar[tuple[str, ...]] = ("unit", "start", "update")

    value: Text = _value("its value after a sample", "{of} of {owner}", name="update", unit=_own)
    unit: str = key(UNIT, "of its value", "")
    start: Text | None = _start()


@dataclass(frozen=True, kw_only=True)
class ControllerOutput(ControllerQuantity):
    """A number computed by a controller at its samples, constant between them."""

    what: ClassVar[str] = "an output of a controller"
    example: ClassVar[str] = "push: {unit: N, value: -k*x}"
    first: ClassVar[tuple[str, ...]] = ("unit", "start", "value")

    value: Text = _value("its value from a sample on", "{of} of {owner}", unit=_own)
    unit: str = key(UNIT, "of its value", "")
    start: Text | None = _start()
    quantum: Text | None = _quantum()


@dataclass(frozen=True, kw_only=True)
class Controller(NamedEntry):
    """A sampled controller: every period it reads inputs, updates memory and computes outputs, constant between."""

    what: ClassVar[str] = "a controller"
    example: ClassVar[str] = "servo: {period: 1 ms, outputs: {push: {unit: N, value: -k*x}}}"

    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(period="sample_time dt interval sampling", outputs="commands"),
        **dict.fromkeys(("rate", "frequency"), "samples have a period: `period: 1/(100 Hz)`"),
    }

    period: Text = expression("between two samples", unit=TIME, bounds=POSITIVE, example="1 ms")
    delay: int = key(
        whole_number(
            0, MOST_DELAY, "a delay is a whole number of samples",
            "a delay of parts of a period is a controller with a shorter period",
        ), "number of samples before an output takes its computed value", 0,
    )  # fmt: skip
    inputs: tuple[SampledInput, ...] = key(
        entries(whole(SampledInput), "the inputs of a controller", "inputs: {e: goal - x}"), "sampled quantities", ()
    )
    memory: tuple[ControllerMemory, ...] = key(
        entries(whole(ControllerMemory), "the memory of a controller", "memory: {last: {unit: m, update: e}}"),
        "numbers kept from sample to sample", (),
    )  # fmt: skip
    outputs: tuple[ControllerOutput, ...] = key(
        entries(
            whole(ControllerOutput), "the outputs of a controller", "outputs: {push: {unit: N, value: -k*x}}"
        ), "quantities for loads and conditions",
    )  # fmt: skip

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"controller {str(self.name)!r}"

    @property
    def quantities(self) -> tuple[ControllerQuantity, ...]:
        """Inputs, memory and outputs."""
        return (*self.inputs, *self.memory, *self.outputs)

    def checked(self) -> Self:
        """Return the controller if it has an output. Raises ModelError: it has none."""
        if not self.outputs:
            raise ModelError(f"{self.label} has no output", self.key("outputs"), remedy="name one at least")
        return self
