"""Power of the drives that move points and frames by time or inputs (docs/theory.md, "The energy balance")."""

from __future__ import annotations

from functools import lru_cache

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.programs import ExpressionGraph, Node, Program, substitute, tangent

_KEPT = 64  # automata whose program is kept


class _Programs:
    """The programs of an automaton that make a key: runs of other modes and parameters share them."""

    def __init__(self, automaton: Automaton) -> None:
        self.report, self.terms = automaton.report, automaton.terms

    def __hash__(self) -> int:
        return id(self.report)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Programs) and self.report is other.report and self.terms is other.terms


def drive_program(automaton: Automaton) -> Program | None:
    """Return the power of the drives as a program, None where everything rests while all speeds are zero.

    With ``u_dot = 0`` it is ``rest`` (W), and each acceleration adds its entry of ``momentum``, shape (n_u,), times it:
    the momentum that the driven motion alone gives along the speed.

    A point whose place depends on time moves while all speeds are zero.  What moves it does the work by which the
    energies change beyond that of loads and constraint rows,

        P = d(T + V)/dt - sum of the loads' powers - u . (M u_dot - f).

    Parameters
    ----------
    automaton : Automaton

    Returns
    -------
    Program or None
    """
    return _program(_Programs(automaton))


@lru_cache(maxsize=_KEPT)
def _program(programs: _Programs) -> Program | None:
    report, terms = programs.report, programs.terms
    graph = ExpressionGraph()
    symbols, energies = report.nodes(graph)
    _, known = terms.nodes(graph)
    layout = terms.layout
    u = [symbols[name] for name in layout.u]
    kinetic, powers = energies["kinetic_energy"].item(), list(energies["load_powers"])
    potential = energies["potential_energy"].item()
    for stored in energies["stored"]:  # the forces of contacts are rows
        potential = potential - stored
    flow = _flow(graph, symbols, layout.q, list(known["q_dot"]), layout.w)
    still = dict.fromkeys(u, graph.zero)
    (changed,) = tangent([potential], flow)
    at_rest = substitute([kinetic, changed, *powers], still)
    if all(node.is_zero for node in at_rest):
        return None
    (gained,) = tangent([kinetic], flow)
    rest = gained + changed
    for power in powers:
        rest = rest - power
    for speed, force in zip(u, known["f"], strict=False):
        rest = rest + speed * force
    momentum = [tangent([kinetic], {speed: graph.one})[0] for speed in u]
    return Program.from_nodes(layout, {"rest": rest, "momentum": substitute(momentum, still)})


def _flow(
    graph: ExpressionGraph, symbols: dict[str, Node], q: tuple[str, ...], rates: list[Node], inputs: tuple[str, ...]
) -> dict[Node, Node]:
    """Return the rates of coordinates, of time and of inputs, while no speed changes."""
    flow = dict(zip((symbols[name] for name in q), rates, strict=True))
    flow[symbols["t"]] = graph.one
    for name in inputs:
        flow[symbols[name]], flow[symbols[f"{name}.rate"]] = symbols[f"{name}.rate"], symbols[f"{name}.rate2"]
    return flow
