"""A model file from MJCF, which MuJoCo reads: bodies, joints, inertias, limits, springs, simple shapes.

Source: Google DeepMind, MuJoCo documentation, XML reference and ``mjModel``; quaternions have the scalar first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.core.errors import InputError, optional_library
from fsm_dyn.core.files import read_file
from fsm_dyn.language.urdf import (
    MAX_BYTES,
    MOST_LINKS,
    LinkPlace,
    RobotModel,
    model_text,
    moved_place,
    turned_frame,
    vector_text,
)

Array = NDArray[np.float64]

_FREE, _BALL, _SLIDE, _HINGE = range(4)  # types of joints
_PLANE, _SPHERE, _BOX = 0, 2, 6  # types of geoms
_GEOMS: Final = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
_CONNECT, _WELD, _JOINT = range(3)  # types of equalities
_EQUALITIES: Final = ("connect", "weld", "joint", "tendon")
_UNITS: Final = {_SLIDE: ("m", "N/m", "N*s/m", "N"), _HINGE: ("rad", "N*m", "N*m*s", "N*m")}


def model_from_mjcf(path: str | Path) -> tuple[str, dict[str, int]]:
    """Return the text of a model file of an MJCF, and how often each part occurs that is not taken over.

    Hinges, slides, ball and free joints become joints, their ranges stops, springs, damping and dry friction loads and
    contacts; spheres, boxes and planes become shapes; ``connect`` and ``joint`` equalities constraints. A coordinate is
    that of MuJoCo less its reference.

    Parameters
    ----------
    path : str or Path
        The description, `.xml`.

    Raises
    ------
    InputError
        The file is unreadable, or MuJoCo refuses it, or mujoco is not installed (the extra ``mujoco``).
    """
    read_file(path, MAX_BYTES, "a model of MuJoCo")  # its size, before another program reads it
    mujoco = optional_library("mujoco", "mujoco")
    try:
        compiled = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read as MJCF: {reason}", remedy="correct the description") from None
    bodies = compiled.nbody - 1  # without the world
    if not 1 <= bodies <= MOST_LINKS:
        raise InputError(f"{path} has {bodies} bodies", allowed=f"1 to {MOST_LINKS}", remedy="name a model with bodies")
    reader = _MujocoReader(mujoco, compiled)
    return reader.text(), dict(reader.model.dropped)


def _matrix(quaternion: Array) -> Array:
    """Return the rotation matrix (3, 3) of a unit quaternion; exactly the identity for none."""
    w, x, y, z = quaternion
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.array(rows)


class _MujocoReader:
    """The parts of a compiled model of MuJoCo as those of a model file."""

    def __init__(self, mujoco: Any, compiled: Any) -> None:
        self.mujoco, self.m, self.model = mujoco, compiled, RobotModel()
        self.places = [LinkPlace("N", "O")]  # of bodies
        self.coordinates: dict[int, str] = {}  # of joints with one

    def text(self) -> str:
        """Return the file."""
        for body in range(self.m.nbody):
            if body:
                self.places.append(self._place(body))
                self._add_body(body)
            for geom in range(self.m.body_geomadr[body], self.m.body_geomadr[body] + self.m.body_geomnum[body]):
                self._add_shape(int(geom), self.places[body])
        for equality in range(self.m.neq):
            self._add_equality(equality)
        for kind, count in (("tendon", self.m.ntendon), ("actuator", self.m.nu), ("sensor", self.m.nsensor)):
            self.model.dropped.update({kind: count} if count else {})
        name = self.m.names[: self.m.names.index(b"\0")].decode("utf-8", "replace") or "robot"
        gravity = vector_text(np.array(self.m.opt.gravity), "N").replace(" m*", " m/s^2*")
        return model_text(self.model, name, gravity)

    def _name(self, kind: str, number: int) -> str:
        """Return the name of a body, joint or geom in the model."""
        found = self.mujoco.mj_id2name(self.m, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), number)
        return self.model.name(kind, found or f"{kind}{number}")

    def _at(self, base: LinkPlace, offset: Array, name: str) -> str:
        """Return a point by its offset in a frame, that of the base if there is none."""
        if not offset.any():
            return base.origin
        self.model.points.append(f"{name}: {{from: {base.origin}, at: {vector_text(offset, base.frame)}}}")
        return name

    def _place(self, body: int) -> LinkPlace:
        """Add the joints of a body and return its place."""
        name, m = self._name("body", body), self.m
        above = self.places[m.body_parentid[body]]
        place = LinkPlace(
            turned_frame(self.model, above.frame, _matrix(m.body_quat[body]), f"{name}_base"),
            self._at(above, np.array(m.body_pos[body]), f"{name}_at"),
        )
        first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
        for joint in range(first, first + count):
            place = self._moved(joint, place, name if joint == first + count - 1 else f"{name}_{joint - first + 1}")
        return place

    def _moved(self, joint: int, base: LinkPlace, link: str) -> LinkPlace:
        """Add a joint and return the place behind it."""
        m, name, kind = self.m, self._name("joint", joint), int(self.m.jnt_type[joint])
        anchor = np.array(m.jnt_pos[joint]) if kind in (_BALL, _HINGE) else np.zeros(3)
        at = LinkPlace(base.frame, self._at(base, anchor, f"{link}_anchor"))
        if kind in (_FREE, _BALL):
            parent = "" if at.frame == "N" else f"parent: {at.frame}, "
            word = "free" if kind == _FREE else "ball"
            self.model.joints.append(f"{name}: {{{word}: {{{parent}child: {link}, at: {at.origin}}}}}")
            place = LinkPlace(link, f"{link}_origin")
        else:
            word = "prismatic" if kind == _SLIDE else "revolute"
            place = moved_place(self.model, at, word, np.array(m.jnt_axis[joint]), (name, link))
            self.coordinates[joint] = name
            self._add_laws(joint, name, kind)
        return LinkPlace(place.frame, self._at(place, -anchor, f"{link}_back"))

    def _add_laws(self, joint: int, name: str, kind: int) -> None:
        """Add stop, spring, damping and friction of a joint."""
        m, model, (unit, stiff, rate, force) = self.m, self.model, _UNITS[kind]
        at, dof = int(m.jnt_qposadr[joint]), int(m.jnt_dofadr[joint])
        if m.jnt_limited[joint]:
            low, high = (float(limit - m.qpos0[at]) for limit in m.jnt_range[joint])
            limits = f"lower: {low!r} {unit}, upper: {high!r} {unit}"
            model.contacts.append(f"{name}_stop: {{joint_stop: {{coordinate: {name}, {limits}}}}}")
        if stiffness := float(np.ravel(m.jnt_stiffness[joint])[0]):
            free = float(m.qpos_spring[at] - m.qpos0[at])
            model.loads.append(
                f"{{spring: {{coordinate: {name}, stiffness: {stiffness!r} {stiff}, free: {free!r} {unit}}}}}"
            )
        if damping := float(np.ravel(m.dof_damping[dof])[0]):
            model.loads.append(f"{{damper: {{coordinate: {name}, damping: {damping!r} {rate}}}}}")
        if friction := float(m.dof_frictionloss[dof]):
            bounds = f"static: {friction!r} {force}, kinetic: {friction!r} {force}"
            model.contacts.append(f"{name}_friction: {{dry_friction: {{speed: rate({name}), {bounds}}}}}")
        model.dropped.update({"armature": 1} if m.dof_armature[dof] else {})

    def _add_body(self, body: int) -> None:
        m, place, name = self.m, self.places[body], self._name("body", body)
        mass = float(m.body_mass[body])
        if not mass > 0.0 or m.body_weldid[body] == 0:
            return
        center = self._at(place, np.array(m.body_ipos[body]), f"{name}_center")
        turn = _matrix(m.body_iquat[body])
        tensor = turn @ np.diag(m.body_inertia[body]) @ turn.T
        entries = {pair: float(tensor["xyz".index(pair[0]), "xyz".index(pair[1])]) for pair in
                   ("xx", "yy", "zz", "xy", "yz", "xz")}  # fmt: skip
        inertia = ", ".join(f"{pair}: {value!r} kg*m^2" for pair, value in entries.items() if value)
        self.model.bodies.append(
            f"{name}_body: {{frame: {place.frame}, center: {center}, mass: {mass!r} kg, inertia: {{{inertia}}}}}"
        )

    def _add_shape(self, geom: int, place: LinkPlace) -> None:
        """Add a sphere, a box or a plane; of visuals alone, which touch nothing, none."""
        m, kind = self.m, int(self.m.geom_type[geom])
        if kind not in (_PLANE, _SPHERE, _BOX):
            self.model.dropped[f"geom {_GEOMS[kind] if kind < len(_GEOMS) else kind}"] += 1
            return
        name = self._name("geom", geom)
        center = self._at(place, np.array(m.geom_pos[geom]), f"{name}_center")
        size = np.array(m.geom_size[geom])
        frame = place.frame
        if kind != _SPHERE:
            frame = turned_frame(self.model, frame, _matrix(m.geom_quat[geom]), f"{name}_frame")
        if kind == _PLANE:
            self.model.shapes.append(f"{name}: {{plane: {{frame: {frame}, from: {center}}}, side: {frame}.z}}")
        elif kind == _SPHERE:
            form = f"frame: {frame}, center: {center}, radius: {float(size[0])!r} m"
            self.model.shapes.append(f"{name}: {{sphere: {{{form}}}}}")
        else:
            lengths = ", ".join(f"{2.0 * value!r} m" for value in size.tolist())
            self.model.shapes.append(f"{name}: {{box: {{frame: {frame}, center: {center}, size: [{lengths}]}}}}")

    def _add_equality(self, number: int) -> None:
        """Add a constraint of two joints, or of two points that coincide."""
        m, kind = self.m, int(self.m.eq_type[number])
        one, other = int(m.eq_obj1id[number]), int(m.eq_obj2id[number])
        data, name = np.array(m.eq_data[number]), self._name("equality", number)
        bodies = m.eq_objtype[number] == self.mujoco.mjtObj.mjOBJ_BODY
        if kind == _JOINT and not data[2:5].any() and {one, *([other] if other >= 0 else [])} <= set(self.coordinates):
            unit = _UNITS[int(m.jnt_type[one])][0]
            row = f"{self.coordinates[one]} - {float(data[0])!r} {unit}"
            if other >= 0:
                row += f" - {float(data[1])!r}*{self.coordinates[other]}"
            self.model.constraints.append(f"{name}: {{position: {row}}}")
        elif kind == _CONNECT:
            if bodies:
                ends = [(self.places[one], data[:3]), (self.places[other], data[3:6])]
            else:
                ends = [(self.places[m.site_bodyid[site]], np.array(m.site_pos[site])) for site in (one, other)]
            points = [self._at(place, offset, f"{name}_{k}") for k, (place, offset) in enumerate(ends, 1)]
            self.model.constraints += list(self._coincidence(name, *points))
        else:
            self.model.dropped[f"equality {_EQUALITIES[kind] if kind < len(_EQUALITIES) else kind}"] += 1

    @staticmethod
    def _coincidence(name: str, one: str, other: str) -> Iterator[str]:
        for axis in "xyz":
            yield f'{name}_{axis}: {{position: "dot(pos({one}, {other}), N.{axis})"}}'
