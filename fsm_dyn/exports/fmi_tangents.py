"""Directional derivatives of a unit: the tangents of the kernels of its modes and of its outputs, as C."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.programs import Node, Program, tangent
from fsm_dyn.programs.angle_sums import share_angles
from fsm_dyn.programs.c_code import c_function


def tangents_source(run: ExportedRun) -> str:
    """Return the source of the tangents: ``fsm_fmu_tangents`` of the modes, and ``fsm_fmu_output_tangent``.

    Their argument ``x`` is the state, then its direction, then that of the inputs.  A mode gives the directional
    derivatives of ``x_dot``, of all speeds, which follow from the independent ones, and of its guards.

    Parameters
    ----------
    run : ExportedRun
        What is exported.
    """
    parts = ['/* Tangents of the kernels, generated. */\n\n#include "fsm_fmu.h"\n#include "fsm_kernels.h"\n']
    names = []
    for number, (_, full) in enumerate(run.programs):
        names.append(f"tangent_{number}")
        parts.append(_function(_tangent(full, ("x_dot", "u", "guards")), names[-1]))
    report = run.automaton.report
    shown = ("outputs",) if "outputs" in report.slices else ()
    parts.append(_function(_tangent(report, shown), "tangent_of_outputs"))
    parts.append(f"const fsm_kernel fsm_fmu_tangents[] = {{{', '.join(names)}}};")
    parts.append("const fsm_kernel fsm_fmu_output_tangent = tangent_of_outputs;\n")
    return "\n".join(parts)


def _function(program: Program, name: str) -> str:
    return "static " + c_function(share_angles(program), name, own_functions=True)


def _tangent(program: Program, names: tuple[str, ...]) -> Program:
    """Return the program of the directional derivatives of some outputs; their direction follows the state."""
    layout = program.layout
    moving = (*layout.x, *layout.w)
    seeded = replace(layout, u=(*layout.u, *(f"{name}.seed" for name in moving)))
    graph, symbols, nodes = program.graph()
    seeds = {symbols[name]: graph.symbol(f"{name}.seed") for name in moving}
    outputs: list[Node] = [node for name in names for node in nodes[name].ravel()]
    found: np.ndarray[Any, Any] = np.empty(len(outputs), dtype=object)
    found[:] = tangent(outputs, seeds)
    return Program.from_nodes(seeded, {"tangent": found})
