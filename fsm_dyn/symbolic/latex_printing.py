r"""SymPy expressions as LaTeX in which TeX can break lines.

TeX breaks a formula behind signs, but neither between ``\left(`` and ``\right)`` nor within a fraction: brackets are
printed without these, and long fractions as quotients on one line.  Names are set as in
:mod:`fsm_dyn.symbolic.mathml_printing`.
"""

from __future__ import annotations

import re
from typing import Any, Final

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.pretty.pretty_symbology import greek_unicode

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
        """Return a long fraction on one line; nothing for what is no fraction, or a short one."""
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
    """Return text with the characters that mean something to LaTeX as text."""
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    words = {"ω": r"$\omega$", "σ": r"$\sigma$", "·": r"$\cdot$", "²": r"\textsuperscript{2}", "μ": r"$\mu$"}
    found = re.sub(r"[\\^~#$%&_{}]", lambda match: special.get(match[0], "\\" + match[0]), text)
    return re.sub("[ωσ·²μ]", lambda match: words[match[0]], found)


def width(text: str) -> int:
    """Return about how many characters a formula is wide."""
    plain = re.sub(r"\\(?:left|right|mathrm|mathbf|dot|d?ddot|tilde|bigl|bigr|frac|,|_)|[{}_^\s]", "", text)
    return len(re.sub(r"\\(?!sin|cos|tan|min|max)[a-z]+", "x", plain))
