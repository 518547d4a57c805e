"""Forces and torques of joints, contacts and constraints on a body, in a chosen frame."""

from __future__ import annotations

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.run.pins import NEWTONIAN, Pin
from fsm_dyn.run.trajectory import Trajectory


@dataclass(frozen=True)
class Wrench:
    """Force and torque of a joint or contact on a body along a run.

    Attributes
    ----------
    t : ndarray, shape (n,)
    force : ndarray, shape (n, 3)
        N, components in `frame`.
    torque : ndarray, shape (n, 3)
        N m, about the point `about`, components in `frame`.
    on, frame, about : str
    """

    t: FloatArray
    force: FloatArray
    torque: FloatArray
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
    """Return the force and torque of a joint or contact on a body at every row of a run; see ``run.pins``.

    Parameters
    ----------
    graph : ModeGraph
        Of the run.
    run : Trajectory
    name : str
        A connection of ``run.pins``: a joint, contact or constraint of the model.
    on : str, optional
        The body, or its frame; a joint's child where not given.
    frame : str
        The frame whose axes the components are along.
    about : str, optional
        The point that torques are about; by default the origin of the body's frame, ``<frame>_origin``, if there is
        one, else the point of the connection.

    Raises
    ------
    InputError
        There is no such connection, body, frame or point.
    """
    if name not in run.pins:
        raise InputError(
            f"there is no joint or contact {name!r}", found=name, allowed=", ".join(run.pins),
            remedy=did_you_mean(name, list(run.pins)),
        )  # fmt: skip
    pin = run.pins[name]
    segment = pin.info.child if on is None else _segment(graph, pin, on)
    origin = f"{segment}_origin"
    about = origin if about is None and origin in graph.automaton.point_names else about
    found = pin.wrench(frame, segment, about)
    return Wrench(run.t, found[:, :3], found[:, 3:], segment, frame, about or pin.info.at)


def _segment(graph: ModeGraph, pin: Pin, name: str) -> str:
    """Return the segment of a connection that a body, or a frame, belongs to."""
    bodies = graph.automaton.mechanism.bodies
    frame = bodies[name].frame if name in bodies else name
    known = {pin.info.parent, pin.info.child}
    for candidate in (name, frame):
        if candidate in known:
            return str(candidate)
    if name not in bodies and name not in graph.automaton.frame_names:
        raise InputError(
            f"there is no body {name!r}", found=name, remedy=did_you_mean(name, [*bodies, *graph.automaton.frame_names])
        )
    raise InputError(f"{pin.info.name!r} does not act on {name!r}", found=name, allowed=", ".join(sorted(known)))
