"""Variants of a model, given by their differences."""

from __future__ import annotations

from fsm_dyn.errors import Location, ModelError, did_you_mean
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree

ADDED = ("loads", "transitions")  # lists whose items are added, rather than replaced as a whole
SEPARATOR = ":"


def split_name(text: str) -> tuple[str, str | None]:
    """Return what a text such as ``piano_action:felt`` names: a model or path, and a variant or None.

    What follows the last colon is a variant if it is a name, and the part before it is more than the letter of a drive.
    """
    head, separator, tail = text.rpartition(SEPARATOR)
    if separator and len(head) > 1 and tail.isidentifier():
        return head, tail
    return text, None


def overlaid(tree: Tree, variant: str, default_name: str, where: Location | None = None) -> LocatedMapping:
    """Return the tree of a model's variant.

    Mappings are merged key by key; a key with nothing after it is taken out; lists and values are replaced, except that
    ``loads`` and ``transitions`` are added to those of the model, in the place of one with the same ``name``.  The
    model's name gets the variant's as an ending.  `where` is the place to name if there is no such variant.

    Raises
    ------
    ModelError
        There is no such variant.
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
    """Return the section with one entry set, where it stood or at the end."""
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
