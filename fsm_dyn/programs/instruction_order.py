"""Instruction lists from nodes: dead code removed, in an order that suits registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fsm_dyn.programs.expression_graph import CONSTANT, SYMBOL, Node
from fsm_dyn.programs.layout import Layout
from fsm_dyn.programs.operations import OPERATIONS

CALLS = frozenset(op for op, operation in OPERATIONS.items() if operation.kind == "trig") | frozenset(
    {"pow", "exp", "log", "sinh", "cosh", "tanh", "mod"}
)


def order_instructions(
    layout: Layout, outputs: Sequence[Node | float]
) -> tuple[tuple[float, ...], tuple[tuple[str, tuple[int, ...]], ...], tuple[int, ...]]:
    """Return constants, instructions and the indices of `outputs`, numbered as in a program.

    Calls of library functions destroy all vector registers, so what is called (mostly sines and cosines of
    coordinates) comes first; the rest follows in the order in which the outputs ask for it.

    Parameters
    ----------
    layout : Layout
        The arguments, which are numbered first.

    Raises
    ------
    InputError
        A symbol is not an argument of the layout.
    """
    order = _order([entry for entry in outputs if isinstance(entry, Node)])
    uses = Counter(operand for node in order for operand in node.operands)
    uses.update(entry for entry in outputs if isinstance(entry, Node))
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
    for entry in outputs:
        if not isinstance(entry, Node) or entry.op == CONSTANT:
            place(entry)
    instructions = []
    for node, op, operands in spelled:
        instructions.append((op, tuple([place(operand) for operand in operands])))
        index[node] = first + len(constants) + len(instructions) - 1
    return tuple(constants), tuple(instructions), tuple(place(entry) for entry in outputs)


def _spelling(node: Node, uses: Counter[Node]) -> tuple[str, tuple[Node | float, ...]]:
    """Write ``-(a - b)`` as ``b - a`` and ``-(c + a)`` as ``-c - a`` where the inner sum has no other use."""
    if node.op == "neg" and uses[node.operands[0]] == 1:
        inner = node.operands[0]
        if inner.op == "sub":
            return "sub", (inner.operands[1], inner.operands[0])
        if inner.op == "add" and inner.operands[0].constant_value is not None:
            return "sub", (-inner.operands[0].constant_value, inner.operands[1])
    return node.op, node.operands


def _order(outputs: Sequence[Node]) -> list[Node]:
    """Return all nodes below `outputs`, operands first: those that calls need, then by demand of the outputs."""
    below: list[Node] = _by_demand(outputs, set())
    placed: set[Node] = set()
    early = _by_demand([node for node in below if node.op in CALLS], placed)
    return early + _by_demand(outputs, placed)


def _by_demand(outputs: Iterable[Node], placed: set[Node]) -> list[Node]:
    """Return what is below `outputs` and not yet `placed` in depth-first postorder; adds it to `placed`."""
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
