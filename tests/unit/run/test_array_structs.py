"""Named tuples of arrays as structures of the runtime; interruption of a long run."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import fsm_dyn
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.structures import WORK, Bundle, clear_work, new_work


class Pair(NamedTuple):
    numbers: NDArray[np.float64]
    counts: NDArray[np.int64]
    flags: NDArray[np.int8]
    table: NDArray[np.float64]


PAIR = Bundle(Pair, {"table": 2})


def _pair() -> Pair:
    return Pair(
        np.array([1.0, 10.0, 100.0]),
        np.zeros(2, dtype=np.int64),
        np.array([3, 5], dtype=np.int8),
        np.arange(6.0).reshape(2, 3),
    )


def words(packed, count):  # type: ignore[no-untyped-def]
    return list((ctypes.c_int64 * count).from_address(packed.address))


def test_a_structure_holds_addresses_and_lengths() -> None:
    pair = _pair()
    packed = PAIR.pack(pair)
    at = [array.ctypes.data for array in pair]
    assert words(packed, PAIR.words) == [at[0], 3, at[1], 2, at[2], 2, at[3], 2, 3]


def test_bundle_refuses_what_it_did_not_declare() -> None:
    pair = _pair()
    for wrong in (
        pair._replace(numbers=np.zeros(3, dtype=np.float32)),
        pair._replace(table=np.zeros(3)),
        pair._replace(table=np.zeros((3, 4))[:, :3]),
    ):
        with pytest.raises(TypeError, match=r"Pair\.(numbers|table) must be"):
            PAIR.pack(wrong)


def test_an_allocated_structure_is_one_block_of_zeros() -> None:
    class Flat(NamedTuple):
        numbers: NDArray[np.float64]
        flags: NDArray[np.int8]
        none: NDArray[np.float64]
        counts: NDArray[np.int64]

    bundle = Bundle(Flat)
    flat, packed = bundle.allocate(3, 5, 0, 2)
    assert [len(item) for item in flat] == [3, 5, 0, 2]
    assert [item.dtype for item in flat] == [np.float64, np.int8, np.float64, np.int64]
    assert all(not item.any() for item in flat)
    flat.flags[:] = 7
    assert not flat.counts.any()
    assert not flat.numbers.any()
    places = words(packed, 8)
    assert places[1::2] == [3, 5, 0, 2]
    ctypes.c_double.from_address(places[0] + 16).value = 4.0
    assert flat.numbers[2] == 4.0
    assert all(packed.table.ctypes.data <= place <= packed.address for place in places[::2])


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_workspace_is_cleared_without_its_arena() -> None:
    """The arena of a row of dominoes takes gigabytes of addresses, and memory for what has been written alone."""
    tables = Executable(fsm_dyn.compile("latch").automaton).tables
    work, packed = new_work(tables, 7)
    structure = packed.table[-WORK.words :].copy()
    for array in work:
        array[:] = 1
    clear_work(work, packed)
    for name, array in zip(work._fields, work, strict=True):
        if name == "addresses":
            assert array.tolist() == [packed.arrays[0].address]
        else:
            assert (array == (1 if name in ("floats", "integers") else 0)).all(), name
    assert (packed.table[-WORK.words :] == structure).all()


def test_interrupt_from_the_keyboard_ends_a_long_run_with_what_it_has() -> None:
    graph = fsm_dyn.compile("bevel_gears")
    fsm_dyn.simulate(graph, 0.1)
    main = threading.main_thread().ident
    assert main is not None
    # a shell that starts the tests in the background has them ignore this signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.15, lambda: signal.pthread_kill(main, signal.SIGINT))
    began = time.perf_counter()
    timer.start()
    try:
        run = fsm_dyn.simulate(graph, 1e6, method="rk4", step=1e-3, max_steps=10**9, on_failure="return")
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert run.outcome.name == "interrupted"
    assert time.perf_counter() - began < 60.0
    assert len(run.t) > 100
