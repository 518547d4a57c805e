"""A model made by calls, one method for each section of the language, and its text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.files import write_file
from fsm_dyn.language import models
from fsm_dyn.language.builder_methods import SectionMethods
from fsm_dyn.language.components import Origin
from fsm_dyn.language.loader import NO_FILE, from_tree
from fsm_dyn.language.mechanism_form import FORMAT
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.written_model import Value, calling_line
from fsm_dyn.language.yaml import LocatedMapping, compose, read_file


class Model(SectionMethods):
    """A model written in Python, entry by entry, in any order.

    A method adds one entry to the section of its name in the language; its keywords are the keys of this section, or
    its second argument is the whole value if the language has a short form. A keyword reserved by Python gets an
    underscore: ``from_``.  Values are texts (``"4 kg"``, expressions), numbers, booleans, lists and mappings.
    `mechanism` does all checks, except for entries declared by two calls, refused at once. A call replaces an entry of
    a file in its position. Methods that add to the model return it; keys unknown to the language are refused, with the
    place of the call.

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

    def speed(self, name: str, expression: Value) -> Self:
        """Add a generalized speed, defined by an expression linear in the rates of coordinates.

        Parameters
        ----------
        name : str
            Of the entry.
        expression : Value
            Its definition, as a text.
        """
        return self._add("speeds", name, expression, {})

    def scenario(self, name: str, /, **schedules: Value) -> Self:
        """Add a scenario: schedules of inputs by their names.

        Parameters
        ----------
        name : str
            Of the entry.
        **schedules
            Schedules by the names of inputs.
        """
        return self._add("scenarios", name, None, schedules)

    def only_listed(self, value: bool = True) -> Self:
        """Forbid the modes without a pattern.

        Parameters
        ----------
        value : bool, optional
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
        """
        return self._add("memory", name, value, {})

    def output(self, name: str, expression: Value) -> Self:
        """Add an output.

        Parameters
        ----------
        name : str
            Of the entry.
        expression : Value
            A text; its unit follows.
        """
        return self._add("outputs", name, expression, {})

    def view(self, name: str, outlines: Value = None, /, **keys: Value) -> Self:
        """Add the outlines of a body: a list of them, or the keys of one.

        Parameters
        ----------
        name : str
            Of the body.
        outlines : Value, optional
            A list of mappings.
        **keys
            ``polygon``, ``line``, ``circle``, ``text`` in the order in which they are drawn, and ``frame``.
        """
        return self._add("view", name, outlines, keys)

    def variant(self, name: str, /, **sections: Value) -> Self:
        """Add a variant: its differing entries, by section.

        Parameters
        ----------
        name : str
            Of the entry.
        **sections
            Differing entries, by section.
        """
        return self._add("variants", name, None, sections)

    def __repr__(self) -> str:
        return f"Model({self._name!r})"
