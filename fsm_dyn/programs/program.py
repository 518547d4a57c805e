"""Straight-line programs: frozen lists of operations from nodes, their order, and their stored form."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.files import convert, stored_type
from fsm_dyn.core.records import dataclass
from fsm_dyn.programs.graph import CONSTANT, OPERATIONS, SYMBOL, ExpressionGraph, Node
from fsm_dyn.programs.traversal import rebuild

TIME = "t"
LONGEST_NAME = 200
_NAME = re.compile(r"[^\W\d][\w.\-\[\]]*")


@dataclass(frozen=True)
class Layout:
    """The arguments of the kernels of one model: ``void kernel(double t, const double *x, const double *c, ...)``.

    ``x = [q | u]`` is the state, ``c = [p | w | w' | w'' | sigma | memory | w''']`` the context: parameters, inputs,
    their rates (the third for the rates of forces), a slip direction per contact, memory values.  SI units. Raises
    InputError: a name is malformed or stands for two arguments.
    """

    # q, u: coordinates and generalized speeds
    q: tuple[str, ...] = ()
    u: tuple[str, ...] = ()
    p: tuple[str, ...] = ()  # parameters; vectors are flattened (``lip[0]``)
    w: tuple[str, ...] = ()  # inputs; their rates are the symbols ``<w>.rate``, ``<w>.rate2`` and ``<w>.rate3``
    contacts: tuple[str, ...] = ()  # contacts; their slip directions are the symbols ``<contact>.sigma``
    memory: tuple[str, ...] = ()  # discrete variables of user-defined transitions

    def __post_init__(self) -> None:
        for field in fields(self):
            names = tuple(getattr(self, field.name))
            object.__setattr__(self, field.name, names)
            for name in names:
                if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
                    raise InputError(f"malformed name in '{field.name}' of a layout", found=repr(name)[:LONGEST_NAME])
        seen: set[str] = set()
        for name in self.arguments:
            if name in seen:
                raise InputError(f"the name '{name}' stands for two arguments", remedy="rename one of them")
            seen.add(name)

    @cached_property
    def x(self) -> tuple[str, ...]:
        """Names of the entries of the state ``x``."""
        return self.q + self.u

    @cached_property
    def c(self) -> tuple[str, ...]:
        """Names of the entries of the context ``c``."""
        rates = tuple(f"{name}.rate" for name in self.w) + tuple(f"{name}.rate2" for name in self.w)
        third = tuple(f"{name}.rate3" for name in self.w)
        return self.p + self.w + rates + tuple(f"{name}.sigma" for name in self.contacts) + self.memory + third

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """All symbol names in order: ``t``, then ``x``, then ``c``."""
        return (TIME, *self.x, *self.c)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Symbol name to its position in :attr:`arguments`."""
        return {name: i for i, name in enumerate(self.arguments)}

    @property
    def n_x(self) -> int:
        """Length of the state."""
        return len(self.q) + len(self.u)

    @property
    def n_c(self) -> int:
        """Length of the context."""
        return len(self.p) + 4 * len(self.w) + len(self.contacts) + len(self.memory)

    @property
    def q_slice(self) -> slice:
        """Coordinates in ``x``."""
        return slice(0, len(self.q))

    @property
    def u_slice(self) -> slice:
        """Generalized speeds in ``x``."""
        return slice(len(self.q), self.n_x)

    @property
    def p_slice(self) -> slice:
        """Parameters in ``c``."""
        return slice(0, len(self.p))

    @property
    def w_slice(self) -> slice:
        """Inputs in ``c``."""
        return slice(len(self.p), len(self.p) + len(self.w))

    @property
    def w_rate_slice(self) -> slice:
        """First rates of the inputs in ``c``."""
        return slice(self.w_slice.stop, self.w_slice.stop + len(self.w))

    @property
    def w_rate2_slice(self) -> slice:
        """Second rates of the inputs in ``c``."""
        return slice(self.w_rate_slice.stop, self.w_rate_slice.stop + len(self.w))

    @property
    def sigma_slice(self) -> slice:
        """Slip directions in ``c``."""
        return slice(self.w_rate2_slice.stop, self.w_rate2_slice.stop + len(self.contacts))

    @property
    def memory_slice(self) -> slice:
        """Memory values in ``c``."""
        return slice(self.sigma_slice.stop, self.sigma_slice.stop + len(self.memory))

    @property
    def w_rate3_slice(self) -> slice:
        """Third rates of the inputs in ``c``."""
        return slice(self.memory_slice.stop, self.n_c)

    def position(self, name: str) -> int:
        """Return the position of a symbol in :attr:`arguments`. Raises InputError: there is no such argument."""
        place = self.positions.get(name)
        if place is None:
            raise InputError(f"'{name}' is not an argument of the kernels", remedy=did_you_mean(name, self.arguments))
        return place

    def to_data(self) -> dict[str, list[str]]:
        """Return plain lists by field name."""
        return {field.name: list(getattr(self, field.name)) for field in fields(self)}


# -- Instruction lists from nodes: dead code removed, in an order suited to registers ------------------------

CALLS = frozenset(op for op, operation in OPERATIONS.items() if operation.kind == "trig") | frozenset(
    {"pow", "exp", "log", "sinh", "cosh", "tanh", "mod"}
)


def order_instructions(
    layout: Layout, outputs: Sequence[Node | float]
) -> tuple[tuple[float, ...], tuple[tuple[str, tuple[int, ...]], ...], tuple[int, ...]]:
    """Return constants, instructions and the indices of `outputs`, numbered as in a program.

    Calls of library functions destroy all vector registers, so calls (mostly sines and cosines of coordinates) come
    first; the rest follows in the order of demand by the outputs. ``layout``: the arguments, numbered first. Raises
    InputError: a symbol is not an argument of the layout.
    """
    counts = Counter(outputs)  # of large matrices most entries are the same zero
    order = _order([entry for entry in counts if isinstance(entry, Node)])
    uses: Counter[Node | float] = Counter(operand for node in order for operand in node.operands)
    uses.update(counts)
    spelled = [(node, *_spelling(node, uses)) for node in order if node.operands]
    skipped = {node.operands[0] for node, op, _ in spelled if node.op == "neg" and op != "neg"}
    spelled = [entry for entry in spelled if entry[0] not in skipped]

    index: dict[Node | float, int] = {
        node: layout.position(node.name) for node in order if node.op == SYMBOL and node not in skipped
    }
    constants: dict[float, int] = {}
    first = len(layout.arguments)

    def place(entry: Node | float) -> int:
        value = entry.constant_value if isinstance(entry, Node) else float(entry) + 0.0
        if value is None:
            return index[entry]
        return constants.setdefault(value, first + len(constants))

    for _, _, operands in spelled:
        for operand in operands:
            if not isinstance(operand, Node) or operand.op == CONSTANT:
                place(operand)
    for entry in counts:
        if not isinstance(entry, Node) or entry.op == CONSTANT:
            place(entry)
    instructions = []
    for node, op, operands in spelled:
        instructions.append((op, tuple([place(operand) for operand in operands])))
        index[node] = first + len(constants) + len(instructions) - 1
    places = {entry: place(entry) for entry in counts}
    return tuple(constants), tuple(instructions), tuple(map(places.__getitem__, outputs))


def _spelling(node: Node, uses: Counter[Node | float]) -> tuple[str, tuple[Node | float, ...]]:
    """Write ``-(a - b)`` as ``b - a`` and ``-(c + a)`` as ``-c - a`` if the inner sum has no other use."""
    if node.op == "neg" and uses[node.operands[0]] == 1:
        inner = node.operands[0]
        if inner.op == "sub":
            return "sub", (inner.operands[1], inner.operands[0])
        if inner.op == "add" and inner.operands[0].constant_value is not None:
            return "sub", (-inner.operands[0].constant_value, inner.operands[1])
    return node.op, node.operands


def _order(outputs: Sequence[Node]) -> list[Node]:
    """Return all nodes below `outputs`, operands first: those needed by calls, then by demand of the outputs."""
    below: list[Node] = _by_demand(outputs, set())
    placed: set[Node] = set()
    early = _by_demand([node for node in below if node.op in CALLS], placed)
    return early + _by_demand(outputs, placed)


def _by_demand(outputs: Iterable[Node], placed: set[Node]) -> list[Node]:
    """Return the nodes below `outputs` not yet `placed`, in depth-first postorder; adds them to `placed`."""
    order: list[Node] = []
    for output in outputs:
        stack = [(output, iter(output.operands))] if output not in placed else []
        placed.add(output)
        while stack:
            node, operands = stack[-1]
            for operand in operands:
                if operand not in placed:
                    placed.add(operand)
                    stack.append((operand, iter(operand.operands)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order


# -- Validating reader of stored programs: every size, index and operation is checked ------------------------

FORMAT: Literal[1] = 1
MOST_VALUES = 2_000_000
MOST_ARGUMENTS = 100_000
MOST_OUTPUTS = 1_000_000
MOST_AXES = 8

Instruction: TypeAlias = tuple[str, tuple[int, ...]]
_Number = Annotated[int, Meta(ge=0)]
_Names = Annotated[tuple[str, ...], Meta(max_length=MOST_ARGUMENTS)]
_LENGTHS = {name: operation.arity + 1 for name, operation in OPERATIONS.items()}


class Output(NamedTuple):
    """A named result: the indices of its entries (row-major) among the values of the program."""

    name: Annotated[str, Meta(max_length=200)]
    shape: Annotated[tuple[Annotated[int, Meta(ge=0, le=MOST_OUTPUTS)], ...], Meta(max_length=MOST_AXES)]
    indices: Annotated[tuple[_Number, ...], Meta(max_length=MOST_OUTPUTS)]


if TYPE_CHECKING:
    StoredLayout: TypeAlias = Any
else:
    StoredLayout = stored_type(Layout, {tuple[str, ...]: _Names})


@functools.lru_cache(maxsize=4)  # all programs of an automaton have one
def _layout(stored: StoredLayout) -> Layout:
    return Layout(**msgspec.structs.asdict(stored))


class StoredProgram(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program as it is stored; an instruction is a list of an operation and the numbers of its operands."""

    format: Literal[1]
    layout: StoredLayout
    constants: Annotated[tuple[float, ...], Meta(max_length=MOST_VALUES)]
    instructions: Annotated[
        tuple[Annotated[tuple[str | _Number, ...], Meta(min_length=1)], ...], Meta(max_length=MOST_VALUES)
    ]
    outputs: Annotated[tuple[Output, ...], Meta(max_length=MOST_OUTPUTS)]

    def checked(self) -> tuple[Layout, tuple[float, ...], tuple[Instruction, ...], tuple[Output, ...]]:
        """Return layout, constants, instructions and results, of which every operand is computed before it is read.

        Raises InputError: they do not hold together.
        """
        layout = _layout(self.layout)
        if not all(map(math.isfinite, self.constants)):
            raise _refusal("a constant is not finite", "")
        known = len(layout.arguments) + len(self.constants)
        instructions: list[Any] = []
        for row in self.instructions:
            op, operands = row[0], row[1:]
            if _LENGTHS.get(op) != len(row):  # type: ignore[arg-type]
                raise _refusal(
                    "unknown operation, or not with so many operands", row, did_you_mean(str(op)[:40], OPERATIONS)
                )
            for operand in operands:
                if type(operand) is not int or operand >= known:
                    raise _refusal(f"an operand is to be the number of a value computed before, below {known}", row)
            instructions.append((op, operands))
            known += 1
        total = 0
        for output in self.outputs:
            total += len(output.indices)
            if math.prod(output.shape) != len(output.indices) or max(output.indices, default=0) >= known:
                raise _refusal("an output does not fit its shape, or holds what is not computed", output.name)
        if len({output.name for output in self.outputs}) < len(self.outputs) or total > MOST_OUTPUTS:
            raise _refusal("outputs of one name, or too many", total)
        return layout, self.constants, tuple(instructions), self.outputs


def _refusal(what: str, found: object, remedy: str = "") -> InputError:
    return InputError(f"stored program: {what}", found=repr(found)[:200], remedy=remedy)


# -- Straight-line programs ----------------------------------------------------------------------------------
#
# Straight-line programs: frozen lists of operations, the form in which models are stored, run and exported.

Only: TypeAlias = Mapping[str, Sequence[int] | None]  # names of outputs and which rows of each, None for all


class Counts(NamedTuple):
    """Numbers of operations.

    Changes of sign are free: they vanish into a neighbouring sum or product.  Comparisons, selections, roots
    and other functions are `other`; sine, cosine, tangent and their inverses are `trig`.
    """

    multiply: int
    add: int
    divide: int
    trig: int
    other: int
    total: int

    @property
    def multiply_divide(self) -> int:
        """Products and quotients together, as Autolev's tables count them."""
        return self.multiply + self.divide


@dataclass(frozen=True)
class Program:
    """A straight-line program: data only, no code.

    Its values are numbered: first the arguments of `layout` (``t``, ``x``, ``c``), then the constants, then the
    results of the instructions, each of which reads values with smaller numbers.

    Attributes
    ----------
    layout : Layout
        The arguments.
    constants : tuple of float
    instructions : tuple of (str, tuple of int)
        Operation and the numbers of its operands.
    results : tuple of Output
        The named outputs in order.
    """

    layout: Layout
    constants: tuple[float, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[Output, ...]

    @classmethod
    def from_nodes(cls, layout: Layout, outputs: Mapping[str, Any]) -> Program:
        """Make a program for `outputs`, without superfluous instructions.

        Parameters
        ----------
        layout : Layout
            Must have every symbol of the outputs.
        outputs : mapping of str to array-like of Node or float
            Name to a node, a number, or (nested) sequences or an object array of them, all of one graph.

        Raises
        ------
        InputError
            A symbol is not an argument, or an output is ragged or holds something else.
        """
        arrays = {name: _object_array(name, value) for name, value in outputs.items()}
        flat: list[Node | float] = [entry for array in arrays.values() for entry in array.ravel()]
        constants, instructions, indices = order_instructions(layout, flat)
        results, start = [], 0
        for name, array in arrays.items():
            results.append(Output(name, array.shape, indices[start : start + array.size]))
            start += array.size
        return cls(layout, constants, instructions, tuple(results))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Symbol names in the order of the kernel's arguments."""
        return self.layout.arguments

    @cached_property
    def outputs(self) -> dict[str, tuple[int, ...]]:
        """Names of the outputs with their shapes, in order."""
        return {output.name: output.shape for output in self.results}

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Position of each output in the kernel's result."""
        slices, start = {}, 0
        for output in self.results:
            slices[output.name] = slice(start, start + len(output.indices))
            start += len(output.indices)
        return slices

    @property
    def size(self) -> int:
        """Number of values written by the kernel."""
        return sum(len(output.indices) for output in self.results)

    @property
    def first_instruction(self) -> int:
        """Number of the first instruction's value."""
        return len(self.layout.arguments) + len(self.constants)

    def nodes(self, graph: ExpressionGraph) -> tuple[dict[str, Node], dict[str, npt.NDArray[np.object_]]]:
        """Rebuild the program in `graph`.

        Returns
        -------
        symbols : dict of str to Node
            All arguments.
        outputs : dict of str to object array of Node
            With the shapes of the outputs.
        """
        symbols = {name: graph.symbol(name) for name in self.arguments}
        values = [*symbols.values(), *map(graph.constant, self.constants)]
        for op, operands in self.instructions:
            values.append(rebuild(graph, op, [values[i] for i in operands]))
        outputs = {}
        for output in self.results:
            array = np.empty(len(output.indices), dtype=object)
            array[:] = [values[i] for i in output.indices]
            outputs[output.name] = array.reshape(output.shape)
        return symbols, outputs

    def graph(self) -> tuple[ExpressionGraph, dict[str, Node], dict[str, npt.NDArray[np.object_]]]:
        """Rebuild the program in a new graph; see :meth:`nodes`."""
        graph = ExpressionGraph()
        return graph, *self.nodes(graph)

    def evaluate(
        self,
        t: npt.ArrayLike,
        x: npt.ArrayLike,
        c: npt.ArrayLike,
        only: Only | None = None,
    ) -> dict[str, Floats]:
        """Evaluate by NumPy: the readable cross-check of the kernels, and the way to do many states at once.

        Parameters
        ----------
        t : array-like, shape (...,)
        x : array-like, shape (..., n_x)
        c : array-like, shape (..., n_c)
            Leading axes are broadcast.
        only : mapping of str to (sequence of int or None), optional
            Return these outputs alone, and of each the rows listed, None for all; the rest is not computed.

        Returns
        -------
        dict of str to ndarray, shape (..., *shape of the output)

        Raises
        ------
        InputError
            The last axis of `x` or `c` has another length.
        """
        time, state, context = (np.asarray(value, dtype=np.float64) for value in (t, x, c))
        for name, array, length in (("x", state, self.layout.n_x), ("c", context, self.layout.n_c)):
            if array.ndim == 0 or array.shape[-1] != length:
                raise InputError(f"'{name}' has the wrong shape", found=str(array.shape), allowed=f"(..., {length})")
        if only is not None:
            key = tuple((name, None if rows is None else tuple(rows)) for name, rows in only.items())
            if key not in self._parts:
                self._parts[key] = self.part(only)
            return self._parts[key].evaluate(time, state, context)
        lead = np.broadcast_shapes(time.shape, state.shape[:-1], context.shape[:-1])
        values: list[Any]
        with np.errstate(all="ignore"):
            if lead:
                values = [time, *_by_column(state), *_by_column(context), *self.constants]
                for k, (op, operands) in enumerate(self.instructions):
                    values.append(OPERATIONS[op].array(*[values[i] for i in operands]))
                    for i in self._dying[k]:
                        values[i] = None
            else:
                values = [float(time), *state.tolist(), *context.tolist(), *self.constants]
                for op, operands in self.instructions:
                    values.append(_ON_NUMBERS[op](*[values[i] for i in operands]))
        return {output.name: _stack([values[i] for i in output.indices], lead, output.shape) for output in self.results}

    def part(self, only: Only) -> Program:
        """Return the program for some outputs, or some of their rows, without superfluous instructions."""
        first, wanted = self.first_instruction, []
        for output in self.results:
            if output.name in only:
                table = np.array(output.indices, dtype=np.int64).reshape(output.shape)
                rows = only[output.name]
                wanted.append((output.name, table if rows is None else table[list(rows)]))
        # from the outputs on: the work is that of the part, which may be a small one of a large program
        ahead = {int(i) for _, table in wanted for i in table.ravel()}
        needed, left = set[int](), [i for i in ahead if i >= first]
        while left:
            i = left.pop()
            if i not in needed:
                needed.add(i)
                left += [j for j in self.instructions[i - first][1] if j >= first]
        order = sorted(needed)
        number = {i: first + k for k, i in enumerate(order)}
        instructions = tuple(
            (op, tuple(number.get(j, j) for j in operands))
            for op, operands in (self.instructions[i - first] for i in order)
        )
        results = tuple(
            Output(name, table.shape, tuple(number.get(i, i) for i in table.ravel().tolist())) for name, table in wanted
        )
        return Program(self.layout, self.constants, instructions, results)

    def used_arguments(self) -> frozenset[str]:
        """Return the names of the arguments on which an output may depend."""
        arguments = self.layout.arguments
        used = {i for _, operands in self.instructions for i in operands if i < len(arguments)}
        used |= {i for output in self.results for i in output.indices if i < len(arguments)}
        return frozenset(arguments[i] for i in used)

    @cached_property
    def _parts(self) -> dict[tuple[tuple[str, tuple[int, ...] | None], ...], Program]:
        """Programs of some outputs, by these and their rows."""
        return {}

    @cached_property
    def _dying(self) -> list[list[int]]:
        """For each instruction the values not read after it, so batches need little memory."""
        last: dict[int, int] = {}
        for k, (_, operands) in enumerate(self.instructions):
            for i in operands:
                last[i] = k
        for output in self.results:
            for i in set(output.indices):
                last.pop(i, None)
        dying: list[list[int]] = [[] for _ in self.instructions]
        for i, k in last.items():
            dying[k].append(i)
        return dying

    def can_differ_from_zero(self, name: str) -> Booleans:
        """Return a mask of the entries of output `name` other than the constant zero, in its shape."""
        first = len(self.layout.arguments)
        zeros = [first + i for i, value in enumerate(self.constants) if value == 0.0]
        output = next(output for output in self.results if output.name == name)
        return ~np.isin(np.array(output.indices, dtype=np.int64), zeros).reshape(output.shape)

    def counts(self) -> Counts:
        """Count the operations, as they are written (a square counts as one product)."""
        tally = {"multiply": 0, "add": 0, "divide": 0, "trig": 0, "other": 0, "free": 0}
        for op, _ in self.instructions:
            tally[OPERATIONS[op].kind] += 1
        del tally["free"]
        return Counts(**tally, total=sum(tally.values()))

    def to_data(self) -> dict[str, Any]:
        """Return the program as plain lists, numbers and texts, fit for JSON."""
        return {
            "format": FORMAT,
            "layout": self.layout.to_data(),
            "constants": list(self.constants),
            "instructions": [[op, *operands] for op, operands in self.instructions],
            "outputs": [[output.name, list(output.shape), list(output.indices)] for output in self.results],
        }

    @classmethod
    def from_data(cls, data: object) -> Program:
        """Return the program from the result of :meth:`to_data`. The data are not trusted: everything is checked.

        Raises
        ------
        InputError
            The data are not a program: an unknown operation, an operand not computed yet, a nonfinite constant, a size
            beyond bounds, an additional key.
        """
        return cls.from_stored(convert(data, StoredProgram, "a stored program"))

    @classmethod
    def from_stored(cls, stored: StoredProgram) -> Program:
        """Return the program from its stored form; raise InputError if the form is inconsistent."""
        return cls(*stored.checked())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the stored form, in hexadecimal: equal exactly for equal programs."""
        text = json.dumps(self.to_data(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _on_numbers(function: Callable[..., Any]) -> Callable[..., float]:
    return lambda *operands: float(function(*operands))


#: Operations on single numbers, to the bits of those on arrays: arithmetic takes a fifth of their time.
_ON_NUMBERS: dict[str, Callable[..., float]] = {
    op: _on_numbers(operation.array) for op, operation in OPERATIONS.items()
} | {"neg": operator.neg, "add": operator.add, "sub": operator.sub, "mul": operator.mul}


def _object_array(name: str, value: Any) -> npt.NDArray[np.object_]:
    """Return an output as an array of nodes and finite floats."""
    array = np.array(value, dtype=object)
    entries = array.ravel().tolist()
    for entry in dict(zip(map(id, entries), entries, strict=True)).values():
        if isinstance(entry, Node):
            continue
        if isinstance(entry, (list, tuple, np.ndarray)):
            raise InputError(f"the output '{name}' is ragged", found=f"a row of length {len(entry)}")
        if not isinstance(entry, (int, float, np.number)) or not math.isfinite(entry):
            raise InputError(f"the output '{name}' holds neither a node nor a finite number", found=repr(entry))
    return array


def _by_column(array: Floats) -> Floats:
    """Return a table with its last axis first; ``np.moveaxis`` takes ten times as long."""
    last = array.ndim - 1
    return array.transpose(last, *range(last))


def _stack(entries: Sequence[Any], lead: tuple[int, ...], shape: tuple[int, ...]) -> Floats:
    """Stack scalars or arrays, broadcast to `lead`, into one array of shape ``(*lead, *shape)``.

    An entry is contiguous in memory for any number of states: scattered entries cost six times as much.
    """
    if not lead:
        return np.array(entries, dtype=np.float64).reshape(shape)
    result = np.empty((len(entries), *lead), dtype=np.float64)
    for i, entry in enumerate(entries):
        result[i] = entry
    n = len(shape)
    axes = (*range(n, n + len(lead)), *range(n))
    return result.reshape((*shape, *lead)).transpose(axes) if shape else result[0]
