"""The part ``studies``: grids, samples and searches on the command line."""

import fsm_dyn
from tests.oracle.command_line import record_call
from tests.oracle.runs import varied
from tests.oracle.spans import span_of

RUNS = "8"


def record_studies(items, model, folder):
    """Add a grid over a parameter and, of a model with requirements, a sample and a search."""
    until = f"{0.5 * span_of(model):g}"
    mechanism = fsm_dyn.load(model)
    name, values = varied(fsm_dyn.compile(model))
    shared = ("--until", until)
    if name is not None:
        grid = (*shared, "--vary", f"{name}=[{', '.join(map(repr, values))}]", "--jobs", "1")
        record_call(items, "grid", "study", model, *grid)
        record_call(items, "grid json", "study", model, *grid, "--json")
        if record_call(items, "grid files", "study", model, *grid, "--out", "grid", folder=folder):
            for path in sorted((folder / "grid").glob("*.csv")):
                items.content(path.name, path.read_bytes())
    if mechanism.requirements:
        sample = ("--sample", "lhs", "--runs", RUNS, "--seed", "1", "--jobs", "1", "--json")
        record_call(items, "sample", "study", model, *sample)
        first = next(iter(mechanism.requirements))
        record_call(items, "search", "study", model, "--worst", first, "--runs", RUNS, "--seed", "1", "--json")
