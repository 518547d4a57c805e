"""Differences of two expressions, term by term, in the words of a teacher."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import sympy

from fsm_dyn.derive.printing import to_sympy
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.operations import OPERATIONS

Array = npt.NDArray[np.float64]

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
    values: Mapping[str, Array],
    factors: tuple[Sequence[str], Sequence[str]],
) -> tuple[list[Finding], int]:
    """Compare the coefficients of two polynomials.

    Parameters
    ----------
    student, right : Node
        Of one graph.
    names : sequence of str
        Variables of the polynomials; those not met are left out.
    values : mapping of str to ndarray, shape (states,)
        Values of all symbols at which coefficients are compared.
    factors : (names, names)
        Parameters, and coordinates whose sines may be factors, by which a coefficient may differ.

    Returns
    -------
    tuple
        Findings, and the number of monomials; 0 if the expressions are no polynomials.
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


def _value(expression: Any, values: Mapping[str, Array]) -> Any:
    """Return the numbers of a SymPy expression."""
    if expression.is_Symbol:
        return values[expression.name]
    if expression.is_number:
        return float(expression)
    operands = [_value(operand, values) for operand in expression.args]
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

    values: Mapping[str, Array]
    parameters: Sequence[str]
    coordinates: Sequence[str]

    def numbers(self, expressions: Sequence[Any]) -> Array:
        """Return values of SymPy expressions at the states, shape (n, states)."""
        shape = next(iter(self.values.values())).shape
        return np.array([np.broadcast_to(_value(e, self.values), shape) for e in expressions], dtype=float)

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

    def _products(self, student: Any, right: Any, ratio: Array) -> Iterator[Any]:
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

    def _exchanged(self, label: str, addends: Sequence[Any], first: Array, scale: Array) -> Finding | None:
        for addend in addends:
            for this in sorted(addend.atoms(sympy.sin, sympy.cos), key=str):
                other = (sympy.cos if isinstance(this, sympy.sin) else sympy.sin)(this.args[0])
                (change,) = self.numbers([addend.subs(this, other) - addend])
                if np.all(np.abs(first - change) <= scale):
                    return Finding(label, "swapped", f"{this} and {other} exchanged in {addend}")
        return None

    def _altered(self, label: str, student: Any, addends: Sequence[Any], first: Array, scale: Array) -> Finding | None:
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
