"""The summary of a run, as text and as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fsm_dyn.cli.console import table

if TYPE_CHECKING:
    from fsm_dyn.results import Trajectory
    from fsm_dyn.results.judgement import Judgement
    from fsm_dyn.results.transitions import Transition

SHOWN: Final = 30  # transitions
_MANY_PAIRS: Final = 8  # of shapes, from which on those that came to touch are listed
_ROUNDING: Final = 1e-14  # of an energy: a difference of two that is smaller is none
_WIDE: Final = 60  # characters of two modes' names beyond which a line names one of them


def describe(trajectory: Trajectory, most: int | None = SHOWN, full: bool = False) -> str:
    """Return a summary of a run as text: span, outcome, transitions with their causes, energy balance.

    Of more than ``most`` transitions the first ones and the last are listed; modes are called by their labels, or by
    their names in full.
    """
    modes = trajectory.modes if full else trajectory.labels
    lines = [
        f"{trajectory.model.name}: {trajectory.t[0]:g} s to {trajectory.t[-1]:g} s, {len(trajectory)} rows, "
        f"started {modes[0]}, ended {modes[-1]} ({trajectory.outcome.name})"
    ]
    if trajectory.transitions:
        lines += ["", _transition_table(trajectory.transitions, most, full)]
    lines += _pairs(trajectory, most)
    judged = trajectory.judge()
    if judged:
        lines += ["", requirement_table(judged.values())]
    passed = trajectory.change_points
    lines += ["", *(str(item) for item in passed[:SHOWN])] if passed else []
    if len(passed) > SHOWN:
        lines.append(f"and {len(passed) - SHOWN} more change points")
    if not trajectory.outcome.failed:
        residual = trajectory.energy.relative_residual
        lines += ["", f"energy-balance residual: {residual:.1e} of the energy exchanged"]
    lines += [f"warning: {text}" for text in trajectory.warnings]
    return "\n".join(lines)


def _pairs(trajectory: Trajectory, most: int | None) -> list[str]:
    """Return which pairs of shapes came to touch and when they first did, of a model with many."""
    count = len(trajectory.model.contact_entries)
    if count < _MANY_PAIRS:
        return []
    from fsm_dyn.results.encounters import touched_pairs

    touched = touched_pairs(trajectory.model, trajectory.transitions)
    lines = ["", f"{len(touched)} of {count} pairs of shapes came to touch{':' if touched else ''}"]
    if touched:
        rows = [(name, f"{times[0]:.6f}", f"{len(times)}") for name, times in touched.items()]
        lines.append(table(("pair", "first, s", "times"), rows[:most]))
        lines += [f"and {len(rows) - most} more: --all"] if most is not None and len(rows) > most else []
    return lines


def _transition_table(transitions: Sequence[Transition], most: int | None, full: bool) -> str:
    """Return transitions as a table, of more than ``most`` the first ones and the last."""
    left_out = 0 if most is None else max(len(transitions) - most, 0)
    shown = (*transitions[: most - 1], transitions[-1]) if most is not None and left_out else transitions
    headings = ["time, s", "from", "to", "cause"]
    ends = [
        (x.source, x.target)
        if full
        else (x.source_label or x.source, "(handover)" if x.is_handover else x.target_label or x.target)
        for x in shown
    ]
    rows = [[f"{x.time:.6f}", *modes, x.cause] for x, modes in zip(shown, ends, strict=True)]
    if max(sum(map(len, modes)) for modes in ends) > _WIDE:  # it is where the line before ended
        headings.pop(1)
        rows = [[time, *others] for time, _, *others in rows]
    if any(x.impulse for x in shown):
        headings.insert(-1, "impact, J")
        for x, row in zip(shown, rows, strict=True):
            row.insert(-1, _impact(x) if x.impulse else "")
    if left_out:
        rows.insert(-1, ["...", *[""] * (len(headings) - 2), f"{left_out} more: --all"])
    return table(headings, rows)


def _impact(item: Transition) -> str:
    """Return the energy that an impact took, J; what is rounding of the energies is zero."""
    rounding = _ROUNDING * max(abs(item.energy_before), abs(item.energy_after))
    return "0" if abs(item.energy_lost) <= rounding else f"{-item.energy_lost:+.2e}"


def requirement_table(judged: Iterable[Judgement]) -> str:
    """Return the requirements of a run as a table: verdicts, margins and the times that decide."""
    rows = [
        (
            item.name,
            item.verdict,
            "none" if math.isnan(item.margin) else f"{item.margin:.6g} {item.unit}".removesuffix(" 1"),
            "" if item.time is None else f"{item.time:.6f}",
            item.chain[-1].cause if item.chain else "",
        )
        for item in judged
    ]
    return table(("requirement", "verdict", "margin", "time, s", "after"), rows)


def summary(trajectory: Trajectory, files: list[Path]) -> dict[str, Any]:
    """Return a summary of a run as data.

    Parameters
    ----------
    files : list of Path
        That were written.
    """
    layout = trajectory.model.layout
    return {
        "model": trajectory.model.name,
        "outcome": trajectory.outcome.name,
        "start": trajectory.t[0],
        "end": trajectory.t[-1],
        "rows": len(trajectory),
        "modes": list(dict.fromkeys(trajectory.modes)),
        "transitions": [
            {
                "time": x.time,
                "source": x.source,
                "target": x.target,
                "handover": x.is_handover,
                "cause": x.cause,
                "impulse": x.impulse,
                "energy_before": x.energy_before,
                "energy_after": x.energy_after,
                "consistent_count": x.consistent_count,
            }
            for x in trajectory.transitions
        ],
        "warnings": list(trajectory.warnings),
        "change_points": [asdict(x) for x in trajectory.change_points],
        "requirements": {name: _judgement_data(item) for name, item in trajectory.judge().items()},
        "final": {
            "mode": trajectory.modes[-1],
            "q": dict(zip(layout.q, trajectory.q[-1], strict=True)),
            "u": dict(zip(layout.u, trajectory.u[-1], strict=True)),
        },
        "files": [str(path) for path in files],
    }


def _judgement_data(item: Judgement) -> dict[str, Any]:
    return {
        "formula": item.formula,
        "verdict": item.verdict,
        "margin": item.margin,
        "unit": item.unit,
        "time": item.time,
        "chain": [transition.cause for transition in item.chain],
    }
