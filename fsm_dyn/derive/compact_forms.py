"""Compact forms of the equations of one mode, for reading and for small processors; runs keep their own programs.

Expanding everything makes equations longer and less exact: four_bar with its dependent speeds substituted has more than
5,000 terms. Therefore each quantity of a mode (an entry of M̃, r̃, D, c, q̇) keeps its form unless another one makes the
whole shorter. Other forms are fractions of polynomials in symbols, sines and cosines, cancelled by common divisors and
``sin² + cos² = 1``, factored, and written by Horner's rule with shared parts. All bounds are numbers of tries and
terms, never of seconds, so that the text is the same on every machine.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from fsm_dyn.derive.elimination import solve_symmetric
from fsm_dyn.derive.fractions import MOST_WRITTEN, Cost, Fractions, Polynomial, Ratio, TooManyTermsError, Writer
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import reachable, rebuild, substitute

SEED: Final = 20030818
TRIES: Final = 200  # orders of variables in Horner's rule
PREFERENCE: Final = 5.0  # logarithm of the weight of parameters, or of all others, in two thirds of the tries
LONGEST_OF_ONE_FREEDOM: Final = 120  # operations; longer modes of one freedom gained nothing by other forms
LONGEST: Final = 260  # operations of a mode of more freedoms
SWEEPS: Final = 2
CHECKED_STATES: Final = 64
LARGEST_DIFFERENCE: Final = 1e-9  # of the largest value of a state

# -- Quantities of a mode ------------------------------------------------------------------------------------

Key = tuple[Any, ...]
Forms = dict[Key, Node]


@dataclass(frozen=True)
class ModeQuantities:
    """The quantities by which the outputs of a mode are computed, at one level of substitution.

    Attributes
    ----------
    graph : ExpressionGraph
    nodes : dict
        Nodes of ``("M", a, b)``, ``("r", a)``, ``("D", j, a)``, ``("c", j)``, ``("q_dot", i)`` on the rows.
    others : dict
        Nodes of further outputs by ``(name, place)``, in which no speed is substituted.
    kept : dict of Node to (key, Node)
        Symbols kept instead of a dependent speed or an entry of D, E and c, with their definitions, in order.
    independent, dependent : tuple of int
        Places of speeds; both empty if no accelerations are asked for.
    symmetric : bool
        Whether M̃ is: no contact slides with friction.
    """

    graph: ExpressionGraph
    nodes: Forms
    others: Forms
    kept: dict[Node, tuple[Key, Node]] = field(default_factory=dict)
    independent: tuple[int, ...] = ()
    dependent: tuple[int, ...] = ()
    symmetric: bool = True

    @property
    def defined(self) -> Forms:
        """All quantities, definitions of kept symbols included."""
        return self.nodes | self.others | dict(self.kept.values())

    def solved(self, chosen: Mapping[Key, Node]) -> Forms:
        """Return the outputs for chosen forms of the quantities.

        Parameters
        ----------
        chosen : mapping of key to Node
            Forms that differ from :attr:`defined`; ``("x", 0)`` is the acceleration of a single freedom.
        """
        forms = {**self.defined, **chosen}
        outputs = {key: forms[key] for key in self.nodes if key[0] == "q_dot"}
        rates = self._accelerations(forms) if self.independent else []
        outputs |= {("u_dot", i): rates[a] for a, i in enumerate(self.independent)}
        for j in self.dependent:
            shares = (forms["D", j, a] * rate for a, rate in enumerate(rates))
            outputs["u_dot", j] = _total([forms["c", j], *shares], self.graph)
        if self.kept and outputs:
            done: dict[Node, Node] = {}
            for symbol, (key, _) in self.kept.items():
                done[symbol] = substitute([forms[key]], done)[0] if done else forms[key]
            outputs = dict(zip(outputs, substitute(list(outputs.values()), done), strict=True))
        return outputs | {key: forms[key] for key in self.others}

    def _accelerations(self, forms: Mapping[Key, Node]) -> list[Node]:
        p = range(len(self.independent))
        if ("x", 0) in forms:
            return [forms["x", 0]]
        r = [forms["r", a] for a in p]
        if self.symmetric and len(p) > 1:
            return solve_symmetric([[forms["M", min(a, b), max(a, b)] for b in p] for a in p], r)[0]
        M = [[forms["M", a, b] for b in p] for a in p]
        match len(p):
            case 1:
                return [r[0] / M[0][0]]
            case 2:
                below = M[0][0] * M[1][1] - M[0][1] * M[1][0]
                return [(r[0] * M[1][1] - r[1] * M[0][1]) / below, (r[1] * M[0][0] - r[0] * M[1][0]) / below]
        raise TooManyTermsError


def quantities(matrices: Program, independent: Sequence[int], others: Mapping[Key, Node], level: int) -> ModeQuantities:
    """Return the quantities of the accelerations of a mode, and of its further outputs.

    Parameters
    ----------
    matrices : Program
        :func:`fsm_dyn.derive.mode_programs.mode_matrices`.
    independent : sequence of int
        Places of the independent speeds.
    others : mapping
        Further outputs as nodes of any graph, by ``(name, place)``.
    level : int
        0: dependent speeds are substituted by ``D u_I + E``; 1: they stay symbols; 2: the entries of D, E and c too.
    """
    graph, symbols, known = matrices.graph()
    u = [symbols[name] for name in matrices.layout.u]
    n, free = len(u), tuple(independent)
    dependent = tuple(j for j in range(n) if j not in free)
    T, S, M = known["T"], known["S"], known["M"]
    symmetric = all(a is b for a, b in zip(T.ravel(), S.ravel(), strict=True))
    kept: dict[Node, tuple[Key, Node]] = {}
    names: dict[Node, Node] = {}

    def keep(name: str, place: tuple[int, ...], node: Node) -> Node:
        if level < 2 or not node.operands or node.op == "neg":
            return node
        if node not in names:
            names[node] = graph.symbol("_".join(["kept", name, *map(str, place)]))
            kept[names[node]] = ((f"kept {name}", *place), node)
        return names[node]

    D = {(j, a): keep("D", (j, a), T[j, a]) for j in dependent for a in range(len(free))}
    E = {j: keep("E", (j,), known["e"][j]) for j in dependent}
    speeds = {u[j]: _total([E[j], *(D[j, a] * u[i] for a, i in enumerate(free))], graph) for j in dependent}
    if level:
        kept |= {symbol: (("kept u", j), value) for j, (symbol, value) in zip(dependent, speeds.items(), strict=True)}
    c = {j: keep("c", (j,), known["c"][j]) for j in dependent}
    complement = [[D[i, a] if i in dependent else T[i, a] for a in range(len(free))] for i in range(n)]
    test = complement if symmetric else [list(row) for row in S]
    force = [known["f"][i] - _total([M[i, j] * c[j] for j in dependent], graph) for i in range(n)]
    nodes: Forms = {("q_dot", i): node for i, node in enumerate(known["q_dot"])}
    for a in range(len(free)):
        pushed = [_total([test[i][a] * M[i, j] for i in range(n)], graph) for j in range(n)]
        for b in range(a if symmetric else 0, len(free)):
            nodes["M", a, b] = _total([pushed[j] * complement[j][b] for j in range(n)], graph)
        nodes["r", a] = _total([test[i][a] * force[i] for i in range(n)], graph)
    nodes |= {("D", *place): node for place, node in D.items()} | {("c", j): node for j, node in c.items()}
    if not level:
        nodes = dict(zip(nodes, substitute(list(nodes.values()), speeds), strict=True))
    return ModeQuantities(graph, nodes, _copied(others, graph), kept, free, dependent, symmetric)


def _copied(nodes: Mapping[Key, Node], graph: ExpressionGraph) -> Forms:
    """Return nodes rebuilt in a graph."""
    zero = graph.zero
    return dict(zip(nodes, substitute(list(nodes.values()), {zero: zero}), strict=True))


def _total(nodes: Iterable[Node], graph: ExpressionGraph) -> Node:
    total = graph.zero
    for node in nodes:
        total = total + node
    return total


# -- The choice of forms -------------------------------------------------------------------------------------


class FormChoice:
    """Forms of quantities, chosen one by one for fewest operations of all outputs.

    Parameters
    ----------
    quantities : ModeQuantities
    cost : Cost
    whole : bool
        Whether coefficients of parameters alone are kept whole, to be computed once per run.
    """

    def __init__(self, quantities: ModeQuantities, cost: Cost, whole: bool = False) -> None:
        self.quantities, self.cost = quantities, cost
        nodes = quantities.defined
        self._fractions = Fractions([node for node in nodes.values() if node.operands])
        self._ratios = self._converted(nodes)
        self._constants = (
            frozenset(k for k, atom in enumerate(self._fractions.atoms) if cost.is_constant(atom)) if whole else None
        )
        self._factors: dict[Any, list[tuple[Polynomial, int]]] = {}
        self.weights = [1.0] * len(self._fractions.atoms)
        self.forms = self._written(self.weights, list(self._ratios))
        self.used: frozenset[Key] = frozenset()

    def _converted(self, nodes: Forms) -> dict[Key, Ratio]:
        found: dict[Key, Ratio] = {}
        for key, node in nodes.items():
            if not node.operands:
                continue
            try:
                found[key] = self._fractions.ratio(node)
            except TooManyTermsError:
                continue
        whole = dict(found)
        if len(self.quantities.independent) == 1 and ("r", 0) in found and ("M", 0, 0) in found:
            (a, b), (c, d) = found["r", 0], found["M", 0, 0]
            with contextlib.suppress(TooManyTermsError):
                whole["x", 0] = self._fractions.quotient((a, b), (c, d))
        whole = {key: self._fractions.variants(*ratio) for key, ratio in whole.items()}
        return {key: ratio for key, ratio in whole.items() if max(map(len, ratio)) <= MOST_WRITTEN}

    def _written(self, weights: Sequence[float], keys: Iterable[Key]) -> Forms:
        writer = Writer(self._fractions, self.quantities.graph, weights, self._factors, self._constants)
        return {key: writer.ratio(*self._ratios[key]) for key in keys}

    def _total(self, used: Iterable[Key], forms: Forms) -> float:
        return self.cost(self.quantities.solved({key: forms[key] for key in used}).values())

    def descend(self) -> None:
        """Exchange the form of one quantity after the other wherever the whole becomes shorter."""
        best = math.inf, self.used
        for start in (self.used, frozenset(self.forms)):
            used, least = start, self._total(start, self.forms)
            for _ in range(SWEEPS):
                before = used
                for key in self.forms:
                    other = used ^ {key}
                    total = self._total(other, self.forms)
                    if total < least - 1e-9:
                        used, least = other, total
                if used == before:
                    break
            if least < best[0] - 1e-9:
                best = least, used
        self.used = best[1]

    def vary(self, tries: int) -> None:
        """Write the used forms with other orders of the variables, and keep the shortest."""
        if not self.used:
            return
        generator = random.Random(SEED)
        keys = [key for key in self.forms if key in self.used]
        least, best = self._total(keys, self.forms), self.weights
        constant = [self.cost.is_constant(atom) for atom in self._fractions.atoms]
        for k in range(tries):
            first = (None, True, False)[k % 3]  # in no order, parameters first, parameters last
            weights = [
                math.exp(generator.gauss(0.0, 0.7) + (first is not None) * PREFERENCE * (of_run == first))
                for of_run in constant
            ]
            total = self._total(keys, self._written(weights, keys))
            if total < least - 1e-9:
                least, best = total, weights
        self.weights = best
        self.forms = self._written(best, self.forms)

    def outputs(self) -> Forms:
        """Return the outputs of the forms chosen."""
        return with_quotients(self.quantities.solved({key: self.forms[key] for key in self.used}))


def with_quotients(outputs: Forms) -> Forms:
    """Return outputs with ``a / b`` instead of ``a (1 / b)`` wherever the reciprocal has no other use."""
    nodes = list(outputs.values())
    order = reachable(nodes)
    uses = Counter(operand for node in order for operand in node.operands) + Counter(set(nodes))
    new: dict[Node, Node] = {}
    for node in order:
        operands = [new[operand] for operand in node.operands]
        new[node] = node if operands == list(node.operands) else rebuild(node.graph, node.op, operands)
        for a, b in (node.operands, node.operands[::-1]) if node.op == "mul" else ():
            if b.op == "div" and b.operands[0].is_one and uses[b] == 1:
                new[node] = new[a] / new[b.operands[1]]
                break
    return {key: new[node] for key, node in outputs.items()}


def compact_program(today: Program, matrices: Program, independent: Sequence[int], *, once: bool = False) -> Program:
    """Return a program with the outputs of another one and no more operations.

    Parameters
    ----------
    today : Program
        Its output ``u_dot``, if there is one, holds the accelerations of the mode; ``q_dot`` with it is on the rows.
    matrices : Program
        :func:`fsm_dyn.derive.mode_programs.mode_matrices` of the mode.
    independent : sequence of int
        Places of the independent speeds.
    once : bool
        Whether operations on parameters alone count nothing, as they are computed once per run.
    """
    nodes = today.graph()[2]
    present = {(name, place): node for name, array in nodes.items() for place, node in enumerate(array.ravel())}
    best = Cost(today.layout.p, once)(present.values()), today
    for total, outputs in _candidates(today, matrices, independent, present, once):
        if total < best[0] - 1e-9:
            candidate = _program(today, outputs)
            if _agree(today, candidate):
                best = total, candidate
    return best[1]


def _candidates(
    today: Program, matrices: Program, independent: Sequence[int], present: Forms, once: bool
) -> Iterator[tuple[float, Forms]]:
    """Yield other forms of outputs with their cost."""
    parameters = today.layout.p
    quotients = with_quotients(present)
    yield Cost(parameters, once)(quotients.values()), quotients
    rates = "u_dot" in today.outputs
    if today.counts().total > (LONGEST_OF_ONE_FREEDOM if rates and len(independent) == 1 else LONGEST):
        return
    others = {key: node for key, node in present.items() if not rates or key[0] not in ("q_dot", "u_dot")}
    levels = (0, 1, 2) if rates and len(independent) < len(matrices.layout.u) else (0,)
    costs = [Cost(parameters, early) for early in ((False, True) if once else (False,))]
    for level, whole, cost in itertools.product(levels, (False, True), costs):
        found = quantities(matrices, independent, others, level) if rates else _alone(others)
        with contextlib.suppress(TooManyTermsError):
            outputs = _chosen(found, cost, whole)
            yield costs[-1](outputs.values()), outputs


def _alone(others: Forms) -> ModeQuantities:
    graph = ExpressionGraph()
    return ModeQuantities(graph, {}, _copied(others, graph))


def _chosen(found: ModeQuantities, cost: Cost, whole: bool) -> Forms:
    choice = FormChoice(found, cost, whole)
    choice.descend()
    choice.vary(TRIES)
    choice.descend()
    return choice.outputs()


def _program(today: Program, outputs: Forms) -> Program:
    """Return the program of outputs by name and place, in the shapes of another one."""
    arrays = {}
    for name, shape in today.outputs.items():
        array = np.empty(math.prod(shape), dtype=object)
        array[:] = [outputs[name, place] for place in range(len(array))]
        arrays[name] = array.reshape(shape)
    return Program.from_nodes(today.layout, arrays)


def _agree(today: Program, candidate: Program) -> bool:
    """Whether two programs have the same values at seeded states; states without a finite value are left out."""
    generator, layout = np.random.default_rng(SEED), today.layout
    x = generator.uniform(-2.0, 2.0, (CHECKED_STATES, layout.n_x))
    c = generator.uniform(0.3, 1.3, (CHECKED_STATES, layout.n_c))
    right, found = today.evaluate(0.3, x, c), candidate.evaluate(0.3, x, c)
    a, b = (
        np.concatenate([np.reshape(values[name], (CHECKED_STATES, -1)) for name in today.outputs], axis=1)
        for values in (right, found)
    )
    finite = np.isfinite(a).all(axis=1)
    if not finite.any() or not np.isfinite(b[finite]).all():
        return False
    size = np.abs(a[finite]).max(axis=1, keepdims=True) + 1e-300
    return bool((np.abs(a - b)[finite] <= LARGEST_DIFFERENCE * size).all())
