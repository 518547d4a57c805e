"""Unknowns and operations of one mode by several methods, and by other generalized speeds than the model's.

Alternatives after P. Mitiguy and T. R. Kane, "Motion variables leading to efficient equations of motion", International
Journal of Robotics Research 15 (1996): angular velocities by components along the axes of the body, velocities of mass
centres by components along axes with short expressions, rather than rates of coordinates.  Every choice is derived and
counted; none is applied.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from fsm_dyn.automaton.compilation import compile as compile_model
from fsm_dyn.automaton.compilation import load
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.mode_view import ModeView
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.svg import table
from fsm_dyn.language.builder import Model
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.memory import speed_definitions, with_speeds
from fsm_dyn.language.model import Body, Mechanism
from fsm_dyn.programs.program import Counts
from fsm_dyn.programs.traversal import evaluate, support

SEED: Final = 20030818


def dense_solution(unknowns: int) -> int:
    """Return the operations by which a dense symmetric system is solved, by L D Lᵀ.

    Elimination below a pivot with m rows takes m quotients, m (m + 1) for the matrix and 2 m for the right side, back
    substitution 2 m and a quotient.
    """
    return sum(m * m + 6 * m + 1 for m in range(unknowns))


@dataclass(frozen=True)
class MethodCount:
    """One method.

    Attributes
    ----------
    method : str
    unknowns : int
        Accelerations and forces solved for at every evaluation; 0 if the solution is written out.
    form, solve, together : int or None
        Operations to form the equations, to solve them as a dense symmetric system (zeros are not used), and both;
        None if they are not counted.
    """

    method: str
    unknowns: int
    form: int | None
    solve: int | None
    together: int | None


@dataclass(frozen=True)
class MethodTable:
    """Methods for one mode of a model; printed as a table."""

    model: str
    mode: str
    methods: tuple[MethodCount, ...]

    def __str__(self) -> str:
        rows = [
            (m.method, str(m.unknowns), *("" if n is None else str(n) for n in (m.form, m.solve, m.together)))
            for m in self.methods
        ]
        return f"{self.model}, mode '{self.mode}'\n" + table(("method", "unknowns", "form", "solve", "together"), rows)


@typed
def count_methods(
    model: str | os.PathLike[str] | Mapping[str, object] | Model | Mechanism | ModeGraph, mode: str | None = None
) -> MethodTable:
    """Count unknowns and operations of a mode by Newton and Euler, Lagrange, and Kane.

    Newton's and Euler's equations have the coordinates of every body and a force for each that the others determine;
    Lagrange's the rates of the coordinates and multipliers; Kane's the speeds and multipliers, or with the rows
    embedded the independent speeds alone, whose solution is written out.

    Parameters
    ----------
    model : str, Mechanism or ModeGraph
    mode : str, optional
        By default the one runs start in.

    Returns
    -------
    MethodTable

    Raises
    ------
    InputError
        There is no such mode.
    """
    graph = model if isinstance(model, ModeGraph) else compile_model(model)
    name = graph.initial if mode is None else mode
    if name not in graph.modes:
        raise InputError(f"no mode '{name}'", allowed=", ".join(graph.modes), remedy=did_you_mean(name, graph.modes))
    view = graph.modes[name]
    kane = view.kane_equations
    bodies, p = body_coordinates(graph, view), len(kane.independent)
    found = [_with_solution("Newton and Euler, bodies and reactions", 2 * bodies - p, None)]
    mechanism = graph.automaton.mechanism
    if not any(frame.euler_names for frame in mechanism.frames.values()):
        lagrange = kane.lagrange()
        unknowns = len(lagrange.coordinates) + len(lagrange.rows)
        found.append(_with_solution("Lagrange, rates and multipliers", unknowns, lagrange.counts.total))
    form = kane.part("M", "f", "A", "gamma").counts().total
    found.append(_with_solution("Kane, speeds and multipliers", len(kane.speeds) + len(kane.rows), form))
    found.append(MethodCount("Kane, embedded", p, None, None, kane.counts.together.total))
    found.append(MethodCount("Kane, embedded, compact", p, None, None, kane.compact_program().counts().total))
    return MethodTable(graph.name, name, tuple(found))


def _with_solution(method: str, unknowns: int, form: int | None) -> MethodCount:
    solve = dense_solution(unknowns)
    return MethodCount(method, unknowns, form, solve, None if form is None else form + solve)


def body_coordinates(graph: ModeGraph, view: ModeView) -> int:
    """Return the number of coordinates of the bodies without joints: 6 each, in the plane 3.

    A particle counts as a body, since rows and loads may refer to a frame that turns with it.
    """
    generator = np.random.default_rng(SEED)
    q = generator.uniform(0.3, 1.3, len(graph.automaton.terms.layout.q))
    moved, turned = np.asarray(view.partial_velocities(q)), np.asarray(view.partial_angular_velocities(q))
    planar = not np.abs(moved[..., 2]).any() and not np.abs(turned[..., :2]).any()
    return (3 if planar else 6) * len(graph.automaton.mechanism.bodies)


# -- State variables -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StateVariables:
    """Numbers of Gillespie (2003), Table 1, for one mode.

    Attributes
    ----------
    mode : str
    bodies : int
    M : int
        Configuration constraints, embedded by the choice of coordinates.
    n : int
        Coordinates.
    m : int
        Motion constraints, embedded by the choice of speeds or by the rows of the mode.
    p : int
        Independent speeds, ``n - m``; n + p state variables against 2 n with Lagrange's method.
    """

    mode: str
    bodies: int
    M: int
    n: int
    m: int
    p: int


@typed
def state_variables(
    model: str | os.PathLike[str] | Mapping[str, object] | Model | Mechanism | ModeGraph,
) -> tuple[StateVariables, ...]:
    """Return the numbers of bodies, constraints, coordinates and speeds of each mode, as Gillespie's Table 1 has them.

    Parameters
    ----------
    model : str, Mechanism or ModeGraph
    """
    graph = model if isinstance(model, ModeGraph) else compile_model(model)
    bodies = len(graph.automaton.mechanism.bodies)
    n = len(graph.automaton.terms.layout.q) - len(graph.automaton.quaternions)
    found = []
    for name, view in graph.modes.items():
        p = view.degrees_of_freedom
        found.append(StateVariables(name, bodies, body_coordinates(graph, view) - n, n, n - p, p))
    return tuple(found)


# -- Alternatives to the generalized speeds of a model, with the operations of the resulting equations -------

INDEPENDENT = 1e-9  # least linearly independent part of a row, relative
STATES = 200  # configurations at which coupling is evaluated
UNCOUPLED = 1e-9


@dataclass(frozen=True)
class SpeedChoice:
    """One choice of speeds and the operations of the initial mode.

    Attributes
    ----------
    title : str
        Principle of the choice.
    speeds : dict of str to str
        Names and definitions, as ``speeds:`` of a model file.
    kinematics, dynamics, together : Counts
        Operations of q̇, of u̇, and of both in one program.
    coupling : mapping of (str, str) to float
        How strongly each pair of independent speeds is coupled (:meth:`KaneEquations.coupling`).
    products : mapping of (str, str) to bool
        Which pairs of all speeds are multiplied in the unconstrained forces (Coriolis terms, not squares).
    """

    title: str
    speeds: Mapping[str, str]
    kinematics: Counts
    dynamics: Counts
    together: Counts
    coupling: Mapping[tuple[str, str], float] = field(default_factory=dict)
    products: Mapping[tuple[str, str], bool] = field(default_factory=dict)

    @property
    def strongest(self) -> float:
        """The strongest coupling of two speeds, 0 without any."""
        return max(self.coupling.values(), default=0.0)

    @property
    def reason(self) -> str:
        """Why the choice is short or long: which couplings by inertia and by products of speeds there are."""
        return "; ".join(filter(None, (self._by_inertia, self._by_products)))

    @property
    def _by_products(self) -> str:
        met = [" ".join(pair) for pair, multiplied in self.products.items() if multiplied]
        if not self.products or len(met) == len(self.products) > 1:
            return "all products of two speeds occur" if met else ""
        if not met:
            return "no product of two speeds occurs"
        return f"products of speeds: {', '.join(met)}" if len(met) < 4 else f"{len(met)} products of two speeds"

    @property
    def _by_inertia(self) -> str:
        if not self.coupling:
            return "one independent speed, or none: nothing is coupled"
        free = [" and ".join(pair) for pair, value in self.coupling.items() if value < UNCOUPLED]
        if len(free) == len(self.coupling):
            return "no two speeds are coupled: the mass matrix is diagonal"
        pair = max(self.coupling, key=lambda key: self.coupling[key])
        text = f"{' and '.join(pair)} are coupled up to {self.strongest:.2f}"
        return text + (f"; uncoupled: {', '.join(free)}" if free else "")


@dataclass(frozen=True)
class SpeedAdvice:
    """Choices of speeds, the model's own first, then others by rising number of operations.

    The shortest is :attr:`best`, possibly the model's own.
    """

    model: str
    mode: str
    choices: tuple[SpeedChoice, ...]

    @property
    def best(self) -> SpeedChoice:
        """The choice of fewest operations; of several the first."""
        return min(self.choices, key=lambda choice: choice.together.total)

    def __str__(self) -> str:
        """Return the choices as text, with the definitions of the shortest."""
        lines = [
            f"{self.model}, mode '{self.mode}': operations of kinematics, dynamics, both together",
            "(rules for speeds of bodies: Mitiguy and Kane, 1996)",
        ]
        for choice in self.choices:
            counts = (choice.kinematics.total, choice.dynamics.total, choice.together.total)
            lines.append("  " + "".join(f"{count:8d}" for count in counts) + f"  {choice.title}: {choice.reason}")
        if self.best is self.choices[0]:
            return "\n".join([*lines, "no shorter choice was found than the model's own"])
        lines.append("speeds:")
        return "\n".join([*lines, *(f'  {name}: "{text}"' for name, text in self.best.speeds.items())])


def advise_speeds(model: str | Mechanism) -> SpeedAdvice:
    """Derive a model with other generalized speeds and count operations, without a change of the model.

    Parameters
    ----------
    model : str or Mechanism
        A name, a path, or a loaded mechanism.

    Returns
    -------
    SpeedAdvice

    Raises
    ------
    ModelError
        The model itself cannot be compiled.
    """
    mechanism = model if isinstance(model, Mechanism) else load(model)
    mode = compile_model(mechanism).initial
    own = {name: text.text for name, text in speed_definitions(mechanism).items()}
    choices = [_counted(mechanism, "as in the model", own, mode)]
    known = {tuple(own.values())}
    for title, candidates in _CANDIDATES.items():
        texts = _independent(mechanism, [Text(text) for text in candidates(mechanism)], len(own))
        definitions = {f"u{k}": text for k, text in enumerate(texts, start=1)}
        if len(texts) < len(own) or tuple(texts) in known:
            continue
        known.add(tuple(texts))
        try:
            choices.append(_counted(with_speeds(mechanism, definitions), title, definitions, mode))
        except ModelError:  # singular at the start of the motion
            continue
    first, *others = choices
    return SpeedAdvice(mechanism.name, mode, (first, *sorted(others, key=lambda choice: choice.together.total)))


def _counted(mechanism: Mechanism, title: str, speeds: Mapping[str, str], mode: str) -> SpeedChoice:
    graph = compile_model(mechanism, cache=False)
    kane = graph.modes[mode].kane_equations
    counts, shares, names = kane.counts, kane.coupling(STATES), kane.independent
    coupling = {(names[i], names[j]): float(shares[i, j]) for i, j in itertools.combinations(range(len(names)), 2)}
    return SpeedChoice(title, speeds, counts.kinematics, counts.dynamics, counts.together, coupling, _products(graph))


def _products(graph: ModeGraph) -> dict[tuple[str, str], bool]:
    """Return which pairs of speeds are multiplied in the unconstrained forces, by differences at random states."""
    terms, random = graph.automaton.terms, np.random.default_rng(SEED)
    layout = terms.layout
    x = np.zeros((STATES, layout.n_x))
    x[:, layout.q_slice] = random.uniform(0.2, 1.2, (STATES, len(layout.q)))
    c = random.uniform(0.3, 1.3, (STATES, layout.n_c))
    first = layout.u_slice.start

    def force(*speeds: int) -> Floats:
        moved = x.copy()
        moved[:, [first + k for k in speeds]] = 1.0
        found: Floats = terms.evaluate(0.0, moved, c, {"f": None})["f"]
        return found

    still, alone = force(), [force(k) for k in range(len(layout.u))]
    found = {}
    for i, j in itertools.combinations(range(len(layout.u)), 2):
        mixed = force(i, j) - alone[i] - alone[j] + still
        size = np.abs(alone[i]).max() + np.abs(alone[j]).max() + np.abs(still).max()
        found[layout.u[i], layout.u[j]] = bool(np.abs(mixed).max(initial=0.0) > UNCOUPLED * size)
    return found


# -- candidates of speeds ----------------------------------------------------------------------------------


def _turns(bodies: Sequence[Body], axes: Callable[[str], str]) -> Iterator[str]:
    for body in bodies:
        if body.frame is not None:
            yield from (f"dot(omega({body.frame}), {axes(body.frame)}.{axis})" for axis in "xyz")


def _moves(bodies: Sequence[Body], axes: Callable[[str], str]) -> Iterator[str]:
    for body in bodies:
        frame = axes(body.frame or "N")
        yield from (f"dot(vel({body.center}), {frame}.{axis})" for axis in "xyz")


def _same(frame: str) -> str:
    return frame


def _newtonian(frame: str) -> str:
    del frame
    return "N"


def _bodies(mechanism: Mechanism) -> list[Body]:
    return list(mechanism.bodies.values())


def _rates(mechanism: Mechanism) -> list[str]:
    return [f"rate({name})" for name in mechanism.coordinates]


_CANDIDATES: dict[str, Callable[[Mechanism], list[str]]] = {
    "rates of the coordinates": lambda m: [*_rates(m), *_turns(_bodies(m), _same)],
    "turns along body axes, then centres along N": lambda m: [
        *_turns(_bodies(m), _same), *_moves(_bodies(m), _newtonian), *_rates(m),
    ],
    "turns along body axes, then centres along body axes": lambda m: [
        *_turns(_bodies(m), _same), *_moves(_bodies(m), _same), *_rates(m),
    ],
    "centres along body axes, then turns along body axes": lambda m: [
        *_moves(_bodies(m), _same), *_turns(_bodies(m), _same), *_rates(m),
    ],
    "centres along N, then turns along body axes": lambda m: [
        *_moves(_bodies(m), _newtonian), *_turns(_bodies(m), _same), *_rates(m),
    ],
    "turns along body axes, outer bodies first": lambda m: [
        *_turns(_bodies(m)[::-1], _same), *_moves(_bodies(m)[::-1], _same), *_rates(m),
    ],
    "turns along N": lambda m: [*_turns(_bodies(m), _newtonian), *_moves(_bodies(m), _newtonian), *_rates(m)],
}  # fmt: skip


def _independent(mechanism: Mechanism, candidates: Sequence[Text], count: int) -> list[str]:
    """Return the first candidates sufficient, with the kinematic constraints, for the rates of all coordinates."""
    # SymPy is imported for derivations only
    from fsm_dyn.derive.speeds import definition_rows
    from fsm_dyn.derive.symbols import build_system

    rows = definition_rows(build_system(mechanism), candidates)
    flat = [node for row in rows for node in row]
    random = np.random.default_rng(SEED)
    values = {symbol.name: float(random.uniform(0.2, 1.2)) for symbol in sorted(support(flat), key=lambda s: s.name)}
    Y = np.array([float(value) for value in evaluate(flat, values)]).reshape(len(rows), -1)
    basis = np.linalg.qr(Y[len(candidates) :].T)[0]
    chosen: list[str] = []
    for text, row in zip(candidates, Y, strict=False):
        left = row - basis @ (basis.T @ row)
        left -= basis @ (basis.T @ left)
        if len(chosen) < count and np.linalg.norm(left) > INDEPENDENT * max(1.0, float(np.linalg.norm(row))):
            basis = np.column_stack([basis, left / np.linalg.norm(left)])
            chosen.append(text.text)
    return chosen
