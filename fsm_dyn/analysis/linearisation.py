"""A mode linearised about a state; exact derivatives of a mode; static equilibria."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.initial_state import find_initial_state
from fsm_dyn.automaton.initial_values import initial_values, parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.static_equilibrium import equilibrium_initial_state
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import dependent_columns
from fsm_dyn.derive.embedding import ActiveSet
from fsm_dyn.derive.mode_programs import ModePrograms, Nodes
from fsm_dyn.draw.svg import table
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import gradient, tangent
from fsm_dyn.run.input_signals import InputValue, resolve_inputs

# -- Exact derivatives of a mode -----------------------------------------------------------------------------
#
# Of its flow, its speeds and its guards, by the tangent sweep over its saved program.
#
# Nothing symbolic is needed beyond the saved programs, so an automaton from a file has them as well (docs/theory.md,
# "Derivatives of a mode").


@dataclass(frozen=True)
class ModeDerivatives:
    """The derivative programs of a mode in one chart; n_m is the number of requested parameters."""

    # ``x_dot`` (n_x,), ``by_state`` (n_x, n_x) and ``by_parameters`` (n_x, n_m): the derivatives of ``x_dot``. The
    # columns of the dependent speeds are zero, for the flow does not read them.
    flow: Program
    # ``x_dot``; ``guards`` and ``slopes`` (n_g,) with the gradients ``guards_by_state`` (n_g, n_x) and
    # ``guards_by_parameters`` (n_g, n_m); ``u`` (n_u,) with ``u_by_state`` (n_u, n_x), ``u_by_parameters``
    ends: Program


def mode_derivatives(programs: ModePrograms, parameters: Sequence[str] = ()) -> ModeDerivatives:
    """Derive the derivative programs of a mode.

    ``parameters``: names of parameters (flattened: ``lip[0]``), memory or inputs as variables of differentiation.
    Raises InputError: a name is none of the kernels' arguments.
    """
    layout = programs.full.layout
    _, symbols, nodes = programs.full.graph()
    for name in parameters:
        layout.position(name)
    x, p = [symbols[name] for name in layout.x], [symbols[name] for name in parameters]
    rate = nodes["x_dot"]
    flow = {"x_dot": rate, "by_state": jacobian(rate, x), "by_parameters": jacobian(rate, p)}
    ends = {"x_dot": rate, "slopes": nodes["slopes"]}
    for name in ("guards", "u"):
        ends |= {
            name: nodes[name],
            f"{name}_by_state": jacobian(nodes[name], x),
            f"{name}_by_parameters": jacobian(nodes[name], p),
        }
    return ModeDerivatives(Program.from_nodes(layout, flow), Program.from_nodes(layout, ends))


def jacobian(outputs: Sequence[Node] | Nodes, symbols: Sequence[Node]) -> Nodes:
    """Return the derivatives of ``outputs`` (m,) by ``symbols`` (n,) as an array (m, n) of nodes."""
    table = np.empty((len(outputs), len(symbols)), dtype=object)
    for i, row in enumerate(gradient(list(outputs), list(symbols))):
        table[i, :] = row
    return table


def time_derivative(outputs: Sequence[Node], layout: Layout, symbols: dict[str, Node], graph: ExpressionGraph) -> Nodes:
    """Return the derivatives of ``outputs`` by the time at a fixed state, the inputs moving at their rates."""
    seeds = {symbols["t"]: graph.constant(1.0)}
    for name in layout.w:
        seeds[symbols[name]] = symbols[f"{name}.rate"]
        seeds[symbols[f"{name}.rate"]] = symbols[f"{name}.rate2"]
        seeds[symbols[f"{name}.rate2"]] = symbols[f"{name}.rate3"]
    found = np.empty(len(outputs), dtype=object)
    found[:] = tangent(list(outputs), seeds)
    return found


# -- A mode linearised about a state: its matrices in independent coordinates and speeds ---------------------


@dataclass(frozen=True, repr=False)
class Linearisation:
    """``δẋ = A δx + B δw`` about a state.

    Attributes
    ----------
    states : tuple of str
        The independent coordinates and speeds; all others follow them in the mode.
    inputs : tuple of str
    A, B : ndarray, shapes (n, n), (n, n_w)
    eigenvalues : ndarray of complex, shape (n,)
        Of ``A``, 1/s, the one with the largest real part first.  A coordinate without effect gives 0.
    rates : ndarray, shape (n,)
        The rates of the states at the point itself; zero at an equilibrium.
    """

    states: tuple[str, ...]
    inputs: tuple[str, ...]
    A: Floats
    B: Floats
    eigenvalues: npt.NDArray[np.complex128]
    rates: Floats

    def __repr__(self) -> str:
        rows = [
            (name, *(f"{value:.6g}" for value in (*a, *b)))
            for name, a, b in zip(self.states, self.A, self.B, strict=True)
        ]
        own = ", ".join(f"{value:.6g}" for value in self.eigenvalues)
        return table(("rate of", *self.states, *self.inputs), rows) + f"\neigenvalues, 1/s: {own}"


@typed
def linearise(
    graph: ModeGraph,
    mode: str,
    *,
    at: Mapping[str, float | str] | None = None,
    parameters: Parameters | None = None,
    inputs: Mapping[str, InputValue] | None = None,
) -> Linearisation:
    """Linearise a mode about a state (docs/theory.md, "Derivatives of a mode").

    Rows on speeds and on coordinates, nonholonomic ones among them, are kept to first order: the dependent speeds and
    coordinates follow the independent ones.

    Parameters
    ----------
    graph : ModeGraph
    mode : str
        A mode of the graph.
    at : mapping, optional
        Coordinates and speeds instead of the model's own start; the others follow.
    parameters, inputs : mapping, optional
        As for :func:`fsm_dyn.simulate`; inputs are taken at time 0.

    Returns
    -------
    Linearisation
        Its matrices, eigenvalues and independent states, in SI units.

    Raises
    ------
    InputError
        The mode or a name is unknown.
    ModelError
        The values contradict the mode.
    """
    automaton = graph.automaton
    layout = automaton.terms.layout
    found = next((known for known in automaton.modes if known.name == mode), None)
    if found is None:
        names = [known.name for known in automaton.modes]
        raise InputError(
            f"no mode '{mode}' in '{graph.name}'", allowed=", ".join(names), remedy=did_you_mean(str(mode), names)
        )
    numbers = parameter_values(automaton.mechanism, parameters) if parameters else graph.values
    drive = resolve_inputs(automaton, numbers, inputs or {}, (0.0, 1.0))
    begin = initial_values(automaton, numbers, parameter_vector(numbers), at, drive)
    here = find_initial_state(automaton, begin.values, mode, 0.0, begin.context)
    programs = automaton.derive(found.states, 0.0, here.x, here.context).programs
    values = mode_derivatives(programs, layout.w).flow.evaluate(0.0, here.x, here.context)
    n_q = len(layout.q)
    free, T, _ = independent_coordinates(graph, found.states, here.x, here.context)
    kept = [*free, *(n_q + i for i in programs.independent)]
    basis = np.zeros((layout.n_x, len(kept)))
    basis[:n_q, : len(free)] = T
    basis[kept[len(free) :], range(len(free), len(kept))] = 1.0
    A = values["by_state"][kept] @ basis
    eigenvalues = np.linalg.eigvals(A).astype(np.complex128)
    return Linearisation(
        tuple(layout.x[i] for i in kept),
        layout.w,
        A,
        values["by_parameters"][kept],
        eigenvalues[np.argsort(-eigenvalues.real, kind="stable")],
        values["x_dot"][kept],
    )


def independent_coordinates(
    graph: ModeGraph, states: Sequence[int], x: Floats, context: Floats, by_inputs: Floats | None = None
) -> tuple[list[int], Floats, Floats]:
    """Return the independent coordinates of a mode, and all coordinates as linear functions of them and the inputs.

    ``states``: contact states of the mode. ``by_inputs``, shape (rows of the system, n_w): derivatives of the rows on
    coordinates by the inputs; none if no input moves a row. Shapes (n_q, n_free) and (n_q, n_w).
    """
    system = graph.automaton.system
    n_q, n_w = len(system.layout.q), len(system.layout.w)
    rows = [r for r in ActiveSet.of(system, states).rows if system.rows[r].positional]
    slopes = system.configuration.evaluate(0.0, x, context)["jacobian"][rows]
    moved = np.zeros((len(rows), n_w)) if by_inputs is None else by_inputs[rows]
    for first in system.quaternions:
        norm = np.zeros((1, n_q))
        norm[0, first : first + 4] = x[first : first + 4]
        slopes, moved = np.vstack([slopes, norm]), np.vstack([moved, np.zeros((1, n_w))])
    dependent = dependent_columns(slopes, range(n_q))
    free = [i for i in range(n_q) if i not in dependent]
    T, P = np.zeros((n_q, len(free))), np.zeros((n_q, n_w))
    T[free, range(len(free))] = 1.0
    if dependent:
        follow = -np.linalg.lstsq(slopes[:, dependent], np.hstack([slopes[:, free], moved]), rcond=None)[0]
        T[dependent], P[dependent] = follow[:, : len(free)], follow[:, len(free) :]
    return free, T, P


# -- Static equilibria of mechanisms with contacts -----------------------------------------------------------


@dataclass(frozen=True)
class Equilibrium:
    """A static equilibrium.

    Attributes
    ----------
    q : ndarray, shape (n_q,)
        Coordinates, SI.
    mode : str
        The mode it rests in.
    states : mapping of str to str
        Contact states by name.
    forces : mapping of str to ndarray
        Forces of constraints and contacts by name, normal before tangent, in the sense of ``f + Σ Aᵀ λ = 0`` (N, N·m).
    indeterminate : bool
        Whether redundant rows leave the forces undetermined: those given are then one admissible choice.
    initial : dict
        The rest as ``initial`` values for ``fsm_dyn.simulate``.
    """

    q: Floats
    mode: str
    states: Mapping[str, str]
    forces: Mapping[str, Floats]
    indeterminate: bool
    initial: dict[str, float | str]


@typed
def static_equilibrium(
    graph: ModeGraph,
    *,
    initial: Mapping[str, float | str] | None = None,
    parameters: Parameters | None = None,
    inputs: Mapping[str, InputValue] | None = None,
) -> Equilibrium:
    """Find a static equilibrium of a mechanism with its contacts.

    The mechanism is relaxed from the initial values by pseudo-transient continuation, then by Newton's method to full
    accuracy.  With friction, up to the static coefficients, the equilibrium found depends on the initial values.

    Parameters
    ----------
    graph : ModeGraph
    initial : mapping, optional
        Start of the search: coordinates, and a required ``mode`` at rest; the others are the model's own.
    parameters, inputs
        As for ``fsm_dyn.simulate``; inputs are taken at time 0.

    Returns
    -------
    Equilibrium
        The state at rest with its contact forces, in SI units.

    Raises
    ------
    InputError
        A name is unknown.
    ModelError
        None was found; the message names the unbalanced speeds.
    """
    automaton = graph.automaton
    layout = automaton.terms.layout
    numbers = parameter_values(automaton.mechanism, parameters) if parameters else graph.values
    drive = resolve_inputs(automaton, numbers, inputs or {}, (0.0, 1.0))
    begin = initial_values(automaton, numbers, parameter_vector(numbers), initial, drive)
    coordinates = {name: value for name, value in begin.values.items() if name not in layout.u}
    insists = "mode" in (initial or {})
    found, rest = equilibrium_initial_state(automaton, coordinates, begin.mode, 0.0, begin.context, insists=insists)
    names = [row.name for row in automaton.rows]
    mode = automaton.name_of(rest.states)
    terms = automaton.terms.evaluate(0.0, found.x, found.context)
    # active rows; if they are dependent, their forces are indeterminate
    held = [i for i, row in enumerate(automaton.rows) if row.role in ("velocity", "position")]
    for contact, code in zip(automaton.contacts, rest.states, strict=True):
        rows = [contact.normal_row] if code and not contact.contact_law.compliant else []
        rows += [contact.tangent_row] if code == 1 else []
        held += [r for r in rows if r >= 0]
    A = terms["A"][held, : len(layout.u)]
    return Equilibrium(
        rest.q,
        mode.name,
        {c.name: c.states[code] for c, code in zip(automaton.contacts, rest.states, strict=True)},
        {
            name: rest.multipliers[[i for i, other in enumerate(names) if other == name]]
            for name in dict.fromkeys(names)
        },
        bool(len(held) > np.linalg.matrix_rank(A, tol=1e-9 * float(np.abs(A).max(initial=1.0)))) if held else False,
        {**dict(zip(layout.q, map(float, rest.q), strict=True)), **dict.fromkeys(layout.u, 0.0), "mode": mode.name},
    )
