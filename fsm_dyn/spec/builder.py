"""A model made by calls, one method for each section of the language."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from fsm_dyn import models
from fsm_dyn.errors import ModelError
from fsm_dyn.spec.components.lookup import Origin
from fsm_dyn.spec.forms.mechanism import FORMAT
from fsm_dyn.spec.loader import NO_FILE, from_tree
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.reader import compose, read_file
from fsm_dyn.spec.written_model import Value, WrittenModel, calling_line, without_underscores
from fsm_dyn.spec.yaml_tree import LocatedMapping
from fsm_dyn.whole_files import write_file


class Model(WrittenModel):
    """A model written in Python, entry by entry, in any order.

    A method adds one entry to the section of the language that has its name; its keywords are the keys of that
    section, or its second argument is the whole value where the language has a short form.  A keyword that Python
    reserves gets an underscore: ``from_``.  Values are texts (``"4 kg"``, expressions), numbers, booleans, lists and
    mappings.  Nothing is checked before `mechanism`, except that no entry is declared by two calls.  An entry of a
    file is replaced, in its place.

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

        What came from a file is as it was there, comments and layout included.
        """
        if path is not None:
            write_file(path, self._text)
        return self._text

    def mechanism(self, variant: str | None = None) -> Mechanism:
        """Return the model, or one of its variants, checked and frozen, as `fsm_dyn.load` returns that of a file.

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
            The model cannot be used; the message has file and line of the call, or of the file, that is at fault.
        """
        return from_tree(self._tree, self._name, self._text, variant, self._origin)

    def settings(self, **values: Value) -> Self:
        """Set keys of the top level with one value: ``summary``, ``impacts`` and those that `Model` takes.

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
        """Add a coordinate with its unit, or with keys: ``unit``, ``range``; with neither where no units are used.

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
            The expression that is zero, of position or velocity.
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
        """Add an input with its unit, or with keys; with neither where no units are used.

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
        """Forbid the modes that no pattern names.

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
        """Add a variant: what differs, by sections.

        Parameters
        ----------
        name : str
            Of the entry.
        **sections
            Entries that differ, by section.

        Returns
        -------
        Model
            The model itself.
        """
        return self._add("variants", name, None, sections)

    def __repr__(self) -> str:
        return f"Model({self._name!r})"
