"""Checks that follow from declared keys: references, scopes and units, bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fsm_dyn.language.dimensions import DimensionedValue, Scopes, expression_type
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.keyed import KeyedMapping, key_of_field, keys_of, mappings_in
from fsm_dyn.language.keys import Key
from fsm_dyn.language.units import Dimension


@dataclass(slots=True)
class UnitCheck:
    """The units of a mapping, each found at the first request; ``owner``: those of the mapping around it.

    ``named`` holds the dimensions of names of the model, ``around`` the name in messages of what the mapping is in.
    """

    entry: KeyedMapping
    scopes: Scopes
    named: Mapping[str, Dimension]
    owner: UnitCheck | None = None
    types: dict[str, DimensionedValue] = field(default_factory=dict)
    around: str = ""

    def type(self, attribute: str) -> DimensionedValue | None:
        """Return kind, dimension and value of an expression here or around; None if it is not given.

        Raises
        ------
        ModelError
            It does not fit.
        """
        if attribute in self.types:
            return self.types[attribute]
        key = key_of_field(type(self.entry), attribute)
        if key is None:
            return None if self.owner is None else self.owner.type(attribute)
        for text in _texts(getattr(self.entry, attribute)):
            self.types[attribute] = self._checked(attribute, key, text)
        return self.types.get(attribute)

    def dimension(self, attribute: str, absent: Dimension | None = None) -> Dimension | None:
        """Return the dimension of an expression, or `absent` if it is not given."""
        found = self.type(attribute)
        return absent if found is None else found.dimension

    def check(self) -> None:
        """Check scope, kind and dimension of every expression, those of inner mappings included.

        Raises
        ------
        ModelError
            At the first that does not fit.
        """
        for attribute, key in keys_of(type(self.entry)).values():
            if key.is_expression:
                self.type(attribute)
            elif key.kind.mappings:
                for inner in mappings_in(getattr(self.entry, attribute)):
                    UnitCheck(inner, self.scopes, self.named, self).check()

    @property
    def label(self) -> str:
        """The name of the mapping in messages."""
        return self.entry.label or self.around or ("" if self.owner is None else self.owner.label)

    def _checked(self, attribute: str, key: Key, text: Text) -> DimensionedValue:
        scope = key.scope if isinstance(key.scope, str) else key.scope(self.entry)
        unit: Any = key.unit(self.entry, self) if callable(key.unit) else key.unit
        wanted: Iterable[Dimension] | None = unit if unit is None or isinstance(unit, list) else [unit]
        what = noun(attribute, key, self.entry, self.label, "" if self.owner is None else self.owner.label)
        found = expression_type(text, getattr(self.scopes, scope), what, wanted, key.type)
        if key.at_once and key.bounds is not None and found.value is not None:
            key.bounds.check(found.value, text, what)
        return found


def noun(attribute: str, key: Key, entry: KeyedMapping, label: str, owner: str) -> str:
    """Return a key's noun in messages."""
    word = (key.name or attribute).replace("_", " ")
    return key.noun.format(of=label, owner=owner, name=str(getattr(entry, "name", "")), entry=entry, key=word)


class _Noun:
    """A key's noun, made on request: few entries have an error."""

    __slots__ = ("_of",)

    def __init__(self, *of: Any) -> None:
        self._of = of

    def __str__(self) -> str:
        return noun(*self._of)


def check_bounds(entry: KeyedMapping, value_of: Callable[[Text, Any], float | None], owner: str = "") -> None:
    """Check that every constant of a mapping has a finite value within its bounds.

    Parameters
    ----------
    value_of : callable
        Of an expression and its noun: the value, None if it depends on more than parameters.
    owner : str, optional
        Label of the mapping around it.

    Raises
    ------
    ModelError
        At the first without.
    """
    label = entry.label or owner
    cls: Any = type(entry)
    for attribute, key in _keys_with_values(cls):
        held = getattr(entry, attribute)
        if not key.is_expression:
            for inner in mappings_in(held):
                check_bounds(inner, value_of, label)
            continue
        for text in _texts(held):
            what = _Noun(attribute, key, entry, label, owner)
            value = value_of(text, what)
            if value is not None and key.bounds is not None:
                key.bounds.check(value, text, what)


@cache
def _keys_with_values(cls: Any) -> tuple[tuple[str, Key], ...]:
    """Return fields and keys with constants, or with mappings that may have some."""
    return tuple(item for item in keys_of(cls).values() if item[1].is_constant or item[1].kind.mappings)


def check_references(entry: KeyedMapping, check: Callable[[str, str], None]) -> None:
    """Check every reference of a mapping by `check`, of the name and its role."""
    for attribute, key in keys_of(type(entry)).values():
        value = getattr(entry, attribute)
        if key.role and value is not None:
            check(value, key.role)
        elif key.kind.mappings:
            for inner in mappings_in(value):
                check_references(inner, check)


def _texts(value: Text | tuple[Text | None, ...] | None) -> tuple[Text, ...]:
    texts = value if isinstance(value, tuple) else (value,)
    return tuple(text for text in texts if text is not None)
