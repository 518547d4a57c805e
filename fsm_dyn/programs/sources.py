"""Source text of programs: C99, NumPy, WebAssembly; shared sines and cosines of sums of angles."""

from __future__ import annotations

import keyword
import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph import Node, half_integer
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import reachable, rebuild, substitute, support
from fsm_dyn.runtime.library import OF_ONE, OF_TWO

# -- C source of a program -----------------------------------------------------------------------------------
#
# C source of a program: the signature of the kernels, one line per operation, C99 and the standard library.

HELPERS = """\
static inline double kernel_sign(double a) { return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a; }
static inline double kernel_min(double a, double b) { return a < b || a != a ? a : b; }
static inline double kernel_max(double a, double b) { return a > b || a != a ? a : b; }
static inline double kernel_mod(double a, double b)
{
    const double r = fmod(a, b);
    return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
"""

_KEYWORDS = (
    " auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
)
_TEMPLATES = {
    "neg": "-{0}",
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "abs": "fabs({0})",
    "sign": "kernel_sign({0})",
    "min": "kernel_min({0}, {1})",
    "max": "kernel_max({0}, {1})",
    "mod": "kernel_mod({0}, {1})",
    "pow": "pow({0}, {1})",
    "atan2": "atan2({0}, {1})",
    "lt": "(double)({0} < {1})",
    "le": "(double)({0} <= {1})",
    "eq": "(double)({0} == {1})",
    "ne": "(double)({0} != {1})",
    "and": "(double)({0} != 0.0 && {1} != 0.0)",
    "or": "(double)({0} != 0.0 || {1} != 0.0)",
    "not": "(double)({0} == 0.0)",
    "where": "{0} != 0.0 ? {1} : {2}",
    **{
        name: name + "({0})"
        for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "floor")
    },
}
_ELEMENTARY = frozenset(
    {"sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sinh", "cosh", "tanh", "atan2", "pow"}
)


def to_c(program: Program, name: str) -> str:
    """Return C source with the function ``void name(double t, const double *x, const double *c, double *out)``.

    ``name``: an identifier of C. Raises InputError: `name` is no identifier.

    Notes
    -----
    The text is a complete translation unit; :func:`c_function` gives the function alone, to be put behind
    :data:`HELPERS` with others.
    """
    return f"#include <math.h>\n\n{HELPERS}\n{c_function(program, name)}"


def to_c_once(program: Program, name: str) -> str:
    """Return C source of a program as two functions, for processors that compute what parameters give only once.

    ``void <name>_once(const double *p, double *k)`` computes operations on parameters alone, to be called when
    parameters are set; ``void <name>(double t, const double *x, const double *w, const double *k, double *out)`` does
    the rest.  `w` is the context behind the parameters, `k` has ``<name>_SIZE_OF_K`` numbers. ``name``: an identifier
    of C.
    """
    _check_identifier(name)
    graph, symbols, outputs = program.graph()
    flat = [node for array in outputs.values() for node in array.ravel()]
    constant = constant_parts(flat, program.layout.p)
    known = dict(zip(constant, (graph.symbol(f"k[{i}]") for i in range(len(constant))), strict=True))
    later = substitute(flat, known)
    left = support(later)
    alone = [symbols[p] for p in program.layout.p if symbols[p] in left]
    early = Program.from_nodes(Layout(p=program.layout.p), {"k": [*constant, *alone]})
    moved = {symbol: graph.symbol(f"k[{len(constant) + i}]") for i, symbol in enumerate(alone)}
    values = iter(substitute(later, moved))
    layout = replace(program.layout, p=tuple(f"k[{i}]" for i in range(len(constant) + len(alone))))
    rest = Program.from_nodes(
        layout, {name: [next(values) for _ in range(array.size)] for name, array in outputs.items()}
    )
    size = f"#define {name}_SIZE_OF_K {max(1, len(layout.p))}"
    head = f"void {name}_once(const double *restrict p, double *restrict k)"
    once = _function(early, head, "(void)p, (void)k;", (("p", len(early.layout.p)),), "k")
    inputs = ", ".join(["double t", *(f"const double *restrict {array}" for array in "xwk")])
    head = f"void {name}({inputs}, double *restrict out)"
    arrays = (("x", layout.n_x), ("k", len(layout.p)), ("w", layout.n_c - len(layout.p)))
    every = _function(rest, head, "(void)t, (void)x, (void)w, (void)k, (void)out;", arrays, "out")
    return f"#include <math.h>\n\n{size}\n{HELPERS}\n{once}\n{every}"


def constant_parts(nodes: Sequence[Node], parameters: Sequence[str]) -> list[Node]:
    """Return the largest parts of nodes that are operations on parameters alone, in order of making."""
    names, constant, found = frozenset(parameters), set[Node](), set[Node]()
    order = reachable(nodes)
    for node in order:
        if node.operands:
            if all(operand in constant for operand in node.operands):
                constant.add(node)
            else:
                found.update(_unsigned(operand) for operand in node.operands if operand in constant)
        elif node.constant_value is not None or node.name in names:
            constant.add(node)
    found.update(_unsigned(node) for node in nodes if node in constant)
    return [node for node in order if node in found and node.operands]


def _unsigned(node: Node) -> Node:
    return node.operands[0] if node.op == "neg" else node


def c_function(program: Program, name: str, own_functions: bool = False) -> str:
    """Return the function of :func:`to_c` alone, not static.

    ``name``: an identifier of C; ``own_functions``: whether the runtime's elementary functions are called
    (``runtime/elementary.h``), as machine code does, which gives the same bits.
    """
    _check_identifier(name)
    layout = program.layout
    arrays = (("x", layout.n_x), ("c", layout.n_c))
    head = f"void {name}(double t, const double *restrict x, const double *restrict c, double *restrict out)"
    return _function(program, head, "(void)t, (void)x, (void)c, (void)out;", arrays, "out", own_functions)


def _check_identifier(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or f" {name} " in _KEYWORDS:
        raise InputError("a function of C needs an identifier as its name", found=repr(name)[:200])


def _function(
    program: Program,
    head: str,
    unused: str,
    arrays: Sequence[tuple[str, int]],
    result: str,
    own_functions: bool = False,
) -> str:
    """Return a function with a given head; `arrays` are the names and lengths of those that hold the arguments."""
    read = {index for _, operands in program.instructions for index in operands}
    read.update(index for output in program.results for index in output.indices)
    values, lines = _arguments(program, read, arrays)
    lines.insert(0, unused)
    first = len(values)
    constants = dict(enumerate(program.constants, start=first))
    values += [repr(value) if value >= 0.0 else f"({value!r})" for value in program.constants]
    for k, (op, operands) in enumerate(program.instructions):
        texts = [values[index] for index in operands]
        right = _power(texts[0], constants.get(operands[1])) if op == "pow" else None
        prefix = "fsm_" if own_functions and op in _ELEMENTARY else ""
        lines.append(f"const double v{k} = {right or prefix + _TEMPLATES[op].format(*texts)};")
        values.append(f"v{k}")
    place = 0
    for output in program.results:
        lines.append(f"/* {re.sub(r'[^A-Za-z0-9_.]', '_', output.name)} */")
        for index in output.indices:
            lines.append(f"{result}[{place}] = {values[index]};")
            place += 1
    return f"{head}\n{{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def _arguments(program: Program, read: set[int], arrays: Sequence[tuple[str, int]]) -> tuple[list[str], list[str]]:
    """Return a C name for every argument and the lines to load the `read` ones."""
    places = [(array, place) for array, size in arrays for place in range(size)]
    names, lines, taken = ["t"], [], set()
    for index, (argument, (array, place)) in enumerate(zip(program.layout.arguments[1:], places, strict=True), start=1):
        name = f"{array}_{re.sub(r'[^A-Za-z0-9]+', '_', argument)}"
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
        if index in read:
            lines.append(f"const double {name} = {array}[{place}];")
    return names, lines


def _power(base: str, exponent: float | None) -> str | None:
    """Return the text of a power with exponent n + 1/2, else None."""
    whole = None if exponent is None else half_integer(exponent)
    return None if whole is None else " * ".join([f"sqrt({base})"] + whole * [base])


# -- NumPy source of a program: a function of the arguments by name, one line per operation ------------------

_NUMPY_TEMPLATES = {
    "neg": "-{0}",
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "pow": "np.power({0}, {1})",
    "abs": "np.abs({0})",
    "asin": "np.arcsin({0})",
    "acos": "np.arccos({0})",
    "atan": "np.arctan({0})",
    "atan2": "np.arctan2({0}, {1})",
    "mod": "np.mod({0}, {1})",
    "min": "np.minimum({0}, {1})",
    "max": "np.maximum({0}, {1})",
    "lt": "np.less({0}, {1}) * 1.0",
    "le": "np.less_equal({0}, {1}) * 1.0",
    "eq": "np.equal({0}, {1}) * 1.0",
    "ne": "np.not_equal({0}, {1}) * 1.0",
    "and": "np.logical_and({0}, {1}) * 1.0",
    "or": "np.logical_or({0}, {1}) * 1.0",
    "not": "np.logical_not({0}) * 1.0",
    "where": "np.where({0} != 0.0, {1}, {2})",
    **{
        name: f"np.{name}({{0}})"
        for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign", "floor")
    },
}


def to_numpy(program: Program, name: str) -> str:
    """Return Python source with ``name(t, x, c)``, which returns a dict of arrays by the names of the outputs.

    ``x`` and ``c`` are sequences in the order of the program's layout, SI units. ``program``: the program to write.
    Raises InputError: `name` is no identifier of Python.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InputError("a function of Python needs an identifier as its name", found=repr(name)[:200])
    layout, read = program.layout, {index for _, operands in program.instructions for index in operands}
    read.update(index for output in program.results for index in output.indices)
    values, lines, taken = ["t"], [], {"t", "x", "c", "np", name}
    for index, argument in enumerate(layout.arguments[1:], start=1):
        array, place = ("x", index - 1) if index <= layout.n_x else ("c", index - 1 - layout.n_x)
        values.append(_fresh(argument, taken))
        if index in read:
            lines.append(f"{values[-1]} = {array}[{place}]")
    values += [repr(value) for value in program.constants]
    for k, (op, operands) in enumerate(program.instructions, start=1):
        texts = [f"({values[i]})" if values[i].startswith("-") else values[i] for i in operands]
        values.append(_fresh(f"Z{k}", taken))
        lines.append(f"{values[-1]} = {_NUMPY_TEMPLATES[op].format(*texts)}")
    lines.append("return {")
    for output in program.results:
        entries = ", ".join(values[index] for index in output.indices)
        lines.append(f'    "{output.name}": np.array([{entries}], dtype=float).reshape({output.shape}),')
    lines.append("}")
    return f"import numpy as np\n\n\ndef {name}(t, x, c):\n" + "".join(f"    {line}\n" for line in lines)


def _fresh(argument: str, taken: set[str]) -> str:
    """Return a unique identifier for an argument."""
    found = re.sub(r"\W+", "_", argument)
    while found in taken or keyword.iskeyword(found):
        found += "_"
    taken.add(found)
    return found


# -- WebAssembly of programs ---------------------------------------------------------------------------------
#
# WebAssembly of programs: one function for each, straight-line, 64-bit floats, calls of the runtime's functions.
#
# Instructions and their order of rounding are those of machine code (``llvm.py``), so the bits are the same.
# WebAssembly is a stack machine: a value used once stays on the stack, others are locals.

#: Functions of the runtime called by kernels, in the order of their numbers: those of one operand, then those of two.
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
    """Return the instruction to push a number."""
    return _CONST + struct.pack("<d", value)


def function_body(program: Program) -> bytes:
    """Return a kernel ``(t, x, c, out)`` as the body of a function, with its locals and its length.

    ``program``: functions of the runtime have the numbers of :data:`CALLED`.
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
        """Write the values with several uses in order, each with the operands it alone uses, then the results."""
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
        """Write the instructions to push a value."""
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
        """Add the computation of a value to the list, last step first; a value with several uses goes into a local."""
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


# -- Sines and cosines of sums of angles from those of the angles, if these are computed anyway --------------
#
# A sine with its cosine costs about as much as twenty products; the addition theorem takes six operations. In
# mechanisms many angles are sums of others (``q1``, ``q1 + q2``, ``q2``), so this halves the time of a long planar
# chain. It is applied to machine code only, so programs stay unchanged for reading and for checks.


def share_angles(program: Program) -> Program:
    """Return an equal program without calls of sine or cosine for sums of known angles.

    The results differ by a few units of the last place of 1, like the rounding of the sum itself.
    """
    if not any(op in ("sin", "cos") for op, _ in program.instructions):
        return program
    _, _, outputs = program.graph()
    replaced = _replaced([node for array in outputs.values() for node in array.ravel()])
    shared, start = {}, 0
    for name, array in outputs.items():
        entries = np.empty(array.size, dtype=object)
        entries[:] = replaced[start : start + array.size]
        shared[name] = entries.reshape(array.shape)
        start += array.size
    return Program.from_nodes(program.layout, shared)


def _replaced(outputs: Sequence[Node]) -> list[Node]:
    order = reachable(outputs)
    known = {node.operands[0] for node in order if node.op in ("sin", "cos")}
    new: dict[Node, Node] = {}
    pairs: dict[Node, tuple[Node, Node]] = {}

    def pair(angle: Node) -> tuple[Node, Node]:
        """Return sine and cosine of an angle of the old program."""
        found = pairs.get(angle)
        if found is None:
            if angle.op in ("add", "sub") and all(_is_known(part, known) for part in angle.operands):
                (s1, c1), (s2, c2) = pair(angle.operands[0]), pair(angle.operands[1])
                s2 = -s2 if angle.op == "sub" else s2
                found = (s1 * c2 + c1 * s2, c1 * c2 - s1 * s2)
            elif angle.op == "neg":
                sine, cosine = pair(angle.operands[0])
                found = (-sine, cosine)
            else:
                found = (sin(new[angle]), cos(new[angle]))
            pairs[angle] = found
        return found

    for node in order:
        if node.op in ("sin", "cos"):
            new[node] = pair(node.operands[0])[0 if node.op == "sin" else 1]
        elif node.operands:
            operands = tuple([new[operand] for operand in node.operands])
            new[node] = node if operands == node.operands else rebuild(node.graph, node.op, operands)
        else:
            new[node] = node
    return [new[node] for node in outputs]


def _is_known(angle: Node, known: set[Node]) -> bool:
    return angle.constant_value is not None or angle in known or (angle.op == "neg" and angle.operands[0] in known)
