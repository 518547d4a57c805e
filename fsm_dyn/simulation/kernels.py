"""Calling machine code by its address from compiled functions.

Every kernel has the form ``void kernel(double t, const double *x, const double *c, double *out)``.  Because the
address is an argument, the functions that call kernels are compiled once per installation, whatever the model.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _call(context: Any, builder: Any, address: Any, t: Any, pointers: list[Any]) -> Any:
    double = ir.DoubleType()
    pointer = double.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [double, pointer, pointer, pointer])
    builder.call(builder.inttoptr(address, kind.as_pointer()), [t, *pointers])
    return context.get_dummy_value()


def _data(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.make_array(kind)(context, builder, value).data


@intrinsic  # type: ignore[untyped-decorator]
def call_kernel(typingctx: Any, address: Any, t: Any, x: Any, c: Any, out: Any) -> Any:
    """Call the kernel at an address with three contiguous float64 arrays.

    Parameters
    ----------
    address : int64
        Where the kernel's machine code begins.  It must stay loaded; nothing checks it.
    t : float64
        Time (s).
    x, c, out : float64 arrays
        State, context and result; only their data pointers are passed on.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointers = [
            _data(context, builder, kind, value)
            for kind, value in zip(signature.args[2:], arguments[2:], strict=True)
        ]
        return _call(context, builder, arguments[0], arguments[1], pointers)

    return types.void(types.int64, types.float64, x, c, out), generate


@intrinsic  # type: ignore[untyped-decorator]
def call_kernel_at(typingctx: Any, address: Any, t: Any, x: Any, c: Any, out: Any, at: Any) -> Any:
    """Call a kernel that writes into ``out`` from index ``at`` on; spares the hot loop a slice."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointers = [
            _data(context, builder, kind, value)
            for kind, value in zip(signature.args[2:5], arguments[2:5], strict=True)
        ]
        pointers[2] = builder.gep(pointers[2], [arguments[5]])
        return _call(context, builder, arguments[0], arguments[1], pointers)

    return types.void(types.int64, types.float64, x, c, out, types.int64), generate
