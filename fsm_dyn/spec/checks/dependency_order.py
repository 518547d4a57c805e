"""Orders: frames after their parents, points after what they are given from; no cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from fsm_dyn.errors import Location, ModelError
from fsm_dyn.expressions import Call, Name, parse, walk
from fsm_dyn.spec.model import Mechanism, Point

T = TypeVar("T")


def ordered(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with frames and points in the order of their dependencies.

    The order of the file is kept wherever it can be.

    Raises
    ------
    ModelError
        If frames or points form a cycle.
    """
    frame_needs = {name: [frame.parent] for name, frame in mechanism.frames.items()}
    point_needs = {name: _points_of(point) for name, point in mechanism.points.items()}
    frame_places = {name: frame.where for name, frame in mechanism.frames.items()}
    point_places = {name: point.where for name, point in mechanism.points.items()}
    return replace(
        mechanism,
        frames=_sorted(mechanism.frames, frame_needs, frame_places, "frames"),
        points=_sorted(mechanism.points, point_needs, point_places, "points"),
    )


def _points_of(point: Point) -> list[str]:
    needs = [point.origin]
    for node in walk(parse(point.at)):
        if isinstance(node, Call) and node.function == "pos":
            needs += [argument.id for argument in node.arguments if isinstance(argument, Name)]
    return needs


def _sorted(
    entries: Mapping[str, T], needs: Mapping[str, list[str]], places: Mapping[str, Location], what: str
) -> dict[str, T]:
    """Depth-first over `needs` without recursion: a chain of a thousand frames is legal."""
    done: dict[str, T] = {}
    for start in entries:
        path = [start]
        while path:
            current = path[-1]
            missing = [name for name in needs[current] if name in entries and name not in done]
            if not missing:
                done[path.pop()] = entries[current]
            elif missing[0] in path:
                raise _cycle(path[path.index(missing[0]) :], places, what)
            else:
                path.append(missing[0])
    return done


def _cycle(cycle: list[str], places: Mapping[str, Location], what: str) -> ModelError:
    first = min(cycle, key=lambda name: places[name].line)
    at = cycle.index(first)
    chain = [*cycle[at:], *cycle[:at], first]
    return ModelError(
        f"{what} in a cycle: each is given from the next",
        places[first],
        found=" -> ".join(chain),
        remedy=f"one of them must be given from {'N' if what == 'frames' else 'O'}",
    )
