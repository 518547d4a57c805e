"""The command ``equations``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsm_dyn.cli.assignments import Set, assignments
from fsm_dyn.cli.console import handle_errors, print_status
from fsm_dyn.cli.model_commands import Model, ready_graph
from fsm_dyn.errors import FsmDynError, InputError, did_you_mean
from fsm_dyn.whole_files import write_file

if TYPE_CHECKING:
    from fsm_dyn.automaton.mode_graph import ModeGraph

FORMATS = {"html": "html", "latex": "tex", "sympy": "py", "numpy": "py", "c": "c"}


@handle_errors
def equations_command(
    model: Model,
    mode: Annotated[
        str | None, typer.Option("--mode", help="Name of the mode; default: the one runs start in.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help=f"One of: {', '.join(FORMATS)}.")] = "html",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write; - for the terminal.")] = None,
    advise: Annotated[
        bool, typer.Option("--advise", help="Only count the operations of other choices of speeds; nothing is changed.")
    ] = False,
    set_: Set = None,
) -> None:
    """Write the equations of a mode: a page in HTML or LaTeX, or source in SymPy, NumPy or C."""
    if advise:
        # brings SymPy along
        from fsm_dyn.analysis.speed_advice import advise_speeds

        typer.echo(str(advise_speeds(model)))
        return
    if format_ not in FORMATS:
        raise InputError(
            f"unknown format '{format_}'", allowed=", ".join(FORMATS), remedy=did_you_mean(format_, FORMATS)
        )
    graph = ready_graph(model, assignments("--set", set_))
    name = mode or graph.initial
    if name not in graph.modes:
        raise InputError(f"no mode '{name}'", allowed=", ".join(graph.modes), remedy=did_you_mean(name, graph.modes))
    target = None if str(out) == "-" else out or Path(f"{graph.name}_{name}.{FORMATS[format_]}")
    text = _source(graph, name, format_) if format_ in ("sympy", "numpy", "c") else _page(graph, name, format_, target)
    if target is None:
        typer.echo(text, nl=False)
        return
    write_file(target, text)
    typer.echo(f"wrote {target}")


def _page(graph: ModeGraph, mode: str, format_: str, target: Path | None) -> str:
    """Return the page of a mode; the figure of one in LaTeX goes to the same folder."""
    # brings SymPy along
    from fsm_dyn.symbolic.equations_page import page_of, to_html, to_latex

    ways_out = [
        (data["guard"] or data["cause"], target, data["reset"] or "")
        for _, target, data in graph.nx.out_edges(mode, data=True)
    ]
    page = page_of(graph.modes[mode].kane_equations, ways_out)
    if format_ == "html":
        return to_html(page, _picture(graph, "svg").decode())
    figure = b"" if target is None else _picture(graph, "pdf")
    if target is None or not figure:
        return to_latex(page)
    figure_file = target.with_name(f"{target.stem}_figure.pdf")  # TeX names the document after its source
    write_file(figure_file, figure)
    typer.echo(f"wrote {figure_file}")
    return to_latex(page, figure_file.name)


def _source(graph: ModeGraph, mode: str, format_: str) -> str:
    """Return all outputs of a mode as source, behind comments with what they and their axes are."""
    from fsm_dyn.symbolic.equations_page import to_sympy_source
    from fsm_dyn.symbolic.kane_equations import OUTPUTS

    equations, automaton = graph.modes[mode].kane_equations, graph.automaton
    layout = automaton.terms.layout
    axes = {
        "x": layout.x, "c": layout.c, "independent speeds": equations.independent,
        "dependent speeds": equations.dependent, "active rows": equations.rows, "all rows": equations.row_names,
        "guards": equations.guards, "points": automaton.point_names, "frames": automaton.frame_names,
    }  # fmt: skip
    head = [f"{graph.name}, mode '{mode}'; SI units", *(f"{name} = {', '.join(of)}" for name, of in axes.items())]
    head += [f"{name}: {text}" for name, text in OUTPUTS.items()]
    mark = "//" if format_ == "c" else "#"
    if format_ == "sympy":
        source = to_sympy_source(equations, tuple(OUTPUTS))
    else:
        source = (equations.c_source if format_ == "c" else equations.numpy_source)(*OUTPUTS)
    return "".join(f"{mark} {line}\n" for line in head) + source


def _picture(graph: ModeGraph, format_: str) -> bytes:
    """Return the mechanism as its runs begin, as SVG or PDF; nothing where the model cannot be drawn or run."""
    # Matplotlib and the integrator, for the picture alone
    import fsm_dyn
    from fsm_dyn.plot.motion import snapshot

    try:
        picture = snapshot(fsm_dyn.simulate(graph, until=1e-6), 0.0)
    except FsmDynError as error:
        print_status(f"without a picture: {error}")
        return b""
    stream = io.BytesIO()
    date = "Date" if format_ == "svg" else "CreationDate"
    picture.savefig(stream, format=format_, metadata={date: None})
    return stream.getvalue()
