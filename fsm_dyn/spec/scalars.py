"""The core schema of YAML 1.2: what a plain scalar means.

PyYAML follows YAML 1.1, where ``on`` is true, ``1e3`` a text and ``12:30`` the number 750.  Here only the
forms of section 10.3.2 of the YAML 1.2.2 specification have a meaning; everything else is text.
"""

from __future__ import annotations

import re

from fsm_dyn.spec.yaml_tree import Plain

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

#: Integers with more digits stay text: converting them takes quadratic time and no model needs them.
MAX_DIGITS = 300


def resolve(text: str) -> Plain:
    """Return the value of a plain (unquoted) scalar under the core schema.

    Parameters
    ----------
    text : str
        The scalar.
    """
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if len(text) > MAX_DIGITS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text
