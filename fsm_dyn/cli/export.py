"""Command ``export``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fsm_dyn.cli.console import handle_errors, print_json, print_status, progress_message
from fsm_dyn.cli.model_commands import Json, Model, ready_graph
from fsm_dyn.cli.options import Input, ScenarioOption, Set, Step, assignments, run_option


class ExportTarget(StrEnum):
    """Targets of an export."""

    C99 = "c99"
    CORTEX_M = "cortex-m"
    FMU2 = "fmu2"
    FMU3 = "fmu3"
    HTML = "html"
    MJCF = "mjcf"
    MODELICA = "modelica"


class RealType(StrEnum):
    """Types of the numbers in C."""

    DOUBLE = "double"
    FLOAT = "float"


class OutputChoice(StrEnum):
    """Outputs of an export."""

    LISTED = "listed"
    ALL = "all"
    REALS = "reals"


@handle_errors
def export_command(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; or FILE.fmu, .html, .xml, .mo.")],
    to: Annotated[ExportTarget, typer.Option("--to", help="What to export to.")] = ExportTarget.C99,
    scenario: ScenarioOption = None,
    input_: Input = None,
    method: Annotated[str, run_option("method", help="dopri5, or rk4, heun, euler with --step.")] = "dopri5",
    step: Step = None,
    modes_only: Annotated[
        bool, typer.Option("--modes-only", help="Export the modes of the graph alone, without a run of its schedule.")
    ] = False,
    spare_modes: Annotated[
        int | None,
        typer.Option("--spare-modes", help="How many modes beyond the exported ones are embedded online; 16."),
    ] = None,
    real: Annotated[
        RealType, typer.Option("--real", help="Type of the numbers, to C99 and Cortex-M.")
    ] = RealType.DOUBLE,
    outputs: Annotated[
        OutputChoice,
        typer.Option("--outputs", help="Of the model; all: forces and states too; reals: and modes as real numbers."),
    ] = OutputChoice.LISTED,
    mode: Annotated[str | None, typer.Option("--mode", help="Mode for Modelica; that of the start.")] = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Write a model as sources that run without Python."""
    parameters = assignments("--set", set_)
    graph = ready_graph(model, parameters, as_json)
    # imported on demand: code generation is slow to import
    from fsm_dyn.exports.export import ENDINGS, export
    from fsm_dyn.exports.exported_run import prefix_of

    ending = ENDINGS.get(str(to), "")
    if ending and out.suffix != ending:
        out = out / f"{prefix_of(graph.name)}{ending}"
    with progress_message(f"exporting {graph.name}", as_json):
        written = export(
            graph, out, str(to), scenario=scenario, inputs=assignments("--input", input_), method=method, step=step,
            listed_modes=modes_only, spare_modes=spare_modes, real=real.value,
            outputs=outputs.value, mode=mode,
        )  # fmt: skip
    if written.is_file():
        if as_json:
            print_json({"model": graph.name, "target": str(to), "file": str(written)})
        else:
            typer.echo(f"wrote {written}, {written.stat().st_size / 1e6:.2f} MB")
            if to is ExportTarget.HTML:
                print_status("next: open it in a browser")
            if to is ExportTarget.MJCF:
                print_status("next: read its first comment, what MuJoCo does not say")
        return
    files = sorted(path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file())
    if as_json:
        print_json({"model": graph.name, "target": str(to), "folder": str(written), "files": files})
    else:
        typer.echo(f"wrote {len(files)} files to {written}")
        print_status(f"next: make -C {written} run")
