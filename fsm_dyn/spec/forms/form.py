"""Base class of all forms: a frozen pydantic model with its location and its keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from fsm_dyn.errors import NOWHERE, Location, ModelError, did_you_mean
from fsm_dyn.spec.forms.fields import as_items, as_section
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, LocatedStr, Tree, describe


class Form(BaseModel):
    """Base of the forms.

    ``what`` names the form in messages; ``later`` contains reserved keys of the language with the present
    alternative of each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    what: ClassVar[str] = "this"
    later: ClassVar[Mapping[str, str]] = {}
    hints: ClassVar[Mapping[str, str]] = {}

    _where: Location = PrivateAttr(default=NOWHERE)
    _keys: Mapping[str, LocatedStr] = PrivateAttr(default_factory=dict)

    @property
    def where(self) -> Location:
        """Location of the form in its file."""
        return self._where

    def key(self, name: str) -> Location:
        """Return where the key `name` was written, or the place of the form."""
        key = self._keys.get(name)
        return self._where if key is None else key.where

    def spelling(self, name: str) -> str:
        """Return the key `name` as the file spells it."""
        key = self._keys.get(name)
        return name if key is None else key.written

    def given(self) -> tuple[str, ...]:
        """Return the keys that were written, in order."""
        return tuple(self._keys)

    @classmethod
    def allowed_keys(cls) -> tuple[str, ...]:
        """Return the keys the form has, as written in files."""
        return tuple(field.alias or key for key, field in cls.model_fields.items())

    @model_validator(mode="wrap")
    @classmethod
    def _with_place(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        section = as_section(data, cls.what)
        allowed = cls.allowed_keys()
        for key in section:
            if key not in allowed:
                raise cls._unknown(key, allowed)
        form = handler(dict(section))
        form._where = section.where
        form._keys = {str(key): key for key in section}
        return form

    @classmethod
    def _unknown(cls, key: LocatedStr, allowed: tuple[str, ...]) -> ModelError:
        if key in cls.later:
            return not_yet(key, cls.later[key])
        return ModelError(
            f"{cls.what} has no key {str(key)!r}",
            key.where,
            found=key,
            allowed=", ".join(allowed),
            remedy=cls.hints.get(key) or did_you_mean(key, allowed),
        )


def not_yet(key: LocatedStr, remedy: str) -> ModelError:
    """Return the error for a part of the language that comes with a later version."""
    return ModelError(f"{str(key)!r} is reserved: this version does not have it yet", key.where, remedy=remedy)


FormT = TypeVar("FormT", bound=Form)


def validated(form: type[FormT], tree: Tree) -> FormT:
    """Return `tree` as a form.

    Raises
    ------
    ModelError
        With the exact place of the first key or value that does not fit.
    """
    try:
        return form.model_validate(tree)
    except ValidationError as error:
        raise _located(tree, form.what, error.errors(include_url=False)[0]) from None


def _located(tree: Tree, what: str, problem: Any) -> ModelError:
    """Turn what pydantic found by itself (missing keys, mostly) into an error with a place."""
    path = list(problem["loc"])
    missing = str(path.pop()) if problem["type"] == "missing" and path else ""
    where, owner = _walk(tree, what, path)
    if missing:
        return ModelError(f"{owner} lacks the key {missing!r}", where, remedy=_MISSING.get(missing, ""))
    return ModelError(f"{owner}: {problem['msg']}", where, found=describe(problem.get("input")))


_MISSING = {
    "fsm_dyn": "begin the file with `fsm_dyn: 1`",
    "bodies": "a mechanism has at least one body: `ball: {center: P, mass: 1 kg}`",
    "center": "name the point at which the mass centre is",
    "from": '`from: O` for a point given from the origin, `from: "*"` for a transition from any mode',
}


def _walk(tree: Tree, what: str, path: list[str | int]) -> tuple[Location, str]:
    """Follow `path` as far as it exists; return the place of its last key and its name."""
    where, owner = tree.where, what
    for part in path:
        if isinstance(tree, LocatedMapping) and part in tree:
            word = next(word for word in tree if word == part)
            where, owner, tree = word.where, str(word), tree[word]
        elif isinstance(tree, LocatedList) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
            where, owner = tree.where, f"{owner}[{part}]"
    return where, owner


def section_of(what: str) -> BeforeValidator:
    """Return a validator that wants a mapping and names `what` otherwise."""

    def check(tree: Any) -> LocatedMapping:
        return as_section(tree, what)

    return BeforeValidator(check)


def items_of(what: str) -> BeforeValidator:
    """Return a validator that wants a list and names `what` otherwise."""

    def check(tree: Any) -> list[Any]:
        return as_items(tree, what)

    return BeforeValidator(check)


def exactly_one(form: Form, keys: tuple[str, ...]) -> str:
    """Return which one of `keys` was written.

    Raises
    ------
    ModelError
        If none or several of them were.
    """
    given = [key for key in form.given() if key in keys]
    if not given:
        raise ModelError(
            f"{form.what} needs one of {', '.join(keys)}",
            form.where,
            found=", ".join(map(form.spelling, form.given())) or "no keys",
        )
    if len(given) > 1:
        raise ModelError(
            f"{form.what} has both {form.spelling(given[0])!r} and {form.spelling(given[1])!r}",
            form.key(given[1]),
            allowed=f"one of {', '.join(keys)}",
        )
    return given[0]


def only_with(form: Form, kind: str, companions: tuple[str, ...]) -> None:
    """Refuse keys that do not go with `kind`.

    Raises
    ------
    ModelError
        At the first key that is neither `kind` nor in `companions`.
    """
    for key in form.given():
        if key != kind and key not in companions:
            raise ModelError(
                f"{form.spelling(key)!r} does not go with {form.spelling(kind)!r}",
                form.key(key),
                allowed=", ".join(companions) or f"{kind} alone",
            )
