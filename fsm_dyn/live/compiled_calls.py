"""Calls from compiled code of functions that are known by their addresses alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def caller(count: int) -> Callable[[int, Any], int]:
    """Return the compiled function ``call(address, words)``: it hands the first ``count`` words to a function of C."""

    def declare(typingctx: Any, address: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = ir.IntType(64)
            kind = ir.FunctionType(word, count * [word])
            data = context.make_array(words)(context, builder, arguments[1]).data
            given = [builder.load(builder.gep(data, [ir.Constant(word, i)])) for i in range(count)]
            return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), given)

        return types.int64(types.int64, words), generate

    return cast(Callable[[int, Any], int], intrinsic(declare))


#: For functions of up to four words; what a function does not take, it does not look at.
call_with: Final = caller(4)
