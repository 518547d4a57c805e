"""Change points that a run passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.runtime.abi import PassageColumn

TAKES_PART: Final = 0.3  # weight of a row, relative to the largest, from which on it is named


@dataclass(frozen=True)
class ChangePoint:
    """One passage through a change point: an event, not a transition, as the mode continues.

    Attributes
    ----------
    time : float
        When the constraints lose rank, s.
    mode : str
        The mode, which continues.
    rows : tuple of str
        Constraints and contacts whose rows become dependent; their forces grow without bound as 1 / (time - t).
    rank : int
        Number of independent constraint rows before and after.
    lost : int
        How many of them become dependent.
    error : float
        Estimated error of the step over the change point in units of its tolerance: above 1 where rounding does not
        allow less; 0 where the method gives no estimate.
    """

    time: float
    mode: str
    rows: tuple[str, ...]
    rank: int
    lost: int
    error: float

    def __str__(self) -> str:
        text = (
            f"{self.time:.6f} s  passes a change point: rank {self.rank} to {self.rank - self.lost}, "
            f"rows {', '.join(self.rows)}; branch kept (velocity continuous)"
        )
        return text + (f", crossing error {self.error:.2g} times its tolerance" if self.error > 0.0 else "")


def change_points_of(passages: FloatArray, rows: Sequence[str], modes: Sequence[str]) -> tuple[ChangePoint, ...]:
    """Return the passages of a run.

    Parameters
    ----------
    passages : float64 array, shape (n, PASSAGE_ROWS + n_rows)
        As the stepper wrote them.
    rows, modes : sequences of str
        Names of the constraint rows, and of the modes by number.
    """
    return tuple(
        ChangePoint(
            time=float(record[PassageColumn.TIME]),
            mode=modes[int(record[PassageColumn.MODE])],
            rows=rows_that_take_part(record[PassageColumn.ROWS :], rows),
            rank=int(record[PassageColumn.RANK]),
            lost=int(record[PassageColumn.LOST]),
            error=float(record[PassageColumn.ERROR]),
        )
        for record in passages
    )


def rows_that_take_part(weights: FloatArray, rows: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the rows whose weights count, without repetition."""
    least = TAKES_PART * max(float(weights.max(initial=0.0)), 1e-300)
    return tuple(dict.fromkeys(name for name, weight in zip(rows, weights, strict=True) if weight >= least))
