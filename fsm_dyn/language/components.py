"""Other texts as parts of a model: variants, and components found, renamed and joined (the section ``use``)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from fsm_dyn.core.errors import (
    NOWHERE,
    ComponentWarning,
    ExpressionError,
    InputError,
    Location,
    ModelError,
    UnusedWarning,
    VariantWarning,
    did_you_mean,
    warn_caller,
)
from fsm_dyn.core.records import dataclass
from fsm_dyn.language import models
from fsm_dyn.language.body_forms import SIGNS, OutlineForm
from fsm_dyn.language.build import frame_of
from fsm_dyn.language.build_contacts import with_pairs_written_out
from fsm_dyn.language.elements import EulerFrame, Input
from fsm_dyn.language.expression_tree import Text, Token, is_name, read_quantity, tokenise
from fsm_dyn.language.joint_expansion import JointExpansion
from fsm_dyn.language.joint_kinds import joints_of
from fsm_dyn.language.keyed import KeyedMapping, keys_of, renamed
from fsm_dyn.language.mechanism_form import MechanismForm, PlaceForm, UseForm, form_of
from fsm_dyn.language.requirement import (
    Claim,
    ContactEvent,
    MeasuredQuantity,
    PhaseCondition,
    PhaseEvent,
    Requirement,
    RunPhase,
    StateCondition,
    conditions_of,
    formula_name,
    formula_of,
)
from fsm_dyn.language.rewriting import made_names
from fsm_dyn.language.shapes import CORDS
from fsm_dyn.language.yaml import (
    LocatedList,
    LocatedMapping,
    LocatedStr,
    Scalar,
    Tree,
    compose,
    read_file,
    scalars,
    where_of,
)

# -- Variants of a model, given by their differences ---------------------------------------------------------

ADDED = ("loads", "transitions")  # lists whose items are added, rather than replaced as a whole
SEPARATOR = ":"
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def split_name(text: str) -> tuple[str, str | None]:
    """Split a text such as ``piano_action:felt`` into a model or path, and a variant or None.

    The part after the last colon is a variant if it is a name, and the part before it is longer than a drive letter.
    """
    head, separator, tail = text.rpartition(SEPARATOR)
    if separator and len(head) > 1 and tail.isidentifier():
        return head, tail
    return text, None


def overlaid(tree: Tree, variant: str, default_name: str, where: Location | None = None) -> LocatedMapping:
    """Return the tree of a model's variant.

    Mappings are merged key by key; an empty key is removed; lists and values are replaced, except for ``loads`` and
    ``transitions``, which are added to those of the model or replace one with the same ``name``. The model's name gets
    the variant's as an ending.  `where` is the place in the error for a missing variant. Raises ModelError: there is no
    such variant.
    """
    base = tree if isinstance(tree, LocatedMapping) else LocatedMapping({}, tree.where)
    variants = base.get(LocatedStr("variants"))
    known = variants if isinstance(variants, LocatedMapping) else LocatedMapping({}, tree.where)
    if variant not in known:
        raise ModelError(
            f"the model has no variant {variant!r}",
            where or known.where,
            found=variant,
            allowed=", ".join(known) or "no variants at all",
            remedy=did_you_mean(variant, list(known)),
        )
    overlay = known[LocatedStr(variant)]
    merged = LocatedMapping(
        {word: value for word, value in base.items() if word != "variants"}, base.where, flow=base.flow
    )
    if isinstance(overlay, LocatedMapping):
        merged = _merged(merged, overlay, top=True)
    if not (isinstance(overlay, LocatedMapping) and "name" in overlay):
        own = base.get(LocatedStr("name"))
        name = f"{own.text if isinstance(own, Scalar) else default_name}-{variant}"
        merged = _with(merged, LocatedStr("name"), Scalar(name, name, tree.where))
    return merged


# A name that a variant adds may be a misspelt one of the model. A quantity that nothing uses has no effect, so it is
# refused; an entry to which nothing has to refer is pointed at where its name is almost one of the model.

_USED = ("parameters", "inputs", "memory", "coordinates", "frames", "points")
_UNUSED = ("outputs", "requirements", "scenarios", "phases", "contacts", *ADDED)


def check_added_names(tree: Tree, variant: str) -> None:
    """Refuse names of a variant that neither the model has nor anything uses, and warn of those like one of the model.

    ``tree``: the model with its variants; ``variant``: one of these. Raises ModelError at the first unused parameter,
    input, memory, coordinate, frame or point.
    """
    base = _mapping(tree)
    overlay = _mapping(_mapping(base.get(LocatedStr("variants"))).get(LocatedStr(variant)))
    parameters = _names_of(base.get(LocatedStr("parameters")))
    for word in overlay:
        if word in parameters and word not in keys_of(MechanismForm):
            raise ModelError(
                f"in variant {variant}: {str(word)!r} is a parameter, not a section", word.where, found=word,
                remedy=f"write `{variant}: {{parameters: {{{word}: ...}}}}`",
            )  # fmt: skip
    words: set[str] = set()
    for section in (*_USED, *_UNUSED):
        known = _names_of(base.get(LocatedStr(section)))
        for word in _names_of(overlay.get(LocatedStr(section))):
            if word in known:
                continue
            remedy = did_you_mean(word, known)
            if section in _UNUSED:
                if remedy and _alike(word, remedy.split("'")[1]):
                    text = f"{word.where}: in variant {variant}: {section} has no {str(word)!r} in the model; {remedy}"
                    warn_caller(text, VariantWarning)
                continue
            words = words or _words_of_model(base, overlay)
            if word not in words:
                raise ModelError(
                    f"in variant {variant}: the model has no {str(word)!r} among its {section}, and nothing uses it",
                    word.where,
                    found=word,
                    allowed=", ".join(known) or "a name in use",
                    remedy=remedy or "name it in an expression, or omit it",
                )


def warn_of_unused(tree: Tree) -> None:
    """Warn of parameters, inputs and memory to which no expression of a model or of its variants refers."""
    base = _mapping(tree)
    words: set[str] = set()
    for section in _USED[:3]:
        for word in _names_of(base.get(LocatedStr(section))):
            words = words or _words_of_model(base, _mapping(base.get(LocatedStr("variants"))))
            if word not in words:
                text = f"{word.where}: nothing uses {str(word)!r} of {section}: a change of it has no effect"
                remedy = did_you_mean(word, words) or "omit it, or name it in an expression"
                warn_caller(f"{text}; {remedy}", UnusedWarning)


def _words_of_model(base: LocatedMapping, overlay: LocatedMapping) -> set[str]:
    """Return the names that a model and one of its variants use."""
    own = [
        value for word, value in base.items()
        if word not in ("variants", "summary", "source") and not (word in _USED and isinstance(value, LocatedList))
    ]  # fmt: skip
    return _words(*own, overlay).union(*map(_assigned, [*own, overlay]))


def _mapping(tree: Tree | None) -> LocatedMapping:
    return tree if isinstance(tree, LocatedMapping) else LocatedMapping({}, NOWHERE)


def _names_of(section: Tree | None) -> list[LocatedStr]:
    """Return the names of the entries of a section."""
    if isinstance(section, LocatedList):
        found = [item.get(LocatedStr("name")) if isinstance(item, LocatedMapping) else item for item in section]
        return [LocatedStr(item.text, item.where) for item in found if isinstance(item, Scalar) and is_name(item.text)]
    return [*_mapping(section)]


def _words(*trees: Tree) -> set[str]:
    """Return the names in values; of texts that are no expressions, every word."""
    found: set[str] = set()
    for leaf in (leaf for tree in trees for leaf in scalars(tree)):
        try:
            found.update(token.text for token in _name_tokens(leaf.text, leaf.where))
        except ExpressionError:
            found.update(_NAME.findall(leaf.text))
    return found


def _assigned(tree: Tree) -> set[str]:
    """Return the names that transitions and controllers assign to."""
    found: set[str] = set()
    pending = [tree]
    while pending:
        item = pending.pop()
        if isinstance(item, LocatedMapping):
            found.update(map(str, _mapping(item.get(LocatedStr("set")))))
            pending.extend(item.values())
        elif isinstance(item, LocatedList):
            pending.extend(item)
    return found


def _alike(word: str, other: str) -> bool:
    """Whether two names differ by a slip: other names differ in digits, or in a word."""
    plain, meant = (re.sub("[0-9]", "", name) for name in (word, other))
    slip = plain != meant and abs(len(word) - len(other)) < 3 and word.count("_") == other.count("_")
    return slip and difflib.SequenceMatcher(None, word, other).ratio() >= 0.8


def _merged(base: LocatedMapping, overlay: LocatedMapping, *, top: bool = False) -> LocatedMapping:
    for word, value in overlay.items():
        before = base.get(word)
        if isinstance(value, Scalar) and value.value is None:
            if before is None:
                raise ModelError(
                    f"there is no {str(word)!r} to take out", word.where, remedy=did_you_mean(word, list(base))
                )
            base = LocatedMapping({key: item for key, item in base.items() if key != word}, base.where, flow=base.flow)
        elif isinstance(value, LocatedMapping) and isinstance(before, LocatedMapping):
            base = _with(base, word, _merged(before, value))
        elif top and word in ADDED and isinstance(value, LocatedList) and isinstance(before, LocatedList):
            base = _with(base, word, _added(before, value))
        else:
            base = _with(base, word, value)
    return base


def _with(section: LocatedMapping, word: LocatedStr, value: Tree) -> LocatedMapping:
    """Return the section with one entry set, in its previous position or at the end."""
    key = word if word not in section else next(key for key in section if key == word)
    return LocatedMapping({**section, key: value}, section.where, flow=section.flow)


def _added(before: LocatedList, more: LocatedList) -> LocatedList:
    items = list(before)
    places = {name: at for at, item in enumerate(items) if (name := _name_of(item)) is not None}
    for item in more:
        name = _name_of(item)
        if name is not None and name in places:
            items[places[name]] = item
        else:
            items.append(item)
    return LocatedList(items, before.where)


def _name_of(item: Tree) -> str | None:
    name = item.get(LocatedStr("name")) if isinstance(item, LocatedMapping) else None
    return name.text if isinstance(name, Scalar) else None


# -- Sources of components -----------------------------------------------------------------------------------
#
# Components come from the shipped models and from the folder of the file with the `use`; nowhere else. Models are
# untrusted input, so the name of a component is never a path.

DEEPEST = 4  # components within components
MOST = 100  # components in a whole model, those of components included

_BESIDE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.ya?ml")


@dataclass(frozen=True)
class Origin:
    """Source of a model: its folder (None: a text or a mapping), and the chain of files that use it."""

    folder: Path | None = None
    files: tuple[str, ...] = ()


def load_component(name: str, form: UseForm, origin: Origin) -> tuple[Tree, Origin]:
    """Return the tree of a component and its source.

    Raises ModelError: there is no such model or variant, it would contain itself, or components nest too deeply.
    """
    form.check()
    if len(origin.files) >= DEEPEST:
        raise ModelError(f"component {name!r} lies too deep", form.key(""), allowed=f"{DEEPEST} levels of components")
    if form.model is not None:
        return form.model, Origin(None, (*origin.files, f"<{name}>"))
    text = str(form.file)
    place = form.key("file")
    stem, variant = split_name(text)
    try:
        path = models.find(stem) if models.is_bare_name(stem) else _beside(stem, origin)
    except InputError as error:
        remedy = error.remedy
        if models.is_bare_name(stem):  # a component is no path
            ending = f"name a file in the same folder with its ending: {stem}.yaml"
            remedy = did_you_mean(stem, models.names()) or ending
        raise ModelError(error.message, place, found=text, allowed=error.allowed, remedy=remedy) from None
    file = str(path.resolve())
    if file in origin.files:
        raise ModelError(
            f"component {name!r} contains itself",
            place,
            found=" in ".join(Path(item).name for item in (file, *reversed(origin.files))),
        )
    tree = compose(read_file(path), str(path))
    if variant is not None:
        tree = overlaid(tree, variant, re.sub(r"\W", "_", path.stem), place)
    return tree, Origin(path.parent, (*origin.files, file))


def _beside(text: str, origin: Origin) -> Path:
    if not _BESIDE.fullmatch(text):
        raise InputError(
            "a component is no path",
            allowed="the bare name of a shipped model, or the name of a .yaml file in the same folder",
        )
    if origin.folder is None:
        raise InputError(
            "a model that is no file has no files beside it",
            allowed="the bare name of a shipped model, or the component itself under `model`",
        )
    path = origin.folder / text
    folder = origin.folder.resolve()
    if path.resolve().parent != folder:
        raise InputError("a component lies in the same folder, not where a link leads", found=text)
    if not path.is_file():
        beside = sorted(item.name for item in folder.glob("*.yaml"))
        raise InputError(f"there is no file {text} beside the model", remedy=did_you_mean(text, beside))
    return path


def inlined(tree: Tree, name: str, component: Tree) -> Tree:
    """Return the tree of a model with one component written out in it, independent of other files."""
    if not isinstance(tree, LocatedMapping):
        return tree
    section = tree[LocatedStr("use")]
    entry = section[LocatedStr(name)] if isinstance(section, LocatedMapping) else None
    if not isinstance(section, LocatedMapping) or not isinstance(entry, LocatedMapping):
        return tree
    whole = LocatedMapping(
        {**{k: v for k, v in entry.items() if k != "file"}, LocatedStr("model"): component}, entry.where
    )
    use = LocatedMapping({**section, LocatedStr(name): whole}, section.where)
    return LocatedMapping({**tree, LocatedStr("use"): use}, tree.where)


# -- A component under its prefix: every use of every declared name ------------------------------------------
#
# The component's own fixed frame becomes the frame of its attachment, its origin the point. Velocities in its
# expressions, ``vel`` and ``omega``, stay relative to this frame, so a slip or a damper within the component keeps its
# meaning.

T = TypeVar("T")

FRAME, ORIGIN = "N", "O"
_MOTION = re.compile(r"\b(vel|omega|pos) ?\( ?(\w+) ?(?:, ?(\w+) ?)?\)")


@dataclass(frozen=True)
class Renaming:
    """New names of a component.

    ``prefix``: the component's name.  ``names``: new names by old ones, those of the fixed frame and the origin among
    them.  ``phases``: the component's phases that remain, as formulas name them.
    """

    prefix: str
    names: Mapping[str, str]
    phases: frozenset[str] = frozenset()

    @property
    def frame(self) -> str:
        """The frame of the component's attachment."""
        return self.names[FRAME]

    def apply(self, value: T) -> T:
        """Return `value` (forms, data, mappings, tuples, texts) with every name changed."""
        changed: Any = value
        if isinstance(value, Location):
            pass  # of the component's own file
        elif isinstance(value, Text):
            changed = self._text(value)
        elif isinstance(value, LocatedStr):
            changed = LocatedStr(self.names.get(value, value), value.where)
        elif isinstance(value, KeyedMapping):
            changed = self._form(value)
        elif isinstance(value, Input):
            changed = replace(value, name=self.apply(value.name), schedule=self.apply(value.schedule))
        elif isinstance(value, (MeasuredQuantity, StateCondition)):
            changed = replace(value, name=self._measured(value.name))
        elif isinstance(value, (PhaseCondition, PhaseEvent)):
            changed = replace(value, name=f"{self.prefix}_{value.name}")
        elif isinstance(value, ContactEvent):
            changed = replace(value, contact=self._contact(value.contact))
        elif is_dataclass(value) and not isinstance(value, type):
            changed = replace(value, **{f.name: self.apply(getattr(value, f.name)) for f in fields(value)})
        elif isinstance(value, Mapping):
            changed = {self.apply(key): self.apply(item) for key, item in value.items()}
        elif isinstance(value, tuple):
            changed = tuple(self.apply(item) for item in value)
        elif isinstance(value, list):
            changed = [self.apply(item) for item in value]
        return changed  # type: ignore[no-any-return]

    def _form(self, form: KeyedMapping) -> KeyedMapping:
        changed = renamed(form, self.apply, self.frame, self._event)
        fixed = isinstance(form, OutlineForm) and form.frame == FRAME and not getattr(form, "ends", None)
        if isinstance(form, OutlineForm) and fixed and changed[form.placed_by] is None:
            changed[form.placed_by] = LocatedStr(self.names[ORIGIN])  # it moves to the component's origin
        return replace(form, **changed)

    def _event(self, event: tuple[str, str]) -> tuple[str, str]:
        return self._contact(event[0]), event[1]

    def _contact(self, name: str) -> LocatedStr:
        """Return the new name of a contact, or of one of the pairs of an entry of `contacts`."""
        entries = [entry for entry in self.names if name == entry or name.startswith(f"{entry}_")]
        entry = max(entries, key=len, default="")
        return LocatedStr(self.names.get(entry, "") + name[len(entry) :], where_of(name))

    def _measured(self, name: str) -> str:
        """Return the new name of a quantity, of a contact, or of a phase."""
        if name.startswith("pin."):
            connection, part = name.split(".")[1:]
            return f"pin.{self.connection(connection)}.{part}"
        if name in self.phases and name not in self.names:
            return f"{self.prefix}_{name}"
        return self._contact(name)

    def connection(self, name: str) -> LocatedStr:
        """Return the new name of a connection: of a part, of two segments, or a new one."""
        pairs = ((own, name[len(own) + 1 :]) for own in self.names if name.startswith(f"{own}_"))
        parts = next((pair for pair in pairs if pair[1] in self.names), None)
        if name in self.names or parts is None:
            return LocatedStr(f"{self.prefix}_{name}", where_of(name))
        return LocatedStr("_".join(self.names[part] for part in parts), where_of(name))

    def requirement(self, item: Requirement) -> Requirement:
        """Return a requirement with every name changed, and the formula that states it."""
        claim = self.apply(item.claim)
        return replace(item, name=f"{self.prefix}_{item.name}", claim=claim, formula=formula_of(claim))

    def phase(self, item: RunPhase) -> RunPhase:
        """Return a phase with every name changed."""
        return replace(
            item, name=f"{self.prefix}_{item.name}", after=tuple(f"{self.prefix}_{name}" for name in item.after),
            when=self.apply(item.when), until=self.apply(item.until), shortest=self.apply(item.shortest),
            focus=self.apply(item.focus),
        )  # fmt: skip

    def _text(self, text: Text) -> Text:
        return Text(_MOTION.sub(self._relative, self._renamed(text)), text.where)

    def _renamed(self, text: Text) -> str:
        """Return the text with its names changed; units, and the letters after a dot, are no names."""
        source = text.text
        pieces: list[str] = []
        copied = 0
        for token in _name_tokens(source, text.where):
            if token.text in self.names:
                pieces += [source[copied : token.start], self.names[token.text]]
                copied = token.end
        return "".join([*pieces, source[copied:]])

    def _relative(self, match: re.Match[str]) -> str:
        """Return ``vel``, ``omega`` or ``pos`` relative to the component's attachment."""
        function, first, second = match.groups()
        frame = self.frame
        if frame == FRAME and self.names[ORIGIN] == ORIGIN:
            return match.group()
        if function == "pos":
            return match.group() if second else f"pos({first}, {self.names[ORIGIN]})"
        if frame == FRAME:
            return match.group()
        if function == "omega":
            return f"(omega({first}) - omega({frame}))"
        return f"({match.group()} - vel({first}, {frame}))"


def _name_tokens(source: str, where: Location) -> Iterator[Token]:
    """Yield the names of an expression: neither units nor the letters after a dot."""
    tokens = tokenise(source, where)
    at = 0
    while at < len(tokens):
        if tokens[at].kind == "number":
            at = read_quantity(tokens, at, where)[2]
            continue
        if tokens[at].kind == "name" and not (at > 0 and tokens[at - 1].text == "."):
            yield tokens[at]
        at += 1


# -- A model and its components as one form ------------------------------------------------------------------

# Sections whose entries are those of the model followed by those of its components.
_SECTIONS = (
    *("parameters", "coordinates", "frames", "points", "bodies", "constraints", "shapes", "contacts"),
    *("inputs", "schedule", "memory", "controllers", "outputs", "view", "joints", "imposed"),
)
# Sections of a component with declared names; `modes` and `ports` are left out.
_DECLARING = (
    *("parameters", "coordinates", "frames", "points", "bodies", "speeds", "constraints", "shapes", "contacts"),
    *("inputs", "memory", "controllers", "outputs", "imposed"),
)


def merge_components(tree: Tree, origin: Origin) -> tuple[MechanismForm, Tree]:
    """Return a model with its components joined to it, and its tree with the components written out.

    Raises ModelError: a component cannot be found or does not fit; the place is in the component's own file if the
    mistake is there.
    """
    return _joined(tree, origin, [0])


def _joined(tree: Tree, origin: Origin, count: list[int]) -> tuple[MechanismForm, Tree]:
    form = form_of(tree)
    for name, use in form.use.items():
        count[0] += 1
        if count[0] > MOST:
            raise ModelError("too many components", use.key(""), allowed=f"{MOST} in all")
        component_tree, place = load_component(name, use, origin)
        component, component_tree = _joined(component_tree, place, count)
        tree = inlined(tree, name, component_tree)
        form = _with_component(form, name, use, component)
    return form, tree


def _with_component(form: MechanismForm, name: str, use: UseForm, component: MechanismForm) -> MechanismForm:
    component = with_pairs_written_out(component)
    frame, point = _attachment(form, use)
    names = {str(own): f"{name}_{own}" for own in declared(component)}
    phases = _phases_kept(form, component)
    renaming = Renaming(name, {**names, FRAME: frame, ORIGIN: point}, frozenset(map(formula_name, phases)))
    _check_transitions(component)
    update: dict[str, Any] = {}
    for section in _SECTIONS:
        own, theirs = getattr(form, section), renaming.apply(getattr(component, section))
        if section == "parameters":
            theirs = _given(theirs, name, use)
        if section == "view" and CORDS in own and CORDS in theirs:
            theirs = {**theirs, CORDS: (*own[CORDS], *theirs[CORDS])}
            own = {key: outlines for key, outlines in own.items() if key != CORDS}
        taken = next((key for key in theirs if key in own), None)
        if taken is not None:
            raise ModelError(f"component {name!r} brings {str(taken)!r}, which already exists", use.key(""))
        update[section] = {**own, **theirs}
    update["speeds"] = _speeds(form, component, renaming)
    # the gravity of the whole model acts on the bodies of its components
    loads = [load for load in component.loads if load.gravity is None or load.on is not None]
    update["loads"] = (*form.loads, *renaming.apply(loads))
    update["transitions"] = (*form.transitions, *renaming.apply(component.transitions))
    for misfit in component.initial.misfits.values():
        raise misfit
    values = {**renaming.apply(component.initial.values), **form.initial.values}
    guess = {**renaming.apply(component.initial.guess), **form.initial.guess}
    update["initial"] = replace(
        form.initial, values=values, guess={key: text for key, text in guess.items() if key not in values}
    )
    update["phases"] = {**form.phases, **{item.name: item for item in map(renaming.phase, phases.values())}}
    update |= _with_what_is_asked(form, component, renaming)
    return replace(form, **update)


def _with_what_is_asked(form: MechanismForm, component: MechanismForm, renaming: Renaming) -> dict[str, dict[str, Any]]:
    """Return the entries of connections and the requirements of a model and of its component."""
    pins: dict[str, Any] = dict(form.pins)
    requirements: dict[str, Any] = dict(form.requirements)
    for pin in component.pins.values():
        new = renaming.connection(pin.name)
        pins[new] = replace(renaming.apply(pin), name=new)
    for item in component.requirements.values():
        lost = ", ".join(_left_behind(item.claim, renaming))
        if lost:
            text = f"requirement {item.name!r} of component {renaming.prefix!r} is left behind, as {lost} is"
            warn_caller(f"{item.where}: {text}; write it with the states of contacts", ComponentWarning)
            continue
        changed = renaming.requirement(item)
        requirements[changed.name] = changed
    return {"pins": pins, "requirements": requirements}


def _left_behind(claim: Claim, renaming: Renaming) -> Iterator[str]:
    """Yield the modes and phases that a claim names and the whole model does not have."""
    for condition in conditions_of(claim):
        match condition:
            case StateCondition(state="", name=name) | PhaseCondition(name=name) | PhaseEvent(name=name):
                if name not in renaming.phases:
                    yield repr(str(name))


def _phases_kept(form: MechanismForm, component: MechanismForm) -> Mapping[str, RunPhase]:
    """Return the phases of a component, where no others divide the run, and none is a mode."""
    conditions = (c for phase in component.phases.values() for one in (*phase.when, *phase.until) for c in one)
    by_modes = any(isinstance(item, StateCondition) and not item.state for item in conditions)
    return {} if form.phases or by_modes else component.phases


def declared(form: MechanismForm) -> list[str]:
    """Return every declared name of a form, derived ones included."""
    names: list[str] = [name for section in _DECLARING for name in getattr(form, section)]
    for controller in form.controllers.values():
        names += [quantity.name for quantity in controller.quantities]
    names += [str(load.name) for load in form.loads if load.name]
    names += [str(transition.name) for transition in form.transitions if transition.name]
    for frame in form.frames.values():
        names += [f"{frame.euler_parameters}{i}" for i in ("", *range(4))] if frame.euler_parameters else []
    made = _made(form)
    for section in (made.joints, made.coordinates, made.frames, made.points, made.speeds, made.rows, made.contacts):
        names += [str(name) for name in section]
    for turned in made.frames.values():
        names += [turned.euler, *turned.euler_names] if isinstance(turned, EulerFrame) else []
    for name, row in form.constraints.items():
        names += made_names(name) if row.acceleration is not None else ()
    if not form.speeds:
        names += [f"{coordinate}_dot" for coordinate in form.coordinates]
    return names


def _made(form: MechanismForm) -> JointExpansion:
    """The expanded joints of a form."""
    return joints_of(form.joints, {name: frame_of(name, frame) for name, frame in form.frames.items()}, False)


def _attachment(form: MechanismForm, use: UseForm) -> tuple[str, str]:
    """The frame and the point that replace N and O of a component."""
    if isinstance(use.attach, PlaceForm):
        place, made = use.attach, _made(form)
        for kind, name, known in (
            ("frame", place.frame, [FRAME, *form.frames, *made.frames]),
            ("point", place.point, [ORIGIN, *form.points, *made.points]),
        ):
            if name not in known:
                raise ModelError(
                    f"there is no {kind} {str(name)!r}",
                    place.key(kind),
                    found=name,
                    allowed=", ".join(known),
                    remedy=did_you_mean(name, known),
                )
        return place.frame, place.point
    if use.attach == FRAME:
        return FRAME, ORIGIN
    body = form.bodies.get(use.attach)
    if body is None or body.frame is None:
        raise ModelError(
            f"there is no body {str(use.attach)!r} with a frame to attach to",
            use.key("attach"),
            found=use.attach,
            allowed=", ".join(name for name, item in form.bodies.items() if item.frame) or "no body has a frame",
            remedy=did_you_mean(use.attach, list(form.bodies)) or "or write attach: {frame: B, point: P}",
        )
    return body.frame, body.center


def _given(parameters: Mapping[str, Any], name: str, use: UseForm) -> dict[str, Any]:
    changed = dict(parameters)
    for word, values in use.values.items():
        key = f"{name}_{word}"
        if key not in changed:
            own = [str(item).removeprefix(f"{name}_") for item in parameters]
            raise ModelError(
                f"component {name!r} has no parameter {str(word)!r}",
                _place_of(word, use),
                found=word,
                allowed=", ".join(own) or "none",
                remedy=did_you_mean(word, own),
            )
        if any(sign in text.text for text in values for sign in SIGNS):
            raise ModelError(
                "a value given to a component has no tolerance",
                _place_of(word, use),
                remedy="the component's own remains: give the value alone",
            )
        changed[key] = replace(changed[key], values=values, where=_place_of(word, use))
    return changed


def _place_of(word: str, use: UseForm) -> Location:
    return word.where if isinstance(word, LocatedStr) else use.key("")


def _speeds(form: MechanismForm, component: MechanismForm, renaming: Renaming) -> dict[str, Text]:
    """Speeds of both; one without speeds gets the default speeds of its coordinates."""
    if not form.speeds and not component.speeds:
        return {}
    own = dict(form.speeds) or _rates(form)
    return {**own, **renaming.apply(dict(component.speeds) or _rates(component))}


def _rates(form: MechanismForm) -> dict[str, Text]:
    return {LocatedStr(f"{name}_dot", c.where): Text(f"rate({name})", c.where) for name, c in form.coordinates.items()}


def _check_transitions(component: MechanismForm) -> None:
    for transition in component.transitions:
        if transition.source != "*" or transition.target is not None:
            key = "from" if transition.source != "*" else "to"
            raise ModelError(
                "a transition of a component names a mode, and the modes are those of the whole model",
                transition.key(key),
                allowed='from: "*"',
                remedy="write this transition in the model that uses the component",
            )
