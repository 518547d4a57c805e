"""Straight-line programs: expression graph, derivatives, machine code.  Without SymPy."""

from fsm_dyn.programs.bound_kernels import BoundKernels
from fsm_dyn.programs.c_code import to_c
from fsm_dyn.programs.cache import ObjectCache, cache_directory
from fsm_dyn.programs.expression_graph import ExpressionGraph, Node, Scalar
from fsm_dyn.programs.functions import (
    absolute,
    acos,
    asin,
    atan,
    atan2,
    compare,
    cos,
    cosh,
    exp,
    floor,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    mod,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    where,
)
from fsm_dyn.programs.graph_traversal import depends_on, evaluate, reachable, substitute, support
from fsm_dyn.programs.kernels import OPTIMISATION, SELDOM_RUN, Kernel, Kernels, compile_programs
from fsm_dyn.programs.layout import Layout
from fsm_dyn.programs.program import Counts, Program
from fsm_dyn.programs.program_format import Output
from fsm_dyn.programs.quadratic import QuadraticForm, back_substitute, leaves_first
from fsm_dyn.programs.tangents import gradient, tangent

__all__ = [
    "OPTIMISATION",
    "SELDOM_RUN",
    "BoundKernels",
    "Counts",
    "ExpressionGraph",
    "Kernel",
    "Kernels",
    "Layout",
    "Node",
    "ObjectCache",
    "Output",
    "Program",
    "QuadraticForm",
    "Scalar",
    "absolute",
    "acos",
    "asin",
    "atan",
    "atan2",
    "back_substitute",
    "cache_directory",
    "compare",
    "compile_programs",
    "cos",
    "cosh",
    "depends_on",
    "evaluate",
    "exp",
    "floor",
    "gradient",
    "leaves_first",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "mod",
    "reachable",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "substitute",
    "support",
    "tan",
    "tangent",
    "tanh",
    "to_c",
    "where",
]
