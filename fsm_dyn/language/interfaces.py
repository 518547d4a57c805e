"""Ports for devices, and sampled controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.keyed import NamedEntry, exactly_one, in_place_of, keys_of, only_with
from fsm_dyn.language.keys import (
    POSITIVE,
    UNIT,
    KnownUnits,
    entries,
    expression,
    expressions,
    key,
    reference,
    whole,
    whole_number,
)
from fsm_dyn.language.units import DIMENSIONLESS, ENERGY, LENGTH, TIME, Dimension, divide, multiply, power

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
        """Return the port if its keys go together.

        Raises
        ------
        ModelError
            They do not.
        """
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
        """Return the controller if it has an output.

        Raises
        ------
        ModelError
            It has none.
        """
        if not self.outputs:
            raise ModelError(f"{self.label} has no output", self.key("outputs"), remedy="name one at least")
        return self
