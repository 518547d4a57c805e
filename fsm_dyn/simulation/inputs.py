"""Inputs over time, as tables of polynomial pieces and kernels for the compiled loop."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.bundles import Bundle
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.kernels import call_kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

N_INPUTS: Final = 0
N_PARAMETERS: Final = 1
CONSTANT: Final = 2


class DriveArrays(NamedTuple):
    """Inputs as the compiled loop reads them.

    Attributes
    ----------
    counts : int64 array
        Number of inputs, number of parameters (where the inputs begin in the context), 1 if nothing varies.
    start : float64 array, shape (n_segments,)
        Time (s) at which each segment begins; the first is -inf in effect.
    origin : float64 array, shape (n_segments,)
        Time (s) from which the polynomials of the segment count.
    pieces : float64 array, shape (n_segments, n_w, 4)
        Coefficients of the cubics, constant first.
    next_hard : int64 array, shape (n_segments,)
        First later segment at whose start value or slope may jump, so that a step must end there; n_segments if
        there is none.
    decides : int8 array, shape (n_segments,)
        1 where the contact states are decided anew at such a start; 0 where every input goes on continuously and none
        of those with a kink moves a constraint, so that no force can jump.
    kernels : int64 array
        Addresses of kernels that write values and three rates of some inputs.
    kernel_start : int64 array, shape (n_kernels + 1,)
        Where the inputs of each kernel begin in ``kernel_inputs``.
    kernel_inputs : int64 array
        Input numbers.
    out : float64 array, shape (4 n_w,)
        Workspace.
    """

    counts: Integers
    start: Floats
    origin: Floats
    pieces: Floats
    next_hard: Integers
    decides: NDArray[np.int8]
    kernels: Integers
    kernel_start: Integers
    kernel_inputs: Integers
    out: Floats


DRIVE: Final = Bundle(DriveArrays, {"pieces": 3})


@lean
def update_inputs(drive: DriveArrays, t: float, segment: int, x: Floats, c: Floats) -> None:
    """Write the inputs and their three rates at ``t`` into the context.

    ``segment`` begins at the last breakpoint at which a step had to end; the smooth pieces up to the next one are
    searched from there, and the limit from the left is taken at the next one.
    """
    if drive.counts[CONSTANT] == 0:
        write_inputs(drive, t, segment, x, c)


@lean
def write_inputs(drive: DriveArrays, t: float, segment: int, x: Floats, c: Floats) -> None:
    """Do what :func:`update_inputs` does, constant inputs included."""
    n_w = drive.counts[N_INPUTS]
    at = drive.counts[N_PARAMETERS]
    third = c.shape[0] - n_w
    low = segment
    high = drive.next_hard[segment]
    while high - low > 1:
        middle = (low + high) // 2
        if drive.start[middle] <= t:
            low = middle
        else:
            high = middle
    d = t - drive.origin[low]
    for i in range(n_w):
        a1 = drive.pieces[low, i, 1]
        a2 = drive.pieces[low, i, 2]
        a3 = drive.pieces[low, i, 3]
        c[at + i] = drive.pieces[low, i, 0] + d * (a1 + d * (a2 + d * a3))
        c[at + n_w + i] = a1 + d * (2.0 * a2 + d * 3.0 * a3)
        c[at + 2 * n_w + i] = 2.0 * a2 + 6.0 * a3 * d
        c[third + i] = 6.0 * a3
    for k in range(drive.kernels.shape[0]):
        call_kernel(drive.kernels[k], t, x, c, drive.out)
        first = drive.kernel_start[k]
        m = drive.kernel_start[k + 1] - first
        for i in range(m):
            number = drive.kernel_inputs[first + i]
            for rate in range(3):
                c[at + rate * n_w + number] = drive.out[rate * m + i]
            c[third + number] = drive.out[3 * m + i]


@lean
def next_breakpoint(drive: DriveArrays, segment: int) -> float:
    """Return the time (s) of the next breakpoint at which a step must end, infinity if there is none."""
    after = drive.next_hard[segment]
    if after >= drive.start.shape[0]:
        return np.inf
    return drive.start[after]
