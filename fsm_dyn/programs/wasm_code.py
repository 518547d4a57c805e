"""WebAssembly of programs: one function for each, straight-line, 64-bit floats, calls of the runtime's functions.

Instructions and their order of rounding are those of machine code (``llvm.py``), so the bits are the same.  WebAssembly
is a stack machine: a value that is used once stays on the stack, others are locals.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from typing import Final

from fsm_dyn.programs.operations import half_integer
from fsm_dyn.programs.program import Program
from fsm_dyn.runtime.elementary import OF_ONE, OF_TWO

#: Functions of the runtime that kernels call, in the order of their numbers: those of one operand, then those of two.
CALLED_OF_ONE: Final = (*(f"fsm_{name}" for name in OF_ONE), "kernel_sign")
CALLED_OF_TWO: Final = (*(f"fsm_{name}" for name in OF_TWO), "kernel_min", "kernel_max", "kernel_mod")
CALLED: Final = (*CALLED_OF_ONE, *CALLED_OF_TWO)
_NUMBERS: Final = {name.partition("_")[2]: k for k, name in enumerate(CALLED)}

F64: Final = b"\x7c"
I32: Final = b"\x7f"
_TIME, _X, _C, _OUT = range(4)  # parameters of a kernel
_PARAMETERS: Final = 4
_GET, _SET, _TEE, _CALL, _END, _SELECT = (bytes([code]) for code in (0x20, 0x21, 0x22, 0x10, 0x0B, 0x1B))
_LOAD, _STORE = b"\x2b\x03", b"\x39\x03"  # of 64-bit floats, aligned to eight bytes
_CONST = b"\x44"
_SQRT, _MUL = b"\x9f", b"\xa2"
_EQ, _NE = b"\x61", b"\x62"
_TO_FLOAT = b"\xb8"  # of an unsigned integer
_PLAIN: Final = {
    "neg": b"\x9a", "add": b"\xa0", "sub": b"\xa1", "mul": _MUL, "div": b"\xa3", "abs": b"\x99", "sqrt": _SQRT,
    "floor": b"\x9c",
    "lt": b"\x63" + _TO_FLOAT, "le": b"\x65" + _TO_FLOAT, "eq": _EQ + _TO_FLOAT, "ne": _NE + _TO_FLOAT,
}  # fmt: skip
_LOGIC: Final = {"and": b"\x71", "or": b"\x72"}


def unsigned(value: int) -> bytes:
    """Return an unsigned integer in LEB128."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(value: float) -> bytes:
    """Return the instruction that pushes a number."""
    return _CONST + struct.pack("<d", value)


def function_body(program: Program) -> bytes:
    """Return a kernel ``(t, x, c, out)`` as the body of a function, with its locals and its length.

    Parameters
    ----------
    program : Program
        Functions of the runtime have the numbers of :data:`CALLED`.
    """
    code = _WasmFunction(program)
    code.write()
    locals_ = b"\x01" + unsigned(code.n_locals) + F64 if code.n_locals else b"\x00"
    body = locals_ + bytes(code.out) + _END
    return unsigned(len(body)) + body


class _WasmFunction:
    """Writer of one function; ``out`` grows, ``place`` maps the number of a value to its local."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.first_constant = len(program.layout.arguments)
        self.first = program.first_instruction
        self.uses = Counter(index for _, operands in program.instructions for index in operands)
        self.uses.update(index for output in program.results for index in output.indices)
        for op, operands in program.instructions:
            if op == "pow" and self.half(operands) is not None:
                self.uses[operands[0]] += 2  # a factor as well
        self.place: dict[int, int] = {}
        self.n_locals = 0
        self.out = bytearray()

    def half(self, operands: Sequence[int]) -> int | None:
        """Return n of an exponent n + 1/2, else None."""
        index = operands[1] - self.first_constant
        constants = self.program.constants
        return half_integer(constants[index]) if 0 <= index < len(constants) else None

    def write(self) -> None:
        """Write in order what is used several times, each with what it alone uses, then the results."""
        for k in range(len(self.program.instructions)):
            if self.uses[self.first + k] > 1 and self.first + k not in self.place:
                self.push(self.first + k)
                self.out += b"\x1a"  # drop: the value stays in its local
        at = 0
        for output in self.program.results:
            for index in output.indices:
                self.out += _GET + unsigned(_OUT)
                self.push(index)
                self.out += _STORE + unsigned(8 * at)
                at += 1

    def push(self, index: int) -> None:
        """Write what puts a value on the stack."""
        todo: list[int | bytes] = [index]
        while todo:
            item = todo.pop()
            if isinstance(item, bytes):
                self.out += item
            elif item in self.place:
                self.out += _GET + unsigned(self.place[item])
            else:
                self.open(item, todo)

    def open(self, index: int, todo: list[int | bytes]) -> None:
        """Put on the list what computes a value, last first; one that is used again goes into a local."""
        if index == _TIME:
            self.out += _GET + unsigned(_TIME)
            return
        if self.first_constant <= index < self.first:
            self.out += number(self.program.constants[index - self.first_constant])
            return
        if self.uses[index] > 1:
            self.place[index] = _PARAMETERS + self.n_locals
            self.n_locals += 1
            todo.append(_TEE + unsigned(self.place[index]))
        if index < self.first_constant:
            n_x = self.program.layout.n_x
            array, at = (_X, index - 1) if index <= n_x else (_C, index - 1 - n_x)
            todo.append(_GET + unsigned(array) + _LOAD + unsigned(8 * at))
            return
        op, operands = self.program.instructions[index - self.first]
        todo.extend(reversed(self.parts(op, operands)))

    def parts(self, op: str, operands: tuple[int, ...]) -> list[int | bytes]:
        """Return operands and instructions of an operation in their order."""
        if op in _PLAIN:
            return [*operands, _PLAIN[op]]
        true = number(0.0) + _NE
        if op in _LOGIC:
            return [operands[0], true, operands[1], true, _LOGIC[op] + _TO_FLOAT]
        if op == "not":
            return [operands[0], number(0.0) + _EQ + _TO_FLOAT]
        if op == "where":
            return [operands[1], operands[2], operands[0], true + _SELECT]
        whole = self.half(operands) if op == "pow" else None
        if whole is not None:
            return [operands[0], _SQRT, *(part for _ in range(whole) for part in (operands[0], _MUL))]
        return [*operands, _CALL + unsigned(_NUMBERS[op])]
