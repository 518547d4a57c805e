"""Every key of every shipped model is misspelled, one at a time; the error must stand where the mistake is.

A word of the language, or a name that refers to something, must be reported at its own line and column.  A key
that declares a name must be missed at a line that uses the name, or, if nothing uses it, the model must load.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fsm_dyn.core.errors import ModelError
from fsm_dyn.language import loader
from fsm_dyn.language.contacts import Contact
from fsm_dyn.language.dimensions import texts_of
from fsm_dyn.language.expression_tree import free_names
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Tree, compose, scalars

ROOT = Path(__file__).parents[2]
MODELS = [*sorted((ROOT / "yaml_models").glob("*.yaml")), *sorted((ROOT / "tests/unit/language/models").glob("*.yaml"))]

LARGE = {"piano_action", "piano_action_simple"}  # a third of the time of all, and the kinds of keys of everything

#: Sections whose keys declare names, unless the section is a list.
DECLARING = {
    *("parameters", "coordinates", "frames", "points", "bodies", "speeds", "constraints", "contacts"),
    *(
        "inputs",
        "modes",
        "memory",
        "ports",
        "outputs",
        "shapes",
        "use",
        "variants",
        "joints",
        "scenarios",
        "requirements",
        "phases",
    ),
}


@dataclass(frozen=True)
class Key:
    word: LocatedStr
    path: tuple[str, ...]
    value: Tree

    @property
    def declares(self) -> bool:
        if self.path[0] == "controllers":
            return len(self.path) == 2 or (len(self.path) == 4 and self.path[2] in ("inputs", "memory", "outputs"))
        if self.path[0] == "pins" and len(self.path) == 2:  # the name of a connection, unless it says which
            return isinstance(self.value, LocatedMapping) and "between" in self.value
        return len(self.path) == 2 and self.path[0] in DECLARING and self.word != "only_listed"


def keys_of(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[Key]:
    if isinstance(tree, LocatedMapping):
        for word, value in tree.items():
            yield Key(word, (*path, str(word)), value)
            yield from keys_of(value, (*path, str(word)))
    elif isinstance(tree, LocatedList):
        for number, item in enumerate(tree):
            yield from keys_of(item, (*path, str(number)))


def misspelled(text: str, word: LocatedStr) -> str:
    lines = text.split("\n")
    line, column = word.where.line - 1, word.where.column - 1
    assert lines[line][column:].lstrip("\"'").startswith(word), "keys are written on one line"
    end = lines[line].index(word, column) + len(word)
    lines[line] = lines[line][:end] + "xq" + lines[line][end:]
    return "\n".join(lines)


def used_names(mechanism: Mechanism, tree: Tree) -> set[str]:
    """Every name that something in the model refers to."""
    used: set[str | None] = set()
    for text in texts_of(_as_written(mechanism)):
        used |= free_names(parse(text))
    used |= {frame.parent for frame in mechanism.frames.values()}
    used |= {point.origin for point in mechanism.points.values()}
    for joint in mechanism.joints.values():
        used |= {joint.parent, joint.child, *joint.at}
    for body in mechanism.bodies.values():
        used |= {body.frame, body.center, body.about}
    for load in mechanism.loads:
        used |= {*load.points, *load.acts_on}
    for mode in mechanism.modes.values():
        used |= set(mode.states)
    for contact in mechanism.contacts.values():
        if not _of_all(contact, tree):
            used |= {feature.shape for feature in getattr(contact, "features", ())}
    for shape in mechanism.shapes.values():
        used |= {shape.frame, shape.origin, *(getattr(shape, "ends", None) or ())}
    for outlines in mechanism.view.values():
        used |= {outline.frame for outline in outlines}
    for transition in mechanism.transitions:
        used |= {transition.source, transition.target, *transition.reset, *transition.set}
        used |= {transition.on[0]} if transition.on else set()
    for port in mechanism.ports.values():
        used |= {port.point, port.body, port.coordinate}
    used |= {mechanism.initial.mode, *mechanism.initial.values, *mechanism.initial.guess, *mechanism.view}
    for requirement in mechanism.requirements.values():
        used |= set(re.findall(r"\w+", requirement.formula))
    assert isinstance(tree, LocatedMapping)
    used |= _words_of_phases(tree, ("when", "until", "focus"))
    schedule = tree.get(LocatedStr("schedule"))
    used |= set(schedule) if isinstance(schedule, LocatedMapping) else set()
    return {str(name) for name in used if name is not None}


def _words_of_phases(tree: Tree, keys: tuple[str, ...]) -> set[str | None]:
    """Words under these keys of phases, and the things with a name for people."""
    assert isinstance(tree, LocatedMapping)
    phases, names = tree.get(LocatedStr("phases")), tree.get(LocatedStr("names"))
    found: set[str | None] = set(names) if isinstance(names, LocatedMapping) and "after" not in keys else set()
    for phase in phases.values() if isinstance(phases, LocatedMapping) else ():
        assert isinstance(phase, LocatedMapping)
        for key in keys:
            for scalar in scalars(phase.get(LocatedStr(key), LocatedList([], phase.where))):
                found |= {scalar.text} if key == "after" else set(re.findall(r"\w+", scalar.text))
    return found


def _of_all(contact: Contact, tree: Tree) -> bool:
    """Whether no entry of the file lists the contact: `between: all` has made it, and names no shape."""
    entries = tree.get(LocatedStr("contacts")) if isinstance(tree, LocatedMapping) else None
    return not isinstance(entries, LocatedMapping) or contact.entry not in entries


def _as_written(mechanism: Mechanism) -> Mechanism:
    """The mechanism without what its joints have made."""
    places = {joint.where for joint in mechanism.joints.values()}
    return replace(
        mechanism,
        frames={name: frame for name, frame in mechanism.frames.items() if frame.where not in places},
        points={name: point for name, point in mechanism.points.items() if point.where not in places},
        speeds={name: text for name, text in mechanism.speeds.items() if text.where not in places},
        constraints={name: row for name, row in mechanism.constraints.items() if not row.joint},
    )


def derived(key: Key, mechanism: Mechanism) -> set[str]:
    """The names that exist because `name` does: limits of a joint stop, default speeds, those of a component."""
    name = str(key.word)
    names = {name, f"{name}_lower", f"{name}_upper"}
    if name in mechanism.joints:
        joint = mechanism.joints[name]
        names |= {*joint.coordinates, *joint.rows, *(f"{coordinate}_dot" for coordinate in joint.coordinates)}
        names |= {f"{name}_w{axis}" for axis in "xyz"}
    if key.path[0] not in ("use", "contacts", "shapes"):
        return names | _default_speed(name, mechanism)
    entries = {contact.entry for contact in mechanism.contacts.values()}
    for section in (
        mechanism.parameters, mechanism.points, mechanism.inputs, mechanism.shapes, mechanism.contacts, entries,
    ):  # fmt: skip
        names |= {str(own) for own in section if f"_{name}_" in f"_{own}_"}
    return names


def _default_speed(name: str, mechanism: Mechanism) -> set[str]:
    speed = mechanism.speeds.get(f"{name}_dot")
    return {f"{name}_dot"} if speed is not None and speed.text == f"rate({name})" else set()


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=pytest.mark.long if path.stem in LARGE else ()) for path in MODELS],
)
def test_every_key(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = compose(text, path.name)
    mechanism = loader.load(path)
    used, after = used_names(mechanism, tree), _words_of_phases(tree, ("after",))
    keys = list(keys_of(tree))
    assert len(keys) > 20
    overridden = {other.path[2:] for other in keys if in_variant(other)}
    for key in keys:
        changed = misspelled(text, key.word)
        if in_variant(key) or key.path in overridden:
            check_addition(changed)
        elif key.path[0] == "phases" and key.declares:  # a phase may have the name of a mode
            check_declaration(key, changed, {str(key.word)}, {str(word) for word in after})
        elif key.declares:
            check_declaration(key, changed, derived(key, mechanism), used)
        else:
            with pytest.raises(ModelError) as caught:
                loader.load(path.name, text=changed)
            if key.path == ("view", "cords"):  # any key of `view` may be a body; its outlines are read first
                assert caught.value.where.line == key.word.where.line
                continue
            assert caught.value.where == key.word.where, f"{key.path}: {caught.value}"
            assert f"{key.word}xq" in str(caught.value)


def in_variant(key: Key) -> bool:
    return key.path[0] == "variants" and len(key.path) >= 4 and key.path[2] in DECLARING


def check_addition(changed: str) -> None:
    """What a variant does not change it adds: the model is refused where that does not fit, or loads."""
    refusal = None
    try:
        loader.load("changed.yaml", text=changed)
    except ModelError as error:
        refusal = error
    assert refusal is None or refusal.where.line > 1


def check_declaration(key: Key, changed: str, names: set[str], used: set[str]) -> None:
    if not names & used:
        loader.load(key.word.where.file, text=changed)
        return
    with pytest.raises(ModelError) as caught:
        loader.load(key.word.where.file, text=changed)
    line = changed.split("\n")[caught.value.where.line - 1]
    assert any(re.search(rf"\b{name}\b", line) for name in names), f"{key.path}: {caught.value}"
    assert any(repr(name) in str(caught.value) for name in names), f"{key.path}: {caught.value}"
