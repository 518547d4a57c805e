"""Processes of this machine: each case once, in order, and an end by name where a process is ended from outside."""

import multiprocessing.spawn
import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

from fsm_dyn.core.errors import RunError
from fsm_dyn.core.processes import in_processes

MORE_THAN_A_PIPE_HOLDS = 1 << 20  # bytes


def length(data):
    return len(data)


def added(shared, case):
    return shared + case


def ends_itself(shared, case):
    if case == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return case


@pytest.fixture
def given():
    return bytes(MORE_THAN_A_PIPE_HOLDS)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_cases(workers, given):
    found = list(in_processes("the test", workers, length, given, added, range(20)))
    assert found == [MORE_THAN_A_PIPE_HOLDS + case for case in range(20)]


def test_fewer_cases_than_processes_end(given):
    assert list(in_processes("the test", 8, length, given, added, range(1))) == [MORE_THAN_A_PIPE_HOLDS]


def test_results_that_are_not_taken_end_it(given):
    threads = threading.active_count()
    results = in_processes("the test", 2, length, given, added, range(100))
    assert next(results) == MORE_THAN_A_PIPE_HOLDS
    results.close()
    assert threading.active_count() == threads


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_process_that_is_killed_at_its_work_is_named(given):
    with pytest.raises(RunError, match="ended from outside"):
        list(in_processes("the test", 2, length, given, ends_itself, range(20)))


@pytest.mark.skipif(sys.platform == "win32", reason="a program of POSIX")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("late", ["no", "closed", "reused"])
def test_a_process_that_ends_before_it_has_read_anything_is_named(given, monkeypatch, tmp_path, late):
    """It was waited for, for ever, if its data were more than a pipe holds.

    ``late``: the pool has closed its pipes when it starts the second process, and another file has taken a number.
    """
    start = ProcessPoolExecutor._spawn_process

    def starts(pool):
        second = late != "no" and pool._processes
        while second and pool._call_queue._writer.closed is pool._call_queue._reader.closed is False:
            time.sleep(0.01)
        if second and late == "reused":
            raise ValueError("bad value(s) in fds_to_keep")  # as the system's call says
        start(pool)

    monkeypatch.setattr(ProcessPoolExecutor, "_spawn_process", starts)
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\ncase "$*" in *spawn_main*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", os.fsencode(program))
    with pytest.raises(RunError, match="ended from outside"):
        list(in_processes("the test", 2, length, given, added, range(20)))
