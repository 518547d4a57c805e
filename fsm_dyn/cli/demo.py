"""The command ``demo``: the shopping cart from its file to its pictures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from fsm_dyn.cli.console import handle_errors, progress_message
from fsm_dyn.cli.model_commands import mode_table, ready_graph
from fsm_dyn.cli.output_paths import prepare_folder
from fsm_dyn.cli.run_files import RunOutputs, write_files
from fsm_dyn.cli.run_summary import describe

_MODEL = "shopping_cart"


@handle_errors
def demo_command(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path("out"),
) -> None:
    """Compile and run the shopping cart: its caster sticks, breaks away and sticks again; draw all of it."""
    started = time.perf_counter()
    prepare_folder("--out", out)
    graph = ready_graph(_MODEL)
    typer.echo(f"{graph.name}: {graph.automaton.mechanism.summary}\n\n{mode_table(graph)}\n")
    # The public interface and Matplotlib take a moment to import.
    import fsm_dyn
    from fsm_dyn.plot import drawing

    with progress_message("running"):
        trajectory = fsm_dyn.simulate(graph)
    typer.echo(describe(trajectory))
    typer.echo("")
    with progress_message("drawing"):
        files = write_files(trajectory, RunOutputs(out, csv=True, netcdf=False, figure=True, motion=True))
        files.append(drawing.draw(graph.nx, out / f"{graph.name}_modes.png"))
    for path in files:
        typer.echo(f"wrote {path}")
    typer.echo(f"{time.perf_counter() - started:.1f} s")
