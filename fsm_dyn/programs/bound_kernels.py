"""Kernels that pass a bound structure to a routine.

A kernel knows only time, state, context and result.  Where one routine serves for many, what it works with is bound
to it in a few instructions of machine code, and the caller treats it like any kernel.

The instructions read what is bound from a place in memory, so that a kernel that is no longer used serves the next one:
what LLVM has once loaded into a process it never gives back as a whole.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Final

import numpy as np

from fsm_dyn.errors import RunError
from fsm_dyn.programs.kernels import link, object_code, target

_CLOSURE = """
define void @{name}(double %t, ptr %x, ptr %c, ptr %out) {{
  %state = ptrtoint ptr %x to i64
  %context = ptrtoint ptr %c to i64
  %result = ptrtoint ptr %out to i64
  %routine = inttoptr i64 {routine} to ptr
  %at = inttoptr i64 {place} to ptr
  %next = getelementptr i64, ptr %at, i64 1
  %first = load i64, ptr %at
  %second = load i64, ptr %next
  %done = call i64 %routine(i64 %first, i64 %second, double %t, i64 %state, i64 %context, i64 %result)
  ret void
}}
"""
_LEAST: Final = 32  # kernels made at once


class _Pool:
    """Kernels of one routine, which are bound, used and bound again."""

    def __init__(self, routine: int) -> None:
        self._routine = routine
        self._kept: list[object] = []  # code and places, for the life of the process
        self._free: list[tuple[int, memoryview]] = []
        self._lock = threading.Lock()

    def take(self, bound: Sequence[tuple[int, int]]) -> list[tuple[int, memoryview]]:
        """Return a kernel for each pair: its address, and the place that what is bound to it is read from."""
        with self._lock:
            if len(self._free) < len(bound):
                self._make(max(_LEAST, len(bound)))
            taken = [self._free.pop() for _ in bound]
        for (_, place), pair in zip(taken, bound, strict=True):
            place[0], place[1] = pair
        return taken

    def give_back(self, taken: list[tuple[int, memoryview]]) -> None:
        """Take kernels that nobody calls any more."""
        self._free.extend(taken)

    def _make(self, count: int) -> None:
        places = np.zeros((count, 2), np.int64)
        names = [f"fsm_dyn_closure_{i}" for i in range(count)]
        text = f'target triple = "{target().triple}"\n' + "".join(
            _CLOSURE.format(name=name, routine=self._routine, place=places[i].ctypes.data)
            for i, name in enumerate(names)
        )
        library = link(object_code(text), names)
        if library is None:
            raise RunError("the machine code made by LLVM cannot be loaded here")
        self._kept += [library, places]
        self._free += [(int(library[name]), memoryview(places[i])) for i, name in enumerate(names)]


_pools: dict[int, _Pool] = {}


class BoundKernels:
    """Kernels of one routine, each with two integers bound to it.

    Attributes
    ----------
    addresses : tuple of int
        Of the machine code; valid while this object lives.
    """

    def __init__(self, routine: int, bound: Sequence[tuple[int, int]]) -> None:
        """Make a kernel for each pair of integers.

        Parameters
        ----------
        routine : int
            Address of ``int64 routine(int64, int64, double t, int64 x, int64 c, int64 out)``, pointers as integers.
        bound : sequence of (int, int)
            The first two arguments of each kernel.

        Raises
        ------
        RunError
            The code generator does not work here.
        """
        pool = _pools.setdefault(routine, _Pool(routine))
        taken = pool.take(bound)
        weakref.finalize(self, pool.give_back, taken).atexit = False
        self.addresses = tuple(address for address, _ in taken)
