"""Older spellings of keys, states and events of model files: read as the new ones, before anything is validated."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.renamed import warn_renamed
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree


@dataclass(frozen=True, slots=True)
class RenamedKey:
    """A key with an older spelling: the path of its section ("*": any name or index), and its form in the schema."""

    section: tuple[str, ...]
    form: str
    old: str
    new: str


KEYS = (
    RenamedKey((), "", "drives", "scenarios"),
    RenamedKey((), "", "on_several", "on_nonunique"),
    RenamedKey(("ports", "*"), "PortForm", "twist", "rotation"),
    RenamedKey(("contacts", "*"), "ContactForm", "law", "restitution_law"),
    RenamedKey(("contacts", "*"), "ContactForm", "pitch", "sound_frequency"),
    RenamedKey(("contacts", "*", "compliant"), "ComplianceForm", "loss", "dissipation"),
)
STATES = {"slip": "slide", "slide_under": "slide_opposite"}  # under `modes`
EVENTS = {"leaves": "leaves_face"}  # under `transitions`, after the name of a contact

# Sections with the keys of a whole model.
_MODELS = (("variants", "*"), ("use", "*", "model"))
_VISITED = frozenset({"contacts", "ports", "modes", "transitions", "variants", "use"})


def with_new_spellings(tree: Tree, *, warn: bool) -> tuple[Tree, bool]:
    """Return a composed file with new spellings, and whether it has older ones.

    Parameters
    ----------
    tree : Tree
    warn : bool
        Whether to warn, once for each spelling, with the location of its first use.

    Raises
    ------
    ModelError
        A section has the older and the new spelling of one key.
    """
    used: dict[tuple[str, str], LocatedStr] = {}
    renamed = _renamed(tree, (), used)
    if warn:
        for (what, new), word in used.items():
            warn_renamed(f"{word.where}: {what}", word, new)
    return (renamed, True) if used else (tree, False)


def _renamed(tree: Tree, path: tuple[str, ...], used: dict[tuple[str, str], LocatedStr]) -> Tree:
    for prefix in _MODELS:
        if path == prefix:
            path = ()
    if isinstance(tree, LocatedMapping):
        return _renamed_section(tree, path, used)
    if isinstance(tree, LocatedList):
        return LocatedList([_renamed(item, (*path, "*"), used) for item in tree], tree.where)
    if path == ("modes", "*", "*") and tree.text in STATES:
        return _replaced(tree, "state", tree.text, STATES[tree.text], used)
    if path == ("transitions", "*", "on"):
        contact, _, event = tree.text.partition(" ")
        if event.strip() in EVENTS:
            new = EVENTS[event.strip()]
            return _replaced(tree, "event", event.strip(), new, used, f"{contact} ")
    return tree


def _renamed_section(
    section: LocatedMapping, path: tuple[str, ...], used: dict[tuple[str, str], LocatedStr]
) -> LocatedMapping:
    names = {key.old: key.new for key in KEYS if key.section == path}
    entries: dict[LocatedStr, Tree] = {}
    for word, value in section.items():
        new = names.get(word)
        if new is not None and new in section:
            raise ModelError(
                f"{str(word)!r} is the older spelling of {new!r}: both are given", word.where, remedy=f"keep {new!r}"
            )
        key = word if new is None else LocatedStr(new, word.where, written=str(word))
        if new is not None:
            used.setdefault(("key", new), word)
        entries[key] = value if not path and key not in _VISITED else _renamed(value, _within(path, key), used)
    return LocatedMapping(entries, section.where, flow=section.flow)


def _within(path: tuple[str, ...], key: str) -> tuple[str, ...]:
    """Return the path of an entry: names that the model chooses are "*"."""
    named = path in {("contacts",), ("ports",), ("modes",), ("modes", "*"), ("variants",), ("use",)}
    return (*path, "*" if named else key)


def _replaced(
    tree: Scalar, what: str, old: str, new: str, used: dict[tuple[str, str], LocatedStr], before: str = ""
) -> Scalar:
    used.setdefault((what, new), LocatedStr(old, tree.where))
    return Scalar(before + new, before + new, tree.where)
