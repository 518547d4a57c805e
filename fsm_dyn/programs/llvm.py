"""LLVM assembly text of programs: straight-line functions of doubles, long ones split into parts."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from dataclasses import field

from fsm_dyn.core.records import dataclass
from fsm_dyn.programs.graph import TRUTH_VALUED, half_integer
from fsm_dyn.programs.program import CALLS, Program
from fsm_dyn.runtime.library import OF_ONE, OF_TWO

# -- Splitting a long program into parts, with an array to pass values ---------------------------------------


@dataclass
class Part:
    """A run of consecutive instructions for one function."""

    # start, stop: range of instructions
    start: int
    stop: int
    # values of earlier parts read here, with their places in the array
    received: dict[int, int] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)  # values made here and read by later parts, with their places
    # places in the kernel's result, with the numbers of the values
    outputs: list[tuple[int, int]] = field(default_factory=list)


def divide(program: Program, longest: int) -> tuple[list[Part], int]:
    """Cut `program` into parts of at most `longest` instructions.

    Returns ``parts``: at least one; ``slots``: length of the array; places are reused after their last reading.
    """
    n = len(program.instructions)
    pieces = max(1, -(-n // longest))
    length = max(1, -(-n // pieces))
    parts = [Part(start, min(start + length, n)) for start in range(0, max(n, 1), length)]
    first = program.first_instruction
    known: list[tuple[int, int]] = []  # constants and arguments: any part can write them, one alone would be long
    for place, index in enumerate(i for output in program.results for i in output.indices):
        (known if index < first else parts[(index - first) // length].outputs).append((place, index))
    share = max(1, -(-len(known) // len(parts)))
    for k, part in enumerate(parts):
        part.outputs = sorted(part.outputs + known[k * share : (k + 1) * share])
    if len(parts) == 1:
        return parts, 0
    last = {
        index: number
        for number, part in enumerate(parts)
        for _, operands in program.instructions[part.start : part.stop]
        for index in operands
        if index >= first
    }
    return parts, _assign(parts, last, first)


def _assign(parts: list[Part], last: dict[int, int], first: int) -> int:
    """Assign a place to every value passed from part to part; `last` is the last part to read a value."""
    free: list[int] = []
    held: dict[int, int] = {}
    slots = 0
    for number, part in enumerate(parts):
        part.received = dict(held)
        for index in [index for index in held if last[index] == number]:
            free.append(held.pop(index))
        for index in range(first + part.start, first + part.stop):
            if last.get(index, number) > number:
                if not free:
                    free.append(slots)
                    slots += 1
                held[index] = part.kept[index] = free.pop()
    return slots


# -- LLVM assembly text of programs --------------------------------------------------------------------------
#
# LLVM assembly text of programs: one function per program, straight-line, nothing but doubles and pointers.
#
# Text is written directly, several times faster than building instruction objects. There are no fast-math flags:
# products and sums are rounded one by one, so processors with and without fused operations give the same bits
# (docs/decisions/0020). Elementary functions are the runtime's own, for the same reason (docs/decisions/0026); sine
# and cosine of one argument are one call.

# Longer programs are compiled in parts.  On rows of 24 and 40 four-bars (4,500 and 7,500 instructions) parts of 200
# took 0.25 s and 0.44 s to compile, parts of 600 took 0.42 s and 0.84 s, and ran no faster; on a chain of 160 links
# (17,800) they took 0.64 s instead of 0.82 s, and run a seventh longer.
LONGEST_FUNCTION = 2000
PART_LENGTH = 200

SHORTEST_RUN = 8  # of zeros written at once: rows of large matrices are mostly zero

_INTRINSICS = ("sqrt", "fabs", "floor")
#: Functions of the runtime called by machine code.
CALLED = tuple(f"fsm_{name}" for name in (*OF_ONE, *OF_TWO, "sin_cos"))
_DECLARATIONS = "\n".join(
    [f"declare double @llvm.{name}.f64(double)" for name in _INTRINSICS]
    + ["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)", "declare void @fsm_sin_cos(double, ptr nocapture) #0"]
    + [f"declare double @fsm_{name}(double) #1" for name in OF_ONE]
    + [f"declare double @fsm_{name}(double, double) #1" for name in OF_TWO]
)
_ARGUMENTS = "double %t, ptr noalias readonly %x, ptr noalias readonly %c, ptr noalias %out"
_ATTRIBUTES = "attributes #0 = { nounwind }\nattributes #1 = { nounwind readnone willreturn }\n"


# Functions of parameters and memory alone, such as the sine of an incline, keep their last argument and value: they
# change between runs, or at transitions.  Threads may share a kernel, so an entry counts only if it is whole: its third
# word is the exclusive or of the others, so that no mixture of two entries passes for one (R. Hyatt and T. Mann 2002,
# A lock-less transposition table, ICGA Journal 25).
_NO_ENTRY = "[3 x i64] [i64 0, i64 0, i64 1]"
_KEPT = """
define internal double @fsm_kept_{name}(double %argument, ptr %entry) #0 {{
  %key = bitcast double %argument to i64
  %at_value = getelementptr i64, ptr %entry, i64 1
  %at_check = getelementptr i64, ptr %entry, i64 2
  %last = load atomic i64, ptr %entry monotonic, align 8
  %value = load atomic i64, ptr %at_value monotonic, align 8
  %check = load atomic i64, ptr %at_check monotonic, align 8
  %same = icmp eq i64 %last, %key
  %both = xor i64 %last, %value
  %whole = icmp eq i64 %both, %check
  %known = and i1 %same, %whole
  br i1 %known, label %found, label %missing
found:
  %before = bitcast i64 %value to double
  ret double %before
missing:
  %new = call double @fsm_{name}(double %argument)
  %word = bitcast double %new to i64
  %sum = xor i64 %key, %word
  store atomic i64 %key, ptr %entry monotonic, align 8
  store atomic i64 %word, ptr %at_value monotonic, align 8
  store atomic i64 %sum, ptr %at_check monotonic, align 8
  ret double %new
}}
"""


def module_text(programs: Sequence[Program], names: Sequence[str], triple: str, keep_zeros: bool = False) -> str:
    """Return a module with one kernel per program.

    ``names``: names of the functions; plain identifiers. ``triple``: the target, as LLVM names it. ``keep_zeros``:
    whether constant zeros of the result are not written.
    """
    kernels = [_kernel(program, name, keep_zeros) for program, name in zip(programs, names, strict=True)]
    kept = [_KEPT.format(name=name) for name in OF_ONE if any(f"@fsm_kept_{name}(" in kernel for kernel in kernels)]
    return "\n".join([f'target triple = "{triple}"', _DECLARATIONS, *kept, *kernels, _ATTRIBUTES])


def _seldom_changing(program: Program) -> frozenset[int]:
    """Return the numbers of the arguments and results of a program that depend on parameters and memory alone."""
    layout, first = program.layout, program.first_instruction
    found = set(range(len(layout.arguments), first))  # constants
    for part in (layout.p_slice, layout.sigma_slice, layout.memory_slice):
        found.update(1 + layout.n_x + place for place in range(layout.n_c)[part])
    for number, (_, operands) in enumerate(program.instructions, start=first):
        if found.issuperset(operands):
            found.add(number)
    return frozenset(found)


def _kernel(program: Program, name: str, keep_zeros: bool) -> str:
    """Return the definition of one kernel.

    The time of register allocation grows faster than the length of a function, so a long program becomes several
    functions, with an array on the stack for passed values.
    """
    whole = len(program.instructions) <= LONGEST_FUNCTION
    seldom = _seldom_changing(program)
    parts, slots = divide(program, LONGEST_FUNCTION if whole else PART_LENGTH)
    if len(parts) == 1:
        function = _Function(program, parts[0], keep_zeros, seldom, name)
        body = function.text()
        return "\n".join([*function.entries, f"define void @{name}({_ARGUMENTS}) #0 {{\n{body}\n}}\n"])
    texts = []
    calls = [f"%work = alloca double, i64 {max(slots, 1)}"]
    for k, part in enumerate(parts):
        function = _Function(program, part, keep_zeros, seldom, name)
        body = function.text()
        texts += function.entries
        texts.append(f"define internal void @{name}.part{k}({_ARGUMENTS}, ptr noalias %work) #0 {{\n{body}\n}}\n")
        calls.append(f"call void @{name}.part{k}(double %t, ptr %x, ptr %c, ptr %out, ptr %work)")
    main = "\n  ".join(["entry:", *calls, "ret void"])
    return "\n".join([*texts, f"define void @{name}({_ARGUMENTS}) #0 {{\n{main}\n}}\n"])


def _literal(value: float) -> str:
    """Return a double as LLVM reads it without rounding: its bits."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class _Function:
    """Writer of one function; `lines` grows, `values` maps a number of the program to an operand text."""

    def __init__(self, program: Program, part: Part, keep_zeros: bool, seldom: frozenset[int], name: str) -> None:
        self.program = program
        self.part = part
        self.keep_zeros = keep_zeros
        self.seldom = seldom
        self.name = name
        self.entries: list[str] = []  # definitions of the kept values
        self.lines: list[str] = []
        self.fresh = 0
        first = len(program.layout.arguments)
        self.constants = dict(enumerate(program.constants, start=first))
        self.values: dict[int, str] = {i: _literal(value) for i, value in self.constants.items()}
        self.values[0] = "%t"
        self.truths: dict[int, str] = {}
        self.angles: dict[int, dict[str, int]] = {}  # numbers of its sine and cosine, by angle

    def text(self) -> str:
        """Return the body of the function."""
        first = self.program.first_instruction
        rows = [(k, *self.program.instructions[k]) for k in range(self.part.start, self.part.stop)]
        for k, op, operands in rows:
            if op in ("sin", "cos"):
                self.angles.setdefault(operands[0], {})[op] = first + k
        last_call = max((k for k, op, _ in rows if op in CALLS), default=-1)
        for k, op, operands in rows:
            self.instruction(first + k, op, operands)
            if k == last_call:  # values in memory are loaded again after the calls rather than kept across them
                self.forget_loaded()
        for index, slot in self.part.kept.items():
            self.store(self.value(index), "%work", slot)
        constant = [place for place, index in self.part.outputs if self.constants.get(index) == 0.0]
        zeros = set(constant) if self.keep_zeros else self.clear(constant)
        for place, index in self.part.outputs:
            if place not in zeros:
                self.store(self.value(index), "%out", place)
        return "\n  ".join(["entry:", *self.lines, "ret void"])

    def clear(self, places: list[int]) -> set[int]:
        """Write zeros to the longer runs of neighbours among the places of the result; return the places written."""
        done: set[int] = set()
        for _, run in itertools.groupby(enumerate(sorted(places)), key=lambda pair: pair[1] - pair[0]):
            span = [place for _, place in run]
            if len(span) >= SHORTEST_RUN:
                pointer = self.emit(f"getelementptr double, ptr %out, i64 {span[0]}")
                size = 8 * len(span)
                self.lines.append(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")
                done.update(span)
        return done

    def store(self, value: str, array: str, place: int) -> None:
        """Write the storing of a value."""
        pointer = self.emit(f"getelementptr double, ptr {array}, i64 {place}")
        self.lines.append(f"store double {value}, ptr {pointer}")

    def forget_loaded(self) -> None:
        """Make later uses of ``x``, ``c`` and of earlier parts' values load again."""
        for index in (*range(1, len(self.program.layout.arguments)), *self.part.received):
            self.values.pop(index, None)

    def emit(self, text: str) -> str:
        """Append an instruction and return the name of its result."""
        name = f"%v{self.fresh}"
        self.fresh += 1
        self.lines.append(f"{name} = {text}")
        return name

    def value(self, index: int) -> str:
        """Return the operand text of a value, loading it if need be."""
        text = self.values.get(index)
        if text is None:
            array, place = self.address(index)
            pointer = self.emit(f"getelementptr double, ptr {array}, i64 {place}")
            text = self.values[index] = self.emit(f"load double, ptr {pointer}")
        return text

    def address(self, index: int) -> tuple[str, int]:
        """Return array and place of an argument or of a value of an earlier part."""
        slot = self.part.received.get(index)
        if slot is not None:
            return "%work", slot
        n_x = self.program.layout.n_x
        return ("%x", index - 1) if index <= n_x else ("%c", index - 1 - n_x)

    def truth(self, index: int) -> str:
        """Return the operand text of ``value != 0`` as one bit."""
        return self.truths.get(index) or self.emit(f"fcmp une double {self.value(index)}, {_literal(0.0)}")

    def instruction(self, number: int, op: str, operands: tuple[int, ...]) -> None:
        """Write one instruction of the program."""
        if op in TRUTH_VALUED:
            bit = self.truths[number] = self.truth_valued(op, operands)
            self.values[number] = self.emit(f"select i1 {bit}, double {_literal(1.0)}, double {_literal(0.0)}")
        elif op == "where":
            bit = self.truth(operands[0])
            a, b = map(self.value, operands[1:])
            self.values[number] = self.emit(f"select i1 {bit}, double {a}, double {b}")
        elif op == "pow":
            self.values[number] = self.power(*operands)
        elif op in OF_ONE and operands[0] in self.seldom:
            self.entries.append(f"@{self.name}.kept{number} = internal global {_NO_ENTRY}, align 8")
            value = self.value(operands[0])
            kept = f"@fsm_kept_{op}(double {value}, ptr @{self.name}.kept{number})"
            self.values[number] = self.emit(f"call double {kept}")
        elif len(self.angles.get(operands[0], ())) == 2 and op in ("sin", "cos"):
            if number not in self.values:
                self.sine_and_cosine(operands[0])
        else:
            self.values[number] = _WRITERS[op](self, *map(self.value, operands))

    def sine_and_cosine(self, angle: int) -> None:
        """Write one call for both."""
        both = self.emit("alloca [2 x double]")
        self.lines.append(f"call void @fsm_sin_cos(double {self.value(angle)}, ptr {both})")
        for place, op in enumerate(("sin", "cos")):
            pointer = self.emit(f"getelementptr double, ptr {both}, i64 {place}")
            self.values[self.angles[angle][op]] = self.emit(f"load double, ptr {pointer}")

    def truth_valued(self, op: str, operands: tuple[int, ...]) -> str:
        """Write a comparison or a logical operation; return its bit."""
        condition = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}.get(op)
        if condition is not None:
            a, b = map(self.value, operands)
            return self.emit(f"fcmp {condition} double {a}, {b}")
        bits = [self.truth(index) for index in operands]
        return self.emit(f"xor i1 {bits[0]}, true" if op == "not" else f"{op} i1 {bits[0]}, {bits[1]}")

    def power(self, base: int, exponent: int) -> str:
        """Write a power; exponents n + 1/2 as a square root and products."""
        a = self.value(base)
        constant = self.constants.get(exponent)
        whole = None if constant is None else half_integer(constant)
        if whole is None:
            return self.emit(f"call double @fsm_pow(double {a}, double {self.value(exponent)})")
        result = self.emit(f"call double @llvm.sqrt.f64(double {a})")
        for _ in range(whole):
            result = self.emit(f"fmul double {result}, {a}")
        return result


def _plain(text: str) -> Callable[..., str]:
    """Make a writer from one instruction with ``{0}`` and ``{1}`` for the operands."""
    return lambda function, *operands: function.emit(text.format(*operands))


def _extremum(condition: str) -> Callable[[_Function, str, str], str]:
    """Make a writer for ``a`` if ``a condition b`` or `a` is NaN, else ``b``: NaN of either operand survives."""

    def write(function: _Function, a: str, b: str) -> str:
        below = function.emit(f"fcmp {condition} double {a}, {b}")
        absent = function.emit(f"fcmp uno double {a}, {a}")
        first = function.emit(f"or i1 {below}, {absent}")
        return function.emit(f"select i1 {first}, double {a}, double {b}")

    return write


def _sign(function: _Function, a: str) -> str:
    """Write the sign: 0 and NaN are their own."""
    zero = _literal(0.0)
    above = function.emit(f"fcmp ogt double {a}, {zero}")
    below = function.emit(f"fcmp olt double {a}, {zero}")
    rest = function.emit(f"select i1 {below}, double {_literal(-1.0)}, double {a}")
    return function.emit(f"select i1 {above}, double {_literal(1.0)}, double {rest}")


def _mod(function: _Function, a: str, b: str) -> str:
    """Write the remainder with the sign of the divisor: C's remainder, moved by `b` if the signs differ."""
    zero = _literal(0.0)
    remainder = function.emit(f"frem double {a}, {b}")
    present = function.emit(f"fcmp one double {remainder}, {zero}")
    low = function.emit(f"fcmp olt double {remainder}, {zero}")
    low_divisor = function.emit(f"fcmp olt double {b}, {zero}")
    differ = function.emit(f"xor i1 {low}, {low_divisor}")
    move = function.emit(f"and i1 {present}, {differ}")
    moved = function.emit(f"fadd double {remainder}, {b}")
    return function.emit(f"select i1 {move}, double {moved}, double {remainder}")


_WRITERS: dict[str, Callable[..., str]] = {
    "neg": _plain("fneg double {0}"),
    "add": _plain("fadd double {0}, {1}"),
    "sub": _plain("fsub double {0}, {1}"),
    "mul": _plain("fmul double {0}, {1}"),
    "div": _plain("fdiv double {0}, {1}"),
    "abs": _plain("call double @llvm.fabs.f64(double {0})"),
    "atan2": _plain("call double @fsm_atan2(double {0}, double {1})"),
    "sign": _sign,
    "mod": _mod,
    "min": _extremum("olt"),
    "max": _extremum("ogt"),
    **{name: _plain(f"call double @fsm_{name}(double {{0}})") for name in OF_ONE},
    **{name: _plain(f"call double @llvm.{name}.f64(double {{0}})") for name in _INTRINSICS if name != "fabs"},
}
