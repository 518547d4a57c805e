"""Shipped models, recipes and the runs of the gallery with a longest step of 1e-4 of the run, against default steps.

An event that long steps pass over is seen by steps so short.  Runs agree if they have the same modes in the same order,
at the same times within the errors of both.
"""

import re
from pathlib import Path
from typing import NamedTuple

import fsm_dyn
from fsm_dyn.language import models
from tests.campaigns.ledger import ROOT
from tests.shipped import mechanism

CASES = 92  # published runs; reading all models to count them takes a second
SHORT = 1e-4  # of the run
NEAR = 1e-5  # of the run: transitions of both runs that are so near are the same one
TOGETHER = 1e-9  # s: the order of transitions so near each other follows from errors
RECIPES = sorted((ROOT / "docs" / "cookbook").glob("*.yaml"))
SHOWN = (ROOT / "mechanisms" / "cookbook.py", ROOT / "mechanisms" / "gallery.py")


class Published(NamedTuple):
    """A run that the documentation shows: what ``fsm_dyn.compile`` takes, scenario and end (s) or None."""

    model: str
    scenario: str = ""
    until: float | None = None

    @property
    def name(self):
        return f"{Path(self.model).stem} {self.scenario}".strip()


def _ends():
    """Ends of the runs that are drawn, s, by the names of models and recipes, from the scripts that draw them."""
    cookbook, gallery = (path.read_text(encoding="utf-8") for path in SHOWN)
    recipes = re.findall(r'^    "(\w+)": \(([\d.]+), \[', cookbook, re.MULTILINE)
    shown = re.findall(r'^    "(\w+)": \{.*"until": ([\d.]+)', gallery, re.MULTILINE)
    return {name: float(end) for name, end in (*recipes, *shown)}


def published():
    """All published runs: recipes, models, and models by each of their scenarios."""
    ends = _ends()
    found = [Published(str(path), "", ends[path.stem]) for path in RECIPES]
    for name in models.names():
        scenarios = mechanism(name).scenarios
        found += [Published(name, scenario, ends.get(name)) for scenario in ("", *scenarios)]
    return found


def transitions(graph, one, **options):
    """The run, and its transitions as (time, cause, mode before, mode after)."""
    run = fsm_dyn.simulate(graph, one.until, scenario=one.scenario or None, on_failure="return", **options)
    return run, [(item.time, item.cause, item.source, item.target) for item in run.transitions]


def difference(one):
    """The first transition that a run with default steps and one with short steps do not share.

    Returns
    -------
    str
        "" if they share all.
    bool
        Whether the order of events that are hardly apart in time decides the rest.
    """
    graph = fsm_dyn.compile(one.model)
    run, usual = transitions(graph, one)
    until = float(run.t[-1])
    fine, true = transitions(graph, one, max_step=SHORT * until)
    for number, (first, second) in enumerate(zip(usual, true, strict=False)):
        if first[2:] != second[2:] or abs(first[0] - second[0]) > NEAR * until:
            text = f"transition {number} of {len(usual)}: {first}, with short steps, of {len(true)}: {second}"
            return text, together(usual, number) and together(true, number)
    if len(usual) != len(true):
        longer = max(usual, true, key=len)
        return f"{len(usual)} transitions, with short steps {len(true)}: {longer[min(len(usual), len(true))]}", False
    if run.outcome.name != fine.outcome.name:
        return f"ends with '{run.outcome.name}', with short steps with '{fine.outcome.name}'", False
    return "", False


def together(found, number):
    """Whether a transition is hardly apart in time from the one before or after it."""
    times = [item[0] for item in found]
    return any(0 <= k < len(times) and abs(times[k] - times[number]) < TOGETHER for k in (number - 1, number + 1))


def case(seed):
    """One published run."""
    one = published()[seed]
    reason, undecided = difference(one)
    said = f"order of events within a nanosecond: {reason}" if undecided else reason
    return {"ok": not reason or undecided, "reason": said or "the same transitions", "model": one.name}
