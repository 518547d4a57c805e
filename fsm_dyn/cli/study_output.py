"""What the command ``study`` prints and writes: tables, data, figures."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import typer

from fsm_dyn.cli.console import table
from fsm_dyn.whole_files import whole_file, write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fsm_dyn.analysis.study_results import Study
    from fsm_dyn.automaton.mode_graph import ModeGraph

_SEQUENCES: Final = 8  # of modes, listed
_WIDE: Final = 90  # characters
_ROUNDING: Final = 1e-12  # of the largest value of an output: less is printed as zero

Row = list[float | int | str]


def study_as_json(found: Study, files: Sequence[Path]) -> dict[str, Any]:
    """Return a study as data for JSON."""
    headings, lines = found.table()
    data: dict[str, Any] = {
        "model": found.model, "sample": found.sample, "compiled": found.compiled,
        "requirements": {name: found.counts(name) for name in _judged(found)},
        "sequences": [{"modes": modes, "verdicts": counts} for modes, counts in found.mode_sequences().items()],
        "nearest_failure": found.nearest_failure(), "warnings": found.warnings,
    }  # fmt: skip
    if found.distributions:
        data |= {
            "runs": len(found.outcomes), "distributions": found.distributions,
            "yield": {name: asdict(found.estimate(name)) for name in _judged(found)},
            "sensitivity": {name: found.sensitivity(name) for name in found.margins},
        }  # fmt: skip
    rows = [dict(zip(headings, line, strict=True)) for line in lines]
    return data | {"rows": rows, "files": [str(path) for path in files]}


def print_study(found: Study, files: Sequence[Path]) -> None:
    """Print a study: of a grid its rows, of a sample yields and sensitivities; then the sequences of modes."""
    if found.compiled:
        typer.echo(f"compiled {found.compiled} variant{'s' if found.compiled > 1 else ''}")
    if found.distributions:
        _print_yields(found)
    else:
        headings, lines = _readable(found)
        typer.echo(table(headings, [[f"{x:.6g}" if isinstance(x, float) else str(x) for x in line] for line in lines]))
        if found.margins:
            from fsm_dyn.results.judgement import VERDICTS  # after the run-time half of the package

            counts = [(name, *(str(found.counts(name)[word]) for word in VERDICTS)) for name in _judged(found)]
            typer.echo("\n" + table(("requirement", *VERDICTS), counts))
    typer.echo("\n" + _sequences(found))
    nearest = found.nearest_failure() if found.margins else None
    if nearest is not None:
        point = ", ".join(
            f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in found.rows[nearest].values.items()
        )
        typer.echo(f"\nviolated nearest to the nominal values: run {nearest}, {point}")
    for text in found.warnings:
        typer.echo(f"\nwarning: {text}")
    for path in files:
        typer.echo(f"wrote {path}")


def _judged(found: Study) -> list[str]:
    """Return the requirements, and all together."""
    return [*found.verdicts] if found.margins else []


def _readable(found: Study) -> tuple[list[str], list[Row]]:
    """Return a study's table as it is printed: headings with units, zero where only rounding remains, names elided."""
    from fsm_dyn.automaton.label_forms import LONGEST  # after the run-time half of the package
    from fsm_dyn.graphics.diagram import elided

    headings, lines = found.table()
    owners = [*found.varied, "", "end", "", "", *(name for name in found.outputs for _ in range(3))]
    owners += [text for name in found.margins for text in ("", name)]
    owners += [""] if found.warnings else []  # the energy balance; the modes are listed apart
    largest = {name: np.nanmax(np.abs([*parts.values()]), initial=0.0) for name, parts in found.outputs.items()}
    units = {**found.units, "end": "s"}
    titles = [
        heading if units.get(name, "1") == "1" else f"{heading}, {units[name]}"
        for heading, name in zip(headings, owners, strict=False)
    ]
    return titles, [
        [
            elided(x, LONGEST) if isinstance(x, str)
            else 0.0 if isinstance(x, float) and abs(x) <= _ROUNDING * largest.get(name, 0.0)
            else x
            for x, name in zip(line, owners, strict=False)
        ]
        for line in lines
    ]  # fmt: skip


def _print_yields(found: Study) -> None:
    """Print distributions, yields with their intervals, and rank correlations."""
    for name, distribution in found.distributions.items():
        unit = found.units.get(name, "1")
        typer.echo(f"{name}: {distribution}" + ("" if unit == "1" else f" {unit}"))
    if not found.margins:
        return
    rows = [(name, *_estimate(found, name, None)) for name in _judged(found)]
    typer.echo("\n" + table(("requirement", *_ESTIMATE), rows))
    for word in (name for name, column in found.parameters.items() if column.dtype == object):
        column = found.parameters[word]
        rows = [
            (name, value, *_estimate(found, name, column == value))
            for name in _judged(found)
            for value in dict.fromkeys(column.tolist())
        ]
        typer.echo("\n" + table(("requirement", word, *_ESTIMATE), rows))
    strongest = [
        (name, parameter, f"{value:+.2f}")
        for name in found.margins
        for parameter, value in found.sensitivity(name).items()
    ]
    if strongest:
        typer.echo("\n" + table(("margin of", "parameter", "rank correlation"), strongest))


_ESTIMATE: Final = ("met", "violated", "undecided", "yield", "95 % interval")


def _estimate(found: Study, name: str, among: Any) -> tuple[str, ...]:
    item = found.estimate(name, among)
    counts = (str(count) for count in (item.met, item.violated, item.undecided))
    return (*counts, f"{item.value:.4g}", f"{item.lower:.4g} to {item.upper:.4g}")


def _sequences(found: Study) -> str:
    """Return the most frequent sequences of modes as a table."""
    from fsm_dyn.graphics.diagram import sequence_labels  # after the run-time half of the package

    groups = list(found.mode_sequences().items())
    frequent = groups[:_SEQUENCES]
    lines = []
    for (_, verdicts), text in zip(frequent, sequence_labels([modes for modes, _ in frequent], _WIDE), strict=True):
        counted = (", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()),) if found.margins else ()
        lines.append((str(sum(verdicts.values())), *counted, text))
    others = groups[_SEQUENCES:]
    if others:
        count = sum(sum(verdicts.values()) for _, verdicts in others)
        lines.append((str(count), *[""][: bool(found.margins)], f"{len(others)} other sequences"))
    return table(("runs", *["verdicts"][: bool(found.margins)], "modes"), lines)


def write_study(found: Study, graph: ModeGraph, folder: Path) -> list[Path]:
    """Write the rows as CSV, and the figures; return the paths."""
    # Matplotlib, for the pictures only.
    from fsm_dyn import plot
    from fsm_dyn.analysis.study_diagrams import shares_svg

    kind = "sample" if found.distributions else "study"
    files = [folder / f"{found.model}_{kind}.csv"]
    headings, lines = found.table()
    with whole_file(files[0]) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([headings, *lines])
    if found.curves:
        files.append(plot.save(_curves(found), folder / f"{found.model}_study.png"))
    if found.distributions and found.margins:
        estimates = {name: found.estimate(name) for name in found.verdicts}
        intervals = {name: (item.value, item.lower, item.upper) for name, item in estimates.items()}
        sensitivities = {name: found.sensitivity(name) for name in found.margins}
        figure = plot.requirements(found.model, intervals, sensitivities, found.margins, found.units)
        files.append(plot.save(figure, folder / f"{found.model}_yield.png"))
    files.append(folder / f"{found.model}_shares.svg")
    write_file(files[-1], shares_svg(found, graph))
    numbers = {name: column for name, column in found.parameters.items() if column.dtype != object}
    if len(numbers) > 1:
        across, up, *_ = numbers.items()
        verdicts = found.verdicts["all"] if found.margins else None
        title, filled = f"{found.model}: sequences of modes", len(found.parameters) == 2
        figure = plot.sequence_map(title, across, up, found.sequences, verdicts, found.units, filled=filled)
        files.append(plot.save(figure, folder / f"{found.model}_map.png"))
    return files


def _curves(found: Study) -> Figure:
    """Return the figure of outputs over time, and of their extremes over what is varied first."""
    # Matplotlib, for the pictures only.
    from fsm_dyn import plot

    started = np.array([bool(modes) for modes in found.sequences])
    first, column = next(iter(found.parameters.items()))
    curves = {name: [*curve[started]] for name, curve in found.curves.items()}
    extremes = {
        name: [*zip(parts["minimum"][started], parts["maximum"][started], strict=True)]
        for name, parts in found.outputs.items()
    }
    title = f"{found.model}: {', '.join(found.varied)}"
    return plot.study(title, (first, column[started].tolist()), found.times, curves, found.units, extremes)
