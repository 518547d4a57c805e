"""Work spread over processes of this machine, which end with their owner, whatever ends it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext
from multiprocessing.reduction import ForkingPickler
from multiprocessing.synchronize import Lock
from typing import Any, Final, TypeVar

from fsm_dyn.core.errors import RunError
from fsm_dyn.core.interrupts import held_back

AHEAD: Final = 4  # cases handed over in advance for each process
NICENESS: Final = 10  # of threads that give way

Given = TypeVar("Given")
Shared = TypeVar("Shared")
Case = TypeVar("Case")
Result = TypeVar("Result")


def give_way() -> None:
    """Lower the priority of the calling thread, on systems with priorities of threads (Linux).

    Threads started later by it have it too.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a limit of the system
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def in_processes(
    what: str,
    workers: int,
    prepare: Callable[[Given], Shared],
    given: Given,
    work: Callable[[Shared, Case], Result],
    cases: Iterable[Case],
) -> Iterator[Result]:
    """Yield the result of each case, in their order.

    ``what``: the owner of the processes, for messages. ``workers``: number of processes. ``prepare``, function of a
    module: called once in each process with ``given``; its result is handed to ``work``. ``work``, function of a
    module: returns the result of a case; its exceptions are raised here. ``cases``: arguments of ``work``, one a case;
    asked for as processes take them. Raises RunError: a process was ended from outside.
    """
    spawn = multiprocessing.get_context("spawn")  # a forked child would inherit the locks of LLVM's threads
    theirs, ours = spawn.Pipe(duplex=False)
    pool = None
    with theirs, ours, _copies(spawn, workers, ForkingPickler.dumps((prepare, given))) as copies:
        try:
            with held_back():  # passes an interrupt on when it ends: within the try
                pool = ProcessPoolExecutor(workers, spawn, _begin, (*copies, theirs))
                remaining = iter(cases)
                first = islice(remaining, AHEAD * workers)
                waiting = deque(_submit(pool, work, case) for case in first)  # starts all processes
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(_submit(pool, work, case) for case in islice(remaining, 1))
                yield result
        except BrokenProcessPool:
            raise RunError(f"a process of {what} was ended from outside, or has no memory left") from None
        except BaseException:
            if pool is not None:
                _end(pool, ours)
            raise
        pool.shutdown()


def _submit(pool: ProcessPoolExecutor, work: Callable[[Shared, Case], Result], case: Case) -> Future[Result]:
    """Hand a case over, for which the pool may start a process.

    If one of them ends meanwhile, the pool closes the pipes of the next: an OSError, or a ValueError of the start if
    another file has taken a pipe's number.
    """
    try:
        return pool.submit(_work, work, case)
    except (OSError, ValueError):
        pool.submit(int)  # raises BrokenProcessPool if that was the cause
        raise


@contextlib.contextmanager
def _copies(spawn: SpawnContext, count: int, data: memoryview) -> Iterator[tuple[Connection, Lock]]:
    """A pipe with the given number of copies of a pickled object, and the lock under which a process takes one.

    They are not arguments of the processes: arguments go through a pipe whose other end stays open in this process,
    which would wait for ever for a process ended before it has read them.
    """
    theirs, ours = spawn.Pipe(duplex=False)

    def feed() -> None:
        with contextlib.suppress(OSError):  # no process reads any more
            for _ in range(count):
                ours.send_bytes(data)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        yield theirs, spawn.Lock()
    finally:
        theirs.close()
        feeder.join()
        ours.close()


def _end(pool: ProcessPoolExecutor, line: Connection) -> None:
    """End the processes of a pool in the middle of their work."""
    with held_back():
        line.close()
        pool.shutdown(cancel_futures=True)


_shared: list[Any] = []  # state of a process of the pool between its cases


def _begin(copies: Connection, lock: Lock, line: Connection) -> None:
    """Prepare a process of the pool; it ends when the other end of a line closes, with its owner."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal: the owner ends these

    def listen() -> None:
        with contextlib.suppress(EOFError, OSError):
            line.recv_bytes()
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    with lock:
        prepare, given = copies.recv()
    _shared.append(prepare(given))


def _work(work: Callable[[Any, Case], Result], case: Case) -> Result:
    return work(_shared[0], case)
