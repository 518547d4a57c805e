"""Joints become what they stand for: frames, points, coordinates, speeds, and rows where they close a loop.

In a tree a joint makes the child's frame, the point ``<child>_origin`` and coordinates with their rates.  Between two
frames that exist it gives rows: one for each motion it prevents.  Rows on positions are written along the axes of N
or of the parent; rows on directions ask that unit vectors of both frames stay at right angles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fsm_dyn.spec.build.absolute_coordinates import free, own_point, resolved, substituted
from fsm_dyn.spec.build.joint_expansion import JointExpansion, PlacedExpander
from fsm_dyn.spec.build.joint_kinds import JOINTS
from fsm_dyn.spec.forms.form import exactly_one
from fsm_dyn.spec.forms.joints import JointForm
from fsm_dyn.spec.frame import SimpleFrame
from fsm_dyn.spec.model import Frame


def joints_of(
    forms: Mapping[str, JointForm], frames: Mapping[str, Frame], units: bool, absolute: bool = False
) -> JointExpansion:
    """Return what the joints stand for.

    Parameters
    ----------
    forms : Mapping[str, JointForm]
        Entries by name.
    frames : dict of str to Frame
        Those written by hand.
    units : bool
        Whether the model writes units: coordinates of joints then have theirs.
    absolute : bool
        Whether children move freely and every joint gives rows (:mod:`fsm_dyn.spec.build.absolute_coordinates`).

    Raises
    ------
    ModelError
        A joint closes a loop with a frame that nothing makes, makes one that exists, or has the wrong keys.
    """
    made = JointExpansion(units, dict(frames))
    keys = {name: exactly_one(form, tuple(JOINTS)) for name, form in forms.items()}
    joints = [JOINTS[keys[name]](made, name, getattr(form, keys[name])) for name, form in forms.items()]
    placed = [joint for joint in joints if isinstance(joint, PlacedExpander)]
    in_tree = [joint for joint in placed if len(joint.points) == 1]
    closing = [joint for joint in joints if joint not in in_tree]
    made.plane = _in_plane(placed, frames)
    for joint in in_tree:  # all frames first: a loop may be closed by a joint written before them
        joint.make_child()
    tree = dict(made.joints)
    if absolute:
        _let_go(made, in_tree, _in_plane(in_tree, frames))
    for other in closing:
        for key in ("range", "backlash"):
            other.refuse(key, "at: P, which makes a coordinate")
        points = other.points
        if absolute and len(points) == 2:
            points = (own_point(tree, other.form.parent, points[0]), own_point(tree, other.form.child, points[1]))
        other.close(points)
    made.joints = {name: made.joints[name] for name in forms}
    made.frames = {name: frame for name, frame in made.frames.items() if name not in frames}
    return made


def _in_plane(joints: Iterable[PlacedExpander[Any]], frames: Mapping[str, Frame]) -> bool:
    """Whether all frames turn about z, and joints slide along x and y only."""
    flat = all(isinstance(frame, SimpleFrame) and frame.axis == "z" for frame in frames.values())
    return flat and all(joint.stays_in_plane for joint in joints)


def _let_go(made: JointExpansion, joints: Iterable[PlacedExpander[Any]], plane: bool) -> None:
    """Put absolute coordinates in the place of those that the joints of a tree have made, and add the joints' rows."""
    made.coordinates, made.speeds, made.rows, made.contacts = {}, {}, {}, {}
    tree = dict(made.joints)
    made.turns_add_up = plane
    freed = []
    for joint in joints:
        joint.refuse("range", "joint_coordinates: relative")
        before, child = made.joints[joint.name], free(joint.form.child, plane, made.units)
        freed.append((joint, before, child))
        made.frames[joint.form.child] = child.frame
        made.points[before.origin] = child.origin
        made.coordinates |= child.coordinates
        made.speeds |= child.speeds
    for joint, before, child in freed:
        at = own_point(tree, joint.form.parent, before.at[0])
        made.relative |= joint.relative(at)
        joint.close((at, before.origin))
        names = (*child.coordinates, *child.frame.euler_names)
        rows = made.joints[joint.name].rows
        made.joints[joint.name] = replace(before, coordinates=names, rows=rows, hidden=(), displacement=None)
    made.relative = resolved(made.relative)
    made.contacts = substituted(made.contacts, made.relative)
