"""Symbols of a drawing of a mechanism as polylines: springs, dampers, supports, hatching (after ISO 3952)."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Lengths in units of a scene.
RING: Final = 1.1  # radius of a pivot
DOT: Final = 0.3  # in its middle
TEETH: Final = 6
ZIGZAG: Final = 3.0  # width of a spring
DASHPOT: Final = 2.4
HATCH: Final = 1.5  # distance and depth of the hatch lines of a ground
_LEAD: Final = 0.14  # of a spring: straight at either end
_TURNS: Final = 2.0  # of a spiral
_WIDTH_BY_LENGTH: Final = 0.5  # of a short spring


def _directions(start: Floats, end: Floats) -> tuple[float, Floats, Floats]:
    """Return the distance of two points, the unit vector along and the one to the left."""
    along = end - start
    length = float(np.hypot(*along))
    unit = along / length if length > 0.0 else np.array([1.0, 0.0])
    return length, unit, np.array([-unit[1], unit[0]])


def zigzag(start: Floats, end: Floats, unit: float, side: float = 0.0) -> Floats:
    """Return a spring between two points, shifted to the left by ``side`` units, shape (k, 2).

    Parameters
    ----------
    start, end : ndarray, shape (2,)
    unit : float
        Of the scene, in the units of the points.
    side : float
    """
    length, along, left = _directions(start, end)
    width = min(ZIGZAG * unit, _WIDTH_BY_LENGTH * length) / 2.0
    middles = _LEAD + (1.0 - 2.0 * _LEAD) * (np.arange(2 * TEETH) + 0.5) / (2 * TEETH)
    s = length * np.concatenate([[0.0, _LEAD], middles, [1.0 - _LEAD, 1.0]])
    w = np.concatenate([[0.0, 0.0], np.where(np.arange(2 * TEETH) % 2, width, -width), [0.0, 0.0]])
    return np.asarray(start + np.outer(s, along) + np.outer(w + side * unit, left))


def dashpot(start: Floats, end: Floats, unit: float, side: float = 0.0) -> list[Floats]:
    """Return a damper between two points as polylines: rod, cup, piston, rod; parameters as of :func:`zigzag`."""
    length, along, left = _directions(start, end)
    width = min(DASHPOT * unit, _WIDTH_BY_LENGTH * length) / 2.0
    begin = start + side * unit * left

    def at(s: float, w: float) -> Floats:
        return np.asarray(begin + s * length * along + w * width * left)

    cup = [at(0.66, 1.0), at(0.34, 1.0), at(0.34, -1.0), at(0.66, -1.0)]
    lines = [[at(0.0, 0.0), at(0.34, 0.0)], cup, [at(0.54, 0.75), at(0.54, -0.75)], [at(0.54, 0.0), at(1.0, 0.0)]]
    return [np.array(line) for line in lines]


def spiral(centre: Floats, inner: Floats, outer: Floats, unit: float) -> Floats:
    """Return a spiral spring about a point, from the direction of one point to that of another, shape (k, 2)."""
    first = float(np.arctan2(*(inner - centre)[::-1]))
    turn = float(np.arctan2(*(outer - centre)[::-1])) - first
    turn = (turn + np.pi) % (2.0 * np.pi) - np.pi
    angles = first + np.linspace(0.0, turn + 2.0 * np.pi * _TURNS, 72)
    radii = unit * np.linspace(1.3, 3.3, len(angles))
    return np.asarray(centre + radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1))


def cord(start: Floats, end: Floats, unit: float, *, taut: bool) -> Floats:
    """Return a belt between two points: straight if it is taut, else wavy, shape (k, 2)."""
    if taut:
        return np.array([start, end])
    length, along, left = _directions(start, end)
    s = np.linspace(0.0, 1.0, 65)
    wave = 1.2 * unit * np.sin(2.0 * np.pi * max(round(length / (8.0 * unit)), 2) * s) * np.sin(np.pi * s)
    return np.asarray(start + np.outer(s * length, along) + np.outer(wave, left))


def hatching(course: Floats, side: float, unit: float) -> Floats:
    """Return the hatch lines on one side of a line (k, 2): to its left if ``side`` is 1, shape (n, 2, 2)."""
    strokes = []
    for start, end in itertools.pairwise(course):
        length, along, left = _directions(start, end)
        count = max(round(length / (HATCH * unit)), 1) if length > 0.0 else 0
        feet = start + np.outer((np.arange(count) + 0.5) * length / max(count, 1), along)
        strokes.append(np.stack([feet, feet + HATCH * unit * (side * left - 0.75 * along)], axis=1))
    return np.concatenate(strokes) if strokes else np.zeros((0, 2, 2))


def support(centre: Floats, unit: float) -> tuple[Floats, Floats]:
    """Return the triangle below a pivot on the ground, shape (3, 2), and the line that it stands on, shape (2, 2)."""
    low, half = centre[1] - 2.6 * unit, 2.0 * unit
    triangle = np.array([centre, [centre[0] - half, low], [centre[0] + half, low]])
    return triangle, np.array([[centre[0] - 1.4 * half, low], [centre[0] + 1.4 * half, low]])


def shoe(centre: Floats, unit: float) -> Floats:
    """Return the shoe of dry friction above a pivot, an arc, shape (k, 2)."""
    angles = np.radians(np.linspace(35.0, 145.0, 24))
    return np.asarray(centre + 2.0 * unit * np.stack([np.cos(angles), np.sin(angles)], axis=-1))


def hull(points: Floats) -> Floats:
    """Return the corners of the convex hull of points (n, 2), against the clock, shape (k, 2)."""
    ordered = sorted(map(tuple, points.tolist()))

    def half(items: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        chain: list[tuple[float, ...]] = []
        for p in items:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= 0.0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    return np.array([*half(ordered), *half(ordered[::-1])]).reshape(-1, 2)


def _turn(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
