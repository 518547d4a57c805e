"""Minimum-norm multipliers of redundant contacts, subject to the contact laws.

If constraint rows are redundant the programs of a mode give the forces ``λ`` of least norm, and these may lie
outside the friction cones although others with the same effect do not. Reported is

    min |λ|²  subject to  λ_n >= 0,  |λ_t| <= μ_s λ_n (stick),  λ_t = -μ_k σ λ_n (slide),

the limit of equal springs in all rows, on ``λ + N s`` with ``N`` an orthonormal basis of the forces without effect
(docs/theory.md, "Shares of redundant contacts"). This is a least distance problem in ``s``; it is solved as a
non-negative least squares problem (C. L. Lawson and R. J. Hanson, *Solving Least Squares Problems*, 1974, chapter
23). In space the cones are approached by tangent planes. If no shares are admissible the forces of least norm
remain, which is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from fsm_dyn.core.arrays import BoolArray, FloatArray, IntArray
from fsm_dyn.derive.unconstrained_system import FOLLOWS, ContactInfo
from fsm_dyn.language.laws import HELD, SLIDING_UNDER
from fsm_dyn.programs.layout import Layout
from fsm_dyn.programs.program import Only

DEPENDENT: Final = 1e-9  # largest zero singular value of unit rows
KEPT: Final = 4e-9  # violation of a law, as a fraction of the largest force, counting as none: guards have a fourth
NEARLY: Final = 1e-7  # the same of shares found where hardly any are admissible
PLANES: Final = 60  # tangent planes of a cone, at most
HARDLY: Final = 1e-10  # length of the residual of the least squares problem if no shares are admissible


@dataclass(frozen=True)
class ShareLaw:
    """One law on the forces of a contact: ``normal . λ + load - friction |λ_t| >= 0``.

    ``normal`` (n, n_rows) and ``load`` (n,) are linear; ``tangents`` are the rows of λ_t, none for a law without
    friction.
    """

    normal: FloatArray
    load: FloatArray
    tangents: tuple[int, ...] = ()

    def margin(self, forces: FloatArray) -> FloatArray:
        """Margin by which the forces (n, n_rows) satisfy the contact law, shape (n,)."""
        friction = np.linalg.norm(forces[:, list(self.tangents)], axis=1) if self.tangents else 0.0
        found: FloatArray = np.einsum("nr,nr->n", self.normal, forces) + self.load - friction
        return found


@dataclass(frozen=True)
class States:
    """Some instants of one mode.

    Attributes
    ----------
    contacts : sequence of ContactInfo
    states : sequence of int
        Contact state codes of the mode.
    terms : mapping
        ``A`` (n, n_rows, n_speeds), ``M`` (n, n_speeds, n_speeds), ``f`` (n, n_speeds), ``b`` (n, n_rows),
        ``static``, ``kinetic`` and ``elastic`` (n, n_contacts).
    u : ndarray, shape (n, n_u)
    sigma : ndarray, shape (n, n_contacts)
        Slip directions.
    """

    contacts: Sequence[ContactInfo]
    states: Sequence[int]
    terms: Mapping[str, FloatArray]
    u: FloatArray
    sigma: FloatArray

    def unknowns(self, forces: FloatArray) -> FloatArray:
        """Return which forces there are, as unit forces on all rows, shape (n, n_rows, n_unknowns).

        The friction of a sliding contact belongs to its normal force.
        """
        n, n_rows = forces.shape
        columns = []
        owned = {r for c in self.contacts for r in (c.normal_row, *c.tangent_rows)}
        for r in set(range(n_rows)) - owned:
            columns.append(_unit(n, n_rows, r))
        for k, (contact, code) in enumerate(zip(self.contacts, self.states, strict=True)):
            if code == 0:
                continue
            if contact.contact_law.rigid or contact.contact_law.switched:
                column = _unit(n, n_rows, contact.normal_row)
                if code > HELD and contact.tangent_rows:
                    side = -1.0 if code == SLIDING_UNDER else 1.0
                    friction = -side * self.terms["kinetic"][:, k, None] * self._direction(k)
                    column[:, list(contact.tangent_rows)] = friction
                columns.append(column)
            if code == HELD:
                columns += [_unit(n, n_rows, r) for r in contact.tangent_rows]
        return np.stack(columns, axis=2) if columns else np.zeros((n, n_rows, 0))

    def _direction(self, k: int) -> FloatArray:
        """Return the slip direction of a sliding contact, shape (n, tangents)."""
        contact, sigma = self.contacts[k], self.sigma[:, k]
        if not contact.in_space:
            return sigma[:, None]
        rows, n_u = list(contact.tangent_rows), self.u.shape[1]
        slip = np.einsum("nrk,nk->nr", self.terms["A"][:, rows, :n_u], self.u) + self.terms["b"][:, rows]
        kept = np.stack([np.cos(sigma), np.sin(sigma)], axis=1)
        moving = np.einsum("nr,nr->n", kept, slip) > FOLLOWS
        size = np.where(moving, np.linalg.norm(slip, axis=1), 1.0)
        found: FloatArray = np.where(moving[:, None], slip / size[:, None], kept)
        return found

    def loads(self) -> FloatArray:
        """Return how large the forces of the loads are in the directions of the rows, shape (n,), N.

        Decisions judge forces against the accelerations without contacts, in the metric of kinetic energy; so here.
        """
        mass = np.einsum("nii->ni", self.terms["M"])
        mass = np.where(mass > 0.0, mass, np.inf)
        free = np.sqrt(np.sum(self.terms["f"] ** 2 / mass, axis=1))
        yields = np.sqrt(np.einsum("nrj,nj->nr", self.terms["A"] ** 2, 1.0 / mass))
        most = yields.max(axis=1, initial=0.0)
        found: FloatArray = np.where(most > 0.0, free / np.where(most > 0.0, most, 1.0), 0.0)
        return found

    def laws(self, forces: FloatArray) -> list[ShareLaw]:
        """Return the laws of the contacts, with coefficients and sides as they are in the forces given."""
        n, n_rows = forces.shape
        nothing = np.zeros((n, n_rows))
        found = []
        for k, (contact, code) in enumerate(zip(self.contacts, self.states, strict=True)):
            if code and contact.contact_law.force_limit:
                found.append(ShareLaw(nothing, self.terms["static"][:, k], (contact.normal_row,)))
            if code == 0 or contact.contact_law.switched:
                continue
            normal, load = nothing, np.ones(n)
            if contact.contact_law.rigid:
                side = np.where(forces[:, contact.normal_row] < 0.0, -1.0, 1.0) if code == HELD else 1.0
                side = side if contact.bilateral else 1.0
                side = -1.0 if code == SLIDING_UNDER else side
                normal, load = np.zeros((n, n_rows)), np.zeros(n)
                normal[:, contact.normal_row] = side
                found.append(ShareLaw(normal, load))
            elif contact.contact_law.compliant:
                load = self.terms["elastic"][:, k]
            elif contact.contact_law.loaded:
                load = np.linalg.norm(forces[:, list(contact.load_rows)], axis=1)
            if code == HELD and contact.tangent_rows and not contact.sticks_always:
                limit = self.terms["static"][:, k]
                found.append(ShareLaw(limit[:, None] * normal, limit * load, contact.tangent_rows))
        return found

    def without_effect(self, unknowns: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return forces without effect on motion, orthonormal, (n, n_rows, most), and which of the ``most`` count."""
        inertia = np.einsum("nii->ni", self.terms["M"])
        scale = 1.0 / np.sqrt(np.where(inertia > 0.0, inertia, 1.0))
        effect = np.einsum("nj,nrj,nru->nju", scale, self.terms["A"], unknowns)
        length = np.linalg.norm(effect, axis=1, keepdims=True)
        unit = np.where(length > 0.0, length, 1.0)
        missing = max(effect.shape[2] - effect.shape[1], 0)
        effect = np.concatenate([effect / unit, np.zeros((len(effect), missing, effect.shape[2]))], axis=1)
        _, values, right = np.linalg.svd(effect)
        counts = values[:, : effect.shape[2]] <= DEPENDENT
        most = int(counts.sum(axis=1).max(initial=0))  # values fall: the relevant ones are the last
        right, counts = right[:, right.shape[1] - most :], counts[:, counts.shape[1] - most :]
        basis = unknowns @ (np.swapaxes(right, 1, 2) / np.swapaxes(unit, 1, 2)) * counts[:, None, :]
        return _orthonormal(basis), counts


def _unit(n: int, n_rows: int, row: int) -> FloatArray:
    column = np.zeros((n, n_rows))
    column[:, row] = 1.0
    return column


def _orthonormal(basis: FloatArray) -> FloatArray:
    """Make the nonzero columns orthonormal, from the last one on."""
    result = basis.copy()
    for j in reversed(range(basis.shape[2])):
        for _ in range(2):  # once more, against rounding
            for other in range(j + 1, basis.shape[2]):
                result[:, :, j] -= (
                    np.einsum("nr,nr->n", result[:, :, j], result[:, :, other])[:, None] * (result[:, :, other])
                )
        length = np.linalg.norm(result[:, :, j], axis=1, keepdims=True)
        result[:, :, j] /= np.where(length > 0.0, length, 1.0)
    return result


def reported_forces(
    layout: Layout,
    contacts: Sequence[ContactInfo],
    states: Sequence[int],
    terms: Callable[[IntArray, Only], Mapping[str, FloatArray]],
    x: FloatArray,
    context: FloatArray,
    forces: FloatArray,
) -> tuple[FloatArray, BoolArray]:
    """Return the forces to be reported at some instants of one mode whose rows are redundant.

    Parameters
    ----------
    layout : Layout
        Columns of states and contexts.
    contacts : sequence of ContactInfo
        The contacts of the model, in declared order.
    states : sequence of int
        Contact state codes of the mode, one per contact.
    terms : callable
        Returns unconstrained terms at some of the instants, shapes (n, ...): of each output named the rows listed, None
        for all.
    x, context : ndarrays, shapes (n, n_x) and (n, n_c)
    forces : ndarray, shape (n, n_rows)
        As the programs of the mode give them.

    Returns
    -------
    forces : ndarray, shape (n, n_rows)
        Of all forces of the same effect the smallest admissible ones.
    admissible : ndarray of bool, shape (n,)
        False if none are: then the forces are those given.
    """
    result, admissible = forces.copy(), np.ones(len(forces), dtype=np.bool_)
    closed = [k for k, code in enumerate(states) if code]
    open_rows = {
        r for c, code in zip(contacts, states, strict=True) for r in (c.normal_row, *c.tangent_rows) if not code
    }
    rows = [r for r in range(forces.shape[1]) if r not in open_rows]
    number = {r: i for i, r in enumerate(rows)} | {-1: -1}
    some = [
        msgspec.structs.replace(c, normal_row=number[c.normal_row], tangent_row=number[c.tangent_row])
        for c in (contacts[k] for k in closed)
    ]
    bounds: Only = dict.fromkeys(("static", "kinetic", "elastic"), closed)

    def at(which: IntArray, only: Only) -> States:
        sigma = context[which][:, layout.sigma_slice][:, closed]
        return States(some, [states[k] for k in closed], terms(which, only), x[which][:, layout.u_slice], sigma)

    largest = np.abs(forces).max(axis=1, initial=0.0)
    where = breaking_laws(at(np.arange(len(forces)), bounds), forces[:, rows], largest)
    if len(where):
        some_states = at(where, {**bounds, "A": rows, "b": rows, "M": None, "f": None})
        size = np.maximum(largest[where], some_states.loads())
        found, admissible[where] = admissible_forces(some_states, forces[where][:, rows], size)
        result[where[:, None], rows] = found
    return result, admissible


def breaking_laws(at: States, forces: FloatArray, size: FloatArray) -> IntArray:
    """Return the instants at which the forces (n, n_rows) break a law of a contact by more than a part of ``size``."""
    broken = np.zeros(len(forces), dtype=np.bool_)
    for law in at.laws(forces):
        broken |= law.margin(forces) < -KEPT * size
    return np.flatnonzero(broken)


def admissible_forces(at: States, forces: FloatArray, size: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return of all forces of the same effect the smallest admissible, (n, n_rows), and whether there are any, (n,).

    Parameters
    ----------
    at : States
    forces : ndarray, shape (n, n_rows)
    size : ndarray, shape (n,)
        The largest force at play, N.
    """
    result, admissible = forces.copy(), np.ones(len(forces), dtype=np.bool_)
    laws = at.laws(forces)
    where = breaking_laws(at, forces, size)
    basis, counts = at.without_effect(at.unknowns(forces))
    for i in where:
        free = basis[i][:, counts[i]]
        own = [ShareLaw(law.normal[i : i + 1], law.load[i : i + 1], law.tangents) for law in laws]
        found = smallest_admissible(forces[i] / size[i], free, own, size[i])
        admissible[i] = found is not None
        if found is not None:
            result[i] = found * size[i]
    return result, admissible


def smallest_admissible(
    forces: FloatArray, free: FloatArray, laws: Sequence[ShareLaw], size: float
) -> FloatArray | None:
    """Solve ``min |λ|`` over ``λ = forces + free s`` within the contact laws; None without one.

    Parameters
    ----------
    forces : ndarray, shape (n_rows,)
        In units of ``size``.
    free : ndarray, shape (n_rows, k)
        Orthonormal.
    laws : sequence of ShareLaw
        Each of one instant.
    size : float
        N
    """
    if free.shape[1] == 0:
        return None
    least = forces - free @ (free.T @ forces)
    linear, right, cones = [], [], []
    for law in laws:
        normal, load = law.normal[0], float(law.load[0]) / size
        if len(law.tangents) == 1:
            for sign in (-1.0, 1.0):
                row = normal.copy()
                row[law.tangents[0]] += sign
                linear.append(row)
                right.append(-load - KEPT)
            continue
        linear.append(normal)
        right.append(-load - (0.0 if law.tangents else KEPT))
        if law.tangents:
            cones.append((normal, load, list(law.tangents)))
    found = least
    for _ in range(PLANES):
        nearest = _least_distance(np.array(linear), np.array(right), least, free)
        if nearest is None:
            return None
        found = nearest
        worst = 0.0
        for normal, load, tangents in cones:
            friction = float(np.linalg.norm(found[tangents]))
            excess = friction - float(normal @ found) - load
            worst = max(worst, excess)
            if excess > KEPT:
                row = normal.copy()
                row[tangents] -= found[tangents] / friction
                linear.append(row)
                right.append(-load - 0.5 * KEPT)
        if worst <= KEPT:
            break
    if min(float(law.margin(found[None] * size)[0]) for law in laws) < -NEARLY * size:
        return None
    return found


def _least_distance(linear: FloatArray, right: FloatArray, least: FloatArray, free: FloatArray) -> FloatArray | None:
    """Return ``least + free s`` with the smallest ``|s|`` for which ``linear . (least + free s) >= right``."""
    # scipy takes a fifth of a second to import, and few runs need it
    from scipy.optimize import nnls

    G, h = linear @ free, right - linear @ least
    if (h <= 0.0).all():
        return least
    k = free.shape[1]
    try:
        weights, length = nnls(np.vstack([G.T, h]), np.append(np.zeros(k), 1.0))
    except RuntimeError:  # it did not terminate
        return None
    if length <= HARDLY:
        return None
    residual = np.append(G.T @ weights, h @ weights - 1.0)
    found: FloatArray = least - free @ (residual[:k] / residual[k])
    return found
