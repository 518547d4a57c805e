"""Subdivision of boxes: where they are cut, and a record of the cuts as a binary tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fsm_dyn.programs.program import Array

Numbers = npt.NDArray[np.int64]

LONG: Final = 8.0  # own units: wider arguments may be cut last, when all others are narrower than
NARROW: Final = 0.5  # own units, as conditions may bound them then


class Subdivision:
    """Where the boxes of a proof are cut: a binary tree, of which the leaves are excluded."""

    def __init__(self) -> None:
        self._place, self._at = [-1], [0.0]  # of each box in the order of their making
        self._parts: dict[int, tuple[int, int]] = {}
        self._current: Numbers = np.zeros(1, np.int64)

    def exclude(self, kept: npt.NDArray[np.bool_]) -> None:
        """Exclude all present boxes but those kept."""
        self._current = self._current[kept]

    def cut(self, place: Numbers, middle: Array) -> None:
        """Cut each present box across an argument; all lower parts come before the upper ones."""
        number, new = len(self._current), len(self._place)
        for i, box in enumerate(self._current.tolist()):
            self._place[box], self._at[box] = int(place[i]), float(middle[i])
            self._parts[box] = new + i, new + number + i
        self._place += [-1] * (2 * number)
        self._at += [0.0] * (2 * number)
        self._current = np.arange(new, new + 2 * number)

    def in_order(self) -> Iterator[tuple[int, float] | None]:
        """Yield argument and place of each cut, or None for a leaf; the lower part of a box first, then the upper."""
        ahead = [0]
        while ahead:
            box = ahead.pop()
            if box in self._parts:
                ahead += reversed(self._parts[box])
                yield self._place[box], self._at[box]
            else:
                yield None


def width_of(low: Array, high: Array, scale: Array) -> Array:
    """Return the widths of boxes over the own unit of each argument, shape (n_arguments, n_boxes)."""
    with np.errstate(over="ignore"):
        return (high - low) / scale[:, None]


def middles(
    low: Array, high: Array, variables: Sequence[int], width: Array, scale: Array, long_last: bool
) -> tuple[Numbers, Array]:
    """Return which argument each box is cut across, the widest, and where; boundless ones near zero first.

    ``long_last``: arguments of more than :data:`LONG` after all others.
    """
    boxes = np.arange(low.shape[1])
    widest = np.argmax(np.where(width > LONG, NARROW, width) if long_last else width, axis=0)
    place = np.array(variables)[widest] if len(variables) else np.zeros(len(boxes), np.int64)
    a, b, unit = low[place, boxes], high[place, boxes], scale[widest]
    near = np.clip(0.5 * np.clip(a, -1e300, 1e300) + 0.5 * np.clip(b, -1e300, 1e300), a, b)
    upwards, downwards = np.isinf(b) & np.isfinite(a), np.isinf(a) & np.isfinite(b)
    middle = np.where(upwards, np.where(a < -unit, 0.0, np.maximum(4.0 * np.minimum(a, 1e300), unit)), near)
    middle = np.where(downwards, np.where(b > unit, 0.0, np.minimum(4.0 * np.maximum(b, -1e300), -unit)), middle)
    return place, middle


def cut_across(low: Array, high: Array, place: Numbers, middle: Array) -> tuple[Array, Array]:
    """Return two boxes for each, the lower parts first, cut across an argument."""
    boxes = np.arange(low.shape[1])
    left_high, right_low = high.copy(), low.copy()
    left_high[place, boxes] = middle
    right_low[place, boxes] = middle
    return np.concatenate([low, right_low], axis=1), np.concatenate([left_high, high], axis=1)
