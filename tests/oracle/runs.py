"""The part ``runs``: rows, transitions and judgements of seven variants of a run, by the public names.

A missing name is recorded as such, not skipped: its users would notice too.
"""

from dataclasses import fields, is_dataclass

import numpy as np

import fsm_dyn
from tests.oracle.recording import plain
from tests.oracle.spans import MOST_STEPS, span_of

FACTORS = (1.0, 1.05, 0.95)  # of a parameter, over the runs of a batch
STEPS = 250  # of a run with fixed steps
STEPS_IN_TIME_STEPPING = 500
VARIANTS = {
    "dopri5": {},
    "rk4": {"method": "rk4", "step": STEPS},
    "radau": {"method": "radau"},
    "bdf": {"method": "bdf"},
    "moreau_jean": {"method": "moreau_jean", "step": STEPS_IN_TIME_STEPPING},
    "online": {"strategy": "online"},
}


def record_runs(items, model, folder):
    """Add every variant of a run of a model: by each method, by modes embedded online, resumed, in a batch."""
    graph, until = fsm_dyn.compile(model), span_of(model)
    for name, settings in VARIANTS.items():
        if "step" in settings:
            settings = settings | {"step": until / settings["step"]}
        _attempt(items, name, lambda settings=settings: _simulated(graph, until, **settings))
    _attempt(items, "resumed", lambda: _resumed(graph, until, folder))
    _batch(items, graph, until)


def _simulated(graph, until, **settings):
    return fsm_dyn.simulate(graph, until, max_steps=MOST_STEPS, on_failure="return", **settings)


def _resumed(graph, until, folder):
    """Return a run to half its time, saved, read and continued."""
    path = folder / "half.run.json"
    _simulated(graph, 0.5 * until).save(path)
    return fsm_dyn.open_run(path).resume(until, max_steps=MOST_STEPS, on_failure="return")


def _batch(items, graph, until):
    """Add the runs of a study, which are made in one call, and the same by one simulator."""
    name, values = varied(graph)
    if name is None:
        items.value("batch", "no parameter to vary")
        return
    coordinates = list(fsm_dyn.load(graph.name).coordinates)[:4]
    try:
        found = fsm_dyn.study(graph, {name: values}, until=until, outputs=coordinates, jobs=1, max_steps=MOST_STEPS)
        items.data("batch rows", [fields_of(row, depth=2) for row in found.rows])
    except fsm_dyn.FsmDynError as error:
        items.text("batch error", str(error))
    simulator = fsm_dyn.Simulator(graph)
    for value in values:
        _attempt(
            items,
            f"simulator {value / values[0]:g}",
            lambda value=value: simulator.run(
                until, parameters={name: value}, max_steps=MOST_STEPS, on_failure="return"
            ),
        )


def varied(graph):
    """Return the name and values of a parameter for a batch: the first number of the model that is not zero."""
    for name, value in graph.values.items():
        if isinstance(value, float) and value:
            return name, [factor * value for factor in FACTORS]
    return None, []


def _attempt(items, name, run):
    try:
        trajectory = run()
    except fsm_dyn.FsmDynError as error:
        items.text(f"{name} error", f"{type(error).__name__}: {error}")
        return
    add_run(items, name, trajectory)


def add_run(items, name, run):
    """Add all that can be read of a run."""
    items.text(f"{name} printed", repr(run))
    items.value(f"{name} rows", len(run))
    items.text(f"{name} outcome", "\n".join(map(str, reading(run, "describe_outcome"))))
    items.data(f"{name} modes", _lengths(reading(run, "modes")))
    items.data(f"{name} labels", _lengths(reading(run, "labels")))
    columns = [column for column in run.columns if np.ndim(run[column]) == 1 and run[column].dtype.kind in "fib"]
    items.numbers(f"{name} columns", np.column_stack([run[column] for column in columns]), columns)
    items.data(f"{name} other columns", {c: plain(run[c]) for c in run.columns if c not in columns})
    for what in ("transitions", "change_points"):
        items.data(f"{name} {what}", [fields_of(item) for item in reading(run, what)])
    items.text(f"{name} transitions printed", repr(run.transitions))
    items.data(f"{name} warnings", list(map(str, reading(run, "warnings"))))
    items.data(f"{name} energy", fields_of(reading(run, "energy")))
    middle = 0.5 * (run.t[0] + run.t[-1])
    items.data(f"{name} at {middle:g} s", fields_of(run.at(float(middle))))
    items.content(f"{name} saved", run.to_bytes())


def reading(run, name):
    """Return an attribute, called if it is a method, or that it is absent."""
    if not hasattr(run, name):
        return [f"there is no {name}"]
    value = getattr(run, name)
    return value() if callable(value) else value


def _lengths(names):
    """Return (name, number of rows) for equal names that follow each other."""
    found = []
    for name in names:
        if found and found[-1][0] == name:
            found[-1][1] += 1
        else:
            found.append([name, 1])
    return found


def fields_of(value, depth=1):
    """Return the public fields of a record as a mapping; of anything else, itself."""
    if is_dataclass(value) and depth >= 0:
        return {
            field.name: fields_of(getattr(value, field.name), depth - 1)
            for field in fields(value)
            if not field.name.startswith("_")
        }
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "items"):
        return {str(key): fields_of(each, depth) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [fields_of(each, depth) for each in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)
