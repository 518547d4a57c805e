"""Programs as SymPy expressions, LaTeX and MathML, for people to read; sentences on their differences."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.pretty.pretty_symbology import greek_unicode

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.kinematics import NO_DISTANCE
from fsm_dyn.programs.graph import OPERATIONS, Node
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

    ``outputs``: names of outputs; by default all. ``expand_symbols``: whether to expand intermediate symbols (``Z1``,
    ``Z2`` ... for repeated expressions, as in Gillespie 2003, (66)); the result can be very long. ``once``: whether
    expressions of parameters alone become symbols ``k1``, ``k2`` ... of their own.
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

    ``longest``: number of operations, shared ones once; up to it all is written out without intermediate symbols.
    """
    return _translate(nodes, sum(bool(node.operands) for node in reachable(nodes)) > longest)


def _translate(
    nodes: Sequence[Node], intermediate: bool, constant: Sequence[Node] = ()
) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], dict[Node, Any]]:
    """Return intermediate symbols with their definitions, and nodes with their expressions.

    ``intermediate``: whether parts used repeatedly become symbols ``Z1``, ``Z2`` ..; ``constant``: parts that become
    symbols ``k1``, ``k2`` ...
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


def without_reciprocals(expression: sympy.Basic) -> sympy.Basic:
    """Return an expression with cotangents, secants and cosecants as quotients."""
    quotients = {sympy.cot: sympy.tan, sympy.sec: sympy.cos, sympy.csc: sympy.sin}
    for function, inverse in quotients.items():
        expression = expression.replace(function, lambda angle, inverse=inverse: 1 / inverse(angle, evaluate=False))
    return expression


# -- Differences of two expressions, term by term, in the words of a teacher ---------------------------------


MOST_FACTORS: Final = 3  # of a product by which a term differs
LARGEST_NUMBER: Final = 24  # numerator and denominator of a number by which a term differs


@dataclass(frozen=True)
class Finding:
    """One difference between an equation and the right one.

    Attributes
    ----------
    term : str
        The product of accelerations, speeds, inputs and g whose coefficient differs; ``1`` without any.
    kind : {"missing", "extra", "sign", "factor", "swapped", "different"}
    text : str
    """

    term: str
    kind: str
    text: str

    def __str__(self) -> str:
        return f"  {self.term:14s}{self.kind:11s}{self.text}"


def compare_terms(
    student: Node,
    right: Node,
    names: Sequence[str],
    values: Mapping[str, Floats],
    factors: tuple[Sequence[str], Sequence[str]],
) -> tuple[list[Finding], int]:
    """Compare the coefficients of two polynomials.

    ``student``, ``right``: of one graph. ``names``: variables of the polynomials; those not met are left out.
    ``values``, shape (states,): values of all symbols at which coefficients are compared. ``factors``, (names, names):
    parameters, and coordinates whose sines may be factors, by which a coefficient may differ. Returns findings, and the
    number of monomials; 0 if the expressions are no polynomials.
    """
    left, reference = to_sympy([student, right])
    used = {symbol.name for symbol in left.free_symbols | reference.free_symbols}
    symbols = [sympy.Symbol(name) for name in names if name in used] or [sympy.Symbol("")]
    a, b = (_coefficients(side, symbols) for side in (left, reference))
    if a is None or b is None:
        return [], 0
    terms, findings = _Terms(values, *factors), []
    for monomial in sorted(set(a) | set(b), reverse=True):
        label = "*".join(f"{s}^{e}" if e > 1 else str(s) for s, e in zip(symbols, monomial, strict=True) if e)
        finding = terms.compare(label or "1", a.get(monomial, sympy.S.Zero), b.get(monomial, sympy.S.Zero))
        if finding is not None:
            findings.append(finding)
    return findings, len(set(a) | set(b))


def _coefficients(expression: Any, symbols: Sequence[Any]) -> dict[tuple[int, ...], Any] | None:
    """Return the coefficients of the monomials in symbols; None if there is another dependence on them."""
    try:
        polynomial = sympy.Poly(sympy.expand(expression), *symbols)
    except sympy.PolynomialError:
        return None
    found = dict(polynomial.terms())
    return None if any(value.has(*symbols) for value in found.values()) else found


def _value_at(expression: Any, values: Mapping[str, Floats]) -> Any:
    """Return the numbers of a SymPy expression."""
    if expression.is_Symbol:
        return values[expression.name]
    if expression.is_number:
        return float(expression)
    operands = [_value_at(operand, values) for operand in expression.args]
    if expression.is_Add:
        return np.sum(np.broadcast_arrays(*operands), axis=0)
    if expression.is_Mul:
        return np.prod(np.broadcast_arrays(*operands), axis=0)
    if expression.is_Pow:
        return np.asarray(operands[0], dtype=float) ** operands[1]
    name = {sympy.Abs: "abs", sympy.sign: "sign"}.get(expression.func, expression.func.__name__)
    function = OPERATIONS.get(name)
    return np.nan if function is None else function.array(*operands)


@dataclass
class _Terms:
    """Coefficients of monomials, compared at states."""

    values: Mapping[str, Floats]
    parameters: Sequence[str]
    coordinates: Sequence[str]

    def numbers(self, expressions: Sequence[Any]) -> Floats:
        """Return values of SymPy expressions at the states, shape (n, states)."""
        shape = next(iter(self.values.values())).shape
        return np.array([np.broadcast_to(_value_at(e, self.values), shape) for e in expressions], dtype=float)

    def compare(self, label: str, student: Any, right: Any) -> Finding | None:
        """Return the difference of two coefficients, None if there is none."""
        a, b = self.numbers([student, right])
        size = np.abs(a) + np.abs(b)
        if np.all(np.abs(a - b) <= 1e-11 * size + 1e-14):
            return None
        shown = "" if label == "1" else f"*{label}"
        if np.all(np.abs(a) < 1e-13):
            return Finding(label, "missing", f"the term ({self.short(right)}){shown} is missing")
        if np.all(np.abs(b) < 1e-13):
            return Finding(label, "extra", f"there is no term in {label}; yours is {self.short(student)}")
        return (
            self._ratio(label, student, right)
            or self._by_addends(label, student, right)
            or Finding(label, "different", f"yours is {self.short(student)}, right is {self.short(right)}")
        )

    def short(self, expression: Any) -> Any:
        """Return the shortest of some forms of a coefficient."""
        forms = [expression, sympy.factor(expression), *self._forms(expression)]
        return min(forms, key=lambda form: (form.count_ops(), str(form)))

    def _forms(self, expression: Any) -> list[Any]:
        """Return a sum written out, squares of sines as cosines and the reverse."""
        base = sympy.expand(sympy.expand_trig(expression))
        forms = [base]
        for angle in sorted({a.args[0] for a in base.atoms(sympy.sin, sympy.cos)}, key=str):
            s, c = sympy.sin(angle), sympy.cos(angle)
            forms += [sympy.expand(base.subs(p**2, 1 - q**2)) for p, q in ((s, c), (c, s))]
        return forms

    def _ratio(self, label: str, student: Any, right: Any) -> Finding | None:
        """Return a finding if the coefficients differ by a number, or by a product of parameters and sines."""
        a, b = self.numbers([student, right])
        with np.errstate(all="ignore"):
            ratio = a / b
        if not np.isfinite(ratio).all() or np.any(ratio == 0):
            return None
        if np.ptp(ratio) < 1e-10 * abs(ratio[0]):
            number = sympy.nsimplify(ratio[0], rational=True, tolerance=1e-9)
            if number == -1:
                return Finding(label, "sign", f"the sign is wrong: right is {self.short(right)}")
            return Finding(label, "factor", f"the number is wrong: yours is {number} times the right one")
        for product in self._products(student, right, ratio):
            above, below = product.as_numer_denom()
            if {type(above), type(below)} == {sympy.sin, sympy.cos} and above.args == below.args:
                return Finding(label, "swapped", f"{above} and {below} exchanged")
            parts = [f"factor {below} missing"] * (below != 1) + [f"factor {above} too many"] * (above != 1)
            return Finding(label, "factor", ", ".join(parts))
        return None

    def _products(self, student: Any, right: Any, ratio: Floats) -> Iterator[Any]:
        """Yield products of few parameters and sines equal to a ratio at all states."""
        met = student.free_symbols | right.free_symbols
        atoms = [sympy.Symbol(name) for name in self.parameters]
        angles = [sympy.Symbol(name) for name in self.coordinates]
        atoms = [a for a in atoms if a in met or len(self.parameters) <= 12]
        atoms += [g(q) for q in angles if q in met for g in (sympy.sin, sympy.cos)]
        if not atoms:
            return
        numbers = self.numbers(atoms)
        logarithms, wanted = np.log(np.abs(numbers)), np.log(np.abs(ratio))
        for count in range(1, MOST_FACTORS + 1):
            powers = (1, -1) if count == MOST_FACTORS else (1, -1, 2, -2)
            for chosen in itertools.combinations(range(len(atoms)), count):
                for exponents in itertools.product(powers, repeat=count):
                    rest = wanted - np.array(exponents) @ logarithms[list(chosen)]
                    if np.ptp(rest) > 1e-9:
                        continue
                    signs = np.sign(ratio / np.prod(numbers[list(chosen)].T ** np.array(exponents), axis=1))
                    number = sympy.nsimplify(np.exp(rest[0]), rational=True, tolerance=1e-8)
                    if np.any(signs != signs[0]) or max(number.p, number.q) > LARGEST_NUMBER:
                        continue
                    factors = (atoms[i] ** e for i, e in zip(chosen, exponents, strict=True))
                    yield sympy.Mul(*factors) * number * int(signs[0])

    def _by_addends(self, label: str, student: Any, right: Any) -> Finding | None:
        """Return a finding if one or two addends of a coefficient are missing, reversed, altered or too many."""
        best = min(self._forms(right), key=lambda form: (len(sympy.Add.make_args(form)), form.count_ops()))
        addends = sympy.Add.make_args(best)
        first, *rest = self.numbers([student - right, *addends])
        sizes = np.array(rest)
        scale = 1e-10 * np.abs(sizes).sum(axis=0)
        for kind, factor, verb in (("missing", -1, "lacks"), ("sign", -2, "wrong sign of"), ("factor", 1, "twice")):
            for count in (1, 2):
                for chosen in itertools.combinations(range(len(addends)), count):
                    if np.all(np.abs(first - factor * sizes[list(chosen)].sum(axis=0)) <= scale):
                        return Finding(label, kind, f"{verb} {', '.join(str(addends[i]) for i in chosen)}")
        return self._exchanged(label, addends, first, scale) or self._altered(label, student, addends, first, scale)

    def _exchanged(self, label: str, addends: Sequence[Any], first: Floats, scale: Floats) -> Finding | None:
        for addend in addends:
            for this in sorted(addend.atoms(sympy.sin, sympy.cos), key=str):
                other = (sympy.cos if isinstance(this, sympy.sin) else sympy.sin)(this.args[0])
                (change,) = self.numbers([addend.subs(this, other) - addend])
                if np.all(np.abs(first - change) <= scale):
                    return Finding(label, "swapped", f"{this} and {other} exchanged in {addend}")
        return None

    def _altered(
        self, label: str, student: Any, addends: Sequence[Any], first: Floats, scale: Floats
    ) -> Finding | None:
        for form in self._forms(student):
            own = sympy.Add.make_args(form)
            mine = self.numbers(own)
            if len(addends) > 1 or len(own) > 1:
                right = self.numbers(addends)
                for (i, a), (j, b) in itertools.product(enumerate(addends), enumerate(own)):
                    if np.all(np.abs(first - (mine[j] - right[i])) <= scale):
                        known = self._ratio(label, b, a)
                        kind, text = (known.kind, known.text) if known else ("different", f"yours is {b}")
                        return Finding(label, kind, f"in {a}: {text}")
            for j, b in enumerate(own):
                if np.all(np.abs(first - mine[j]) <= scale):
                    return Finding(label, "extra", f"{b} does not belong here")
        return None
