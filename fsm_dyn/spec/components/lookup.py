"""Where components come from: the shipped models, and the folder of the file that uses them; nowhere else.

Models are untrusted input, so the name of a component is never a path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fsm_dyn import models
from fsm_dyn.errors import InputError, ModelError, did_you_mean
from fsm_dyn.spec.forms.composition import UseForm
from fsm_dyn.spec.older_spellings import with_new_spellings
from fsm_dyn.spec.reader import compose, read_file
from fsm_dyn.spec.variants import overlaid, split_name
from fsm_dyn.spec.yaml_tree import LocatedMapping, LocatedStr, Tree

DEEPEST = 4  # components within components
MOST = 100  # components in a whole model, those of components included

_BESIDE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.ya?ml")


@dataclass(frozen=True)
class Origin:
    """Where a model was read: its folder (None: a text or a mapping), and the files that lead to it."""

    folder: Path | None = None
    files: tuple[str, ...] = ()


def load_component(name: str, form: UseForm, origin: Origin) -> tuple[Tree, Origin]:
    """Return the tree of a component and where it was found.

    Raises
    ------
    ModelError
        There is no such model or variant, it would contain itself, or components nest too deeply.
    """
    form.check()
    if len(origin.files) >= DEEPEST:
        raise ModelError(f"component {name!r} lies too deep", form.where, allowed=f"{DEEPEST} levels of components")
    if form.model is not None:
        return form.model, Origin(None, (*origin.files, f"<{name}>"))
    text = str(form.file)
    place = form.key("file")
    stem, variant = split_name(text)
    try:
        path = models.find(stem) if models.is_bare_name(stem) else _beside(stem, origin)
    except InputError as error:
        raise ModelError(error.message, place, found=text, allowed=error.allowed, remedy=error.remedy) from None
    file = str(path.resolve())
    if file in origin.files:
        raise ModelError(
            f"component {name!r} contains itself",
            place,
            found=" in ".join(Path(item).name for item in (file, *reversed(origin.files))),
        )
    tree, _ = with_new_spellings(compose(read_file(path), str(path)), warn=True)
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
    """Return the tree of a model with one component written out in it, so that it needs no other file."""
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
