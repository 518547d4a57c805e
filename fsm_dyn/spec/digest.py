"""Digest of the content of a model, and plain texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from fsm_dyn.errors import Location
from fsm_dyn.expressions import Text
from fsm_dyn.spec.constraint import Constraint
from fsm_dyn.spec.contact import Contact
from fsm_dyn.spec.frame import Frame
from fsm_dyn.spec.input_declarations import Schedule
from fsm_dyn.spec.joint import Joint
from fsm_dyn.spec.loads import Load
from fsm_dyn.spec.model import DrawnOutline, Mechanism
from fsm_dyn.spec.shape import SphereShape

T = TypeVar("T")

# Mappings whose keys are names of the language or look-ups: the order in which they are written means nothing.
_UNORDERED = frozenset({"inertia", "states", "reset", "set", "values", "guess", "view", "ports", "numerics"})
_LEFT_OUT = frozenset({"where", "digest", "text", "variants", "coupled_ports"})
# Fields that came later: left out where they are empty, so that models without them keep their digest.
_LATER = frozenset(
    {"acceleration", "backlash", "clearance", "controllers", "kink", "loaded_by", "meaning", "numerics", "range",
     "range_of", "requirements", "step", "thread", "tolerance"}
)  # fmt: skip
# Format 1 knew some entries as one record each, of these fields; those that a kind lacks count as none, or as these.
_ABSENT: Mapping[str, Any] = {"rotations": (), "euler": "", "restitution_law": "newton", "limited": False}
_RECORDS: Mapping[type, tuple[str, ...]] = {
    Load: (
        "name", "kind", "value", "at", "on", "reaction", "between", "coordinate", "stiffness", "free", "damping",
    ),
    Constraint: ("name", "kind", "expression", "kinematic", "joint", "acceleration"),
    Contact: (
        "name", "kind", "gap", "slip", "across", "static", "kinetic", "restitution", "infinite_friction",
        "restitution_law", "closes_if", "features", "limited", "entry", "bilateral", "compliance", "sound_frequency",
        "loaded_by",
    ),
    Frame: ("name", "parent", "kind", "rotations", "euler"),
    Joint: (
        "name", "kind", "parent", "child", "at", "origin", "coordinates", "rows", "backlash", "clearance", "thread",
    ),
}  # fmt: skip


def with_digest(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with its digest set."""
    return replace(mechanism, digest=digest(mechanism))


def digest(mechanism: Mechanism) -> str:
    """Return a sha256 over the content of a model, without its spelling and layout.

    Comments, places, quotes, spaces in expressions, and the order of keys where it means nothing do not
    change it.  The order of coordinates, speeds, parameters, inputs, contacts and transitions does: it is
    the order of columns and of priorities.

    Parameters
    ----------
    mechanism : Mechanism
        The model.
    """
    canonical = json.dumps(_canonical(mechanism, ""), separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(f"fsm_dyn model 1\n{canonical}".encode()).hexdigest()


def _canonical(value: Any, field: str) -> Any:
    if isinstance(value, Text):
        return " ".join(value.text.split())
    if isinstance(value, Mapping):
        pairs = [[str(key), _canonical(item, "")] for key, item in value.items()]
        return sorted(pairs) if field in _UNORDERED else pairs
    if isinstance(value, DrawnOutline):
        own = [] if value.frame is None else [str(value.frame)]
        radius = getattr(value, "radius", None)
        return [value.kind, _canonical(value.places, ""), _canonical(radius, ""), value.label, *own]
    if isinstance(value, tuple | list):
        return [_canonical(item, "") for item in value]
    if isinstance(value, Schedule):
        points, text = getattr(value, "points", ()), getattr(value, "value", None)
        return [["kind", value.kind], ["points", _canonical(points, "")], ["value", _canonical(text, "")]]
    if is_dataclass(value) and not isinstance(value, type):
        record = next((names for kind, names in _RECORDS.items() if isinstance(value, kind)), None)
        names = record or tuple(f.name for f in fields(value) if f.name not in _LEFT_OUT)
        said = [(name, getattr(value, name, _ABSENT.get(name))) for name in names]
        if isinstance(value, SphereShape):  # its fields are those of a circle
            said.append(("kind", value.kind))
        return [[name, _canonical(item, name)] for name, item in said if item or name not in _LATER]
    return str(value) if isinstance(value, str) else value


def plain(value: T) -> T:
    """Return `value` with texts that know their place replaced by ordinary ones, at any depth."""
    result: Any = value
    if isinstance(value, Location | Text):
        return value
    if isinstance(value, str):
        result = str(value)
    elif isinstance(value, Mapping):
        result = {plain(key): plain(item) for key, item in value.items()}
    elif isinstance(value, tuple):
        result = tuple(plain(item) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        result = replace(value, **{f.name: plain(getattr(value, f.name)) for f in fields(value)})
    return result  # type: ignore[no-any-return]
