"""Calling machine code by its address from compiled functions.

Every kernel has the form ``void kernel(double t, const double *x, const double *c, double *out)``.  Because the
address is an argument, the functions that call kernels are compiled once per installation, whatever the model.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


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
        State, context and result.  Only their data pointers are passed on, so a slice that is contiguous will do.
    """
    signature = types.void(types.int64, types.float64, x, c, out)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        double = ir.DoubleType()
        pointer = double.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [double, pointer, pointer, pointer])
        where = builder.inttoptr(arguments[0], kind.as_pointer())
        data = [
            builder.bitcast(context.make_array(item)(context, builder, value).data, pointer)
            for item, value in zip(sig.args[2:], arguments[2:], strict=True)
        ]
        builder.call(where, [arguments[1], *data])
        return context.get_dummy_value()

    return signature, generate
