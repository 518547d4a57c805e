"""Whether a model uses units at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from fsm_dyn.errors import Location
from fsm_dyn.expressions import DIMENSIONLESS, Number, Text, parse, parse_unit, walk
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.yaml_tree import where_of


def uses_units(mechanism: Mechanism) -> bool:
    """Return whether any unit but that of an angle is written anywhere.

    Angles (``rad``, ``deg``) are dimensionless: they convert, but alone they do not switch checking on.

    Raises
    ------
    ExpressionError
        At the first text that is not an expression or a unit.
    """
    units = [c.unit for c in mechanism.coordinates.values()] + [i.unit for i in mechanism.inputs.values()]
    units += [item.unit for controller in mechanism.controllers.values() for item in controller.quantities]
    found = False
    for unit in filter(None, units):
        found |= parse_unit(unit, where_of(unit))[1] != DIMENSIONLESS
    for text in texts_of(mechanism):
        for node in walk(parse(text)):
            if isinstance(node, Number) and node.dimension not in (None, DIMENSIONLESS):
                found = True
    return found


def texts_of(value: object) -> Iterator[Text]:
    """Yield every expression in a mechanism or a part of it, in the order of the sections."""
    return (text for text in words_of(value) if isinstance(text, Text))


def words_of(value: object) -> Iterator[Text | str]:
    """Yield every expression, name and plain text in a mechanism, a part of it, or data given by a user, in order."""
    if isinstance(value, Text | str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from words_of(item)
    elif isinstance(value, tuple | list) and not isinstance(value, Location):
        for item in value:
            yield from words_of(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from words_of(getattr(value, field.name))
