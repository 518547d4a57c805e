"""A model made by calls, one method for each section of the language, and its text."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Self, TypeAlias

from fsm_dyn.core.errors import InputError, Location, ModelError
from fsm_dyn.core.files import write_file
from fsm_dyn.language import models
from fsm_dyn.language.components import Origin
from fsm_dyn.language.loader import NO_FILE, from_tree
from fsm_dyn.language.mechanism_form import FORMAT
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.yaml import (
    LocatedList,
    LocatedMapping,
    LocatedStr,
    Scalar,
    Tree,
    compose,
    describe,
    read_file,
    tree_of,
    with_entry,
    with_item,
    with_setting,
)

# -- A model under construction ------------------------------------------------------------------------------
#
# The tree of a model file and the file's text, side by side.

Value: TypeAlias = str | float | bool | Sequence["Value"] | Mapping[str, "Value"] | None

_REMEDY = "give all coordinates and inputs a unit or none; correct what a file has"
_CALLED = (__name__, "fsm_dyn.language.builder")


class WrittenModel:
    """Entries in tree and text, each with the place of its call."""

    def _begin(self, tree: LocatedMapping, text: str, name: str, origin: Origin) -> None:
        self._tree, self._text, self._name, self._origin = tree, text, name, origin
        self._calls: dict[tuple[str, str], Location] = {}

    def _set(self, key: str, value: Value, where: Location) -> None:
        tree = _tree(value, where)
        self._text = with_setting(self._text, key, tree) if self._text else f"{key}: {FORMAT}\n"
        self._tree[LocatedStr(key, where)] = tree

    def _add(self, section: str, name: str, value: Value, keys: Mapping[str, Value]) -> Self:
        where = calling_line()
        if keys and value is not None:
            raise ModelError(f"{name!r} of {section} has a value and keys", where, found=", ".join(keys))
        tree = _tree(without_underscores(keys) if value is None else value, where)
        self._put(section, name, tree, where)
        return self

    def _add_all(self, section: str, values: Mapping[str, Value]) -> Self:
        where = calling_line()
        for name, value in values.items():
            self._put(section, name, _tree(value, where), where)
        return self

    def _put(self, section: str, name: str, value: Tree, where: Location) -> None:
        entries = self._tree.get(LocatedStr(section), LocatedMapping({}, where))
        if not isinstance(entries, LocatedMapping):
            raise ModelError(f"'{section}' is no mapping of names", where, found=describe(entries), remedy=_REMEDY)
        first = self._calls.setdefault((section, name), where)
        if first is not where:
            raise ModelError(f"{name!r} of {section} is declared twice", where, found=f"first at {first}")
        self._text = with_entry(self._text, section, name, value)
        entries[LocatedStr(name, where)] = value
        self._tree.setdefault(LocatedStr(section, where), entries)

    def _declare(self, section: str, name: str, unit: Value, keys: Mapping[str, Value]) -> Self:
        return self._add(section, name, unit, keys) if keys or unit is not None else self._append(section, name)

    def _append(self, section: str, item: Value) -> Self:
        where = calling_line()
        items = self._tree.get(LocatedStr(section), LocatedList([], where))
        if not isinstance(items, LocatedList):
            raise ModelError(f"'{section}' is no list", where, found=describe(items), remedy=_REMEDY)
        value = _tree(item, where)
        self._text = with_item(self._text, section, value)
        items.append(value)
        self._tree.setdefault(LocatedStr(section, where), items)
        return self


def without_underscores(keys: Mapping[str, Value]) -> dict[str, Value]:
    """Return keys as the language has them: Python reserves ``from``, so a call gives ``from_``."""
    return {key[:-1] if key.endswith("_") and iskeyword(key[:-1]) else key: value for key, value in keys.items()}


def _tree(value: Value, where: Location) -> Tree:
    """Return a value as a tree whose parts all have one place."""
    try:
        return _placed(tree_of(value), where)
    except InputError as error:
        error.where = where
        raise


def _placed(tree: Tree, where: Location) -> Tree:
    match tree:
        case LocatedMapping():
            entries = {LocatedStr(key, where): _placed(item, where) for key, item in tree.items()}
            return LocatedMapping(entries, where)
        case LocatedList():
            return LocatedList([_placed(item, where) for item in tree], where)
    return Scalar(tree.value, tree.text, where)


def calling_line() -> Location:
    """Return file, line and column of the current call from outside these modules."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") in _CALLED and frame.f_back is not None:
        frame = frame.f_back
    line, _, column, _ = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    return Location(frame.f_code.co_filename, line or frame.f_lineno, (column or 0) + 1)


# -- A model made by calls, one method for each section of the language --------------------------------------


class Model(WrittenModel):
    """A model written in Python, entry by entry, in any order.

    A method adds one entry to the section of its name in the language; its keywords are the keys of this section, or
    its second argument is the whole value if the language has a short form. A keyword reserved by Python gets an
    underscore: ``from_``.  Values are texts (``"4 kg"``, expressions), numbers, booleans, lists and mappings.
    `mechanism` does all checks, except for entries declared by two calls, refused at once. A call replaces an entry of
    a file in its position.

    Parameters
    ----------
    name : str
        The model's name.
    **settings
        Keys of the top level with one value: ``summary``, ``source``, ``impacts``, ``on_inconsistent``,
        ``on_nonunique``, ``joint_coordinates``, ``port_coupling``.

    Examples
    --------
    >>> ball = Model("ball")
    >>> ball.coordinate("y", "m").point("P", from_="O", at="y*N.y").body("ball", center="P", mass="1 kg")
    Model('ball')
    >>> ball.mechanism().coordinates["y"].unit
    'm'
    """

    def __init__(self, name: str, /, **settings: Value) -> None:
        where = calling_line()
        self._begin(LocatedMapping({}, where), "", name, NO_FILE)
        for key, value in {"fsm_dyn": FORMAT, "name": name, **settings}.items():
            self._set(key, value, where)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> Self:
        """Return the model of a file, or of the bare name of a shipped model, to be changed by calls.

        Parameters
        ----------
        path : str or os.PathLike[str]
            A file, or the bare name of a shipped model.

        Raises
        ------
        InputError
            The file cannot be read.
        ModelError
            The file is no YAML mapping.
        """
        file = models.resolve(path if isinstance(path, str) else Path(path))
        text = read_file(file)
        tree = compose(text, str(file))
        if not isinstance(tree, LocatedMapping):
            raise ModelError("a model is a mapping", tree.where)
        model = cls.__new__(cls)
        model._begin(tree, text, file.stem, Origin(file.parent, (str(file.resolve()),)))
        return model

    def to_yaml(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the model as YAML, and write it to ``path`` if there is one.

        Text from a file stays unchanged, comments and layout included.
        """
        if path is not None:
            write_file(path, self._text)
        return self._text

    def mechanism(self, variant: str | None = None) -> Mechanism:
        """Return the model, or one of its variants, checked and frozen, as `fsm_dyn.load` returns it for a file.

        Parameters
        ----------
        variant : str, optional
            Name of a variant; by default the model itself.

        Returns
        -------
        Mechanism

        Raises
        ------
        ModelError
            The model cannot be used; the message has file and line of the call or of the file at fault.
        """
        return from_tree(self._tree, self._name, self._text, variant, self._origin)

    def settings(self, **values: Value) -> Self:
        """Set keys of the top level with one value: ``summary``, ``impacts`` and the arguments of `Model`.

        Parameters
        ----------
        **values
            Values by key.

        Returns
        -------
        Model
            The model itself.
        """
        where = calling_line()
        for key, value in values.items():
            self._set(key, value, where)
        return self

    def parameter(self, name: str, value: Value = None, /, **keys: Value) -> Self:
        """Add a parameter: ``"4 kg"``, an expression, or its keys.

        Parameters
        ----------
        name : str
            Of the entry.
        value : Value, optional
            A number, a text with a unit or an expression, or a list of them; without units of the model in SI.
        **keys
            Keys of the section ``parameters`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("parameters", name, value, keys)

    def coordinate(self, name: str, unit: Value = None, /, **keys: Value) -> Self:
        """Add a coordinate with its unit, or with keys: ``unit``, ``range``; with neither in a model without units.

        Parameters
        ----------
        name : str
            Of the entry.
        unit : Value, optional
            ``m`` or ``rad``, or another unit of their dimensions.
        **keys
            Keys of the section ``coordinates`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._declare("coordinates", name, unit, keys)

    def frame(self, name: str, /, **keys: Value) -> Self:
        """Add a frame.

        Parameters
        ----------
        name : str
            Of the entry.
        **keys
            Keys of the section ``frames`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("frames", name, None, keys)

    def point(self, name: str, /, **keys: Value) -> Self:
        """Add a point: ``from_``, ``at``.

        Parameters
        ----------
        name : str
            Of the entry.
        **keys
            Keys of the section ``points`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("points", name, None, keys)

    def body(self, name: str, /, **keys: Value) -> Self:
        """Add a body: ``frame``, ``center``, ``mass``, ``inertia``.

        Parameters
        ----------
        name : str
            Of the entry.
        **keys
            Keys of the section ``bodies`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("bodies", name, None, keys)

    def joint(self, name: str, /, **keys: Value) -> Self:
        """Add a joint.

        Parameters
        ----------
        name : str
            Of the entry.
        **keys
            Keys of the section ``joints`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("joints", name, None, keys)

    def speed(self, name: str, expression: Value) -> Self:
        """Add a generalized speed, defined by an expression linear in the rates of coordinates.

        Parameters
        ----------
        name : str
            Of the entry.
        expression : Value
            Its definition, as a text.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("speeds", name, expression, {})

    def constraint(self, name: str, value: Value = None, /, **keys: Value) -> Self:
        """Add a constraint.

        Parameters
        ----------
        name : str
            Of the entry.
        value : Value, optional
            The expression of position or velocity kept at zero.
        **keys
            Keys of the section ``constraints`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("constraints", name, value, keys)

    def shape(self, name: str, /, **keys: Value) -> Self:
        """Add a shape.

        Parameters
        ----------
        name : str
            Of the entry.
        **keys
            Keys of the section ``shapes`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("shapes", name, None, keys)

    def contact(self, name: str, /, **keys: Value) -> Self:
        """Add a contact: ``gap``, ``slip``, ``friction``, ``restitution``, or the keys of another law.

        Parameters
        ----------
        name : str
            Of the entry.
        **keys
            Keys of the section ``contacts`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("contacts", name, None, keys)

    def input(self, name: str, unit: Value = None, /, **keys: Value) -> Self:
        """Add an input with its unit, or with keys; with neither in a model without units.

        Parameters
        ----------
        name : str
            Of the entry.
        unit : Value, optional
            Of its values.
        **keys
            Keys of the section ``inputs`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._declare("inputs", name, unit, keys)

    def schedule(self, name: str, value: Value = None, /, **keys: Value) -> Self:
        """Add the schedule of an input: a constant, or ``linear``, ``steps``, ``expression``.

        Parameters
        ----------
        name : str
            Of the input.
        value : Value, optional
            A constant, with the unit of the input.
        **keys
            Keys of the section ``schedule`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("schedule", name, value, keys)

    def scenario(self, name: str, /, **schedules: Value) -> Self:
        """Add a scenario: schedules of inputs by their names.

        Parameters
        ----------
        name : str
            Of the entry.
        **schedules
            Schedules by the names of inputs.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("scenarios", name, None, schedules)

    def load(self, **keys: Value) -> Self:
        """Add a load, at the end of the list.

        Parameters
        ----------
        **keys
            Keys of the section ``loads`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._append("loads", without_underscores(keys))

    def mode(self, name: str, /, **states: Value) -> Self:
        """Add a name for a pattern of contact states.

        Parameters
        ----------
        name : str
            Of the entry.
        **states
            States by the names of contacts; a contact left out may have any.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("modes", name, None, states)

    def only_listed(self, value: bool = True) -> Self:
        """Forbid the modes without a pattern.

        Parameters
        ----------
        value : bool, optional

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("modes", "only_listed", value, {})

    def memory(self, name: str, value: Value) -> Self:
        """Add a discrete variable with its initial value.

        Parameters
        ----------
        name : str
            Of the entry.
        value : Value
            An integer or a boolean.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("memory", name, value, {})

    def controller(self, name: str, /, **keys: Value) -> Self:
        """Add a sampled controller: ``period``, ``delay``, ``inputs``, ``memory``, ``outputs``.

        Parameters
        ----------
        name : str
            Of the entry.
        **keys
            Keys of the section ``controllers`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("controllers", name, None, keys)

    def transition(self, **keys: Value) -> Self:
        """Add a user-defined transition, at the end of the list.

        Parameters
        ----------
        **keys
            Keys of the section ``transitions`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._append("transitions", without_underscores(keys))

    def numerics(self, **values: Value) -> Self:
        """Set tolerances of the model's runs.

        Parameters
        ----------
        **values
            Tolerances by name, with units or in SI.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add_all("numerics", values)

    def port(self, name: str, /, **keys: Value) -> Self:
        """Add a port.

        Parameters
        ----------
        name : str
            Of the entry.
        **keys
            Keys of the section ``ports`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("ports", name, None, keys)

    def initial(self, **values: Value) -> Self:
        """Set initial values of coordinates and speeds, and ``mode``, ``guess``, ``settle``.

        Parameters
        ----------
        **values
            Values by name, with the units of the coordinates and speeds.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add_all("initial", values)

    def output(self, name: str, expression: Value) -> Self:
        """Add an output.

        Parameters
        ----------
        name : str
            Of the entry.
        expression : Value
            A text; its unit follows.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("outputs", name, expression, {})

    def requirement(self, name: str, formula: Value = None, /, **keys: Value) -> Self:
        """Add a requirement on a run.

        Parameters
        ----------
        name : str
            Of the entry.
        formula : Value, optional
            A text, as in docs/language.md.
        **keys
            Keys of the section ``requirements`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("requirements", name, formula, keys)

    def view(self, name: str, outlines: Value = None, /, **keys: Value) -> Self:
        """Add the outlines of a body: a list of them, or the keys of one.

        Parameters
        ----------
        name : str
            Of the body.
        outlines : Value, optional
            A list of mappings.
        **keys
            Keys of a single outline; lengths in m or with units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("view", name, outlines, keys)

    def use(self, name: str, /, **keys: Value) -> Self:
        """Add a component: ``file`` or ``model``, ``with_``, ``attach``.

        Parameters
        ----------
        name : str
            Of the entry.
        **keys
            Keys of the section ``use`` of the language (docs/language.md), with values in its units.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("use", name, None, keys)

    def variant(self, name: str, /, **sections: Value) -> Self:
        """Add a variant: its differing entries, by section.

        Parameters
        ----------
        name : str
            Of the entry.
        **sections
            Differing entries, by section.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("variants", name, None, sections)

    def __repr__(self) -> str:
        return f"Model({self._name!r})"
