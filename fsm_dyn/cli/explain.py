"""The command ``explain``: the reasons for the mode at a time of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsm_dyn.cli.assignments import Initial, Input, ScenarioOption, Set, assignments
from fsm_dyn.cli.console import handle_errors, print_json, progress_message
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.model_commands import ready_graph
from fsm_dyn.errors import InputError, RunError

if TYPE_CHECKING:
    from fsm_dyn.results import Trajectory

_SAME_INSTANT = 1e-6  # s; `run` prints times to 1e-6: one read off its table means the transition listed there


@handle_errors
def explain_command(
    run: Annotated[
        str, typer.Argument(help="A saved run (.run.json), or a model to run now: a name, a file, a saved automaton.")
    ],
    at: Annotated[float | None, typer.Option("--at", help="Time, s; default: the end of the run.")] = None,
    until: Annotated[float | None, typer.Option("--until", help="End of the run, s, of a model.", min=0.0)] = None,
    set_: Set = None,
    scenario: ScenarioOption = None,
    input_: Input = None,
    initial: Initial = None,
    as_json: Json = False,
) -> None:
    """Explain the mode at a given time: preceding transitions, contact forces, guards."""
    given: dict[str, Any] = {
        "until": until,
        "scenario": scenario,
        "parameters": assignments("--set", set_),
        "inputs": assignments("--input", input_),
        "initial": assignments("--initial", initial),
    }
    trajectory = _trajectory(run, at, {key: value for key, value in given.items() if value is not None}, as_json)
    found = trajectory.explain(_instant(trajectory, at))
    if as_json:
        ends = trajectory.describe_outcome() if found.time == trajectory.t[-1] else ()
        print_json({**found.as_data(), "outcome": trajectory.outcome.name, "outcome_details": list(ends)})
    else:
        typer.echo(str(found))
        if found.time == trajectory.t[-1]:
            typer.echo("\nthe run ends here: " + "\n  ".join(trajectory.describe_outcome()))


def _trajectory(run: str, at: float | None, given: dict[str, Any], quiet: bool) -> Trajectory:
    # The public interface brings SymPy along.
    import fsm_dyn
    from fsm_dyn.results.run_file import is_run

    if Path(run).suffix == ".json" and is_run(run):
        if given:
            raise InputError(
                "a saved run is explained with its own settings",
                found=f"--{next(iter(given))}",
                remedy="give a model instead",
            )
        with progress_message(f"reading {run}", quiet):
            return fsm_dyn.open_run(run)
    graph = ready_graph(run, quiet=quiet)
    with progress_message(f"running {graph.name}", quiet) as progress:
        try:
            trajectory = fsm_dyn.simulate(graph, progress=progress.reached, **given)
            if at is not None and at > trajectory.t[-1] and "until" not in given and not trajectory.outcome.failed:
                trajectory = fsm_dyn.simulate(graph, progress=progress.reached, **{**given, "until": at})
        except RunError as error:
            if not isinstance(error.trajectory, fsm_dyn.Trajectory):
                raise
            trajectory = error.trajectory  # explained up to the failure
    return trajectory


def _instant(trajectory: Trajectory, at: float | None) -> float:
    """Return the time to explain: that of a transition if it differs by less than the digits printed."""
    if at is None:
        return float(trajectory.t[-1])
    near = [item.time for item in trajectory.transitions if abs(item.time - at) <= _SAME_INSTANT]
    return min(near, key=lambda time: abs(time - at)) if near else at
