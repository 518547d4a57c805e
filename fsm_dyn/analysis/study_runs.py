"""Runs of a study in batches: here, over processes or over a cluster, with a ledger of those that are done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.cluster import connected, over_cluster
from fsm_dyn.analysis.ledger import Ledger
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.processes import in_processes
from fsm_dyn.simulator import Simulator, simulator_of

WORK: Final = 0.5  # s of processor time, of a batch: long against the time to hand it over
BATCH: Final = 1024  # runs, at most
TRIAL: Final = 16  # runs that are made here to find how long one of several takes
_SHORT: Final = 0.1  # s of processor time, the longest of such a trial
_PER_WORKER: Final = 8  # batches, at least, if there are enough runs

Result = TypeVar("Result")
Case = Mapping[str, Any]


@dataclass(frozen=True)
class StudyTask(Generic[Result]):
    """What all runs of a study share.

    Attributes
    ----------
    run : function of a module
        Gives the results of some cases with these options; raises nothing that a case is at fault for.
    options : mapping
        For ``run``.
    """

    run: Callable[[Simulator, Mapping[str, Any], Sequence[Case]], list[Result]]
    options: Mapping[str, Any]


class Cases(Sequence[Case]):
    """Cases by columns: a mapping is made of a case when it is asked for.

    Parameters
    ----------
    values : mapping of str to sequence
        All values of each name.
    places : ndarray of int, shape (names, n)
        Which of them each case has.
    """

    def __init__(self, values: Mapping[str, Sequence[Any] | Array], places: npt.NDArray[np.int64]) -> None:
        self.values, self.places = values, places

    def __len__(self) -> int:
        return int(self.places.shape[1])

    @overload
    def __getitem__(self, item: int) -> Case: ...
    @overload
    def __getitem__(self, item: slice) -> Sequence[Case]: ...
    def __getitem__(self, item: int | slice) -> Case | Sequence[Case]:
        if isinstance(item, slice):
            return [self[i] for i in range(*item.indices(len(self)))]
        if not -len(self) <= item < len(self):
            raise IndexError(item)
        found = {}
        for (name, values), place in zip(self.values.items(), self.places[:, item].tolist(), strict=True):
            value = values[place]
            found[name] = value.item() if isinstance(value, np.generic) else value
        return found


def study_results(
    parts: Sequence[tuple[ModeGraph, Sequence[Case]]],
    task: StudyTask[Result],
    jobs: int | None = None,
    ledger: Ledger[Result] | None = None,
    client: Any = None,
) -> Iterator[Result]:
    """Yield the results of the cases of several graphs, one graph after the other, the same wherever they run.

    Parameters
    ----------
    parts : sequence of (ModeGraph, sequence of mapping)
    task : StudyTask
    jobs : int, optional
        Processes; by default one per core, as far as there are runs for them.
    ledger : Ledger, optional
        Results in it are not computed again, others are added to it; closed at the end.
    client : str or distributed.Client, optional
        A dask cluster, or the address of its scheduler, in place of processes.

    Raises
    ------
    InputError
        ``jobs`` and ``client`` are given both, or no scheduler answers.
    RunError
        A process was ended from outside, or the cluster is lost.
    """
    if client is not None and jobs is not None:
        raise InputError("a study on a cluster has no processes here", found=f"jobs={jobs}", remedy="leave out `jobs`")
    if ledger is None:
        for graph, cases in parts:
            for batch in _computed(graph, task, cases, 0, jobs, client):
                yield from batch
        return
    with closing(ledger):
        total = sum(len(cases) for _, cases in parts)
        if ledger.count > total:
            raise ledger.damaged(f"{ledger.count} results of {total} runs")
        yield from ledger.results()
        number, begin = ledger.count, 0
        for graph, cases in parts:
            first = min(max(number - begin, 0), len(cases))
            for batch in _computed(graph, task, cases, first, jobs, client):
                ledger.add(number, batch)
                number += len(batch)
                yield from batch
            begin += len(cases)


def _computed(
    graph: ModeGraph, task: StudyTask[Result], cases: Sequence[Case], first: int, jobs: int | None, client: Any
) -> Iterator[list[Result]]:
    """Yield the results of one batch after the other, from a case on."""
    if first == len(cases):
        return
    with nullcontext() if client is None else connected(client) as cluster:
        shared = Simulator(graph), task
        yield run_batch(shared, cases[first : first + 1])  # builds what the other processes then find in the cache
        first += 1
        each = 0.0
        for count in (1, TRIAL, TRIAL):  # the first of several runs together prepares what they share
            if first + count > len(cases) or each * count > _SHORT:
                break
            begin = time.thread_time()  # what else the machine does is no reason for small batches
            yield run_batch(shared, cases[first : first + count])
            first += count
            each = (time.thread_time() - begin) / count
        size = int(WORK / max(each, 1e-9))
        workers = min(jobs or os.cpu_count() or 1, len(cases) - first) if cluster is None else cluster.threads
        batches = in_batches(cases, first, max(workers, 1), max(size, 1))
        if cluster is not None:
            yield from over_cluster(cluster, (graph, task), run_shared, batches)
        elif workers < 2:
            yield from (run_batch(shared, batch) for batch in batches)
        else:
            yield from in_processes("the study", workers, prepared, (graph, task), run_batch, batches)


def in_batches(cases: Sequence[Case], first: int, workers: int, most: int) -> Iterator[Sequence[Case]]:
    """Yield the cases from one on in batches of equal size of at most ``most``, the last one excepted."""
    size = max(min(BATCH, most, (len(cases) - first) // (_PER_WORKER * workers)), 1)
    for begin in range(first, len(cases), size):
        yield cases[begin : begin + size]


def prepared(given: tuple[ModeGraph, StudyTask[Result]]) -> tuple[Simulator, StudyTask[Result]]:
    """Return what a process needs for all batches of a study."""
    graph, task = given
    return Simulator(graph), task


def run_shared(shared: tuple[ModeGraph, StudyTask[Result]], cases: Sequence[Case]) -> list[Result]:
    """Return the results of some cases, with the simulator that this thread keeps for the graph."""
    graph, task = shared
    return run_batch((simulator_of(graph), task), cases)


def run_batch(shared: tuple[Simulator, StudyTask[Result]], cases: Sequence[Case]) -> list[Result]:
    """Return the results of some cases."""
    simulator, task = shared
    return task.run(simulator, task.options, cases)
