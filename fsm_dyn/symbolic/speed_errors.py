"""Errors of speed definitions that do not determine the rates of the coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from fsm_dyn.errors import Location, ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.programs import Node
from fsm_dyn.symbolic.identity_test import sample
from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols

SHARE = 1e-6  # a row or unknown with a smaller part in a null vector is not named


class _Row(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def text(self) -> Text: ...
    @property
    def kinematic(self) -> bool: ...


def speed_count_error(
    system: MechanismSymbols, rows: Sequence[_Row], unknowns: Sequence[Node], Y: Sequence[Sequence[Node]]
) -> ModelError:
    """Return the error for a number of rows that does not match the number of rates."""
    kinematic = sum(row.kinematic for row in rows)
    have = f"{_number(len(rows) - kinematic, 'speed')} and {_number(kinematic, 'kinematic row')}"
    message = f"{have} for {_number(len(unknowns), 'rate')}"
    if len(rows) > len(unknowns):
        many = len(rows) - len(unknowns)
        return ModelError(
            f"{message}: {many} too many",
            _place(system, rows),
            found=", ".join(row.name for row in rows),
            remedy="remove a speed, or drop 'kinematic: true' from a constraint: it is then embedded as the others are",
        )
    missing = len(unknowns) - len(rows)
    _, free = _null_spaces(system, rows, unknowns, Y)
    return ModelError(
        f"{message}: {missing} more {'is' if missing == 1 else 'are'} needed",
        _place(system, rows),
        found=f"not determined: {', '.join(free)}" if free else "",
        remedy="declare one more speed for each, or mark a velocity constraint 'kinematic: true'",
    )


def dependent_speeds_error(
    system: MechanismSymbols, rows: Sequence[_Row], unknowns: Sequence[Node], Y: Sequence[Sequence[Node]]
) -> ModelError:
    """Return the error for dependent rows, equal in number to the rates."""
    tied, free = _null_spaces(system, rows, unknowns, Y)
    place = next((row.text.where for row in rows if row.name in tied), _place(system, rows))
    match tied:
        case []:
            message = "the definitions of the speeds are not independent"
        case [name]:
            message = f"the definition of {name} measures no motion"
        case _:
            message = f"the definitions of {', '.join(tied)} are not independent"
    return ModelError(
        message,
        place,
        found=f"not determined: {', '.join(free)}" if free else "",
        remedy="define one of them so that it measures another motion",
    )


def _null_spaces(
    system: MechanismSymbols, rows: Sequence[_Row], unknowns: Sequence[Node], Y: Sequence[Sequence[Node]]
) -> tuple[list[str], list[str]]:
    """Return the rows that depend on each other and the unknowns that stay open, at a general configuration."""
    if not rows:
        return [], [unknown.name for unknown in unknowns]
    values = sample(system, [node for row in Y for node in row])
    numbers = np.nan_to_num(values.reshape(len(rows), len(unknowns)), posinf=0.0, neginf=0.0)
    left, singular, right = np.linalg.svd(numbers)
    rank = int(np.sum(singular > 1e-9 * max(1.0, singular.max(initial=0.0))))
    tied = np.abs(left[:, rank:]).max(axis=1, initial=0.0)
    free = np.abs(right[rank:]).max(axis=0, initial=0.0)
    return (
        [row.name for row, share in zip(rows, tied, strict=True) if share > SHARE],
        [unknown.name for unknown, share in zip(unknowns, free, strict=True) if share > SHARE],
    )


def _place(system: MechanismSymbols, rows: Sequence[_Row]) -> Location:
    return rows[0].text.where if rows else system.mechanism.where


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
