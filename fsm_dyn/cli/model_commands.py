"""Commands that stop before a run: new, models, schema, check, compile, graph, equations, check-equation, export."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsm_dyn.cli.console import (
    Input,
    ScenarioOption,
    Set,
    Step,
    assignments,
    handle_errors,
    prepare_file,
    print_json,
    print_status,
    progress_message,
    run_option,
)
from fsm_dyn.core.errors import FsmDynError, InputError, did_you_mean
from fsm_dyn.core.files import read_file, write_file
from fsm_dyn.core.interrupts import asked_to_end
from fsm_dyn.draw.svg import table

if TYPE_CHECKING:
    from fsm_dyn.analysis.exploration import Exploration
    from fsm_dyn.automaton.feasibility import GeometricFeasibility
    from fsm_dyn.automaton.mode_graph import ModeGraph


# -- Commands about model files: ``new``, ``models``, ``schema`` ---------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@handle_errors
def new_command(
    name: Annotated[str, typer.Argument(help="Name of the mechanism; the file becomes NAME.yaml.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder to write to.")] = Path(),
    robot: Annotated[
        Path | None, typer.Option("--from", help="Description to begin from: .urdf, or MJCF, .xml.")
    ] = None,
) -> None:
    """Write a commented starter file; an existing file is never touched."""
    # Reading the language takes a moment to import.
    from fsm_dyn.language.describe_keys import starter

    stem = name.removesuffix(".yaml")
    text = starter(stem)  # refuses texts unfit as a model's name, such as a path
    if robot is not None:
        if robot.suffix == ".xml":
            from fsm_dyn.language.urdf import model_from_mjcf as model_from
        else:
            from fsm_dyn.language.urdf import model_from_urdf as model_from
        text, dropped = model_from(robot)
        text = re.sub("^name: .*", f"name: {stem}", text, count=1, flags=re.MULTILINE)
        for word, count in sorted(dropped.items()):
            print_status(f"not taken over: {count} {word}")
    path = folder / f"{stem}.yaml"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} already exists", remedy="choose another name, or move the file away") from None
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()  # the file half written
        raise InputError(f"{path} cannot be written: {error.strerror}", remedy="check --dir") from None
    typer.echo(f"wrote {path}")
    print_status(f"next: fsm-dyn view {path} --edit, or fsm-dyn run {path} --watch")


@handle_errors
def models_command(as_json: Json = False) -> None:
    """List the mechanisms that come with the package."""
    # Reading the language takes a moment to import.
    from fsm_dyn.language import models
    from fsm_dyn.language.loader import heading

    found = [(theme, name, *heading(models.find(name))) for theme, own in models.by_theme().items() for name in own]
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "theme": theme,
                    "summary": summary,
                    "file": str(models.find(name)),
                    "variants": [*variants],
                }
                for theme, name, summary, variants in found
            ]
        )
        return
    head, rule, *rows = table(("name", "summary"), [(name, summary) for _, name, summary, _ in found]).splitlines()
    typer.echo(f"{head}\n{rule}")
    for number, (row, (theme, *_)) in enumerate(zip(rows, found, strict=True)):
        if number == 0 or theme != found[number - 1][0]:
            typer.echo(f"{'' if number == 0 else chr(10)}{theme}:")
        typer.echo(row)
    variants = [f"{name}:{variant}" for _, name, _, names in found for variant in names]
    if variants:
        typer.echo("\nvariants: " + ", ".join(variants))


@handle_errors
def schema_command(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write; default: print it.")] = None,
) -> None:
    """Print the JSON Schema of the model language, for editors."""
    if out is not None:
        prepare_file("--out", out)
    # Reading the language takes a moment to import.
    from fsm_dyn.language.describe_keys import json_schema

    schema = json_schema()
    if out is None:
        print_json(schema)
        return
    # The same printer as above, but into a file.
    import json

    write_file(out, json.dumps(schema, indent=2) + "\n")
    typer.echo(f"wrote {out}")


# -- Commands that stop before running: ``check``, ``compile``, ``graph`` ------------------------------------

MOST_DRAWN = 40  # most modes drawn one by one; more are grouped by the names of the model
Model = Annotated[str, typer.Argument(help="A shipped model's name, a model file, or a saved automaton (.json).")]


def ready_graph(model: str, parameters: dict[str, Any] | None = None, quiet: bool = False, jobs: int = 1) -> ModeGraph:
    """Load and compile a model, or read a saved automaton, with progress messages."""
    # The public interface brings SymPy along.
    import fsm_dyn

    if model.endswith(".json"):
        return fsm_dyn.open_graph(model, parameters=parameters)
    mechanism = fsm_dyn.load(model)
    with progress_message(f"compiling {mechanism.name}", quiet) as progress_:
        progress = partial(progress_.counted, what="modes")
        graph = fsm_dyn.compile(mechanism, parameters=parameters, jobs=jobs, progress=progress)
    if not quiet:
        for name in _always_redundant(graph):
            print_status(
                f"warning: constraint '{name}' depends linearly on others in every mode: its force is indeterminate"
            )
    return graph


def _always_redundant(graph: ModeGraph) -> list[str]:
    """Return the constraints redundant in all modes of the model."""
    constraints = graph.automaton.mechanism.constraints
    return [name for name in constraints if all(name in mode.redundant_rows for mode in graph.modes.values())]


@handle_errors
def check_command(
    model: Model,
    geometry: Annotated[
        bool, typer.Option("--geometry", help="Prove which contacts exclude each other (seconds to minutes).")
    ] = False,
    proofs: Annotated[
        Path | None, typer.Option("--proofs", help="Write the proofs of what the geometry excludes to a file.")
    ] = None,
    check_proofs: Annotated[
        Path | None,
        typer.Option("--check-proofs", help="Verify a file of --proofs by independent interval arithmetic."),
    ] = None,
    reach: Annotated[
        int | None,
        typer.Option("--reach", help="Explore by runs in N rounds; list modes never entered or left.", min=0),
    ] = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Compile a model; list its contents, infeasible modes and tolerances."""
    if proofs is not None:
        prepare_file("--proofs", proofs)
    graph = ready_graph(model, assignments("--set", set_), as_json)
    # Only the run-time half of the package, for its table of tolerances.
    from fsm_dyn.language.check_values import self_locking_screws
    from fsm_dyn.run.tolerances import numerics_of

    mechanism = graph.automaton.mechanism
    locking = self_locking_screws(mechanism, graph.values)
    kinds = ("coordinates", "speeds", "frames", "points", "bodies", "constraints", "contacts", "inputs", "loads",
             "memory", "controllers", "transitions", "outputs", "requirements")  # fmt: skip
    counts = {kind: len(getattr(mechanism, kind)) for kind in kinds}
    counts |= {"transitions": len(mechanism.written_transitions)}
    tolerances = numerics_of(graph.automaton, graph.values).tolerances.describe()
    found = _geometry(graph, as_json) if geometry or proofs is not None else None
    if proofs is not None:
        _write_proofs(graph, proofs, as_json)
    verified = None if check_proofs is None else _verified(graph, check_proofs, as_json)
    graph = graph if found is None else graph.with_geometry(found)
    counts |= {"modes": len(graph.modes), "edges": graph.edge_count, "infeasible": len(graph.infeasible)}
    doubts = _doubts_of_start(graph)
    explored = None if reach is None else _explored(graph, reach, 1, as_json)
    if as_json:
        known = _demanded(found, verified, explored)
        listed = {name: {"value": value, "unit": unit} for name, value, unit, _ in tolerances}
        print_json(_check_data(graph, counts, known, locking, listed) | {"start": doubts})
        return
    typer.echo(f"{graph.name}: {mechanism.summary}\n")
    typer.echo(table(("item", "count"), [(kind, str(number)) for kind, number in counts.items() if number]))
    typer.echo("\n" + mode_table(graph))
    _print_findings(graph, locking)
    for text in doubts:
        typer.echo(f"\nwarning: {text}")
    if found is not None:
        _print_geometry(found)
    if verified is not None:
        typer.echo(f"\nthe proofs of {check_proofs} hold: contradictions verified in {verified:,} boxes")
    if explored is not None:
        _print_exploration(explored)
    rows = [(name, f"{value:g}", unit, text) for name, value, unit, text in tolerances]
    typer.echo("\n" + table(("tolerance", "value", "unit", "meaning"), rows))


def _doubts_of_start(graph: ModeGraph) -> list[str]:
    """Return how deep shapes begin in one another, or behind a segment."""
    if not graph.automaton.mechanism.shapes:
        return []
    # Only the run-time half of the package, for a run of no duration.
    from fsm_dyn.core.errors import FsmDynError, StartWarning
    from fsm_dyn.run.simulator import simulate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StartWarning)  # told here
        try:
            run = simulate(graph, 0.0, on_failure="return")
        except FsmDynError as error:
            return str(error).splitlines()[:1]
    if not run.outcome.failed:
        return list(run.of_start)
    first, *rest = run.describe_outcome()
    return ["; ".join([first, *(line for line in rest if "penetration " in line)])]


def _demanded(
    geometry: GeometricFeasibility | None, verified: int | None, explored: Exploration | None
) -> dict[str, Any]:
    """Return the results that ``check`` has on demand, for JSON."""
    found = {
        "geometry": None if geometry is None else asdict(geometry),
        "verified_boxes": verified,
        "exploration": None if explored is None else explored.to_data(),
    }
    return {name: value for name, value in found.items() if value is not None}


def _check_data(
    graph: ModeGraph,
    counts: Mapping[str, int],
    known: Mapping[str, Any],
    locking: list[str],
    tolerances: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the result of ``check`` for JSON; ``known``: results on demand."""
    return {
        "model": graph.name,
        "counts": counts,
        **known,
        "modes": _modes(graph),
        "self_locking": locking,
        "infeasible": graph.infeasible,
        "unreachable": graph.unreachable if graph.automaton.fully_enumerated else None,
        "terminal_modes": graph.terminal_modes if graph.automaton.fully_enumerated else None,
        "tolerances": tolerances,
    }


def _print_findings(graph: ModeGraph, locking: list[str]) -> None:
    """Print redundant rows, self-locking screws, and infeasible, unreachable and terminal modes."""
    enumerated = graph.automaton.fully_enumerated  # otherwise modes without edges lead to modes not derived yet
    for title, items in (
        ("indeterminate multipliers (redundant constraint rows)", _redundant_rows(graph)),
        *([("self-locking screws", locking)] if locking else []),
        (
            "infeasible modes" if enumerated else "infeasible modes among those derived so far",
            [f"{states}: {reason}" for states, reason in graph.infeasible.items()],
        ),
        *([("unreachable modes", graph.unreachable), ("terminal modes", graph.terminal_modes)] if enumerated else []),
    ):
        typer.echo(f"\n{title}: " + ("none" if not items else ""))
        for item in items:
            typer.echo(f"  {item}")
    if not enumerated:
        typer.echo("\nmodes are derived when a run first reaches them: which others exist, --reach N finds by runs")


def _geometry(graph: ModeGraph, quiet: bool) -> GeometricFeasibility:
    with progress_message("comparing the gaps of contacts", quiet) as message:
        return graph.assess_geometry(partial(message.counted, what="questions"))


def _write_proofs(graph: ModeGraph, path: Path, quiet: bool) -> None:
    with progress_message("proving", quiet) as message:
        made = graph.prove_geometry(partial(message.counted, what="proofs"))
    made.save(path)
    missing = f"; not kept, as their subdivision is too fine: {', '.join(made.unproved)}" if made.unproved else ""
    print_status(f"wrote {path}: {len(made.proofs)} proofs, {made.leaves:,} boxes{missing}")


def _verified(graph: ModeGraph, path: Path, quiet: bool) -> int:
    # For this command alone.
    from fsm_dyn.automaton.geometric_proofs import GeometricProofs

    with progress_message("checking proofs", quiet) as message:
        return graph.check_proofs(GeometricProofs.open(path), partial(message.counted, what="proofs"))


def _print_geometry(found: GeometricFeasibility) -> None:
    """Print the mutually exclusive contacts, the numbers of verdicts and of the remaining combinations."""
    asked = [*found.verdicts, *found.held_contacts]
    rows = [(item.states, item.reason) for item in asked if item.verdict == "impossible"]
    typer.echo("\nimpossible contact states (proved), with any states of the others: " + ("" if rows else "none"))
    if rows:
        typer.echo(table(("states", "reason"), rows))
    numbers = Counter(item.verdict for item in asked)
    verdicts = ", ".join(f"{numbers[verdict]} {verdict}" for verdict in ("impossible", "possible", "undecided"))
    typer.echo(f"of {len(asked)} questions on one, two or more contacts: {verdicts}")
    if found.possible < 0:
        typer.echo(f"{found.remaining:,} of {found.combinations:,} combinations of contact states remain")
    else:
        excluded = found.combinations - found.remaining
        typer.echo(
            f"of {found.combinations:,} combinations of contact states {excluded:,} are impossible, "
            f"{found.possible:,} possible, {found.undecided:,} undecided"
        )


@handle_errors
def compile_command(
    model: Model,
    save: Annotated[
        Path | None, typer.Option("--save", help="Write the compiled automaton, which runs without SymPy.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes that derive modes.", min=1)] = 1,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Derive all modes and list their sizes."""
    if save is not None:
        prepare_file("--save", save)
    with asked_to_end() as asked, asked.at_once():
        graph = ready_graph(model, assignments("--set", set_), as_json, jobs)
    if save is not None:
        graph.save(save)
    if as_json:
        print_json(
            {"model": graph.name, "modes": _modes(graph), "infeasible": graph.infeasible, "saved": save and str(save)}
        )
        return
    typer.echo(mode_table(graph))
    if save is not None:
        typer.echo(f"wrote {save}")


@handle_errors
def graph_command(
    model: Model,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write; default: NAME.FORMAT here.")] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="svg, png, pdf, dot, mermaid, graphml, json, transitions or uppaal; default: the suffix of --out.",
        ),
    ] = None,
    reach: Annotated[
        int | None, typer.Option("--reach", help="Explore by runs in N rounds, and draw what they met.", min=0)
    ] = None,
    geometry: Annotated[
        bool, typer.Option("--geometry", help="Leave out modes that the gaps exclude (seconds to minutes).")
    ] = False,
    opened: Annotated[
        list[str] | None,
        typer.Option("--open", help="Group whose modes are drawn one by one; the others stay a box each (repeatable)."),
    ] = None,
    all_modes: Annotated[
        bool, typer.Option("--all", help="Draw the derived modes in groups, not what a run of the model visits.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes that explore.", min=1)] = 1,
    graphviz: Annotated[
        bool, typer.Option("--graphviz", help="Lay a picture out with Graphviz (extra `graphviz`).")
    ] = False,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Draw the modes visited by a run, or with --all the mode graph; or write that for other programs.

    Text goes to the terminal unless --out names a file.
    """
    # Matplotlib is needed by few commands.
    from fsm_dyn.plot import drawing, style

    kind = drawing.known_format(format_) if format_ else drawing.format_of(out) if out else "svg"
    if out is not None:
        prepare_file("--out", out)
    graph = ready_graph(model, assignments("--set", set_), as_json)
    derived = all_modes or geometry or graphviz or as_json or opened or reach is not None
    if not derived and kind in style.FORMATS and graph.automaton.contacts:
        _draw_run(graph, out or Path(f"{graph.name}.{kind}"), kind)
        return
    graph = graph.with_geometry(_geometry(graph, as_json)) if geometry else graph
    found = None if reach is None else _explored(graph, reach, jobs, as_json)
    shown = graph.nx_with_successors() if found is None else found.nx
    if opened or (len(shown) > MOST_DRAWN and kind not in drawing.EXCHANGE):
        from fsm_dyn.automaton.mode_graph import grouped

        shown = grouped(shown, opened or ())
    if as_json:
        print_json(_graph_data(graph) if found is None else found.to_data())
    elif out is None and kind in drawing.EXCHANGE:
        typer.echo(drawing.EXCHANGE[kind](shown), nl=False)
    elif out is None and kind in ("dot", "mermaid"):
        reduced = drawing.diagram(shown)
        typer.echo(drawing.to_dot(reduced) if kind == "dot" else drawing.to_mermaid(reduced), nl=False)
    else:
        target = out or Path(f"{graph.name}.{kind}")
        with progress_message("drawing"):
            drawing.draw(shown, target, kind, graphviz=graphviz)
        typer.echo(f"wrote {target}")


def _draw_run(graph: ModeGraph, target: Path, kind: str) -> None:
    """Run the model and draw the modes visited."""
    import fsm_dyn
    from fsm_dyn import plot

    with progress_message(f"running {graph.name}") as progress:
        trajectory = fsm_dyn.simulate(graph, progress=progress.reached, on_failure="return")
    plot.save(plot.run_graph(trajectory), target, kind)
    typer.echo(f"wrote {target}\n{trajectory.reading.headline}; --all draws the derived modes")


def _explored(graph: ModeGraph, rounds: int, jobs: int, quiet: bool) -> Exploration:
    # Runs the model: other commands of this file do not.
    from fsm_dyn.analysis.exploration import explore

    with progress_message("exploring", quiet) as message:
        found = explore(graph, depth=rounds, jobs=jobs, progress=partial(message.counted, what="runs"))
    print_status(f"{len(found.modes)} modes and {len(found.edges)} edges met in {found.runs} runs")
    return found


def _print_exploration(found: Exploration) -> None:
    """Print the modes an exploration reached, and those runs cannot enter or leave."""
    typer.echo(f"\n{len(found.modes)} modes and {len(found.edges)} edges met in {found.runs} runs")
    cycles = [f"{' → '.join(modes)} ({times}×)" for modes, times in found.instant_cycles.items()]
    for title, items in (
        ("modes never entered", found.never_entered),
        ("modes never left", found.never_left),
        ("terminal modes", found.terminal_modes),
        ("cycles within an instant", cycles),
    ):
        typer.echo(f"{title}: " + (", ".join(items) or "none"))


def _redundant_rows(graph: ModeGraph) -> list[str]:
    """Return the modes with redundant rows, and these rows."""
    return [f"{mode.name}: {', '.join(mode.redundant_rows)}" for mode in graph.modes.values() if mode.redundant_rows]


def _modes(graph: ModeGraph) -> list[dict[str, Any]]:
    return [
        {
            "name": mode.name,
            "states": mode.states,
            "independent_speeds": mode.independent_speeds,
            "redundant_rows": mode.redundant_rows,
            "operations": mode.counts.total,
        }
        for mode in graph.modes.values()
    ]


def mode_table(graph: ModeGraph) -> str:
    """Return the modes with their independent speeds and sizes; a star marks the initial mode.

    If there are many contacts, open ones are left out.
    """
    # imported with a compiled model, not needed by the command line alone
    from fsm_dyn.automaton.labels import told_states

    labels = {mode.name: graph.automaton.labels.of(mode.states) for mode in graph.automaton.modes}
    rows = [
        (
            labels[mode.name] + (" *" if mode.name == graph.initial else ""),
            str(mode.degrees_of_freedom),
            str(mode.counts.total),
            ", ".join(told_states(mode.states, " ")),
        )
        for mode in graph.modes.values()
    ]
    return table(("mode", "DOF", "operations", "contacts"), rows) + "\n* where runs start"


def _graph_data(graph: ModeGraph) -> dict[str, Any]:
    keys = ("cause", "guard", "kind", "priority", "reset")
    return {
        "model": graph.name,
        "initial": graph.initial,
        "modes": _modes(graph),
        "edges": [
            {"source": a, "target": b, **{key: data.get(key) for key in keys}}
            for a, b, data in graph.nx.edges(data=True)
        ],
    }


# -- The command ``equations`` -------------------------------------------------------------------------------

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
    methods: Annotated[
        bool, typer.Option("--methods", help="Only count unknowns and operations by several methods.")
    ] = False,
    compact: Annotated[
        bool, typer.Option("--compact", help="Write the equations of motion with fewer operations (seconds).")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="With --format c: what parameters alone give in a function of its own.")
    ] = False,
    set_: Set = None,
) -> None:
    """Write the equations of a mode: a page in HTML or LaTeX, or source in SymPy, NumPy or C.

    With --compact source holds q_dot and u_dot alone.
    """
    if advise:
        # brings SymPy along
        from fsm_dyn.analysis.method_counts import advise_speeds

        typer.echo(str(advise_speeds(model)))
        return
    if methods:
        # brings SymPy along
        from fsm_dyn.analysis.method_counts import count_methods

        typer.echo(str(count_methods(ready_graph(model, assignments("--set", set_)), mode)))
        return
    if format_ not in FORMATS:
        raise InputError(
            f"unknown format '{format_}'", allowed=", ".join(FORMATS), remedy=did_you_mean(format_, FORMATS)
        )
    if once and format_ != "c":
        raise InputError("--once is an option of source in C", found=f"--format {format_}", remedy="add --format c")
    graph = ready_graph(model, assignments("--set", set_))
    name = mode or graph.initial
    if name not in graph.modes:
        raise InputError(f"no mode '{name}'", allowed=", ".join(graph.modes), remedy=did_you_mean(name, graph.modes))
    target = None if str(out) == "-" else out or Path(f"{graph.name}_{name}.{FORMATS[format_]}")
    if format_ in ("sympy", "numpy", "c"):
        text = _source(graph, name, format_, compact=compact, once=once)
    else:
        text = _page(graph, name, format_, target, compact=compact)
    if target is None:
        typer.echo(text, nl=False)
        return
    write_file(target, text)
    typer.echo(f"wrote {target}")


def _page(graph: ModeGraph, mode: str, format_: str, target: Path | None, *, compact: bool = False) -> str:
    """Return the page of a mode; the figure of one in LaTeX goes to the same folder."""
    # brings SymPy along
    from fsm_dyn.derive.equations_page import page_of, to_html, to_latex

    ways_out = [
        (data["guard"] or data["cause"], target, data["reset"] or "")
        for _, target, data in graph.nx.out_edges(mode, data=True)
    ]
    page = page_of(graph.modes[mode].kane_equations, ways_out, compact=compact)
    if format_ == "html":
        return to_html(page, _picture(graph, "svg").decode())
    figure = b"" if target is None else _picture(graph, "pdf")
    if target is None or not figure:
        return to_latex(page)
    figure_file = target.with_name(f"{target.stem}_figure.pdf")  # TeX names the document after its source
    write_file(figure_file, figure)
    typer.echo(f"wrote {figure_file}")
    return to_latex(page, figure_file.name)


def _source(graph: ModeGraph, mode: str, format_: str, *, compact: bool = False, once: bool = False) -> str:
    """Return outputs of a mode as source, after comments with the meaning of outputs and axes."""
    from fsm_dyn.derive.equations import OUTPUTS
    from fsm_dyn.derive.equations_page import to_sympy_source

    equations, automaton = graph.modes[mode].kane_equations, graph.automaton
    layout = automaton.terms.layout
    axes = {
        "x": layout.x, "c": layout.c, "independent speeds": equations.independent,
        "dependent speeds": equations.dependent, "active rows": equations.rows, "all rows": equations.row_names,
        "guards": equations.guards, "points": automaton.point_names, "frames": automaton.frame_names,
    }  # fmt: skip
    head = [f"{graph.name}, mode '{mode}'; SI units", *(f"{name} = {', '.join(of)}" for name, of in axes.items())]
    names = ("q_dot", "u_dot") if compact else tuple(OUTPUTS)
    head += [f"{name}: {OUTPUTS[name]}" for name in names]
    mark = "//" if format_ == "c" else "#"
    if format_ == "sympy":
        source = to_sympy_source(equations, names, compact=compact)
    elif format_ == "c":
        source = equations.c_source(*names, compact=compact, once=once)
    else:
        source = equations.numpy_source(*names, compact=compact)
    return "".join(f"{mark} {line}\n" for line in head) + source


def _picture(graph: ModeGraph, format_: str) -> bytes:
    """Return the mechanism in its initial state, as SVG or PDF; nothing if the model cannot be drawn or run."""
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


# -- The command ``check-equation`` --------------------------------------------------------------------------

LARGEST_EQUATION = 100_000  # bytes


@handle_errors
def check_equation_command(
    model: Model,
    equation: Annotated[str, typer.Argument(help="'left = right', or a file with it; lines Z1 = ... may precede.")],
    mode: Annotated[
        str | None, typer.Option("--mode", help="Name of the mode; default: the one runs start in.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check an equation worked by hand, term by term; exit code 1 if it is wrong."""
    # brings SymPy along
    from fsm_dyn.analysis.equation_check import check_equation

    graph = ready_graph(model, {}, as_json)
    text = equation if "=" in equation else read_file(equation, LARGEST_EQUATION, "an equation").decode("utf-8")
    found = check_equation(graph, mode or graph.initial, text)
    if as_json:
        print_json(asdict(found))
    else:
        typer.echo(str(found))
    if not found.correct:
        raise typer.Exit(1)


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
    from fsm_dyn.exports.exported_machine import prefix_of

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
