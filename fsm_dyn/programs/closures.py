"""Kernels that stand for a routine with something bound to it.

A kernel knows only time, state, context and result.  Where one routine serves for many, what it works with is bound
to it in a few instructions of machine code, and whoever calls the kernel need not know.
"""

from __future__ import annotations

from collections.abc import Sequence

from fsm_dyn.errors import RunError
from fsm_dyn.programs.kernels import link, object_code, target

_CLOSURE = """
define void @{name}(double %t, ptr %x, ptr %c, ptr %out) {{
  %state = ptrtoint ptr %x to i64
  %context = ptrtoint ptr %c to i64
  %result = ptrtoint ptr %out to i64
  %routine = inttoptr i64 {routine} to ptr
  %done = call i64 %routine(i64 {first}, i64 {second}, double %t, i64 %state, i64 %context, i64 %result)
  ret void
}}
"""


class Closures:
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
        names = [f"fsm_dyn_closure_{i}" for i in range(len(bound))]
        text = f'target triple = "{target().triple}"\n' + "".join(
            _CLOSURE.format(name=name, routine=routine, first=first, second=second)
            for name, (first, second) in zip(names, bound, strict=True)
        )
        library = link(object_code(text), names)
        if library is None:
            raise RunError("the machine code made by LLVM cannot be loaded here")
        self._library = library  # keeps the code in memory
        self.addresses = tuple(int(library[name]) for name in names)
