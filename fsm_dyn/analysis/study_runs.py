"""Runs of a study in batches: here, over processes or a cluster, in the same order, with a ledger."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, overload
from urllib.parse import urlsplit

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.storage import equations_version, run_version
from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.core.errors import FsmDynError, InputError, RunError, optional_library
from fsm_dyn.core.processes import in_processes
from fsm_dyn.core.records import dataclass
from fsm_dyn.run.simulator import Simulator, simulator_of
from fsm_dyn.runtime.library import SOURCES

# -- Work spread over a cluster by dask.distributed: the same results as here, in the same order -------------

TIMEOUT: Final = 10.0  # s, for the scheduler to answer
POLL: Final = 2.0  # s between checks of the scheduler
AHEAD: Final = 8  # batches submitted for each thread of the cluster, to keep it busy
_REMEDY: Final = "\n  remedy: start it again; with a ledger, what was stored stays, and the same command continues"

Shared = TypeVar("Shared")
_Case = TypeVar("_Case")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Cluster:
    """A client of a scheduler, the threads of its workers, and whether the client is closed after use."""

    client: Any
    threads: int
    address: str


@contextmanager
def connected(client: Any) -> Iterator[Cluster]:
    """Connect to a cluster.

    ``client``, str or distributed.Client: the address of a scheduler, ``tcp://HOST:PORT``, or a client of one; the
    latter stays open. Raises InputError: dask.distributed is not installed, no scheduler answers, or it has no workers.
    """
    distributed = optional_library("distributed", "cluster")
    own = isinstance(client, str)
    if not own and not isinstance(client, distributed.Client):
        raise InputError("client", found=repr(client)[:60], allowed="a distributed.Client, or tcp://HOST:PORT")
    try:
        if own:
            host, port = urlsplit(client).hostname, urlsplit(client).port
            if host is None or port is None:
                raise ValueError("it has no host and port")
            socket.create_connection((host, port), TIMEOUT).close()  # a client without a scheduler waits when it ends
        opened = distributed.Client(client, timeout=TIMEOUT, set_as_default=False) if own else client
    except (OSError, ValueError) as error:
        raise InputError(
            f"no scheduler of dask answers at '{client}'",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            allowed="tcp://HOST:PORT",
            remedy="start one, `dask scheduler`, and workers, `dask worker tcp://HOST:PORT`",
        ) from None
    try:
        with _lost_reported(client if own else opened):
            if own or not opened.nthreads():
                with suppress(TimeoutError):
                    opened.wait_for_workers(1, timeout=TIMEOUT)
            threads = sum(opened.nthreads().values())
        if not threads:
            raise InputError(
                f"the scheduler at '{opened.scheduler.address}' has no workers",
                remedy=f"start some: dask worker {opened.scheduler.address}",
            )
        yield Cluster(opened, threads, opened.scheduler.address)
    finally:
        if own:
            with suppress(Exception):  # a lost scheduler
                opened.close(timeout=2)


def over_cluster(
    cluster: Cluster,
    shared: Shared,
    work: Callable[[Shared, _Case], Result],
    cases: Iterator[_Case],
) -> Iterator[Result]:
    """Yield the result of each case, in their order; another worker repeats the cases of a lost one.

    ``shared``: data of all cases: sent to each worker once, as pickled data, and to workers that join later; ``work``,
    function of a module. Raises RunError: the scheduler is lost, workers end again and again, or they have another
    version of the package.
    """
    client, mine = cluster.client, run_version()
    waiting: deque[Any] = deque()
    try:
        with _lost_reported(cluster.address):
            # a task, not scattered data: it is repeated if its worker is lost
            sent = client.submit(_received, shared, mine, pure=False)
            if sent.exception() is None:
                with suppress(Exception):  # only for speed: batches queue at the data
                    client.replicate(sent)
            for case in cases:
                # no key by content: the scheduler would then return data of an equal, earlier study
                waiting.append(client.submit(_work, work, sent, case, pure=False))
                if len(waiting) >= AHEAD * cluster.threads:
                    yield _result_of(waiting.popleft(), client)
            while waiting:
                yield _result_of(waiting.popleft(), client)
    finally:
        if client.status == "running":
            with suppress(Exception):  # the scheduler may have gone
                client.cancel(list(waiting))


def _result_of(future: Any, client: Any) -> Any:
    """Return the result of a task; raise ConnectionError if the client has given the scheduler up.

    A future of a closed client is never done.
    """
    while True:
        try:
            return future.result(timeout=POLL)
        except TimeoutError:
            if client.status in ("closing", "closed", "failed"):
                raise ConnectionError("its scheduler has gone") from None


def _received(shared: Any, version: str) -> Any:
    """Return the data of all cases at a worker; its version must be the sender's."""
    if version != run_version():
        raise RunError(
            "a worker of the cluster has fsm_dyn of other sources than this study"
            "\n  remedy: install the same version there"
        )
    return shared


def _work(work: Callable[[Any, _Case], Result], shared: Any, case: _Case) -> Result:
    return work(shared, case)


@contextmanager
def _lost_reported(address: Any) -> Iterator[None]:
    """Report errors of dask for a lost scheduler or lost workers by name."""
    distributed = optional_library("distributed", "cluster")
    try:
        yield
    except FsmDynError:
        raise
    except distributed.scheduler.KilledWorker:
        raise RunError(
            f"workers of the cluster at '{address}' have ended again and again in one batch of runs, "
            f"or have no memory left{_REMEDY}"
        ) from None
    except ModuleNotFoundError as error:
        raise RunError(
            f"a worker of the cluster at '{address}' cannot import {error.name}\n  remedy: install fsm_dyn there"
        ) from None
    except (OSError, distributed.client.FutureCancelledError, distributed.client.CancelledError) as error:
        raise RunError(
            f"the cluster at '{address}' is lost: {str(error).splitlines()[0] if str(error) else 'no answer'}{_REMEDY}"
        ) from None


# -- Ledger of a study ---------------------------------------------------------------------------------------
#
# Results are written as they come, so an interrupted study can be continued.

FORMAT: Final = 1  # of the file
_SETTINGS: Final = {"equations": "sources of the equations", "runtime": "sources of the runtime"}
_TABLES: Final = """
CREATE TABLE study (digest TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE runs (number INTEGER PRIMARY KEY, result BLOB NOT NULL);
"""


def study_settings(model: str, points: Iterable[Mapping[str, Any]], options: Mapping[str, Any]) -> str:
    """Return all dependencies of the results of a study, the sources of the runtime included, as text.

    ``model``: digest of the model, or of its variants; ``points``: varied values of each of the runs, in order. Raises
    InputError: an option or a varied value is a Python function, without a digest.
    """
    digest = hashlib.sha256()
    for point in points:
        digest.update(json.dumps(sorted(point.items()), default=_stored).encode())
    everything = {
        "format": FORMAT, "equations": equations_version(), "runtime": SOURCES, "model": model,
        "points": digest.hexdigest(),
        "options": {name: value for name, value in options.items() if value is not None},
    }  # fmt: skip
    return json.dumps(everything, sort_keys=True, default=_stored)


def _stored(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    raise InputError("a study with a ledger takes options that can be stored", found=repr(value)[:60])


def _differing(stored: str, settings: str) -> str:
    """Return the readable differences of two studies."""
    try:
        before, now = json.loads(stored), json.loads(settings)
        names = [_SETTINGS.get(name, name) for name in now if before.get(name) != now[name]]
    except (ValueError, TypeError, AttributeError):
        return ""
    return f"other {', '.join(names)}" if names else ""


class Ledger(Generic[Result]):
    """Results of a study in an SQLite file, in the order of its runs.

    Each call of :meth:`add` is one transaction: after a crash the file contains the whole of it or nothing. ``path``:
    the file; made if there is none. ``settings``: result of :func:`study_settings`. ``encode``, ``decode``: a result as
    bytes, and back without loss; ``decode`` raises ``ValueError`` for bytes other than a result of this study. Raises
    InputError: the file belongs to another study, or is no ledger. Raises RunError: it cannot be written.
    """

    def __init__(
        self, path: Path, settings: str, encode: Callable[[Result], bytes], decode: Callable[[bytes], Result]
    ) -> None:
        self.path, self._encode, self._decode = path, encode, decode
        digest = hashlib.sha256(settings.encode()).hexdigest()
        with self._reported():
            self._file = sqlite3.connect(path, isolation_level=None)
            self._file.execute("PRAGMA synchronous = FULL")
            if not self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                self._file.executescript(f"BEGIN EXCLUSIVE; {_TABLES}")
                self._file.execute("INSERT INTO study VALUES (?, ?)", (digest, settings))
                self._file.execute("COMMIT")
            try:
                found = self._file.execute("SELECT digest, settings FROM study").fetchall()
                self.count = int(self._file.execute("SELECT count(*) FROM runs").fetchone()[0])
            except sqlite3.OperationalError as error:
                self.close()
                raise InputError(f"'{path}' is no ledger of a study", found=str(error)) from None
        if [row[0] for row in found] != [digest]:
            self.close()
            raise InputError(
                f"'{path}' is the ledger of another study",
                found=_differing(found[0][1] if found else "", settings),
                remedy="another file, or the same model, parameters, sample, options and version as before",
            )

    def results(self) -> Iterator[Result]:
        """Yield the results stored when the ledger was opened. Raises InputError: a result is missing or damaged."""
        with self._reported():
            query = "SELECT number, result FROM runs ORDER BY number LIMIT ?"
            for k, (number, data) in enumerate(self._file.execute(query, (self.count,))):
                try:
                    if number != k or not isinstance(data, bytes):
                        raise ValueError(number)
                    result = self._decode(data)
                except (ValueError, RecursionError):
                    raise self.damaged(f"the result of run {k}") from None
                yield result

    def damaged(self, found: str) -> InputError:
        """Return the error for a ledger with this fault."""
        return InputError(f"the ledger '{self.path}' is damaged", found=found, remedy="use another file")

    def add(self, first: int, results: Sequence[Result]) -> None:
        """Store the results of runs from number ``first`` on."""
        rows = [(first + i, self._encode(result)) for i, result in enumerate(results)]
        with self._reported():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                self._file.executemany("INSERT INTO runs VALUES (?, ?)", rows)
                self._file.execute("COMMIT")
            except BaseException:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise RunError(f"another process writes to the ledger '{self.path}'") from None
        except sqlite3.Error as error:
            raise RunError(
                f"the ledger '{self.path}' cannot be used: {error}"
                "\n  remedy: make room, or choose another file; what was stored stays, and the same command continues"
            ) from None


# -- Runs of a study in batches ------------------------------------------------------------------------------
#
# In this process, over processes or over a cluster, with a ledger of the finished runs.

WORK: Final = 0.5  # s of processor time, of a batch: long against the time to hand it over
BATCH: Final = 1024  # runs, at most
TRIAL: Final = 16  # runs in this process for the time of one run among several
_SHORT: Final = 0.1  # s of processor time, the longest of such a trial
_PER_WORKER: Final = 8  # batches, at least, if there are enough runs

Case = Mapping[str, Any]


@dataclass(frozen=True)
class StudyTask(Generic[Result]):
    """The common part of all runs of a study."""

    # function of a module: gives the results of some cases with these options; raises no error caused by a case
    run: Callable[[Simulator, Mapping[str, Any], Sequence[Case]], list[Result]]
    options: Mapping[str, Any]  # for ``run``


class Cases(Sequence[Case]):
    """Cases by columns; the mapping of a case is made on demand.

    ``values``: all values of each name; ``places``, shape (names, n): index of each case's value.
    """

    def __init__(self, values: Mapping[str, Sequence[Any] | Floats], places: Integers) -> None:
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

    ``jobs``: processes; by default one per core, as far as there are runs for them. ``ledger``: results in it are not
    computed again, others are added to it; closed at the end. ``client``, str or distributed.Client: a dask cluster, or
    the address of its scheduler, in place of processes. Raises InputError: ``jobs`` and ``client`` are given both, or
    no scheduler answers. Raises RunError: a process was ended from outside, or the cluster is lost.
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
        yield run_batch(shared, cases[first : first + 1])  # fills the cache for the other processes
        first += 1
        each = 0.0
        for count in (1, TRIAL, TRIAL):  # the first of several runs together prepares their common part
            if first + count > len(cases) or each * count > _SHORT:
                break
            begin = time.thread_time()  # other load of the machine is no reason for small batches
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
    """Return the data of a process for all batches of a study."""
    graph, task = given
    return Simulator(graph), task


def run_shared(shared: tuple[ModeGraph, StudyTask[Result]], cases: Sequence[Case]) -> list[Result]:
    """Return the results of some cases, with this thread's simulator of the graph."""
    graph, task = shared
    return run_batch((simulator_of(graph), task), cases)


def run_batch(shared: tuple[Simulator, StudyTask[Result]], cases: Sequence[Case]) -> list[Result]:
    """Return the results of some cases."""
    simulator, task = shared
    return task.run(simulator, task.options, cases)
