"""Mappings of the language as frozen data: read from a tree, described and renamed by the keys they declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, fields
from typing import Any, ClassVar, Protocol, Self, TypeVar, dataclass_transform

from fsm_dyn.core.errors import NOWHERE, Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.form import as_section
from fsm_dyn.language.keys import METADATA, VALUE, Key, Kind, Schema, with_short_form
from fsm_dyn.language.yaml import LocatedStr, Tree, compose, plain_data

ClassT = TypeVar("ClassT", bound=type)
KeyedT = TypeVar("KeyedT", bound="KeyedMapping")


class Written:
    """The mapping of the file that data were read from: its place, and its keys as they were written."""

    __slots__ = ("keys", "where")

    def __init__(self, where: Location = NOWHERE, keys: Mapping[str, LocatedStr] | None = None) -> None:
        self.where, self.keys = where, keys or {}


UNWRITTEN = Written()


class HasKeys(Protocol):
    """What was read from a mapping."""

    what: ClassVar[str]

    def key(self, name: str) -> Location:
        """Return where a key was written, or the place of the mapping."""

    def written_keys(self) -> tuple[str, ...]:
        """Return the keys that were written, in order."""


@dataclass(frozen=True, kw_only=True)
class KeyedMapping:
    """Base of the mappings of the language; a field made by :func:`fsm_dyn.language.keys.key` is a key.

    ``what`` names it in messages, ``example`` is a line of a file.  ``short`` is the key whose value may stand alone.
    ``hints`` are remedies by unknown key.  ``first`` are the keys that lead its list, ``digested`` the fields in the
    order of the digest, if that is not the order of their declaration.
    """

    what: ClassVar[str] = "this"
    example: ClassVar[str] = ""
    short: ClassVar[str] = ""
    unknown: ClassVar[str] = "{what} has no key {key!r}"
    hints: ClassVar[Mapping[str, str]] = {}
    first: ClassVar[tuple[str, ...]] = ()
    digested: ClassVar[tuple[str, ...]] = ()

    written: Written = field(default=UNWRITTEN, compare=False, repr=False)

    @property
    def label(self) -> str:
        """Its name in messages; empty: that of the mapping around it."""
        return ""

    def key(self, name: str) -> Location:
        """Return the place of the key `name`, or of the mapping."""
        word = self.written.keys.get(name)
        return self.written.where if word is None else word.where

    def written_keys(self) -> tuple[str, ...]:
        """Return the written keys, in order."""
        return tuple(self.written.keys)

    def values_given(self) -> dict[str, Any]:
        """Return the values of the written keys, by name, in order."""
        return {name: getattr(self, keys_of(type(self))[name][0]) for name in self.written_keys()}

    @classmethod
    def read(cls, tree: Tree, at: LocatedStr | None = None, **more: Any) -> Self:
        """Return the data of a tree at the key `at`; ``more`` are fields that are no keys.

        Raises
        ------
        ModelError
            At the first key or value that does not fit.
        """
        mapping = as_section(with_short_form(tree, cls.short), cls.what, cls.example)
        allowed, rest = keys_of(cls), others_of(cls)
        for word in mapping:
            if word not in allowed and rest is None:
                raise ModelError(
                    cls.unknown.format(what=cls.what, key=str(word)), word.where, found=word,
                    allowed=", ".join(allowed), remedy=_hint(cls, word, allowed) or did_you_mean(word, [*allowed]),
                )  # fmt: skip
        written = {str(word): word for word in mapping}
        values = {
            attribute: key.kind.read(mapping[written[name]], written[name])
            for name, (attribute, key) in allowed.items()
            if name in written
        }
        if rest is not None and rest[1].others is not None:
            values[rest[0]] = {
                rest[1].others(word): _other(rest[1].kind, item, word, allowed)
                for word, item in mapping.items()
                if word not in allowed
            }
        for name, (attribute, key) in allowed.items():
            if key.required and attribute not in values:
                owner, where = (cls.what, mapping.where) if at is None else (str(at), at.where)
                known = _OF_COMPONENTS if "use" in written else _MISSING
                remedy = known.get(name) or f"add it: `{name}: {_on_one_line(example_of(cls, attribute, key))}`"
                raise ModelError(f"{owner} lacks the key {name!r}", where, allowed=", ".join(allowed), remedy=remedy)
        return cls(**values, **more, written=Written(mapping.where, written)).checked()

    def checked(self) -> Self:
        """Return the data if their keys go together.

        Raises
        ------
        ModelError
            They do not.
        """
        return self

    @classmethod
    def schema(cls) -> Schema:
        """Return its JSON Schema, which refers to those of the mappings in it."""
        properties = {name: _property(cls, attribute, key) for name, (attribute, key) in keys_of(cls).items()}
        required = [name for name, (_, key) in keys_of(cls).items() if key.required]
        rest = others_of(cls)
        found = {
            "type": "object",
            "description": first_sentence(cls.__doc__ or ""),
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": rest is not None and _property(cls, *rest),
        }
        return {"anyOf": [VALUE, found]} if cls.short else found


def _hint(cls: type[KeyedMapping], word: str, allowed: Iterable[str]) -> str:
    """Return the remedy for a word of other tools, unless it names a key of other mappings of this family."""
    hint = cls.hints.get(word, "")
    key = hint.removeprefix("the key is ")
    return "" if key != hint and key.strip("'") not in allowed else hint


def _other(kind: Kind, tree: Tree, word: LocatedStr, allowed: Iterable[str]) -> Any:
    """Return the value of a word that is no key; one that is invalid may be that of a misspelt key."""
    try:
        return kind.read(tree, word)
    except ModelError as error:
        error.remedy = did_you_mean(word, allowed) or error.remedy
        raise


@dataclass_transform(frozen_default=True, kw_only_default=True)
def mapping(cls: ClassT) -> ClassT:
    """Make a class of mappings as they are written; they are not compared, and made faster than other data."""
    made: Any = dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls)
    return made  # type: ignore[no-any-return]


def in_place_of(**words: str) -> dict[str, str]:
    """Return the hints for words of other tools, by the key that is meant: ``contacts="collisions"``."""
    return {word: f"the key is {key!r}" for key, others in words.items() for word in others.split()}


_MISSING = {
    "fsm_dyn": "begin the file with `fsm_dyn: 1`",
    "bodies": "a mechanism has at least one body: `ball: {center: P, mass: 1 kg}`",
    "from": '`from: O` for a point given from the origin, `from: "*"` for a transition from any mode',
    "kinetic": "one value serves for both: `friction: 0.5`; else add `kinetic: 0.4`",
}
_OF_COMPONENTS = _MISSING | {"bodies": "a model made of components alone states it: `bodies: {}`"}


@dataclass(frozen=True, kw_only=True)
class NamedEntry(KeyedMapping):
    """An entry of a section, with its name and the place of that."""

    name: str
    where: Location = NOWHERE

    @property
    def label(self) -> str:
        """Its name, quoted."""
        return repr(str(self.name))

    @classmethod
    def read(cls, tree: Tree, at: LocatedStr | None = None, **more: Any) -> Self:
        """Return the entry with the name `at`."""
        return super().read(tree, at, **more, name=at or "", where=NOWHERE if at is None else at.where)


def first_sentence(text: str) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def _property(cls: type[KeyedMapping], attribute: str, key: Key) -> Schema:
    """Return the schema of a key, with its meaning, default, unit and an example."""
    default, example = default_of(cls, attribute), example_of(cls, attribute, key)
    unit = f" ({key.unit_text})" if key.unit_text else ""
    return {
        **key.kind.schema(),
        "description": f"{key.doc}{unit}",
        **({"default": default} if isinstance(default, str | int) and default != "" else {}),
        **({"examples": [example]} if example is not None else {}),
    }


def default_of(cls: type[KeyedMapping], attribute: str) -> Any:
    """Return the default of a key; None if it has none."""
    item = next(item for item in fields(cls) if item.name == attribute)
    return item.default if isinstance(item.default, str | int | tuple) else None


def _on_one_line(value: object) -> str:
    """Return an example in the form of a file."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_on_one_line(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_on_one_line(item) for item in value) + "]"
    return str(value)


_OF_ROLE: Mapping[str, str] = {
    "a point": "P", "a frame": "B", "a body": "box", "a coordinate": "q", "a shape": "ground", "a contact": "stop",
    "a mode": "locked",
}  # fmt: skip


def example_of(cls: type[KeyedMapping], attribute: str, key: Key) -> Any:
    """Return a value of a key: its own example, one of its kind or role, or a number in its unit."""
    if key.example is not None:
        return key.example
    if key.role:
        return _OF_ROLE[key.role]
    if key.kind.line:
        return next(iter(plain_data(compose(key.kind.line, "")).values()))
    if key.kind.example is not None:
        return key.kind.example
    if key.kind.mappings:
        found = plain_data(compose(key.kind.mappings[0].example, ""))
        whole = next(iter(found.values())) if len(found) == 1 else found
        return [whole] if key.kind.is_list else whole
    if key.is_expression and key.type == "scalar":
        return f"2 {key.unit_text}" if key.unit_text else 2
    if key.is_expression:
        return "N.x" if key.type == "vector" else "x > 0"
    return key.kind.example


_KEYS: dict[type, Mapping[str, tuple[str, Key]]] = {}
_OTHERS: dict[type, tuple[str, Key] | None] = {}


def others_of(cls: type[KeyedMapping]) -> tuple[str, Key] | None:
    """Return field and key of the words that are no keys; None if these are mistakes."""
    if cls not in _OTHERS:
        found = ((item.name, item.metadata[METADATA]) for item in fields(cls) if METADATA in item.metadata)
        _OTHERS[cls] = next((item for item in found if item[1].others is not None), None)
    return _OTHERS[cls]


def keys_of(cls: type[KeyedMapping]) -> Mapping[str, tuple[str, Key]]:
    """Return field and key by name in files, in order."""
    if cls not in _KEYS:
        found = [(item.name, item.metadata[METADATA]) for item in fields(cls) if METADATA in item.metadata]
        found = [item for item in found if item[1].others is None]
        named = {key.name or attribute: (attribute, key) for attribute, key in found}
        _KEYS[cls] = {name: named[name] for name in dict.fromkeys((*cls.first, *named))}
    return _KEYS[cls]


def key_of_field(cls: type[KeyedMapping], attribute: str) -> Key | None:
    """Return the key of a field; None if it is no key."""
    return next((key for own, key in keys_of(cls).values() if own == attribute), None)


def mappings_in(value: object) -> Iterator[KeyedMapping]:
    """Yield the mappings that are a value of a key, or its items."""
    if isinstance(value, KeyedMapping):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from mappings_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from mappings_in(item)


def renamed(
    entry: KeyedMapping, change: Callable[[Any], Any], frame: str, event: Callable[[Any], Any]
) -> dict[str, Any]:
    """Return the fields of a mapping with names changed.

    ``frame``: the frame in place of ``N``, a default too; ``event``: changes a contact and what happens to it.
    """
    keys = dict(keys_of(type(entry)).values())
    found: dict[str, Any] = {}
    for item in fields(entry):
        value, key = getattr(entry, item.name), keys.get(item.name)
        if item.name in ("written", "where"):
            continue
        holds = "names" if key is None else key.kind.holds
        if value is None or holds == "words":
            found[item.name] = value
        elif holds == "event":
            found[item.name] = event(value)
        elif holds == "values":
            found[item.name] = {word: change(text) for word, text in value.items()}
        elif key is not None and key.role == "a frame" and value == "N":
            found[item.name] = LocatedStr(frame)
        else:
            found[item.name] = change(value)
    return found


def with_mappings(entry: KeyedMapping) -> tuple[KeyedMapping, ...]:
    """Return an entry and the mappings that are values of its keys."""
    inner = (getattr(entry, attribute) for attribute, key in keys_of(type(entry)).values() if key.kind.mappings)
    return (entry, *(one for value in inner for one in mappings_in(value)))


def stating_something(form: KeyedT, label: str) -> KeyedT:
    """Return a mapping of optional keys, if one of them is there.

    Raises ModelError: there is none: the mapping has no effect.
    """
    if not form.written_keys():
        example = f"such as `{form.example}`"
        raise ModelError(
            f"{label}: no key is given, so it has no effect", form.key(""), allowed=", ".join(keys_of(type(form))),
            remedy=f"add what is meant, {example}, or omit it",
        )  # fmt: skip
    return form


def exactly_one(form: HasKeys, keys: tuple[str, ...]) -> str:
    """Return the one written key among `keys`. Raises ModelError if none or several of them were."""
    given = [key for key in form.written_keys() if key in keys]
    if not given:
        raise ModelError(
            f"{form.what} needs one of {', '.join(keys)}",
            form.key(""),
            found=", ".join(form.written_keys()) or "no keys",
        )
    if len(given) > 1:
        raise ModelError(
            f"{form.what} has both {given[0]!r} and {given[1]!r}",
            form.key(given[1]),
            allowed=f"one of {', '.join(keys)}",
        )
    return given[0]


def only_with(form: HasKeys, kind: str, companions: tuple[str, ...]) -> None:
    """Refuse keys incompatible with `kind`. Raises ModelError at the first key other than `kind` and `companions`."""
    for key in form.written_keys():
        if key != kind and key not in companions:
            raise ModelError(
                f"{key!r} does not go with {kind!r}",
                form.key(key),
                allowed=", ".join(companions) or f"{kind} alone",
            )
