"""Work spread over a cluster by dask.distributed: the same results as here, in the same order."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from fsm_dyn.automaton.storage import run_version
from fsm_dyn.core.errors import FsmDynError, InputError, RunError
from fsm_dyn.core.optional_libraries import optional_library

TIMEOUT: Final = 10.0  # s, for the scheduler to answer
POLL: Final = 2.0  # s between checks of the scheduler
AHEAD: Final = 8  # batches submitted for each thread of the cluster, to keep it busy
_REMEDY: Final = "\n  remedy: start it again; with a ledger, what was stored stays, and the same command continues"

Shared = TypeVar("Shared")
Case = TypeVar("Case")
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

    Parameters
    ----------
    client : str or distributed.Client
        The address of a scheduler, ``tcp://HOST:PORT``, or a client of one; the latter stays open.

    Raises
    ------
    InputError
        dask.distributed is not installed, no scheduler answers, or it has no workers.
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
    work: Callable[[Shared, Case], Result],
    cases: Iterator[Case],
) -> Iterator[Result]:
    """Yield the result of each case, in their order; another worker repeats the cases of a lost one.

    Parameters
    ----------
    shared : object
        Data of all cases: sent to each worker once, as pickled data, and to workers that join later.
    work : function of a module

    Raises
    ------
    RunError
        The scheduler is lost, workers end again and again, or they have another version of the package.
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


def _work(work: Callable[[Any, Case], Result], shared: Any, case: Case) -> Result:
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
