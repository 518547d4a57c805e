"""Calling machine code by its address from compiled functions.

Every kernel has the form ``void kernel(double t, const double *x, const double *c, double *out)``.  Because the
address is an argument, the functions that call kernels are compiled once per installation, whatever the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _call(context: Any, builder: Any, address: Any, t: Any, pointers: list[Any]) -> Any:
    double = ir.DoubleType()
    pointer = double.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [double, pointer, pointer, pointer])
    builder.call(builder.inttoptr(address, kind.as_pointer()), [t, *pointers])
    return context.get_dummy_value()


def _data(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.CPointer):
        return value
    return context.make_array(kind)(context, builder, value).data


def _call_kernel(typingctx: Any, address: Any, t: Any, x: Any, c: Any, out: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointers = [
            _data(context, builder, kind, value) for kind, value in zip(signature.args[2:], arguments[2:], strict=True)
        ]
        return _call(context, builder, arguments[0], arguments[1], pointers)

    return types.void(types.int64, types.float64, x, c, out), generate


def _call_kernel_at(typingctx: Any, address: Any, t: Any, x: Any, c: Any, out: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointers = [
            _data(context, builder, kind, value)
            for kind, value in zip(signature.args[2:5], arguments[2:5], strict=True)
        ]
        pointers[2] = builder.gep(pointers[2], [arguments[5]])
        return _call(context, builder, arguments[0], arguments[1], pointers)

    return types.void(types.int64, types.float64, x, c, out, types.int64), generate


#: ``call_kernel(address, t, x, c, out)`` calls the kernel whose machine code begins at ``address`` (int64; it must
#: stay loaded, nothing checks it) at time ``t`` (s) with contiguous float64 arrays: state, context and result.
call_kernel = cast(Callable[[int, float, Floats, Floats, Floats], None], intrinsic(_call_kernel))

#: ``call_kernel_at(address, t, x, c, out, at)`` writes into ``out`` from index ``at`` on; spares the loop a slice.
call_kernel_at = cast(Callable[[int, float, Floats, Floats, Floats, int], None], intrinsic(_call_kernel_at))
