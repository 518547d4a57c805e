"""SymPy expressions as MathML, with the model's names set as docs/theory.md sets them; a browser needs nothing else."""

from __future__ import annotations

import re
from typing import Any, Final

from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.pretty.pretty_symbology import greek_unicode

PLUS: Final = "<mo>+</mo>"
MINUS: Final = "<mo>&#8722;</mo>"
TIMES: Final = '<mo lspace="0.15em" rspace="0em">&#8290;</mo>'  # with space, as names are words
_DOTS = {".rate": "˙", "_dot": "˙", ".rate2": "¨"}
_INDEXED = re.compile(r"([A-Za-z])(\d+|[A-Z]\d*)")  # q1, mB, L12


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
