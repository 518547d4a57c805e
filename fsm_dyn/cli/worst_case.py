"""The option ``--worst`` of the command ``study``: a search for the run that violates a requirement most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from fsm_dyn.cli.console import print_json, progress_message
from fsm_dyn.cli.model_commands import ready_graph
from fsm_dyn.interrupts import asked_to_end


def print_worst_case(
    model: str,
    requirement: str,
    vary: Mapping[str, Any] | None,
    runs: int,
    seed: int,
    options: Mapping[str, Any],
    out: Path | None,
    as_json: bool,
) -> None:
    """Search, print what was found, and write every violating run to ``out``."""
    # The public half of the package: the runtime and the machine-code compiler.
    from fsm_dyn.analysis.worst_case import worst_case

    with asked_to_end() as asked, asked.at_once():
        graph = ready_graph(model, None, as_json)
        with progress_message(f"searching {graph.name}", as_json) as progress:
            found = worst_case(
                graph, requirement, vary=vary, runs=runs, seed=seed, progress=progress.counted, **options
            )
    violations = found.violations if out is not None else ()
    files = [
        item.run.save(Path(out or "") / f"{graph.name}_{requirement}_{k:03d}.run.json")
        for k, item in enumerate(violations)
    ]  # fmt: skip
    if as_json:
        print_json(
            {
                "model": graph.name, "requirement": requirement, "seed": seed, "runs": found.runs,
                "undecided": found.undecided, "failed": found.failed, "violations": len(found.violations),
                "box": found.box, "values": found.values, "margin": found.margin, "unit": found.unit,
                "files": [str(path) for path in files],
            }
        )  # fmt: skip
        return
    typer.echo(str(found))
    if found.values:
        point = ", ".join(f"{name} = {value:.6g}" for name, value in found.values.items())
        typer.echo(f"smallest margin {found.margin:.6g} {found.unit}, at {point}")
    for item in found.violations[:1]:
        for transition in item.judgement.chain:
            typer.echo(f"  {transition}")
    for path in files:
        typer.echo(f"wrote {path}")
