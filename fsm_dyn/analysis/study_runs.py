"""Runs of a study in batches: here, over processes or over a cluster, with a ledger of those that are done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from fsm_dyn.analysis.ledger import Ledger
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.compilation import compile as compile_mechanism
from fsm_dyn.processes import in_processes
from fsm_dyn.simulator import Simulator
from fsm_dyn.spec import load as load_mechanism

BATCH: Final = 64  # runs, at most: some tenths of a second of work
_PER_WORKER: Final = 8  # batches, at least, if there are enough runs

Result = TypeVar("Result")
Case = Mapping[str, Any]


@dataclass(frozen=True)
class StudyTask(Generic[Result]):
    """What all runs of a study share.

    Attributes
    ----------
    text : str
        The model file.
    run : function of a module
        Gives the result of a case with these options; raises nothing that a case is at fault for.
    options : mapping
        For ``run``.
    """

    text: str
    run: Callable[[Simulator, Mapping[str, Any], Case], Result]
    options: Mapping[str, Any]


def study_results(
    graph: ModeGraph,
    task: StudyTask[Result],
    cases: Sequence[Case],
    jobs: int | None = None,
    ledger: Ledger[Result] | None = None,
) -> Iterator[Result]:
    """Yield the result of each case, in their order, the same for any number of processes.

    Parameters
    ----------
    jobs : int, optional
        Processes; by default one per core, as far as there are runs for them.
    ledger : Ledger, optional
        Results in it are not computed again, others are added to it; closed at the end.
    """
    if ledger is None:
        for batch in _computed(graph, task, cases, jobs):
            yield from batch
        return
    with closing(ledger):
        if ledger.count > len(cases):
            raise ledger.damaged(f"{ledger.count} results of {len(cases)} runs")
        yield from ledger.results()
        number = ledger.count
        for batch in _computed(graph, task, cases[number:], jobs):
            ledger.add(number, batch)
            number += len(batch)
            yield from batch


def _computed(
    graph: ModeGraph, task: StudyTask[Result], cases: Sequence[Case], jobs: int | None
) -> Iterator[list[Result]]:
    """Yield the results of one batch after the other."""
    if not cases:
        return
    shared = Simulator(graph), task
    yield run_batch(shared, cases[:1])  # builds what the other processes then find in the cache
    rest = cases[1:]
    workers = min(jobs or os.cpu_count() or 1, len(rest))
    batches = in_batches(rest, max(workers, 1))
    if workers < 2:
        yield from (run_batch(shared, batch) for batch in batches)
    else:
        yield from in_processes("the study", workers, prepared, task, run_batch, batches)


def in_batches(cases: Sequence[Case], workers: int) -> list[Sequence[Case]]:
    """Return the cases in batches of equal size, the last one excepted."""
    size = min(BATCH, max(len(cases) // (_PER_WORKER * workers), 1))
    return [cases[i : i + size] for i in range(0, len(cases), size)]


def prepared(task: StudyTask[Result]) -> tuple[Simulator, StudyTask[Result]]:
    """Return what a process needs for all batches of a study."""
    return Simulator(compile_mechanism(load_mechanism("<study>", text=task.text))), task


def run_batch(shared: tuple[Simulator, StudyTask[Result]], cases: Sequence[Case]) -> list[Result]:
    """Return the results of some cases."""
    simulator, task = shared
    return [task.run(simulator, task.options, case) for case in cases]
