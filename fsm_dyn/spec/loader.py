"""From a path, a text or a mapping to a checked mechanism."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fsm_dyn.errors import InputError, ModelError, did_you_mean
from fsm_dyn.spec.build import build
from fsm_dyn.spec.build.whole_turns import turns_uncounted
from fsm_dyn.spec.checks import check
from fsm_dyn.spec.components import merge_components
from fsm_dyn.spec.components.lookup import Origin
from fsm_dyn.spec.digest import plain, with_digest
from fsm_dyn.spec.forms.hybrid import SCHEDULE_KEYS
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.older_spellings import with_new_spellings
from fsm_dyn.spec.python_mapping import as_text, plain_data, tree_of
from fsm_dyn.spec.reader import compose, read_file
from fsm_dyn.spec.variants import overlaid
from fsm_dyn.spec.yaml_edit import with_setting
from fsm_dyn.spec.yaml_tree import LocatedMapping, LocatedStr, Scalar, Tree

NO_FILE = Origin()


def load(
    source: str | os.PathLike[str] | Mapping[str, object] | None = None,
    *,
    text: str | None = None,
    variant: str | None = None,
) -> Mechanism:
    """Read a model, check it completely and return it frozen.

    Parameters
    ----------
    source : path or mapping
        A YAML file, or the same content as a mapping.  With `text`, the name to use in places.
    text : str, optional
        The YAML itself, instead of a file.
    variant : str, optional
        One of the model's ``variants``.

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
        return from_tree(tree_of(source), "mechanism", as_text(source), variant, warn=True)
    if text is not None:
        name = str(source) if source is not None else "<text>"
        return from_tree(compose(text, name), _stem(name), text, variant)
    if source is None:
        raise InputError("no model was given", allowed="a path, a mapping or a text")
    if isinstance(source, str) and "\n" in source:
        raise InputError("this is no path", found=source[:40], remedy="give the YAML itself as `text=`")
    path = Path(source)
    content = read_file(path)
    origin = Origin(path.parent, (str(path.resolve()),))
    return from_tree(compose(content, str(path)), _stem(str(path)), content, variant, origin, warn=True)


def heading(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the summary and the names of the variants of a model file, without checking the rest of it.

    Raises
    ------
    InputError
        The file cannot be read, or is no YAML mapping.
    """
    tree = compose(read_file(path), str(path))
    if not isinstance(tree, LocatedMapping):
        raise ModelError("a model is a mapping", tree.where)
    found = plain_data(tree)
    return str(found.get("summary", "")), tuple(found.get("variants") or ())


def from_tree(
    tree: Tree,
    default_name: str,
    text: str,
    variant: str | None = None,
    origin: Origin = NO_FILE,
    *,
    warn: bool = False,
) -> Mechanism:
    """Return the checked mechanism of a composed file; `text` is its source.

    A model without a chosen variant is checked with each of its variants as well.  The text of a variant, or of a model
    with components or older spellings, is complete: with the overlay applied, the components inlined and new spellings.
    ``warn``: whether older spellings are warned of.
    """
    tree, older = with_new_spellings(tree, warn=warn)
    if variant is not None:
        tree = overlaid(tree, variant, default_name)
    form, whole = merge_components(tree, origin)
    if variant is not None or form.use or older:
        text = as_text(plain_data(whole))
    mechanism = check(build(form, default_name))
    for name in form.variants:
        try:
            from_tree(tree, default_name, "", name, origin)
        except ModelError as error:
            raise ModelError(
                f"in variant {name!s}: {error.message}",
                error.where,
                found=error.found,
                allowed=error.allowed,
                remedy=error.remedy,
            ) from None
    return with_digest(plain(replace(mechanism, text=text)))


def in_absolute_coordinates(mechanism: Mechanism) -> Mechanism:
    """Return a model with ``joint_coordinates: absolute``, without what names the coordinates it had.

    Raises
    ------
    ModelError
        Something else in it depends on speeds of its own joints.
    """
    tree = compose(mechanism.text, mechanism.name)
    if isinstance(tree, LocatedMapping):
        left_out = {"initial", "transitions", "ports", "outputs", "view", "modes", "variants"}
        if not mechanism.coordinates.keys() - {
            name for joint in mechanism.joints.values() for name in joint.coordinates
        }:
            left_out.add("speeds")  # all coordinates are those of joints: the new ones have speeds of their own
        entries = {word: value for word, value in tree.items() if word not in left_out}
        entries[LocatedStr("joint_coordinates")] = Scalar("absolute", "absolute")
        tree = LocatedMapping(entries, tree.where)
    with turns_uncounted():
        return from_tree(tree, mechanism.name, mechanism.text)


def with_settings(mechanism: Mechanism, **settings: object) -> Mechanism:
    """Return a model with these keys of its top level, each a line of its text, and without variants to choose.

    Raises
    ------
    ModelError
        The model cannot be used with them.
    """
    text = mechanism.text
    if mechanism.variants:
        tree = compose(text, mechanism.name)
        text = as_text({key: value for key, value in plain_data(tree).items() if key != "variants"})
    for key, value in ({"name": mechanism.name} | settings).items():
        text = with_setting(text, key, tree_of(value))
    return from_tree(compose(text, mechanism.name), mechanism.name, text)


def with_scenario(mechanism: Mechanism, scenario: str) -> Mechanism:
    """Return a model whose inputs follow one of its scenarios, where that has a schedule for them.

    Raises
    ------
    InputError
        It has no scenario of that name.
    """
    if scenario not in mechanism.scenarios:
        raise InputError(
            f"'{mechanism.name}' has no scenario '{scenario}'",
            allowed=", ".join(mechanism.scenarios) or "it has none",
            remedy=did_you_mean(scenario, mechanism.scenarios),
        )
    data = plain_data(compose(mechanism.text, mechanism.name))
    replaced = data["scenarios"][scenario]
    for name, declared in data["inputs"].items():
        if name in replaced and isinstance(declared, dict):
            data["inputs"][name] = {word: value for word, value in declared.items() if word not in SCHEDULE_KEYS}
    data["schedule"] = {**(data.get("schedule") or {}), **replaced}
    text = as_text(data)
    return from_tree(compose(text, mechanism.name), mechanism.name, text)


def _stem(path: str) -> str:
    """Return a model name made of a file name, for files that give none."""
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", Path(path).stem).lstrip("0123456789_-")[:64]
    return stem or "mechanism"
