"""Diagram of a mode graph: boxes with lines of text, arrows with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_LONGEST_LABEL = 38
LABELS = 6  # lines of text at an arrow


@dataclass(frozen=True)
class Box:
    """A mode: its name, its contact states as lines of text, whether runs start in it.

    ``dashed``: it is possible, and neither derived nor visited.
    """

    key: str
    title: str
    lines: tuple[str, ...] = ()
    initial: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Arrow:
    """All transitions from one mode to another; a label per transition, in order of priority.

    ``dashed``: they are declared or derived, and no run made one of them.  ``weight``: the share of runs that made
    one, by which the line is the thicker.  ``marked``: it is drawn in another colour.
    """

    source: str
    target: str
    labels: tuple[str, ...] = ()
    dashed: bool = False
    weight: float = 0.0
    marked: bool = False


@dataclass(frozen=True)
class Diagram:
    """Boxes and arrows of a mode graph, in the graph's order."""

    name: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def at_most(labels: Sequence[str], most: int) -> tuple[str, ...]:
    """Return labels, the last of too many replaced by their number."""
    if len(labels) <= most:
        return tuple(labels)
    return (*labels[: most - 1], f"and {len(labels) - most + 1} more")


def shortened(text: str, length: int = _LONGEST_LABEL) -> str:
    """Return the text on one line, cut with an ellipsis if it is too long for a label."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def elided(text: str, length: int) -> str:
    """Return the text, if too long without its middle: long names differ mostly at their ends."""
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def sequence_labels(sequences: Sequence[tuple[str, ...]], length: int) -> list[str]:
    """Return sequences of modes as lines.

    If one is too long, all are without the modes with which all begin, except for the last of these, with long names
    elided, and cut where they are too long still.
    """
    labels = [" > ".join(modes) for modes in sequences]
    if all(len(label) <= length for label in labels):
        return labels
    parted = (k for k, modes in enumerate(zip(*sequences, strict=False)) if len({*modes}) > 1)
    same = max(next(parted, min(map(len, sequences))) - 1, 0)
    found = []
    for modes in sequences:
        names = ["…"] * (same > 0) + [elided(mode, length // 3) for mode in modes[same:]]
        shown = next((k for k in range(len(names), 1, -1) if len(" > ".join(names[:k])) <= length - 4), 1)
        found.append(" > ".join(names[:shown] + ["…"] * (shown < len(names))))
    return found


def abridged(label: str, length: int) -> str:
    """Return a mode's label, if too long cut before its last comma (a contact's state follows), or in the middle."""
    flat = " ".join(label.split())
    if len(flat) <= length or ", " not in flat or length < 3:
        return elided(flat, length)
    last = min(len(flat) - flat.rindex(", "), (length - 1) // 2)
    return f"{flat[: length - 1 - last]}…{flat[len(flat) - last :]}"
