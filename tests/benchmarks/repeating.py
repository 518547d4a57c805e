"""Kernels called over and over from a loop in C, so that what is timed is theirs alone."""

import ctypes
import hashlib
from functools import cache

from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import OnlineKernel
from tests.runtime.building import BUILT, compile_library

SOURCE = """
#include <stdint.h>
typedef void (*kernel)(double, const double *, const double *, double *);

/* At one state, at times that differ: the call may not be taken out of the loop. */
void repeat(kernel k, const double *x, const double *c, double *out, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        k(1e-6 * (double)i, x, c, out);
}

typedef int64_t (*online)(void *, int64_t, double, const double *, const double *, double *);

/* As `repeat`, a mode embedded online. */
void repeat_online(online f, void *mode, int64_t what, const double *x, const double *c, double *out, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        f(mode, what, 1e-6 * (double)i, x, c, out);
}

/* At every state of `x` (states, n). */
void evaluate_all(kernel k, const double *x, int64_t states, int64_t n, const double *c, double *out)
{
    for (int64_t i = 0; i < states; i++)
        k(0.0, x + i * n, c, out + i * n);
}
"""
_ARGUMENTS = {
    "repeat": [ctypes.c_void_p] * 4 + [ctypes.c_int64],
    "repeat_online": [ctypes.c_void_p] * 2 + [ctypes.c_int64] + [ctypes.c_void_p] * 3 + [ctypes.c_int64],
    "evaluate_all": [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 2,
}


def compiled(source, *flags):
    """Load C source as a library, compiled with optimisation once."""
    digest = hashlib.sha256(f"{source}{flags}".encode()).hexdigest()[:16]
    made = BUILT / f"benchmark_{digest}.so"
    if not made.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        made.with_suffix(".c").write_text(source)
        compile_library([made.with_suffix(".c")], made, "-O2", *flags)
    return ctypes.CDLL(str(made))


@cache
def _function(name):
    function = getattr(compiled(SOURCE), name)
    function.argtypes, function.restype = _ARGUMENTS[name], None
    return function


def repeat(address, x, c, out, times):
    """Call a kernel so many times at one state."""
    _function("repeat")(address, x.ctypes.data, c.ctypes.data, out.ctypes.data, times)


def repeat_online(mode, x, c, out, times):
    """Evaluate the rates of a mode embedded online, by the address of its data, so many times at one state."""
    routine, pointers = library.address("fsm_online_evaluate"), (array.ctypes.data for array in (x, c, out))
    _function("repeat_online")(routine, mode, OnlineKernel.RHS, *pointers, times)


def evaluate_all(address, x, c, out):
    """Call a kernel at every state of ``x``, shape (states, n)."""
    _function("evaluate_all")(address, x.ctypes.data, *x.shape, c.ctypes.data, out.ctypes.data)
