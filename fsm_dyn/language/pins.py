"""The section ``pins``: statements on connections and requests for their forces (docs/language.md, "pins")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Self

from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.form import as_items, name, one_of, pair_of_names
from fsm_dyn.language.keyed import KeyedMapping, NamedEntry, stating_something
from fsm_dyn.language.keys import NAME, POSITIVE, expression, key, leaf, list_of, part, reference
from fsm_dyn.language.requirement import IMPULSE, LOADS, Requirement, read_formula
from fsm_dyn.language.units import ENERGY, FORCE, LENGTH, TIME, divide, multiply, power
from fsm_dyn.language.yaml import LocatedList, Tree

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

    Parameters
    ----------
    pins : mapping
        Entries of the model by name.

    Returns
    -------
    list of (str, str)
        Name of the output and of its column, ``pin.<name>.<quantity>``.
    """
    return [
        (f"pin_{entry.name}_{quantity}", f"pin.{entry.name}.{quantity}")
        for entry in pins.values()
        for quantity in entry.outputs
    ]
