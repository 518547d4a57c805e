"""One mode of a mode graph: its equations as numbers at a state, and as formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode, slip_angle
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.mode_programs import active_rows, mode_matrices
from fsm_dyn.derive.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs.program import Counts, Program

if TYPE_CHECKING:
    from fsm_dyn.derive.equations import KaneEquations
    from fsm_dyn.derive.printing import Equations


# -- Arrays of numbers with a name for every index of every axis ---------------------------------------------


@dataclass(frozen=True, eq=False)
class NamedArray:
    """Array with named indices: ``M["u1", "u2"]``; NumPy treats it as its array of numbers.

    Attributes
    ----------
    values : ndarray
        The numbers, SI units.
    names : tuple of tuple of str
        For each axis the names of its indices, in order; a repeated name means its first occurrence.
    """

    values: Floats
    names: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if self.values.shape != tuple(len(names) for names in self.names):
            raise ValueError(f"{self.values.shape} numbers, but names for {[len(names) for names in self.names]}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.values.shape

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy or dtype is not None else self.values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: str | tuple[str, ...]) -> Any:
        """Return a number, or the array of the unnamed last axes.

        Raises InputError: an axis has no such name, or there are more names than axes.
        """
        keys = (key,) if isinstance(key, str) else key
        if len(keys) > len(self.names):
            raise InputError("more names than axes", found=str(len(keys)), allowed=str(len(self.names)))
        place = []
        for axis, (name, names) in enumerate(zip(keys, self.names, strict=False)):
            if name not in names:
                raise InputError(
                    f"axis {axis} has no '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names)
                )
            place.append(names.index(name))
        part = self.values[tuple(place)]
        rest = self.names[len(keys) :]
        return NamedArray(part, rest) if rest else float(part)

    def __str__(self) -> str:
        # with 0.0 added a negative zero is printed as zero
        if len(self.names) == 1:
            return "\n".join(
                f"{name} {value + 0.0:.6g}" for name, value in zip(self.names[0], self.values, strict=True)
            )
        if len(self.names) > 2:
            return "\n".join(f"{name}:\n{self[name]}" for name in self.names[0])
        cells = [["", *self.names[1]]]
        cells += [
            [name, *(f"{value + 0.0:.6g}" for value in row)]
            for name, row in zip(self.names[0], self.values, strict=True)
        ]
        widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        )

    __repr__ = __str__


# -- One mode of a mode graph: its equations as numbers at a state, and as formulas --------------------------

Values = Sequence[float] | Floats
Inputs = Mapping[str, float] | Sequence[float] | None
AXES = ("x", "y", "z")
SINGULAR = 1e-6  # below this smallest scaled pivot the chart is left for another


class ModeView:
    """One mode: its contact states, its equations as numbers and as formulas.

    Obtained as ``graph.modes[name]``.
    """

    def __init__(self, automaton: Automaton, mode: DerivedMode, parameters: Floats) -> None:
        self._automaton = automaton
        self._mode = mode
        self._parameters = parameters

    def __repr__(self) -> str:
        return f"<Mode {self.name}: {self.degrees_of_freedom} independent speeds, {self.states}>"

    @property
    def name(self) -> str:
        """Name of the mode."""
        return self._mode.name

    @cached_property
    def states(self) -> dict[str, str]:
        """Contact states by name."""
        return {c.name: c.states[code] for c, code in zip(self._automaton.contacts, self._mode.states, strict=True)}

    @property
    def independent_speeds(self) -> tuple[str, ...]:
        """Names of the integrated speeds; the others follow from them."""
        return tuple(self._automaton.terms.layout.u[i] for i in self._mode.programs.independent)

    @property
    def degrees_of_freedom(self) -> int:
        """Number of independent speeds."""
        return len(self._mode.programs.independent)

    @property
    def redundant_rows(self) -> tuple[str, ...]:
        """Redundant rows of this mode, by the names of :attr:`active_rows`; their multipliers are indeterminate."""
        return tuple(self._row_names[r] for r in self._mode.programs.redundant)

    @property
    def counts(self) -> Counts:
        """Operation counts of one evaluation of the state's derivative."""
        return self._mode.programs.rhs.counts()

    def derivatives(
        self,
        t: float,
        q: Values,
        u: Values,
        w: Inputs = None,
        *,
        directions: Mapping[str, float] | None = None,
    ) -> tuple[Floats, Floats]:
        """Return ``q_dot`` (n_q,) and ``u_dot`` (n_u,) at a state, SI units.

        Parameters
        ----------
        t : float
            Time, s.
        q, u : array-like, shapes (n_q,), (n_u,)
            Coordinates and speeds; only the independent speeds are read, the others are computed.
        w : mapping or sequence, optional
            Inputs; 0 by default.
        directions : mapping of contact name to ±1, optional
            Slip directions; from the slip speeds by default.

        Raises
        ------
        InputError
            Wrong length, unknown input or contact, or a sliding contact at rest without a direction.
        """
        values = self._evaluate(t, q, u, w, directions)
        n_q = len(self._automaton.terms.layout.q)
        return values["x_dot"][:n_q], values["x_dot"][n_q:]

    def contact_forces(
        self,
        t: float,
        q: Values,
        u: Values,
        w: Inputs = None,
        *,
        directions: Mapping[str, float] | None = None,
    ) -> dict[str, Floats]:
        """Return the forces of all contacts and constraints by name, normal before tangent (N or N·m).

        The sign follows ``M u̇ = f + Σ Aᵀ λ``: a positive normal force pushes apart.
        """
        multipliers = self._evaluate(t, q, u, w, directions)["multipliers"]
        names = [row.name for row in self._automaton.rows]
        return {
            name: np.array([multipliers[i] for i, other in enumerate(names) if other == name])
            for name in dict.fromkeys(names)
        }

    def guards(
        self,
        t: float,
        q: Values,
        u: Values,
        w: Inputs = None,
        *,
        directions: Mapping[str, float] | None = None,
    ) -> list[tuple[str, float, float]]:
        """Return (text, value, slope) of every guard at a state; a guard fires when it falls through zero."""
        values = self._evaluate(t, q, u, w, directions)
        return [
            (guard.text, float(value), float(slope))
            for guard, value, slope in zip(self._mode.guards, values["guards"], values["slopes"], strict=True)
        ]

    def equations(self, *, expand_symbols: bool = False) -> Equations:
        """Return the mode's equations of motion for reading: sympy expressions and LaTeX, with operation counts.

        Parameters
        ----------
        expand_symbols : bool
            Whether to put intermediate symbols back in; long mechanisms become unreadable so.
        """
        # sympy is needed for reading only, never for running
        from fsm_dyn.derive.printing import read_equations

        return read_equations(self._mode.programs.rhs, expand_symbols=expand_symbols)

    def mass_matrix(self, q: Values, *, t: float = 0.0, w: Inputs = None) -> NamedArray:
        """Return M of ``M u̇ = f + G λ`` by speed and speed, shape (n_u, n_u), SI units.

        Parameters
        ----------
        q : array-like, shape (n_q,)
        t : float, optional
            Time, s.
        w : mapping or sequence, optional
            Inputs; 0 by default.

        Raises
        ------
        InputError
            Wrong length, or an unknown input.
        """
        return self._matrix("M", (self._speeds, self._speeds), t, q, None, w)

    def forcing(
        self, t: float, q: Values, u: Values, w: Inputs = None, *, directions: Mapping[str, float] | None = None
    ) -> NamedArray:
        """Return f of ``M u̇ = f + G λ`` by speed, shape (n_u,): loads, velocity terms, and known contact forces.

        These are the forces of compliant contacts and friction with a bound independent of λ.  Arguments as of
        :meth:`derivatives`, but `u` is used unchanged, dependent speeds included.
        """
        return self._matrix("f", (self._speeds,), t, q, u, w, directions)

    def constraint_matrix(self, q: Values, *, t: float = 0.0, w: Inputs = None) -> NamedArray:
        """Return A of ``A u + b = 0`` by active constraint row and speed, shape (m, n_u); see :meth:`mass_matrix`.

        A row has the name of its constraint or contact, of a contact with the role (``ramp.normal``).
        """
        return self._matrix("A", (self.active_rows, self._speeds), t, q, None, w)

    def orthogonal_complement(self, q: Values, *, t: float = 0.0, w: Inputs = None) -> NamedArray:
        """Return T of ``u = T u_I + e`` by speed and independent speed, shape (n_u, p); ``A T = 0``."""
        return self._matrix("T", (self._speeds, self.independent_speeds), t, q, None, w)

    def partial_velocities(self, q: Values, *, t: float = 0.0, w: Inputs = None) -> NamedArray:
        """Return the partial velocities of all points by point, speed and axis of N, shape (n_points, n_u, 3)."""
        names = (self._automaton.point_names, self._speeds, AXES)
        return self._matrix("point_velocities", names, t, q, None, w)

    def partial_angular_velocities(self, q: Values, *, t: float = 0.0, w: Inputs = None) -> NamedArray:
        """Return the partial angular velocities of all frames by frame, speed and axis of N."""
        names = (self._automaton.frame_names, self._speeds, AXES)
        return self._matrix("angular_velocities", names, t, q, None, w)

    def point_positions(self, q: Values, *, t: float = 0.0, w: Inputs = None) -> NamedArray:
        """Return the positions of all points by point and axis of N (m), shape (n_points, 3)."""
        x, c = self._arguments(q, np.zeros(len(self._speeds)), w)
        positions = self._automaton.geometry.evaluate(t, x, c)["points"]
        return NamedArray(positions, (self._automaton.point_names, AXES))

    def point_chains(self) -> dict[str, str]:
        """Return for each point of the model the point from which it is measured."""
        return {name: point.origin for name, point in self._automaton.mechanism.points.items()}

    @property
    def active_rows(self) -> tuple[str, ...]:
        """Names of the mode's active constraint rows, in the order of :meth:`constraint_matrix`."""
        return tuple(self._row_names[r] for r in active_rows(self._automaton.system, self._mode.states))

    @property
    def _row_names(self) -> tuple[str, ...]:
        return tuple(row.name if row.contact < 0 else f"{row.name}.{row.role}" for row in self._automaton.rows)

    @property
    def _speeds(self) -> tuple[str, ...]:
        return self._automaton.terms.layout.u

    @cached_property
    def matrices(self) -> Program:
        """The mode's matrices as a straight-line program (:func:`fsm_dyn.derive.mode_programs.mode_matrices`)."""
        automaton, programs = self._automaton, self._mode.programs
        # in a new graph, as the automaton's own is sealed
        system = UnconstrainedSystem.build(
            automaton.terms, automaton.rows, automaton.contacts, automaton.user_transitions, automaton.quaternions,
            automaton.n_kinematic, units=automaton.units, curve_parameters=automaton.curve_parameters,
        )  # fmt: skip
        return mode_matrices(system, programs.states, programs.chart, automaton.geometry)

    def _matrix(
        self,
        output: str,
        names: tuple[tuple[str, ...], ...],
        t: float,
        q: Values,
        u: Values | None,
        w: Inputs,
        directions: Mapping[str, float] | None = None,
    ) -> NamedArray:
        n_u = len(self._speeds)
        x, c = self._arguments(q, np.zeros(n_u) if u is None else u, w)
        if u is not None:
            c[self._automaton.terms.layout.sigma_slice] = self._directions(t, x, c, directions or {})
        return NamedArray(self.matrices.evaluate(t, x, c, {output: None})[output], names)

    @cached_property
    def kane_equations(self) -> KaneEquations:
        """Kane's equations of the mode as SymPy, LaTeX, NumPy and C, from partial velocities to ``u̇``."""
        # for reading only, never for running
        from fsm_dyn.derive.equations import KaneEquations

        return KaneEquations(
            self._automaton.mechanism,
            self.name,
            self.matrices,
            self._mode.programs.full,
            tuple(self._speeds.index(name) for name in self.independent_speeds),
            self.active_rows,
            self._row_names,
            tuple(guard.text for guard in self._mode.guards),
            self._parameters,
        )

    def _evaluate(
        self,
        t: float,
        q: Values,
        u: Values,
        w: Inputs,
        directions: Mapping[str, float] | None,
    ) -> dict[str, Floats]:
        x, c = self._arguments(q, u, w)
        c[self._automaton.terms.layout.sigma_slice] = self._directions(t, x, c, directions or {})
        values = self._mode.programs.full.evaluate(t, x, c)
        if not values["pivot"][0] >= SINGULAR:
            # the chart is degenerate here; a valid one gives the same motion
            values = self._automaton.derive(self._mode.states, t, x, c).programs.full.evaluate(t, x, c)
        return values

    def _arguments(self, q: Values, u: Values, w: Inputs) -> tuple[Floats, Floats]:
        """Return the state and a context without slip directions."""
        layout = self._automaton.terms.layout
        c = np.zeros(layout.n_c)
        c[layout.p_slice], c[layout.w_slice] = self._parameters, _inputs(w, layout.w)
        return np.concatenate([_vector("q", q, layout.q), _vector("u", u, layout.u)]), c

    def _directions(self, t: float, x: Floats, c: Floats, given: Mapping[str, float]) -> Floats:
        contacts = self._automaton.contacts
        for name, direction in given.items():
            if name not in self.states:
                raise InputError(f"no contact '{name}'", remedy=did_you_mean(name, self.states))
            if direction not in (1.0, -1.0):
                raise InputError(f"the slip direction of '{name}' is 1 or -1", found=repr(direction))
        sigma = np.zeros(len(contacts))
        sliding = [i for i, code in enumerate(self._mode.states) if code == 2]
        if not sliding:
            return sigma
        terms = self._automaton.terms.evaluate(t, x, c)
        n_q = len(self._automaton.terms.layout.q)
        slips = terms["A"][:, : len(x) - n_q] @ x[n_q:] + terms["b"]
        for i in sliding:
            contact = contacts[i]
            if contact.in_space:
                sigma[i] = float(slip_angle(slips[list(contact.tangent_rows)], 0.0, self._automaton.units.speed))
            else:
                sigma[i] = given.get(contact.name, float(np.sign(slips[contact.tangent_row])))
            if sigma[i] == 0.0:
                raise InputError(
                    f"'{contact.name}' slides but its slip speed is zero",
                    remedy=f"give directions={{'{contact.name}': 1}} or -1",
                )
        return sigma


def _vector(what: str, values: Values, names: Sequence[str]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(names),):
        raise InputError(f"'{what}' has the wrong shape", found=str(array.shape), allowed=f"({len(names)},): {names}")
    return array


def _inputs(w: Inputs, names: Sequence[str]) -> Floats:
    if w is None:
        return np.zeros(len(names))
    if isinstance(w, Mapping):
        for name in w:
            if name not in names:
                raise InputError(f"no input '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names))
        return np.array([float(w.get(name, 0.0)) for name in names])
    return _vector("w", w, names)
