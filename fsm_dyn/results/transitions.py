"""Transition of a run, with its cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.graphics.svg import html_table
from fsm_dyn.graphics.text_table import table
from fsm_dyn.renamed import RenamedAttribute
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.optional_libraries import optional_library

if TYPE_CHECKING:
    import pandas
    import xarray

_HEADINGS = ("time, s", "from", "to", "cause")


@dataclass(frozen=True, repr=False)
class Transition:
    """One transition: a change of mode, or a feature transition (handover) within what is read as one mode.

    Attributes
    ----------
    time : float
        When, s.
    source, target : str
        Names of the modes before and after.
    cause : str
        The contact and its event, or the condition the user wrote.
    impulse : mapping of str to ndarray
        Impulse by contact or constraint, one value per row (normal before tangent), N·s or N·m·s; empty without one.
    energy_before, energy_after : float
        Kinetic and potential energy together, J.
    u_before, u_after : ndarray, shape (n_u,)
    consistent_count : int
        How many combinations of contact states agreed with the forces; above 1 the documented preference chose.
    guard_value, slope : float
        Value and rate of the guard that fired, just before; nan where none did.
    selection : tuple of str
        How the candidate was selected, then each candidate examined, with the contact law it violates.
    fired : tuple of (str, float, float)
        All guards that fired together: event, value and slope just before, of each.
    source_label, target_label : str
        Labels of the modes before and after for the user; empty if equal to their names.
    """

    time: float
    source: str
    target: str
    cause: str
    impulse: Mapping[str, FloatArray]
    energy_before: float
    energy_after: float
    u_before: FloatArray
    u_after: FloatArray
    consistent_count: int = 1
    guard_value: float = float("nan")
    slope: float = float("nan")
    selection: tuple[str, ...] = ()
    fired: tuple[tuple[str, float, float], ...] = ()
    source_label: str = ""
    target_label: str = ""
    why = RenamedAttribute("selection")
    guard = RenamedAttribute("guard_value")
    candidates = RenamedAttribute("consistent_count")

    @property
    def is_handover(self) -> bool:
        """Whether it is a feature transition (handover): other features bear the same contact, without an impulse.

        The mode that people read is the same before and after; ``source`` and ``target`` differ.
        """
        same = bool(self.source_label) and self.source_label == self.target_label
        return same and self.source != self.target and not self.impulse

    @property
    def change(self) -> str:
        """The modes before and after, as people read them; of a handover the one mode it happens in."""
        if self.is_handover:
            return self.source_label
        return f"{self.source_label or self.source} → {self.target_label or self.target}"

    @property
    def energy_lost(self) -> float:
        """Energy that the transition took out of the motion, J."""
        return self.energy_before - self.energy_after

    def __repr__(self) -> str:
        return f"<Transition {self}>"

    def __str__(self) -> str:
        text = f"{self.time:.6f} s  {self.change}  {self.cause}"
        impulses = ", ".join(f"{name} {_numbers(values)}" for name, values in self.impulse.items())
        if impulses:
            text += f"  (impulse {impulses}; energy {-self.energy_lost:+.3g} J)"
        return text


class Transitions(tuple[Transition, ...]):
    """The transitions of a run, in order of time; printed, and shown in a notebook, as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        return table(_HEADINGS, self._cells()) if self else "no transitions"

    def _repr_html_(self) -> str:
        return html_table(_HEADINGS, self._cells())

    def to_pandas(self) -> pandas.DataFrame:
        """Return them as a ``pandas.DataFrame``: time (s), source, target, cause, energies before and after (J).

        Raises
        ------
        InputError
            If pandas is not installed (the extra ``analysis``).
        """
        columns = transition_fields(self)
        frame: pandas.DataFrame = optional_library("pandas").DataFrame(
            {field: values for field, (values, _, _) in columns.items()}
        )
        frame.attrs["units"] = {field: unit for field, (_, unit, _) in columns.items() if unit}
        return frame

    def to_xarray(self) -> xarray.Dataset:
        """Return them as an ``xarray.Dataset`` along ``time``, s, with the same variables; times may repeat.

        ``run.to_xarray().sel(time=transitions.time, method="nearest")`` gives the rows just after them.

        Raises
        ------
        InputError
            If xarray is not installed (the extra ``analysis``).
        """
        columns = {
            field: ("time", values, {"long_name": text, **({"units": unit} if unit else {})})
            for field, (values, unit, text) in transition_fields(self).items()
        }
        found: xarray.Dataset = optional_library("xarray").Dataset(columns).set_coords("time")
        return found

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{item.time:.6f}",
                item.source_label or item.source,
                "(handover)" if item.is_handover else item.target_label or item.target,
                item.cause,
            )
            for item in self
        ]


def transition_fields(transitions: Sequence[Transition]) -> dict[str, tuple[NDArray[Any], str, str]]:
    """Return columns of transitions by name: values, unit (empty: none), what they are."""
    numbers = {"time": ("s", "time of the transition"), "energy_before": ("J", "energy before the transition"),
               "energy_after": ("J", "energy after the transition")}  # fmt: skip
    texts = {"source": "mode before", "target": "mode after", "cause": "cause of the transition"}
    found: dict[str, tuple[NDArray[Any], str, str]] = {}
    for field in ("time", "source", "target", "cause", "energy_before", "energy_after"):
        values = [getattr(item, field) for item in transitions]
        if field in numbers:
            found[field] = (np.array(values, dtype=np.float64), *numbers[field])
        else:
            found[field] = (np.array(values, dtype=str), "", texts[field])
    return found


def counted(transitions: Sequence[Transition]) -> str:
    """Return how many changes of mode there are, and apart from them how many handovers: ``3 transitions``."""
    handovers = sum(item.is_handover for item in transitions)
    text = f"{len(transitions) - handovers} transitions"
    return f"{text}, {handovers} handover{'s' if handovers != 1 else ''}" if handovers else text


def _numbers(values: FloatArray) -> str:
    return " / ".join(f"{value:.3g}" for value in np.atleast_1d(values))
