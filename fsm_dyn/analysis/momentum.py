"""Momenta of a mechanism along the ways in which it can move as one rigid body.

A pendulum can turn as a whole about its hinge, a box that flies can be shifted and turned in all ways.  Along such
a way, ``V u = rigid velocity`` with ``A u = 0``, joints and rows do no work, so the rate of the momentum is the loads'
generalized force alone (docs/theory.md).  The momenta are those of places and attitudes of the
bodies, which Kane's equations do not come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fsm_dyn.programs import Node, evaluate, substitute, support, tangent

if TYPE_CHECKING:
    from fsm_dyn.symbolic.terms import Terms

Array = npt.NDArray[np.float64]

RIGID = 1e-10  # of a rigid velocity: what the speeds may miss of it


class Momenta:
    """Momentum and moment of momentum about O of all bodies, prepared as nodes.

    Parameters
    ----------
    terms : Terms
        Of a mechanism in which nothing moves by itself.
    flow : mapping of Node to Node
        Rates of the coordinates.
    """

    def __init__(self, terms: Terms, flow: Mapping[Node, Node]) -> None:
        self._terms = terms
        self._flow = dict(flow)
        self.count = 0
        graph = terms.graph
        places, partials, momentum = [], [], [graph.zero] * 6
        for center, frame, mass, tensor in self._bodies():
            r, R = list(terms.points[center]), [list(row) for row in terms.frames[frame]]
            v, spin = self._moved(r, R, self._flow)
            turned = [_dot(R[i], [_dot(tensor[j], [_dot([R[k][m] for k in range(3)], spin) for m in range(3)])
                                  for j in range(3)]) for i in range(3)]  # fmt: skip
            arm = _cross(r, v)
            for i in range(3):
                momentum[i] = momentum[i] + mass * v[i]
                momentum[3 + i] = momentum[3 + i] + mass * arm[i] + turned[i]
            places += r
            partials.append([self._moved(r, R, self._column(s)) for s in range(terms.n_u)])
            self.count += 1
        self._accelerations = [graph.symbol(f"{name}.acceleration") for name in terms.layout.u]
        seeds = {**self._flow, **dict(zip(terms.u, self._accelerations, strict=True))}
        velocities = [node for body in partials for v, spin in body for node in (*v, *spin)]
        self._nodes = [*places, *velocities, *tangent(momentum, seeds)]
        self._names = [symbol.name for symbol in support(self._nodes)]

    def _bodies(self) -> list[tuple[str, str, Node, Sequence[Sequence[Node]]]]:
        # SymPy is imported for derivations only
        from fsm_dyn.symbolic.inertia import inertias
        from fsm_dyn.symbolic.mechanism_symbols import build_system

        system, graph = build_system(self._terms.mechanism), self._terms.graph
        here = {system.graph.symbol("t"): graph.symbol("t")}
        found: list[tuple[str, str, Node, Sequence[Sequence[Node]]]] = []
        for body in inertias(system):
            tensor = body.tensor or ((system.graph.zero,) * 3,) * 3
            mass, *entries = substitute([body.mass, *(node for row in tensor for node in row)], here)
            found.append((body.center, body.frame or "N", mass, [entries[:3], entries[3:6], entries[6:]]))
        return found

    def _column(self, s: int) -> dict[Node, Node]:
        names, W = self._terms.layout.q, self._terms.W
        return {self._terms.graph.symbol(name): row[s] for name, row in zip(names, W, strict=True)}

    def _moved(
        self, r: list[Node], R: list[list[Node]], rates: Mapping[Node, Node]
    ) -> tuple[list[Node], tuple[Node, ...]]:
        """Return velocity and angular velocity, ``ω× = Ṙ Rᵀ``, for rates of the coordinates."""
        moved = tangent([*r, *(node for row in R for node in row)], rates)
        dR = [moved[3:6], moved[6:9], moved[9:12]]
        return moved[:3], (_dot(dR[2], R[1]), _dot(dR[0], R[2]), _dot(dR[1], R[0]))

    def compare(self, values: Mapping[str, float], u_dot: Array, A: Array, loads: Array) -> tuple[Array, Array] | None:
        """Return rates of momenta and the loads' forces along all rigid ways there are at a state; None without any.

        Parameters
        ----------
        values : coordinates, speeds and parameters by name
        u_dot : shape (n_u,)
        A : shape (m, n_u), the rows that hold
        loads : shape (n_u,), the generalized forces of the loads
        """
        known = {**values, **dict(zip([node.name for node in self._accelerations], u_dot, strict=True))}
        numbers = np.array([float(x) for x in evaluate(self._nodes, {n: known.get(n, 0.0) for n in self._names})])
        n, n_u = self.count, len(u_dot)
        places, rates = numbers[: 3 * n].reshape(n, 3), numbers[-6:]
        V = numbers[3 * n : -6].reshape(n, n_u, 6).transpose(0, 2, 1).reshape(6 * n, n_u)
        turning = np.array([body.frame is not None for body in self._terms.mechanism.bodies.values()])
        keep = np.repeat(turning[:, None], 6, axis=1)
        keep[:, :3] = True  # a particle has no attitude
        whole, left, right = np.vstack([V[keep.ravel()], A]), [], []
        for k in range(6):
            e = np.eye(3)[k % 3]
            v = np.tile(e, (n, 1)) if k < 3 else np.cross(e, places)
            field = np.hstack([v, np.tile(e * (k >= 3), (n, 1))])[keep]
            wanted = np.concatenate([field, np.zeros(len(A))])
            way = np.linalg.lstsq(whole, wanted, rcond=1e-12)[0]
            if np.abs(whole @ way - wanted).max(initial=0.0) <= RIGID * max(1.0, float(np.abs(places).max())):
                left.append(rates[k])
                right.append(float(way @ loads))
                # all may be in balance: compared relative to the forces of this model, as the way is rounded
                size = max(float(np.linalg.norm(way) * np.linalg.norm(loads)), float(np.abs(rates).max()))
                left.append(size)
                right.append(size)
        return (np.array(left), np.array(right)) if left else None


def _dot(a: Sequence[Node], b: Sequence[Node]) -> Node:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Sequence[Node], b: Sequence[Node]) -> list[Node]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
