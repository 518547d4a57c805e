"""Keys of the language: the kind, unit, scope, sign and meaning of each, declared once as a field of its mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, replace
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language import form as leaves
from fsm_dyn.language.expression_tree import Text, excerpt
from fsm_dyn.language.units import DIMENSIONLESS, Dimension, dimension_text
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

Schema: TypeAlias = Mapping[str, Any]
MappingClass: TypeAlias = Any  # a class of mappings (fsm_dyn.language.keyed)

NAME_PATTERN: Final = "^[A-Za-z][A-Za-z0-9_]*$"
VALUE: Final[Schema] = {"type": ["string", "number"]}
NAME: Final[Schema] = {"type": "string", "pattern": NAME_PATTERN}

# -- Kinds of values: how each is read, its schema, its word in tables ---------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of value."""

    read: Callable[[Tree, LocatedStr], Any]  # from a node of the tree, and the key it stands at, to the value
    schema: Callable[[], Schema]  # returns the JSON Schema of the value
    word: str  # for tables
    # its words in a component: ``"names"`` of the model, renamed with it; ``"words"`` of the language; ``"values"``, a
    # mapping from words to expressions; ``"event"``, a contact and what happens to it
    holds: Literal["names", "words", "values", "event"] = "names"
    mappings: tuple[MappingClass, ...] = ()  # classes of the mappings in it
    example: Any = None
    line: str = ""  # a line of a file with it, if it is a section
    expressions: bool = False  # whether it is an expression or several, whose units are checked
    is_list: bool = False  # whether it is a list of mappings


def leaf(
    read: Callable[[Tree], Any],
    schema: Schema,
    word: str,
    *,
    holds: Literal["names", "words", "values", "event"] = "names",
    mappings: tuple[MappingClass, ...] = (),
    example: Any = None,
    line: str = "",
    expressions: bool = False,
) -> Kind:
    """Return a kind of value that is read without its key."""
    return Kind(lambda tree, at: read(tree), lambda: schema, word, holds, mappings, example, line, expressions)


def list_of(items: Schema, least: int, most: int | None = None) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, "minItems": least, **({} if most is None else {"maxItems": most})}


EXPRESSION: Final = leaf(leaves.expression, VALUE, "expression", expressions=True)
ONE_OR_MORE: Final = leaf(
    leaves.one_or_more_expressions, {"anyOf": [VALUE, list_of(VALUE, 1)]}, "expression or list", expressions=True
)
ONE_OR_TWO: Final = leaf(
    leaves.one_or_two_expressions, {"anyOf": [VALUE, list_of(VALUE, 1, 2)]}, "expression or two", expressions=True
)
UNIT: Final = leaf(leaves.unit_text, {"type": ["string", "number", "null"]}, "unit", holds="words", example="N")
FLAG: Final = leaf(leaves.flag, {"type": "boolean"}, "`true`, `false`", example=True)
TEXT: Final = leaf(
    leaves.free_text, {"type": "string", "maxLength": leaves.MAX_TEXT}, "text", holds="words", example="a text"
)
REFERENCE: Final = leaf(leaves.name, NAME, "name")
NEW_NAME: Final = leaf(leaves.new_name, NAME, "new name", example="shove")
NAMES: Final = leaf(leaves.names, list_of(NAME, 0), "list of names", example=["P"])
PAIR: Final = leaf(leaves.pair_of_names, list_of(NAME, 2, 2), "two points", example=["O", "P"])


def one_of(*allowed: str) -> Kind:
    """Return the kind of a value that is one of a few words."""
    words = ", ".join(f"`{item}`" for item in allowed)
    return leaf(leaves.one_of(*allowed), {"enum": list(allowed)}, words, holds="words", example=allowed[0])


def whole_number(least: int, most: int, complaint: str, remedy: str = "") -> Kind:
    """Return the kind of a value that is a whole number between two."""

    def read(tree: Tree) -> int:
        value = tree.value if isinstance(tree, Scalar) else None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise ModelError(complaint, tree.where, found=describe(tree), allowed=f"{least} to {most}", remedy=remedy)

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return leaf(read, schema, f"{least} to {most}", example=max(least, 1))


def reference_to(cls: MappingClass) -> Schema:
    """Return the schema that refers to that of a class of mappings."""
    return {"$ref": f"#/$defs/{cls.__name__}"}


def whole(cls: MappingClass) -> Kind:
    """Return the kind of a mapping with keys of its own."""
    return Kind(cls.read, lambda: reference_to(cls), cls.what, mappings=(cls,))


def _entries_schema(entry: Schema) -> Schema:
    return {"type": "object", "patternProperties": {NAME_PATTERN: entry}, "additionalProperties": False}


def section(
    value: Kind, what: str, example: str = "", name: Callable[[Tree | LocatedStr], LocatedStr] = leaves.key
) -> Kind:
    """Return the kind of a mapping from names to values."""

    def read(tree: Tree, at: LocatedStr) -> dict[str, Any]:
        items = leaves.as_section(tree, what, example)
        return {name(word): value.read(item, word) for word, item in items.items()}

    word = f"{value.word} by name"
    return Kind(read, lambda: _entries_schema(value.schema()), word, mappings=value.mappings, line=example)


def entries(value: Kind, what: str, example: str = "") -> Kind:
    """Return the kind of a mapping from names to entries, kept as a tuple of these."""
    inner = section(value, what, example)
    return Kind(
        lambda tree, at: (*inner.read(tree, at).values(),),
        inner.schema,
        inner.word,
        mappings=inner.mappings,
        line=example,
    )


def or_list(kind: Kind, read: Callable[[LocatedList], Any], schema: Schema) -> Kind:
    """Return a kind of section for which a list of names may stand."""

    def either(tree: Tree, at: LocatedStr) -> Any:
        return read(tree) if isinstance(tree, LocatedList) else kind.read(tree, at)

    return replace(kind, read=either, schema=lambda: {"anyOf": [kind.schema(), schema]}, word=f"{kind.word}; or a list")


def listing(value: Kind, what: str) -> Kind:
    """Return the kind of a list of values, kept as a tuple."""

    def read(tree: Tree, at: LocatedStr) -> tuple[Any, ...]:
        items = leaves.as_items(tree, what)
        return tuple(value.read(item, LocatedStr(f"{at}[{n}]", item.where)) for n, item in enumerate(items))

    return Kind(
        read, lambda: {"type": "array", "items": value.schema()}, f"list: {value.word}", mappings=value.mappings,
        is_list=True,
    )  # fmt: skip


# -- Bounds of constants -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bounds:
    """Values that are allowed.

    ``complaint`` and ``allowed`` are the words for one that is not, ``found`` the format of its number, if not as
    written; ``open`` excludes ``lower`` itself.
    """

    lower: float
    upper: float
    complaint: str
    allowed: str
    open: bool = False
    found: str = ""

    def check(self, value: float, text: Text, what: object) -> None:
        """Refuse a value outside. Raises ModelError."""
        if not self.lower <= value <= self.upper or (self.open and value == self.lower):
            found = self.found.format(value) if self.found else excerpt(text.text)
            raise ModelError(f"{what} {self.complaint}", text.where, found=found, allowed=self.allowed)


POSITIVE: Final = Bounds(0.0, float("inf"), "is not positive", "more than 0", open=True)
NOT_NEGATIVE: Final = Bounds(0.0, float("inf"), "is negative", "0 or more")

# -- Keys ----------------------------------------------------------------------------------------------------


class KnownUnits(Protocol):
    """What is known while the units of a mapping are checked (:class:`fsm_dyn.language.check_values.UnitCheck`)."""

    named: Mapping[str, Dimension]

    def type(self, attribute: str, /) -> Any:
        """Return kind, dimension and value of an expression of the mapping, or of the mapping around it."""

    def dimension(self, attribute: str, absent: Dimension | None = None, /) -> Dimension | None:
        """Return the dimension of an expression, or `absent` without one."""


#: Allowed dimensions of an expression, or a function of the mapping and of what is known of it; None for any.
Unit: TypeAlias = Dimension | list[Dimension] | Callable[[Any, Any], list[Dimension] | None] | None
METADATA: Final = "key"  # of the metadata of a field


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a mapping of the language."""

    kind: Kind
    doc: str  # its meaning, for tables, schema and builder
    name: str = ""  # in files, if not the attribute's
    required: bool = True
    usual: str = ""  # the default as text, if it is no value of the key
    unit: Unit = None  # of its expressions
    # visible names of its expressions: a field of ``Scopes``, or a function of the mapping that returns one
    scope: str | Callable[[Any], str] = "constant"
    type: Literal["scalar", "vector", "condition"] = "scalar"  # of its expressions
    bounds: Bounds | None = None  # of its constants
    # whether its bounds are checked with the units, because those of other keys depend on its value
    at_once: bool = False
    # in messages, a format of ``of`` (label of the mapping), ``owner`` (of the mapping around it), ``name``, ``entry``
    # and ``key``
    noun: str = "the {key} of {of}"
    role: str = ""  # what a reference refers to: ``"a point"``
    later: bool = False  # whether digests leave it out if it is not given, being younger than the first ones
    example: Any = None
    # of the one key of a mapping that holds the values of all other words by name: reads such a word. ``name`` then
    # describes the words.
    others: Callable[[LocatedStr], LocatedStr] | None = None

    @property
    def is_expression(self) -> bool:
        """Whether it holds one expression or several."""
        return self.kind.expressions

    @property
    def is_constant(self) -> bool:
        """Whether it holds expressions with a value that can be checked before a run."""
        return self.is_expression and (self.scope == "constant" or self.bounds is not None)

    @property
    def unit_text(self) -> str:
        """Its unit, empty for none or several."""
        return dimension_text(self.unit) if isinstance(self.unit, tuple) and self.unit != DIMENSIONLESS else ""


def key(kind: Kind, doc: str, default: Any = MISSING, *, factory: Any = MISSING, **more: Any) -> Any:
    """Return a field that is a key of the language; without a default it is required."""
    required = default is MISSING and factory is MISSING
    metadata = {METADATA: Key(kind, doc, required=required, **more)}
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def others(kind: Kind, name: str, doc: str, word: Callable[[LocatedStr], LocatedStr] = leaves.name) -> Any:
    """Return the field with the values of all words of a mapping that are no keys, ``"contact"``, by name."""
    return key(kind, doc, factory=dict, name=name, others=word)


expression = partial(key, EXPRESSION)
expressions = partial(key, ONE_OR_MORE)


def reference(role: str, doc: str, default: Any = MISSING, **more: Any) -> Any:
    """Return a key that names another entry of the model, ``"a point"``."""
    return key(REFERENCE, doc, default, role=role, **more)


def part(cls: MappingClass, doc: str, default: Any = None, **more: Any) -> Any:
    """Return a key whose value is a mapping with keys of its own."""
    return key(whole(cls), doc, default, **more)


def with_short_form(tree: Tree, short: str) -> Tree:
    """Return a mapping or list; a scalar is the value of the key `short`."""
    if short and isinstance(tree, Scalar):
        return LocatedMapping({LocatedStr(short, tree.where): tree}, tree.where)
    return tree
