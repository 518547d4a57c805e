"""Forces in joints and contacts, on each body, in a chosen frame.

Every child of a joint gets absolute coordinates: each joint is then rows ``A`` with multipliers, and its wrench on a
body is ``Aᵀ λ`` in the columns of the body's own speeds (Saha and Angeles, section 3: the constraint wrenches lie in
the range of the transpose of the constraint matrix).  The motion and the forces of contacts are those of the run; the
multipliers solve ``M u̇ = f + Aᵀ λ, A u̇ + γ = 0`` at each of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.language.joint_expansion import whole_turns_in
from fsm_dyn.language.loader import in_absolute_coordinates, single_angles
from fsm_dyn.language.model import Mechanism
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import evaluate, support, tangent
from fsm_dyn.run.trajectory import Trajectory

if TYPE_CHECKING:
    from fsm_dyn.derive.terms import Terms


Array = npt.NDArray[np.float64]
NEWTONIAN, ORIGIN = "N", "O"
RANK = 1e-10
TURN = 2.0 * np.pi


@dataclass(frozen=True)
class Wrench:
    """Wrench of a joint or contact on a body along a run.

    Attributes
    ----------
    t : ndarray, shape (n,)
    force : ndarray, shape (n, 3)
        N, components in `frame`.  In a plane mechanism components out of the plane are indeterminate and left at zero.
    torque : ndarray, shape (n, 3)
        N m, about the point `about`, components in `frame`.
    on, frame, about : str
    """

    t: Array
    force: Array
    torque: Array
    on: str
    frame: str
    about: str


def wrench(
    graph: ModeGraph,
    run: Trajectory,
    name: str,
    *,
    on: str | None = None,
    frame: str = NEWTONIAN,
    about: str | None = None,
) -> Wrench:
    """Return the force and torque of a joint or contact on a body at every row of a run.

    Parameters
    ----------
    graph : ModeGraph
        Graph of the run.
    run : Trajectory
    name : str
        A joint, contact or constraint of the model.
    on : str, optional
        The body, or its frame; by default a joint's child.
    frame : str
        The frame of the components.
    about : str, optional
        Reference point of torques; by default the origin of the body's frame, ``<frame>_origin``.

    Raises
    ------
    InputError
        The model has no joints in a tree, or there is no such joint, body, frame or point.
    """
    twin = _AbsoluteModel(graph.automaton.mechanism)
    joint = twin.mechanism.joints.get(name)
    rows = [k for k, row in enumerate(twin.terms.rows) if row.name == name or (joint and row.name in joint.rows)]
    if not rows and joint is None:
        known = [*twin.mechanism.joints, *twin.mechanism.contacts, *twin.mechanism.constraints]
        raise InputError(f"there is no joint or contact {name!r}", found=name, remedy=did_you_mean(name, known))
    body = twin.body(on if on is not None else joint.child if joint else "")
    point = about if about is not None else twin.made[body].origin
    for wanted, places, what in ((frame, list(twin.terms.frames), "frame"), (point, list(twin.terms.points), "point")):
        if wanted not in places:
            raise InputError(f"there is no {what} {wanted!r}", found=wanted, remedy=did_you_mean(wanted, places))
    values = twin.place(run)
    share = twin.multipliers(run, values)[:, rows]
    columns = twin.columns(body)
    entries = [twin.terms.rows[k].A[column] for k in rows for column in columns]
    A = _numbers(entries, values).reshape(-1, len(rows), len(columns))
    force, torque = twin.spread(body, np.einsum("nr,nrc->nc", share, A), values)
    origin, to = (_numbers(list(twin.terms.points[p]), values) for p in (twin.made[body].origin, point))
    torque = torque + np.cross(origin - to, force)
    turn = _matrices(twin.terms, frame, values)
    return Wrench(run.t, _into(turn, force), _into(turn, torque), body, frame, point)


class _AbsoluteModel:
    """A mechanism in absolute coordinates, with the transformation of its runs to them."""

    def __init__(self, mechanism: Mechanism) -> None:
        # SymPy is imported for derivations only
        from fsm_dyn.derive.derivation import derive

        if not any(joint.coordinates for joint in mechanism.joints.values()):
            raise InputError(
                "forces on bodies are available for joints",
                found=", ".join(mechanism.joints) or "no joints",
                remedy="write the joints of the tree under `joints`; `Trajectory.multipliers` has those of rows",
            )
        self.own_mechanism, self.mechanism = mechanism, in_absolute_coordinates(mechanism)
        self.own, self.terms = derive(mechanism), derive(self.mechanism)
        self.made = {joint.child: joint for joint in self.mechanism.joints.values() if joint.coordinates}

    def body(self, name: str) -> str:
        """Return the frame of a body, if a joint has made it."""
        body = self.mechanism.bodies.get(name)
        frame = body.frame if body is not None and body.frame is not None else name
        if frame not in self.made:
            known = [*self.made, *(b.name for b in self.mechanism.bodies.values() if b.frame in self.made)]
            raise InputError(
                f"there is no body {name!r} that a joint has made", found=name, remedy=did_you_mean(name, known),
                allowed=", ".join(known),
            )  # fmt: skip
        return frame

    def columns(self, body: str) -> list[int]:
        """Return the indices of a body's speeds: three of translation, then its turns."""
        plane = f"{body}_turn" in self.made[body].coordinates
        names = ("x_dot", "y_dot", "turn_dot") if plane else ("x_dot", "y_dot", "z_dot", "wx", "wy", "wz")
        return [self.terms.layout.u.index(f"{body}_{name}") for name in names]

    def spread(self, body: str, effect: Array, values: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return force and torque about the body's origin in N from forces on its speeds, (n, 3) or (n, 6)."""
        if effect.shape[1] == 3:
            nothing = np.zeros(len(effect))
            return (
                np.stack([effect[:, 0], effect[:, 1], nothing], axis=1),
                np.stack([nothing, nothing, effect[:, 2]], axis=1),
            )
        turn = _matrices(self.terms, body, values)
        return effect[:, :3], np.einsum("nij,nj->ni", turn, effect[:, 3:])

    def place(self, run: Trajectory) -> dict[str, Array]:
        """Return all values of the run by name, and the coordinates and speeds of freed bodies."""
        samples, layout = run.rows, run.model.layout
        values = {"t": samples.t, **dict(zip(layout.x, samples.x.T, strict=True))}
        values |= dict(zip(layout.c, samples.context.T, strict=True))
        flow = self._flow()
        for frame, joint in self.made.items():
            place = list(self.own.points[joint.origin])
            turn = [node for row in self.own.frames[frame] for node in row]
            at, speed = _numbers(place, values), _numbers(tangent(place, flow), values)
            R = _numbers(turn, values).reshape(-1, 3, 3)
            spin = np.einsum("nij,nkj->nik", _numbers(tangent(turn, flow), values).reshape(-1, 3, 3), R)
            omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
            found = {f"{frame}_{c}": at[:, i] for i, c in enumerate("xyz")}
            found |= {f"{frame}_{c}_dot": speed[:, i] for i, c in enumerate("xyz")}
            found |= {f"{frame}_turn": np.arctan2(R[:, 1, 0], R[:, 0, 0]), f"{frame}_turn_dot": omega[:, 2]}
            found |= {f"{frame}_w{c}": _into(R, omega)[:, i] for i, c in enumerate("xyz")}
            found |= {f"{frame}_e{i}": e for i, e in enumerate(_euler(R).T)}
            values |= found
        self._count_turns(run, values)
        return values

    def _count_turns(self, run: Trajectory, values: dict[str, Array]) -> None:
        """Add whole turns to the turns of freed bodies in a plane, to match the angles of joints in the run.

        Raises
        ------
        InputError
            In space, a load or constraint depends on an angle with whole turns in the run.
        """
        turned = set()
        for joint, name in single_angles(self.own_mechanism).items():  # parents come before their children
            turn, angle = f"{self.own_mechanism.joints[joint].child}_turn", self.terms.outputs[f"{name}_angle"]
            missing = np.round((values[name] - _numbers([angle], values)[:, 0]) / TURN)
            if turn in self.terms.layout.q:
                sense = _numbers(tangent([angle], {self.terms.graph.symbol(turn): self.terms.graph.one}), values)
                values[turn] = values[turn] + sense[:, 0] * missing * TURN
            elif missing.any():
                turned.add(name)
        for name, text in whole_turns_in((self.own_mechanism.loads, self.own_mechanism.constraints), turned):
            raise InputError(
                f"forces on bodies are not known where the angle {name!r} has made half a turn and more in space",
                found=text.text,
                allowed=f"sin({name}), cos({name}), rate({name})",
                remedy="end the run before, or take the loads apart: `Trajectory.multipliers` has the forces of rows",
            )

    def _flow(self) -> dict[Node, Node]:
        own, graph = self.own, self.own.graph
        flow = {graph.symbol(q): rate for q, rate in zip(own.layout.q, own.q_dot, strict=True)}
        flow[graph.symbol("t")] = graph.one
        for w in own.layout.w:
            flow[graph.symbol(w)] = graph.symbol(f"{w}.rate")
        return flow

    def multipliers(self, run: Trajectory, values: Mapping[str, Array]) -> Array:
        """Return the multipliers of all rows, (n, n_rows): contacts as in the run, the others from the rows."""
        terms, n = self.terms, len(self.terms.f)
        rows = terms.rows
        M = _numbers([node for row in terms.M for node in row], values).reshape(-1, n, n)
        f = _numbers(list(terms.f), values)
        A = _numbers([node for row in rows for node in row.A], values).reshape(-1, len(rows), n)
        gamma = _numbers([row.gamma for row in rows], values).reshape(len(f), -1)
        found = np.zeros((len(f), len(rows)))
        met: dict[str, int] = {}
        for k, row in enumerate(rows):
            if row.contact >= 0:
                found[:, k] = run.multipliers[row.name][:, met.setdefault(row.name, 0)]
                met[row.name] += 1
        held = [k for k, row in enumerate(rows) if row.contact < 0]
        f = f + np.einsum("nk,nkr->nr", found, A)
        for i in range(len(f)):
            scale = 1.0 / np.sqrt(np.abs(np.diag(M[i])) + 1e-300)
            scale = np.where(np.diag(M[i]) > 0.0, scale, 1.0)
            rows_i = A[i, held] * scale
            whole = np.block([[M[i] * np.outer(scale, scale), -rows_i.T], [rows_i, np.zeros((len(held), len(held)))]])
            right = np.concatenate([f[i] * scale, -gamma[i, held]])
            found[i, held] = np.linalg.lstsq(whole, right, rcond=RANK)[0][n:]
        return found


def _numbers(nodes: Sequence[Node], values: Mapping[str, Array]) -> Array:
    """Return the values of nodes at every row of a run, (n, len(nodes)); missing values are 0."""
    n = len(values["t"])
    known: dict[str, Any] = {symbol.name: values.get(symbol.name, 0.0) for symbol in support(nodes)}
    return np.array([np.broadcast_to(value, (n,)) for value in evaluate(list(nodes), known)]).reshape(-1, n).T


def _matrices(terms: Terms, frame: str, values: Mapping[str, Array]) -> Array:
    return _numbers([node for row in terms.frames[frame] for node in row], values).reshape(-1, 3, 3)


def _into(turn: Array, vectors: Array) -> Array:
    """Return components along a frame's axes from those in N; its axes are the columns of `turn`."""
    found: Array = np.einsum("nji,nj->ni", turn, vectors)
    return found


def _euler(R: Array) -> Array:
    """Return Euler parameters of rotation matrices (n, 3, 3), by the largest of the four (Shepperd 1978)."""
    found = np.empty((len(R), 4))
    for i, r in enumerate(R):
        trace = np.trace(r)
        best = int(np.argmax([trace, r[0, 0], r[1, 1], r[2, 2]]))
        if best == 0:
            e = [1.0 + trace, r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]
        else:
            a, b, c = best - 1, best % 3, (best + 1) % 3
            e = [r[c, b] - r[b, c], 0.0, 0.0, 0.0]
            e[1 + a], e[1 + b], e[1 + c] = 1.0 + 2.0 * r[a, a] - trace, r[a, b] + r[b, a], r[a, c] + r[c, a]
        found[i] = np.array(e) / np.linalg.norm(e)
    return found
