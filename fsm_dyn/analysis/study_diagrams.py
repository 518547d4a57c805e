"""The mode graph as the runs of a study have used it."""

from __future__ import annotations

from fsm_dyn.analysis.study_results import ALL, Study
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.graphics.diagram import Arrow, Box, Diagram
from fsm_dyn.graphics.mode_graph_svg import mode_graph


def shares_diagram(found: Study, graph: ModeGraph, requirement: str = ALL) -> Diagram:
    """Return the modes and transitions of a study as a diagram.

    An arrow is as thick as the share of runs that made its transition is large, and dashed if no run did; marked are
    those by which runs that violate a requirement part from others.

    Parameters
    ----------
    found : Study
    graph : ModeGraph
        Its transitions that no run made are drawn as well.
    requirement : str
    """
    shares, parting = found.transition_shares(), found.parting(requirement)
    marked = set() if parting is None else {(parting.before[-1], mode) for mode in parting.following}
    possible = dict.fromkeys((source, target) for source, target, *_ in graph.nx.edges if source != target)
    pairs = dict.fromkeys([*shares, *possible])
    names = dict.fromkeys(
        [*(mode for modes in found.sequences for mode in modes), *(m for pair in pairs for m in pair)]
    )
    starts = {modes[0] for modes in found.sequences if modes}
    counts = {mode: sum(mode in modes for modes in found.sequences) for mode in names}
    n = len(found.sequences)
    return Diagram(
        graph.name,
        tuple(Box(mode, mode, (f"{100.0 * counts[mode] / n:.3g} % of runs",), mode in starts) for mode in names),
        tuple(
            Arrow(*pair, (f"{100.0 * shares[pair]:.3g} %" if pair in shares else "never",), pair not in shares,
                  shares.get(pair, 0.0), pair in marked)
            for pair in pairs
        ),
    )  # fmt: skip


def shares_svg(found: Study, graph: ModeGraph, requirement: str = ALL) -> str:
    """Return the picture of :func:`shares_diagram` as SVG."""
    return mode_graph(shares_diagram(found, graph, requirement))
