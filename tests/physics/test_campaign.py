"""Thousands of random starts, judged by the laws alone (see ``campaign.py``); whole runs need no reference.

The laws are evaluated from the record and the unconstrained terms, whatever strategy made the run.

A quarter of the runs, a tenth online, are made by ``make test``, all of them by ``make ci-long``;
``FSM_DYN_CAMPAIGN=20`` makes twenty times as many.  A failure prints what to give to ``simulate`` to see it again.
"""

import os
from collections import Counter

import pytest

from tests.physics.campaign import Checked
from tests.physics.starts import STARTS
from tests.physics.variants import VARIANTS, start

TIMES = float(os.environ.get("FSM_DYN_CAMPAIGN", "1"))
RUNS = 140  # of each model: 2,240 altogether
MORE_RUNS = 60  # of each variant
RUNS_ON_LINE = 30  # of each model, with each of the other strategies
ALL = pytest.param(1.0, id="all", marks=pytest.mark.long)
SHARES = [pytest.param(0.25, id="quarter"), ALL]
SHARES_ON_LINE = [pytest.param(0.1, id="tenth"), ALL]


def judge_all(name, model, count, strategy="compiled"):
    """Make the runs with the first so many starts, and fail with the first of those that break a law."""
    checked = Checked(model)
    ends, wrong = Counter(), []
    for seed in range(count):
        one = start(name, seed, strategy)
        run = checked.run(one)
        ends[run.outcome.name] += 1
        complaints = checked.complaints(run)
        if run.outcome.failed and not checked.cannot_go_on(run):
            complaints.append(f"ends with '{run.outcome.name}' at {run.t[-1]:.12g} s")
        if complaints:
            wrong.append("\n  ".join([str(one), *complaints]))
    print(f"{name} {strategy}: {dict(ends)}")  # noqa: T201 - shown by pytest -rP
    assert not wrong, f"{len(wrong)} of {count} runs:\n" + "\n".join(wrong[:10])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", STARTS)
def test_the_laws_hold(name, share):
    judge_all(name, name, max(1, round(RUNS * TIMES * share)))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", VARIANTS)
def test_the_laws_hold_of_variants(name, share):
    judge_all(name, VARIANTS[name][0], max(1, round(MORE_RUNS * TIMES * share)))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", SHARES_ON_LINE)
@pytest.mark.parametrize("strategy", ["online", "auto"])
@pytest.mark.parametrize("name", [*STARTS, *VARIANTS])
def test_the_laws_hold_online(name, strategy, share):
    model = name if name in STARTS else VARIANTS[name][0]
    judge_all(name, model, max(1, round(RUNS_ON_LINE * TIMES * share)), strategy)
