"""The unconstrained terms cut into the three programs that on-line embedding evaluates.

``rows`` (A, b) depends on the configuration alone and gives the dependent speeds; ``motion`` is what accelerations
take; ``watch`` is what forces and guards take beyond it, and is evaluated at the ends of steps only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.programs import Program
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.compiled import entry
from fsm_dyn.simulation.online_chart import choose_online_chart
from fsm_dyn.simulation.online_forces import online_full
from fsm_dyn.simulation.online_places import new_chart, workspace
from fsm_dyn.simulation.tables import Tables

Array = npt.NDArray[np.float64]

_open_tables = st.TABLES.opener()


def online_programs(terms: Program) -> tuple[Program, Program, Program]:
    """Cut the terms program into ``rows``, ``motion`` and ``watch``, in the order of ``Tables.online``."""
    layout = terms.layout
    n = len(layout.u)
    graph, _symbols, nodes = terms.graph()
    A, M, f = nodes["A"], nodes["M"], nodes["f"]
    rows = {"A": A[:, :n], "b": nodes["b"]}
    motion = {"q_dot": nodes["q_dot"], "M": M[:n, :n], "f": f[:n]}
    none = np.full(len(nodes["kinetic"]), graph.constant(0.0), dtype=object)
    motion |= {name: nodes.get(name, none) for name in ("gamma", "kinetic", "elastic")}
    watch = {name: nodes.get(name, none) for name in ("static", "residual", "when", "reach", "reach_rate")}
    watch |= {"hidden_M": M[n:, :n], "hidden_f": f[n:], "hidden_A": A[:, n:]}
    return tuple(Program.from_nodes(layout, outputs) for outputs in (rows, motion, watch))  # type: ignore[return-value]


@entry
def evaluate_states(tables_at: int, mode: int, t: Any, x: Any, c: Any, chart: Any, room: Any, out: Any) -> None:
    """Write the full output of a mode at many states, one a row, each in a chart chosen there."""
    tables = _open_tables(tables_at)
    for i in range(t.shape[0]):
        choose_online_chart(tables, chart, room, mode, t[i], x[i], c[i])
        online_full(tables, chart, room, mode, t[i], x[i], c[i], out[i])


def evaluate_online(tables: Tables, mode: int, t: Any, x: Array, c: Array) -> dict[str, Array]:
    """Evaluate a mode on line at many states; the outputs are those of a full program, by name.

    Parameters
    ----------
    mode : int
        Number of a mode without kernels.
    t : array-like, shape (...,)
        Times, s.
    x, c : ndarrays, shapes (..., n_x), (..., n_c)
    """
    s = tables.sizes
    shape = np.broadcast_shapes(np.shape(t), x.shape[:-1], c.shape[:-1])
    count = int(np.prod(shape, dtype=np.int64))
    times = np.ascontiguousarray(np.broadcast_to(t, shape), np.float64).reshape(count)
    states = np.ascontiguousarray(np.broadcast_to(x, (*shape, x.shape[-1])), np.float64).reshape(count, -1)
    contexts = np.array(np.broadcast_to(c, (*shape, c.shape[-1])), np.float64).reshape(count, -1)
    floats, _ = workspace(s)
    n_x, n_u = int(s[tb.N_Q] + s[tb.N_U]), int(s[tb.N_U])
    n_g = int(tables.mode_guard_start[mode + 1] - tables.mode_guard_start[mode])
    out = np.zeros((count, n_x + n_u + 1 + 2 * n_g + int(s[tb.N_ROWS])))
    packed = st.TABLES.pack(tables)
    chart, room = new_chart(s), np.zeros(floats)
    evaluate_states(packed.address, mode, times, states, contexts, chart, room, out)
    names = ("x_dot", "u", "pivot", "guards", "slopes", "multipliers")
    ends = np.cumsum([n_x, n_u, 1, n_g, n_g])
    return {name: part.reshape(*shape, -1) for name, part in zip(names, np.split(out, ends, axis=1), strict=True)}
