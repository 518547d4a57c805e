"""Programs of the unconstrained terms, cut into three that online embedding evaluates.

``rows`` (A, b) depends on the configuration alone and gives the dependent speeds; ``motion`` is what accelerations
take; ``watched`` is that and what forces and guards take beyond it, and is evaluated at the ends of steps only.
"""

from __future__ import annotations

import numpy as np

from fsm_dyn.programs import Program


def online_programs(terms: Program) -> tuple[Program, Program, Program]:
    """Cut the terms program into ``rows``, ``motion`` and ``watched``, in the order of ``Online.programs``.

    Parameters
    ----------
    terms : Program
        Outputs of Kane's unconstrained terms.

    Returns
    -------
    tuple of three Program
    """
    layout = terms.layout
    n = len(layout.u)
    graph, _symbols, nodes = terms.graph()
    A, M, f = nodes["A"], nodes["M"], nodes["f"]
    rows = {"A": A[:, :n], "b": nodes["b"]}
    motion = {"q_dot": nodes["q_dot"], "M": M[:n, :n], "f": f[:n]}
    none = np.full(len(nodes["kinetic"]), graph.constant(0.0), dtype=object)
    motion |= {name: nodes.get(name, none) for name in ("gamma", "kinetic", "elastic")}
    named = ("static", "residual", "when", "reach", "reach_rate", "firm", "aspect")
    watch = {name: nodes.get(name, none) for name in named}
    watch |= {"hidden_M": M[n:, :n], "hidden_f": f[n:], "hidden_A": A[:, n:]}
    first, second, third = (Program.from_nodes(layout, outputs) for outputs in (rows, motion, motion | watch))
    return first, second, third
