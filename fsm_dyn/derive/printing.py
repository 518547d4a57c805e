"""Programs as SymPy expressions, LaTeX and MathML, for people to read."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.pretty.pretty_symbology import greek_unicode

from fsm_dyn.derive.kinematics import NO_DISTANCE
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.program import Counts, Program
from fsm_dyn.programs.sources import constant_parts
from fsm_dyn.programs.traversal import reachable

# -- SymPy expressions as LaTeX with line breaks -------------------------------------------------------------
#
# TeX breaks a formula behind signs, but neither between ``\left(`` and ``\right)`` nor within a fraction: brackets
# are printed without these, and long fractions as quotients on one line. Names are set as in
# :mod:`fsm_dyn.derive.printing`.

WIDEST_FRACTION: Final = 40  # characters, about half a line
_RATES = {"_dot": r"\dot{%s}", ".rate": r"\dot{%s}", ".rate2": r"\ddot{%s}", ".rate3": r"\dddot{%s}"}
_INDEXED = re.compile(r"([A-Za-z])(\d+|[A-Z]\d*)")  # q1, mB, L12
_BRACKETS = re.compile(r"\\left\(((?:(?!\\left\(|\\right\)).)*?) ?\\right\)")


class _LatexPrinter(LatexPrinter):  # type: ignore[misc] # SymPy has no types
    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:
        return latex_name(expr.name)

    def _print_Mul(self, expr: Any) -> str:
        return self._quotient(expr) or super()._print_Mul(expr)

    def _print_Pow(self, expr: Any) -> str:
        return self._quotient(expr) or super()._print_Pow(expr)

    def _quotient(self, expr: Any) -> str:
        """Return a long fraction on one line; nothing for short fractions and other expressions."""
        numerator, denominator = sympy.fraction(expr)
        if denominator == 1:
            return ""
        above, below = self._print(numerator), self._print(denominator)
        if max(width(above), width(below)) <= WIDEST_FRACTION:
            return ""
        above = rf"\bigl({above}\bigr)" if numerator.is_Add else above
        return rf"{above} \big/ " + (rf"\bigl({below}\bigr)" if denominator.is_Add or denominator.is_Mul else below)


def latex(expression: Any) -> str:
    """Return an expression as LaTeX, to be set between dollar signs."""
    text: str = _LatexPrinter({"mul_symbol": r" \, "}).doprint(expression)
    while found := _BRACKETS.search(text):
        size = ("", "") if r"\frac" not in found[1] else (r"\bigl", r"\bigr")
        text = f"{text[: found.start()]}{size[0]}({found[1]}{size[1]}){text[found.end() :]}"
    return text


def latex_name(name: str) -> str:
    """Return a symbol's name: rates with dots, slip directions as sigma, indices of letters below, words upright."""
    for suffix, pattern in _RATES.items():
        if name.endswith(suffix):
            return pattern % latex_name(name.removesuffix(suffix))
    if name.endswith(".sigma"):
        return rf"\sigma_{{{latex_name(name.removesuffix('.sigma'))}}}"
    if indexed := _INDEXED.fullmatch(name):
        return f"{indexed[1]}_{{{indexed[2]}}}"
    base, _, index = name.partition("_")
    if len(base) > 1 and base not in greek_unicode:
        return rf"\mathrm{{{escaped(name)}}}"
    letter: str = sympy.latex(sympy.Symbol(base))
    return rf"{letter}_{{\mathrm{{{escaped(index)}}}}}" if index else letter


def escaped(text: str) -> str:
    """Return text with LaTeX's special characters escaped."""
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    words = {"ω": r"$\omega$", "σ": r"$\sigma$", "·": r"$\cdot$", "²": r"\textsuperscript{2}", "μ": r"$\mu$"}
    found = re.sub(r"[\\^~#$%&_{}]", lambda match: special.get(match[0], "\\" + match[0]), text)
    return re.sub("[ωσ·²μ]", lambda match: words[match[0]], found)


def width(text: str) -> int:
    """Return about how many characters a formula is wide."""
    plain = re.sub(r"\\(?:left|right|mathrm|mathbf|dot|d?ddot|tilde|bigl|bigr|frac|,|_)|[{}_^\s]", "", text)
    return len(re.sub(r"\\(?!sin|cos|tan|min|max)[a-z]+", "x", plain))


# -- Programs as sympy expressions and LaTeX, for reading; no code is generated from them --------------------

RATES = "x_dot"  # the output with the rates of all states
LARGEST_DENOMINATOR = 1000  # of a double printed as a fraction

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "neg": lambda a: -a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": sympy.Pow,
    "sqrt": sympy.sqrt,
    "exp": sympy.exp,
    "log": sympy.log,
    "sin": sympy.sin,
    "cos": sympy.cos,
    "tan": sympy.tan,
    "asin": sympy.asin,
    "acos": sympy.acos,
    "atan": sympy.atan,
    "atan2": sympy.atan2,
    "sinh": sympy.sinh,
    "cosh": sympy.cosh,
    "tanh": sympy.tanh,
    "abs": sympy.Abs,
    "sign": sympy.sign,
    "floor": sympy.floor,
    "mod": sympy.Mod,
    "min": sympy.Min,
    "max": sympy.Max,
}
_RELATIONS: dict[str, Callable[..., Any]] = {"lt": sympy.Lt, "le": sympy.Le, "eq": sympy.Eq, "ne": sympy.Ne}
_LOGIC: dict[str, Callable[..., Any]] = {"and": sympy.And, "or": sympy.Or, "not": sympy.Not}


@dataclass(frozen=True)
class Equations:
    """A program in readable form; printed as text, shown as LaTeX in a notebook.

    Attributes
    ----------
    definitions : tuple of (Symbol, expression)
        Intermediate symbols in the order of their use; empty if expanded.
    results : dict of str to expression or matrix
        By the names of the outputs: scalars, column matrices, matrices.
    states : tuple of str
        Names of the coordinates and speeds, in the order of their rates in the output ``x_dot``.
    counts : Counts
        Operations of the program itself.
    once : tuple of (Symbol, expression)
        Intermediate symbols that parameters alone give, for one computation per run; before :attr:`definitions`. Empty
        unless asked for.
    """

    definitions: tuple[tuple[sympy.Symbol, sympy.Expr], ...]
    results: Mapping[str, Any]
    states: tuple[str, ...]
    counts: Counts
    once: tuple[tuple[sympy.Symbol, sympy.Expr], ...] = ()

    @property
    def rates(self) -> dict[str, sympy.Expr]:
        """The rate of each coordinate and speed, if the program has the output ``x_dot``."""
        return dict(zip(self.states, self.results[RATES], strict=True)) if RATES in self.results else {}

    def latex(self) -> str:
        """Return one aligned equation per line, intermediate symbols first."""
        lines = self._lines()
        rows = [f"{pattern % latex_name(name)} &= {latex(value)}" for pattern, name, value in lines]
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def _lines(self) -> list[tuple[str, str, Any]]:
        """Return (pattern for the left side, its name, the right side) of every equation."""
        first = (*self.once, *self.definitions)
        lines: list[tuple[str, str, Any]] = [("%s", symbol.name, value) for symbol, value in first]
        lines += [(r"\dot{%s}", name, value) for name, value in self.rates.items()]
        lines += [("%s", name, value) for name, value in self.results.items() if name != RATES]
        return lines

    def __str__(self) -> str:
        lines = [f"{name}{chr(39) if 'dot' in pattern else ''} = {value}" for pattern, name, value in self._lines()]
        c = self.counts
        lines.append(f"{c.multiply} products, {c.divide} quotients, {c.add} sums, {c.trig} sines, {c.other} others")
        return "\n".join(lines)

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


def read_equations(
    program: Program, outputs: Sequence[str] | None = None, *, expand_symbols: bool = False, once: bool = False
) -> Equations:
    """Return a program as sympy expressions.

    Parameters
    ----------
    program : Program
    outputs : sequence of str, optional
        Names of outputs; by default all.
    expand_symbols : bool
        Whether to expand intermediate symbols (``Z1``, ``Z2`` ... for repeated expressions, as in Gillespie 2003,
        (66)); the result can be very long.
    once : bool
        Whether expressions of parameters alone become symbols ``k1``, ``k2`` ... of their own.
    """
    _, _, arrays = program.graph()
    wanted = {name: arrays[name] for name in (outputs if outputs is not None else arrays)}
    nodes = [node for array in wanted.values() for node in array.ravel()]
    constant = constant_parts(nodes, program.layout.p) if once else ()
    definitions, values = _translate(nodes, not expand_symbols, constant)
    results: dict[str, Any] = {}
    for name, array in wanted.items():
        entries = [values[node] for node in array.ravel()]
        if array.ndim == 0:
            results[name] = entries[0]
        else:
            rows = array.shape[0]
            columns = len(entries) // rows if rows else 0
            results[name] = sympy.ImmutableMatrix(rows, columns, entries)
    early = frozenset(values[node] for node in reachable(constant))
    split = [tuple(pair for pair in definitions if (pair[0] in early) is first) for first in (True, False)]
    return Equations(split[1], results, program.layout.x, program.counts(), split[0])


def to_sympy(nodes: Sequence[Node]) -> list[sympy.Expr]:
    """Return nodes as sympy expressions, written out; symbols have the names of the nodes."""
    _, values = read_nodes(nodes)
    return [values[node] for node in nodes]


def read_nodes(
    nodes: Sequence[Node], longest: float = math.inf
) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], dict[Node, Any]]:
    """Return intermediate symbols with their definitions, and nodes with their sympy expressions.

    Parameters
    ----------
    nodes : sequence of Node
    longest : float
        Number of operations, shared ones once; up to it all is written out without intermediate symbols.
    """
    return _translate(nodes, sum(bool(node.operands) for node in reachable(nodes)) > longest)


def _translate(
    nodes: Sequence[Node], intermediate: bool, constant: Sequence[Node] = ()
) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], dict[Node, Any]]:
    """Return intermediate symbols with their definitions, and nodes with their expressions.

    Parameters
    ----------
    intermediate : bool
        Whether parts used repeatedly become symbols ``Z1``, ``Z2`` ...
    constant : sequence of Node
        Parts that become symbols ``k1``, ``k2`` ...
    """
    order = reachable(nodes)
    shared = _shared(order, nodes) if intermediate else frozenset[Node]()
    early = frozenset(constant) | (shared & frozenset(reachable(constant)))
    numbers = {"k": 0, "Z": 0}
    taken = {node.name for node in order}
    values: dict[Node, Any] = {}
    definitions: list[tuple[sympy.Symbol, sympy.Expr]] = []
    for node in order:
        value = _value(node, values)
        if node in shared or node in early:
            letter = "k" if node in early else "Z"
            symbol = _fresh(letter, numbers[letter], taken)
            numbers[letter] += 1
            definitions.append((symbol, value))
            value = symbol
        values[node] = value
    return definitions, values


def _value(node: Node, values: Mapping[Node, Any]) -> Any:
    if node.constant_value is not None:
        return number(node.constant_value)
    if not node.operands:
        return sympy.Symbol(node.name)
    operands = [values[operand] for operand in node.operands]
    if node.op in _ARITHMETIC:
        return _ARITHMETIC[node.op](*operands)
    if node.op == "where":
        return sympy.Piecewise((operands[1], _truth(node.operands[0], values)), (operands[2], True))
    return sympy.Piecewise((1, _truth(node, values)), (0, True))


def _truth(node: Node, values: Mapping[Node, Any]) -> Any:
    """Return a node as a condition."""
    if node.op in _RELATIONS:
        return _RELATIONS[node.op](*[values[operand] for operand in node.operands])
    if node.op in _LOGIC:
        return _LOGIC[node.op](*[_truth(operand, values) for operand in node.operands])
    return sympy.Ne(values[node], 0)


def number(value: float) -> sympy.Expr:
    """Return a constant as an integer or a fraction if it is the double of one, else as a float.

    The term added to squares of distances for their derivatives is no part of the formula: it is printed as zero.
    """
    if abs(value) <= NO_DISTANCE:
        return sympy.S.Zero
    fraction = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    if float(fraction) == value:
        return sympy.Rational(fraction.numerator, fraction.denominator)
    return sympy.Float(value)


def _shared(order: Sequence[Node], outputs: Sequence[Node]) -> frozenset[Node]:
    """Return the nodes worth a symbol: used at least twice, and more than a sign, a sine or a cosine."""
    uses = Counter(operand for node in order for operand in node.operands)
    uses.update(set(outputs))
    trivial = {"neg", "sin", "cos"}
    return frozenset(node for node in order if node.operands and node.op not in trivial and uses[node] > 1)


def _fresh(letter: str, count: int, taken: set[str]) -> sympy.Symbol:
    name = f"{letter}{count + 1}"
    while name in taken:
        name = letter + name
    taken.add(name)
    return sympy.Symbol(name)


# -- SymPy expressions as MathML -----------------------------------------------------------------------------
#
# The model's names are set as in docs/theory.md; a browser needs nothing else.

PLUS: Final = "<mo>+</mo>"
MINUS: Final = "<mo>&#8722;</mo>"
TIMES: Final = '<mo lspace="0.15em" rspace="0em">&#8290;</mo>'  # with space, as names are words
_DOTS = {".rate": "˙", "_dot": "˙", ".rate2": "¨"}


class _Printer(MathMLPresentationPrinter):  # type: ignore[misc] # SymPy has no types
    def _print_Symbol(self, sym: Any, style: str = "plain") -> Any:
        return self._named(sym.name)

    def _named(self, name: str) -> Any:
        for suffix, dot in _DOTS.items():
            if name.endswith(suffix):
                return self._element("mover", self._named(name.removesuffix(suffix)), self._text("mo", dot))
        if name.endswith(".sigma"):
            return self._element("msub", self._text("mi", "σ"), self._named(name.removesuffix(".sigma")))
        if indexed := _INDEXED.fullmatch(name):
            return self._element("msub", self._named(indexed[1]), self._text("mi", indexed[2]))
        base, _, index = name.partition("_")
        if index and (base in greek_unicode or len(base) == 1):
            return self._element("msub", self._named(base), self._text("mi", index))
        return self._text("mi", greek_unicode.get(name, name))

    def _text(self, tag: str, text: str) -> Any:
        element = self.dom.createElement(tag)
        element.appendChild(self.dom.createTextNode(text))
        return element

    def _element(self, tag: str, *children: Any) -> Any:
        element = self.dom.createElement(tag)
        for child in children:
            element.appendChild(child)
        return element


def mathml(expression: Any) -> str:
    """Return an expression as the content of a ``<math>`` element, ASCII with character references."""
    text: str = _Printer({}).doprint(expression)
    text = text.replace("<mo>&InvisibleTimes;</mo>", TIMES).replace("<mo>-</mo>", MINUS)
    return text.replace("&ApplyFunction;", "&#8289;")
