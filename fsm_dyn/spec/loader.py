"""From a path, a text or a mapping to a checked mechanism."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fsm_dyn.errors import InputError
from fsm_dyn.spec.build import build
from fsm_dyn.spec.checks import check
from fsm_dyn.spec.digest import plain, with_digest
from fsm_dyn.spec.forms.mechanism import form_of
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.plain import as_text, tree_of
from fsm_dyn.spec.reader import compose, read_file
from fsm_dyn.spec.tree import Tree


def load(source: str | os.PathLike[str] | Mapping[str, object] | None = None, *, text: str | None = None) -> Mechanism:
    """Read a model, check it completely and return it frozen.

    Parameters
    ----------
    source : path or mapping
        A YAML file, or the same content as a mapping.  With `text`, the name to use in places.
    text : str, optional
        The YAML itself, instead of a file.

    Returns
    -------
    Mechanism
        Its expressions are still text, each with its place; form, references, kinds, units and constant
        values are checked.

    Raises
    ------
    InputError
        If the model cannot be used; the message holds ``file:line:column``, what was found, what is
        allowed and what to do.  Nothing else is raised on account of what the model says.
    """
    if isinstance(source, Mapping):
        if text is not None:
            raise InputError("a mapping and a text were given", remedy="give one of them")
        return from_tree(tree_of(source), "mechanism", as_text(source))
    if text is not None:
        name = str(source) if source is not None else "<text>"
        return from_tree(compose(text, name), _stem(name), text)
    if source is None:
        raise InputError("no model was given", allowed="a path, a mapping or a text")
    if isinstance(source, str) and "\n" in source:
        raise InputError("this is no path", found=source[:40], remedy="give the YAML itself as `text=`")
    path = Path(source)
    content = read_file(path)
    return from_tree(compose(content, str(path)), _stem(str(path)), content)


def from_tree(tree: Tree, default_name: str, text: str) -> Mechanism:
    """Return the checked mechanism of a composed file; `text` is what it was read from."""
    mechanism = check(build(form_of(tree), default_name))
    return with_digest(plain(replace(mechanism, text=text)))


def _stem(path: str) -> str:
    """Return a model name made of a file name, for files that give none."""
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", Path(path).stem).lstrip("0123456789_-")[:64]
    return stem or "mechanism"
