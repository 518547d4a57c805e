"""Expressions: text to a frozen tree through an allow-list, and the tree folded over an algebra."""

from fsm_dyn.expressions.float_algebra import FloatAlgebra
from fsm_dyn.expressions.keywords import (
    REFERENCE_FUNCTIONS,
    RESERVED_NAMES,
    SCALAR_FUNCTIONS,
    VECTOR_FUNCTIONS,
    is_name,
)
from fsm_dyn.expressions.nodes import (
    Algebra,
    Axis,
    Binary,
    Boolean,
    Call,
    Compare,
    Index,
    Name,
    Node,
    Number,
    Unary,
    fold,
    free_names,
    walk,
)
from fsm_dyn.expressions.parser import parse
from fsm_dyn.expressions.text import Text
from fsm_dyn.expressions.unit_literals import parse_unit
from fsm_dyn.expressions.units import DIMENSIONLESS, Dimension, dimension_text

__all__ = [
    "DIMENSIONLESS",
    "REFERENCE_FUNCTIONS",
    "RESERVED_NAMES",
    "SCALAR_FUNCTIONS",
    "VECTOR_FUNCTIONS",
    "Algebra",
    "Axis",
    "Binary",
    "Boolean",
    "Call",
    "Compare",
    "Dimension",
    "FloatAlgebra",
    "Index",
    "Name",
    "Node",
    "Number",
    "Text",
    "Unary",
    "dimension_text",
    "fold",
    "free_names",
    "is_name",
    "parse",
    "parse_unit",
    "walk",
]
