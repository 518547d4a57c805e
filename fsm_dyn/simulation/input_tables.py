"""Tables of input signals: polynomial pieces and kernels that the runtime evaluates."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.array_structs import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class InputTables(NamedTuple):
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
        1 where the contact states are decided again at such a start; 0 where every input is continuous and none
        of those with a kink drives a constraint, so that no force can jump.
    kernels : int64 array
        Addresses of kernels that write values and three rates of some inputs.
    kernel_start : int64 array, shape (n_kernels + 1,)
        Where the inputs of each kernel begin in ``kernel_inputs``.
    kernel_inputs : int64 array
        Input numbers.
    enclosure_code, enclosure_numbers : int64 and float64 arrays
        Programs that enclose the kernels, as in :class:`fsm_dyn.simulation.tables.Tables`.
    kernel_enclosure : int64 array, shape (n_kernels,)
        Where each program begins, -1 where there is none.
    kernel_values : int64 array
        The values that enclose the outputs of each kernel: its inputs, their rates, their second and third rates.
    jets : float64 array
        Workspace of the enclosures.
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
    enclosure_code: Integers
    enclosure_numbers: Floats
    kernel_enclosure: Integers
    kernel_values: Integers
    jets: Floats
    out: Floats


DRIVE: Final = Bundle(InputTables, {"pieces": 3})
