"""Numbers with their units: the token patterns that Python's grammar does not have.

A unit belongs to the number directly before it and binds tighter than any operator: ``2 N*sin(t)`` is
``(2 N)*sin(t)``.  It continues over ``*`` and ``/`` as long as known units follow, so ``0.4 N*m`` is a moment
even in a model that has a mass ``m``; ``(0.4 N)*m`` says the other.
"""

from __future__ import annotations

import functools
import math

from fsm_dyn.errors import ExpressionError, Location, did_you_mean
from fsm_dyn.expressions.keywords import WORD_OPERATORS
from fsm_dyn.expressions.tokens import Token, excerpt, tokenise
from fsm_dyn.expressions.units import (
    CONTINUING,
    DIMENSIONLESS,
    MISREAD,
    TABLE,
    Dimension,
    UnknownUnitError,
    divide,
    multiply,
    power,
    unit,
)

MAX_UNIT_POWER = 12.0
MAX_NUMBER = 1e100  # products of two masses or lengths still are numbers

_Measure = tuple[float, Dimension]


def read_quantity(tokens: list[Token], start: int, where: Location) -> tuple[float, Dimension | None, int]:
    """Read the number at ``tokens[start]`` with the unit that follows it, if any.

    Returns
    -------
    value : float
        In SI units.
    dimension : Dimension or None
        None for a bare number.
    end : int
        Index of the first token that does not belong to it.
    """
    value = _finite(float(tokens[start].text), tokens[start].text, where)
    after = start + 1
    if after >= len(tokens) or tokens[after].kind != "name" or tokens[after].text in WORD_OPERATORS:
        return value, None, after
    if _text(tokens, after + 1) in ("(", ".", "["):
        glued = "".join(_text(tokens, at) for at in range(after, after + 3))
        raise ExpressionError(
            f"a number is followed by {tokens[after].text!r}",
            where,
            found=f"{tokens[start].text} {glued}",
            remedy=f"write {tokens[start].text}*{glued}",
        )
    (factor, dimension), end = _Reader(tokens, where, anything=False).product(after)
    return _finite(value * factor, tokens[start].text, where), dimension, end


@functools.lru_cache(maxsize=256)
def _whole_unit(text: str) -> _Measure:
    if text.strip() == "1":
        return 1.0, DIMENSIONLESS
    tokens = tokenise(text, Location())
    measure, end = _Reader(tokens, Location(), anything=True).product(0)
    if end != len(tokens):
        raise ExpressionError("not a unit")
    return measure


def parse_unit(text: str, where: Location) -> _Measure:
    """Return (factor to SI, dimension) of a unit text such as ``"N*m"``; ``"1"`` is dimensionless.

    Raises
    ------
    ExpressionError
        If it is not a product of powers of known units.
    """
    try:
        return _whole_unit(text)
    except ExpressionError as error:
        raise ExpressionError(
            f"{excerpt(text)!r} is not a unit",
            where,
            found=error.message,
            allowed="units such as m, rad, N, N*m, kg*m^2, 1",
            remedy=error.remedy,
        ) from error


class _Reader:
    """Recursive descent over products of powers of units; ``anything``: rare units may continue, too."""

    def __init__(self, tokens: list[Token], where: Location, *, anything: bool) -> None:
        self.tokens = tokens
        self.where = where
        self.anything = anything

    def product(self, start: int) -> tuple[_Measure, int]:
        (factor, dimension), at = self._power(*self._first(start))
        while (op := _text(self.tokens, at)) in ("*", "/"):
            following = self._following(at + 1, op)
            if following is None:
                break
            (f, d), at = self._power(*following)
            factor, dimension = (
                (factor * f, multiply(dimension, d)) if op == "*" else (factor / f, divide(dimension, d))
            )
        return (factor, dimension), at

    def _first(self, at: int) -> tuple[_Measure, int]:
        text = _text(self.tokens, at)
        if at >= len(self.tokens) or self.tokens[at].kind != "name":
            raise ExpressionError(f"{excerpt(text)!r} is no unit", self.where)
        return self._unit(text), at + 1

    def _unit(self, text: str) -> _Measure:
        try:
            return unit(text)
        except UnknownUnitError:
            raise ExpressionError(
                f"unknown unit {excerpt(text)!r}",
                self.where,
                found=text,
                allowed="SI units and those pint knows, combined by * / ^",
                remedy=MISREAD.get(text) or did_you_mean(text, TABLE) or "put an operator between a number and a name",
            ) from None

    def _following(self, at: int, op: str) -> tuple[_Measure, int] | None:
        """Return the unit or bracketed product of units at `at`, or None where something else begins."""
        if at >= len(self.tokens):
            return None
        token = self.tokens[at]
        if token.kind == "name" and _text(self.tokens, at + 1) not in ("(", ".", "["):
            if self.anything or token.text in CONTINUING[op]:
                return self._unit(token.text), at + 1
        elif token.text == "(" and (inner := self._following(at + 1, op)) is not None:
            # `/(m*K)` belongs to the unit only if the whole bracket is made of units.
            try:
                measure, end = self.product(at + 1)
            except ExpressionError:
                return None
            if inner and _text(self.tokens, end) == ")":
                return measure, end + 1
        return None

    def _power(self, measure: _Measure, at: int) -> tuple[_Measure, int]:
        if _text(self.tokens, at) not in ("^", "**"):
            return measure, at
        exponent, end = self._exponent(at + 1)
        if abs(exponent) > MAX_UNIT_POWER:
            raise ExpressionError("power of a unit too large", self.where, allowed=f"up to {MAX_UNIT_POWER:g}")
        return (measure[0] ** exponent, power(measure[1], exponent)), end

    def _exponent(self, at: int) -> tuple[float, int]:
        bracket = _text(self.tokens, at) == "("
        at += bracket
        sign = {"-": -1.0, "+": 1.0}.get(_text(self.tokens, at))
        at += sign is not None
        value = (sign or 1.0) * self._plain_number(at)
        at += 1
        if bracket:
            if _text(self.tokens, at) == "/":
                divisor = self._plain_number(at + 1)
                value = value / divisor if divisor else math.inf
                at += 2
            if _text(self.tokens, at) != ")":
                raise self._bad_exponent()
            at += 1
        return value, at

    def _plain_number(self, at: int) -> float:
        if at >= len(self.tokens) or self.tokens[at].kind != "number":
            raise self._bad_exponent()
        return float(self.tokens[at].text)

    def _bad_exponent(self) -> ExpressionError:
        return ExpressionError(
            "the power of a unit must be a number",
            self.where,
            allowed="m^2, m^-1, m^2.5, m^(1/2)",
            remedy="to raise a quantity to an expression, write (2 m)**n",
        )


def _text(tokens: list[Token], at: int) -> str:
    return tokens[at].text if at < len(tokens) else ""


def _finite(value: float, text: str, where: Location) -> float:
    if not abs(value) <= MAX_NUMBER:
        raise ExpressionError("number too large", where, found=text, allowed=f"up to {MAX_NUMBER:g} in SI units")
    return value
