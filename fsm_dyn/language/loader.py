"""From a path, a text or a mapping to a checked mechanism, and its digest."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from fsm_dyn.core.errors import InputError, Location, ModelError, did_you_mean
from fsm_dyn.language.build import build
from fsm_dyn.language.check_references import check, judged_phases
from fsm_dyn.language.components import Origin, check_added_names, merge_components, overlaid, warn_of_unused
from fsm_dyn.language.contact_forms import SCHEDULE_KEYS
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.keyed import UNWRITTEN, KeyedMapping, Written, keys_of
from fsm_dyn.language.mechanism_form import CONSTRAINTS, MechanismForm
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.yaml import (
    LocatedMapping,
    Tree,
    as_text,
    compose,
    plain_data,
    read_file,
    tree_of,
    with_setting,
)

# -- Digest of the content of a model, and plain texts -------------------------------------------------------

T = TypeVar("T")

# Mappings with names of the language or look-ups as keys: their order has no meaning.
_UNORDERED = frozenset({"inertia", "states", "reset", "set", "values", "guess", "view", "ports", "numerics"})
_APPENDED = frozenset({"phases", "pins", "imposed"})
_LEFT_OUT = _APPENDED | {"where", "written", "digest", "text", "variants", "coupled_ports", "names", "switches"}
_LEFT_OUT |= {"feature_names", "mappings", "misfits"}  # part of names of contacts; see _younger; a model has no misfits


def with_digest(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with its digest set."""
    return replace(mechanism, digest=digest(mechanism))


def digest(mechanism: Mechanism) -> str:
    """Return a sha256 over the content of a model, without its spelling and layout.

    Comments, places, quotes, spaces in expressions, and the order of keys without meaning do not change it.  The order
    of coordinates, speeds, parameters, inputs, contacts and transitions does: it is the order of columns and of
    priorities.  Names of parts and phases change neither equations nor runs; phases count
    where a requirement names one, as its verdict depends on them, and connections where there are entries of ``pins``.
    """
    content = _canonical(mechanism, "")
    if judged_phases(mechanism):
        content.append(["phases", _canonical(mechanism.phases, "")])
    if mechanism.pins:
        content.append(["pins", _canonical(mechanism.pins, "")])
    if mechanism.imposed:
        content.append(["imposed", _canonical(mechanism.imposed, "")])
    canonical = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(f"fsm_dyn model 1\n{canonical}".encode()).hexdigest()


def _canonical(value: Any, field: str) -> Any:
    if isinstance(value, Text):
        return " ".join(value.text.split())
    if isinstance(value, Mapping):
        pairs = [[str(key), _canonical(item, "")] for key, item in value.items()]
        return sorted(pairs) if field in _UNORDERED else pairs
    if isinstance(value, tuple | list):
        return [_canonical(item, "") for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        stated = [(name, getattr(value, name)) for name in _digested(value)]
        stated += [item for one in getattr(value, "mappings", ()) for item in _younger(one)]
        if hasattr(value, "kind"):  # classes of one family may have the same fields
            stated.insert(0, ("kind", value.kind))
        return [[name, _canonical(item, name)] for name, item in stated]
    return str(value) if isinstance(value, str) else value


def _digested(value: Any) -> list[str]:
    """Return the fields of data in the order of the digest: keys younger than the first digests follow, if given."""
    names = [*getattr(value, "digested", ())]
    if not isinstance(value, KeyedMapping):
        return names or [item.name for item in fields(value) if item.name not in _LEFT_OUT]
    later = [attribute for attribute, key in keys_of(type(value)).values() if key.later]
    names = names or [item.name for item in fields(value) if item.name not in (*_LEFT_OUT, *later)]
    return names + [name for name, _ in _younger(value)]


def _younger(value: KeyedMapping) -> list[tuple[str, Any]]:
    """Return the given keys of a mapping that are younger than the first digests."""
    later = [attribute for attribute, key in keys_of(type(value)).values() if key.later]
    return [(name, found) for name in later if (found := getattr(value, name)) not in (None, (), "", False)]


def plain(value: T) -> T:
    """Return `value` with located texts replaced by ordinary ones, at any depth."""
    result: Any = value
    if isinstance(value, Location | Text):
        return value
    if isinstance(value, str):
        result = str(value)
    elif isinstance(value, Mapping):
        result = {plain(key): plain(item) for key, item in value.items()}
    elif isinstance(value, tuple):
        result = tuple(plain(item) for item in value)
    elif isinstance(value, Written):
        result = UNWRITTEN
    elif is_dataclass(value) and not isinstance(value, type):
        result = replace(value, **{f.name: plain(getattr(value, f.name)) for f in fields(value)})
    return result  # type: ignore[no-any-return]


# -- From a path, a text or a mapping to a checked mechanism -------------------------------------------------

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
        If the model cannot be used; the message holds ``file:line:column``, the found and the allowed values, and a
        remedy. No other error results from the text of a model.
    """
    if isinstance(source, Mapping):
        if text is not None:
            raise InputError("a mapping and a text were given", remedy="give one of them")
        return _read(tree_of(source), "mechanism", as_text(source), variant)
    if text is not None:
        name = str(source) if source is not None else "<text>"
        return _read(compose(text, name), _stem(name), text, variant)
    if source is None:
        raise InputError("no model was given", allowed="a path, a mapping or a text")
    if isinstance(source, str) and "\n" in source:
        raise InputError("this is no path", found=source[:40], remedy="give the YAML itself as `text=`")
    path = Path(source)
    content = read_file(path)
    origin = Origin(path.parent, (str(path.resolve()),))
    return _read(compose(content, str(path)), _stem(str(path)), content, variant, origin)


def _read(tree: Tree, default_name: str, text: str, variant: str | None, origin: Origin = NO_FILE) -> Mechanism:
    """Return the checked mechanism of a composed file, with warnings of unused names."""
    found = from_tree(tree, default_name, text, variant, origin)
    warn_of_unused(tree)
    return found


def heading(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the summary and the names of the variants of a model file, without checking the rest of it.

    Raises InputError: the file cannot be read, or is no YAML mapping.
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
) -> Mechanism:
    """Return the checked mechanism of a composed file; `text` is its source.

    A model without a chosen variant is checked with each of its variants as well.  The text of a variant, of a model
    with components, or of one without a name, is complete: with the overlay applied, the components inlined, and the
    name of its file.
    """
    form, whole, mechanism = _checked(tree, default_name, variant, origin)
    if variant is not None:
        check_added_names(tree, variant)
    if variant is not None or form.use or not form.name:
        text = as_text({**plain_data(whole), "name": str(mechanism.name)})
    for name in form.variants:
        check_added_names(tree, name)
        try:
            _checked(tree, default_name, name, origin)
        except ModelError as error:
            raise ModelError(
                f"in variant {name!s}: {error.message}",
                error.where,
                found=error.found,
                allowed=error.allowed,
                remedy=error.remedy,
            ) from None
    return with_digest(plain(replace(mechanism, text=text)))


def _checked(
    tree: Tree, default_name: str, variant: str | None, origin: Origin
) -> tuple[MechanismForm, Tree, Mechanism]:
    """Return a model, with a variant's overlay if one is named, as a form, a tree and a checked mechanism."""
    if variant is not None:
        tree = overlaid(tree, variant, default_name)
    form, whole = merge_components(tree, origin)
    return form, whole, check(build(form, default_name))


def with_settings(mechanism: Mechanism, **settings: object) -> Mechanism:
    """Return a model with these keys of its top level, each a line of its text, and without variants to choose.

    Raises ModelError: the model cannot be used with them.
    """
    text = mechanism.text
    if mechanism.variants:
        tree = compose(text, mechanism.name)
        text = as_text({key: value for key, value in plain_data(tree).items() if key != "variants"})
    for key, value in ({"name": mechanism.name} | settings).items():
        text = with_setting(text, key, tree_of(value))
    return from_tree(compose(text, mechanism.name), mechanism.name, text)


def imposing(mechanism: Mechanism, name: str, **entry: object) -> Mechanism:
    """Return a model with one more constraint to impose.

    ``name``: its name, and that of its input. ``**entry``: its keys, as under ``imposed``; a number of seconds may
    stand for a time. Raises ModelError: the model cannot be used with it.
    """
    data = plain_data(compose(mechanism.text, mechanism.name))
    seconds = " s" if mechanism.uses_units else ""
    given = {
        key: f"{value!r}{seconds}" if key in ("at", "until", "draw_in") and isinstance(value, int | float) else value
        for key, value in entry.items()
        if value is not None
    }
    if name in (data.get("imposed") or {}):
        raise InputError(f"'{mechanism.name}' has a constraint '{name}' to impose", remedy="give this one another name")
    return with_settings(mechanism, imposed={**(data.get("imposed") or {}), name: given})


def with_scenario(mechanism: Mechanism, scenario: str) -> Mechanism:
    """Return a model whose inputs follow the schedules of one of its scenarios; inputs without one keep theirs.

    Raises InputError: it has no scenario of that name.
    """
    if scenario not in mechanism.scenarios:
        raise InputError(
            f"'{mechanism.name}' has no scenario '{scenario}'",
            allowed=", ".join(mechanism.scenarios) or "it has none",
            remedy=did_you_mean(scenario, mechanism.scenarios),
        )
    data = plain_data(compose(mechanism.text, mechanism.name))
    replaced = dict(data["scenarios"][scenario])
    imposed = replaced.pop(CONSTRAINTS, None)
    if imposed:
        del data["scenarios"][scenario][CONSTRAINTS]
        held = {name: entry if {"at", "until"} & {*entry} else {**entry, "at": 0} for name, entry in imposed.items()}
        data["imposed"] = {**(data.get("imposed") or {}), **held}
    for name, declared in (data.get("inputs") or {}).items():
        if name in replaced and isinstance(declared, dict):
            data["inputs"][name] = {word: value for word, value in declared.items() if word not in SCHEDULE_KEYS}
    data["schedule"] = {**(data.get("schedule") or {}), **replaced}
    text = as_text(data)
    return from_tree(compose(text, mechanism.name), mechanism.name, text)


def _stem(path: str) -> str:
    """Return a model name from a file name, for files without a name."""
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", Path(path).stem).lstrip("0123456789_-")[:64]
    return stem or "mechanism"
