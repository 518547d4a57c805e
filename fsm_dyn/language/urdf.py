"""A model file from a robot description: URDF, or MJCF, which MuJoCo reads.

Frames, joints, inertias, limits, spheres and boxes.  Sources: ROS, URDF XML specification (links, joints, inertial),
roll, pitch and yaw are turns about fixed axes x, y, z; Google DeepMind, MuJoCo documentation, XML reference and
``mjModel``, quaternions have the scalar first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError, fromstring

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, optional_library
from fsm_dyn.core.files import read_file
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import RESERVED_NAMES

MAX_BYTES: Final = 20 * 2**20
MOST_LINKS: Final = 500
_ROUNDING: Final = 1e-9  # of the largest entry of an inertia
_SMALLEST: Final = 1e-6  # m, radius of gyration that is none
_MOVING: Final = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "planar": "planar"}
_UNREAD: Final = ("visual", "transmission", "gazebo", "sensor", "safety_controller", "calibration", "material")


@dataclass(frozen=True)
class LinkPlace:
    """Frame and origin of a link."""

    frame: str
    origin: str


@dataclass
class RobotModel:
    """The sections of the model, as lines, and the parts left out."""

    frames: list[str] = field(default_factory=list)
    points: list[str] = field(default_factory=list)
    joints: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)
    contacts: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=lambda: {"N", "O"})
    places: dict[str, LinkPlace] = field(default_factory=dict)  # of links, by their names in the description

    def name(self, kind: str, written: str) -> str:
        """Return the name of a link or joint in the model: letters, digits and underscores, each once."""
        if (kind, written) not in self.names:
            plain = re.sub(r"[^A-Za-z0-9_]+", "_", written).strip("_") or kind
            plain = plain if plain[0].isalpha() and plain not in RESERVED_NAMES else f"{kind}_{plain}"
            numbered = (plain, *(f"{plain}_{number}" for number in range(2, len(self.taken) + 3)))
            self.names[kind, written] = next(text for text in numbered if text not in self.taken)
            self.taken.add(self.names[kind, written])
        return self.names[kind, written]


def model_from_urdf(path: str | Path) -> tuple[str, dict[str, int]]:
    """Return the text of a model file of a robot, and how often each unread element occurs.

    The root link is fixed to ``N``; its inertia has no influence. Limits become joint stops, damping dampers, friction
    dry friction, and joints that mimic others constraints. Of collision geometry spheres and boxes become shapes.
    ``path``: the description, `.urdf`. Raises InputError: the file is unreadable, or describes no tree of links, or has
    a joint of another kind.
    """
    try:
        text = read_file(path, MAX_BYTES, "a robot description").decode("utf-8", "replace")
        if "<!ENTITY" in text:
            raise InputError(f"{path} defines entities", remedy="expand them; run xacro first")
        robot = fromstring(text)
    except ParseError as error:
        raise InputError(f"{path} is no XML: {error}", remedy="run xacro first, if it is a .xacro") from None
    try:
        model = RobotModel()
        for place, link, joint in _tree(robot):
            _add_link(model, place, link, joint)
        return model_text(model, robot.get("name") or "robot"), dict(model.dropped)
    except (ValueError, KeyError) as error:
        raise InputError(f"{path} cannot be read as URDF: {error}", remedy="correct the description") from None


# -- Numbers, rotations --------------------------------------------------------------------------------------


def _numbers(text: str | None, usual: Sequence[float]) -> Floats:
    """Return the numbers of an attribute, as many as the usual ones."""
    values = np.array([float(word) for word in text.split()] if text is not None else usual, dtype=np.float64)
    if values.shape != (len(usual),) or not np.isfinite(values).all():
        raise ValueError(f"{len(usual)} numbers are wanted where there is {text!r}")
    return values


def _number(element: Element | None, name: str, usual: float) -> float:
    return usual if element is None else float(_numbers(element.get(name), (usual,))[0])


def _origin(element: Element | None) -> tuple[Floats, Floats]:
    """Return offset (m) and rotation matrix of an element with an ``origin``."""
    origin = None if element is None else element.find("origin")
    get = (lambda name: None) if origin is None else origin.get
    return _numbers(get("xyz"), (0.0, 0.0, 0.0)), rotation(_numbers(get("rpy"), (0.0, 0.0, 0.0)))


def rotation(angles: Floats) -> Floats:
    """Return the rotation matrix (3, 3) of roll, pitch and yaw (rad), about fixed axes."""
    (a, b, c), (d, e, f) = np.cos(angles), np.sin(angles)
    rows = [
        [c * b, c * e * d - f * a, c * e * a + f * d],
        [f * b, f * e * d + c * a, f * e * a - c * d],
        [-e, b * d, b * a],
    ]
    return np.array(rows)


def angles_of(matrix: Floats) -> Floats:
    """Return roll, pitch and yaw (rad) of a rotation matrix."""
    pitch = math.atan2(-matrix[2, 0], math.hypot(matrix[0, 0], matrix[1, 0]))
    if math.hypot(matrix[0, 0], matrix[1, 0]) < 1e-12:  # roll and yaw about one axis
        return np.array([0.0, pitch, math.atan2(-matrix[0, 1], matrix[1, 1])])
    return np.array([math.atan2(matrix[2, 1], matrix[2, 2]), pitch, math.atan2(matrix[1, 0], matrix[0, 0])])


def vector_text(values: Floats, frame: str) -> str:
    """Return a vector along the axes of a frame, in m."""
    parts = [f"{value!r} m*{frame}.{axis}" for value, axis in zip(values.tolist(), "xyz", strict=True) if value]
    return " + ".join(parts) or f"0*{frame}.x"


# -- The tree of links ---------------------------------------------------------------------------------------


def _tree(robot: Element) -> Iterator[tuple[Element | None, Element, Element | None]]:
    """Yield parent link, link and the joint between them, from the root on."""
    links = {str(link.get("name")): link for link in robot.findall("link")}
    if not links or len(links) > MOST_LINKS:
        raise ValueError(f"{len(links)} links, where 1 to {MOST_LINKS} are read")
    children: dict[str, list[Element]] = {name: [] for name in links}
    moved: set[str] = set()
    for joint in robot.findall("joint"):
        ends = [str(end.get("link")) if end is not None else "" for end in (joint.find("parent"), joint.find("child"))]
        unknown = next((end for end in ends if end not in links), None)
        if unknown is not None:
            raise ValueError(f"joint {joint.get('name')!r} names the link {unknown!r}, which does not exist")
        if ends[1] in moved:
            raise ValueError(f"link {ends[1]!r} has two parents: close loops by constraints of the model")
        moved.add(ends[1])
        children[ends[0]].append(joint)
    roots = [name for name in links if name not in moved]
    if len(roots) != 1:
        raise ValueError(f"{len(roots)} links without a parent, where a tree has one")
    todo: list[tuple[Element | None, Element, Element | None]] = [(None, links[roots[0]], None)]
    count = 0
    while todo:
        parent, link, above = todo.pop(0)
        yield parent, link, above
        count += 1
        todo += [(link, links[str(j.find("child").get("link"))], j) for j in children[str(link.get("name"))]]  # type: ignore[union-attr]
    if count < len(links):
        raise ValueError("some links form a loop")


def _add_link(model: RobotModel, parent: Element | None, link: Element, joint: Element | None) -> None:
    """Add a link with the joint that moves it."""
    written = str(link.get("name"))
    name = model.name("link", written)
    if parent is None or joint is None:
        place = LinkPlace("N", "O")
    else:
        place = _add_joint(model, model.places[str(parent.get("name"))], joint, name)
    model.places[written] = place
    _add_body(model, place, link, name)
    for number, collision in enumerate(link.findall("collision"), 1):
        _add_shape(model, place, collision, f"{name}_shape{number}")
    model.dropped.update(child.tag for child in link if child.tag in _UNREAD)


def turned_frame(model: RobotModel, frame: str, matrix: Floats, name: str) -> str:
    """Return a frame turned against another one, which is the same if there is no turn."""
    if np.array_equal(matrix, np.eye(3)):
        return frame
    angles = ", ".join(f"{angle!r} rad" for angle in angles_of(matrix).tolist())
    model.frames.append(f"{name}: {{parent: {frame}, space: xyz, angles: [{angles}]}}")
    return name


def _add_joint(model: RobotModel, parent: LinkPlace, joint: Element, link: str) -> LinkPlace:
    """Add a joint and return the place of its child."""
    written, kind = str(joint.get("name")), str(joint.get("type"))
    name = model.name("joint", written)
    offset, matrix = _origin(joint)
    base = turned_frame(model, parent.frame, matrix, link if kind == "fixed" else f"{link}_base")
    at = parent.origin
    if offset.any():
        at = f"{link}_at"
        model.points.append(f"{at}: {{from: {parent.origin}, at: {vector_text(offset, parent.frame)}}}")
    model.dropped.update(child.tag for child in joint if child.tag in _UNREAD)
    if kind == "fixed":
        return LinkPlace(base, at)
    if kind == "floating":
        carrier = "" if base == "N" else f"parent: {base}, "
        model.joints.append(f"{name}: {{free: {{{carrier}child: {link}, at: {at}}}}}")
        return LinkPlace(link, f"{link}_origin")
    if kind not in _MOVING:
        raise ValueError(f"joint {written!r} is {kind}: {', '.join(_MOVING)}, floating and fixed are read")
    axis = _numbers(None if (found := joint.find("axis")) is None else found.get("xyz"), (1.0, 0.0, 0.0))
    place = moved_place(model, LinkPlace(base, at), _MOVING[kind], axis, (name, link))
    if kind != "planar":  # which has several coordinates
        _add_laws(model, joint, name, kind)
    return place


def moved_place(model: RobotModel, base: LinkPlace, kind: str, axis: Floats, names: tuple[str, str]) -> LinkPlace:
    """Add a joint about or along an axis and return the place of its child, turned with it.

    ``base``: of the joint on its parent; ``kind``: ``revolute``, ``prismatic`` or ``planar``; ``axis``, shape (3,): in
    the frame of the base, of any length. Raises ValueError: the axis is zero.
    """
    name, link = names
    length = float(np.linalg.norm(axis))
    if not length > 0.0:
        raise ValueError(f"the axis of joint {name!r} is zero")
    axis = axis / length
    along = [k for k in range(3) if abs(axis[k]) == 1.0]
    turn = np.eye(3) if along else _onto(axis)
    guide = turned_frame(model, base.frame, turn, f"{link}_axis")
    letter, sign = ("xyz"[along[0]], "-" if axis[along[0]] < 0.0 else "") if along else ("z", "")
    child = link if along else f"{link}_moved"
    keys = [f"child: {child}", f"at: {base.origin}", f"axis: {sign}{guide}.{letter}"]
    if guide != "N":
        keys.insert(0, f"parent: {guide}")
    model.joints.append(f"{name}: {{{kind}: {{{', '.join(keys)}}}}}")
    return LinkPlace(child if along else turned_frame(model, child, turn.T, link), f"{child}_origin")


def _onto(axis: Floats) -> Floats:
    """Return a rotation that brings z onto an axis."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    across = np.cross(other, axis)
    across /= np.linalg.norm(across)
    return np.column_stack([across, np.cross(axis, across), axis])


def _add_laws(model: RobotModel, joint: Element, name: str, kind: str) -> None:
    """Add stops, damping, friction and the coupling of a joint to another one."""
    unit, rate, effort = ("m", "N*s/m", "N") if kind == "prismatic" else ("rad", "N*m*s", "N*m")
    limit, dynamics, mimic = joint.find("limit"), joint.find("dynamics"), joint.find("mimic")
    if limit is not None and kind != "continuous":
        lower, upper = _number(limit, "lower", 0.0), _number(limit, "upper", 0.0)
        limits = f"lower: {lower!r} {unit}, upper: {upper!r} {unit}"
        model.contacts.append(f"{name}_stop: {{joint_stop: {{coordinate: {name}, {limits}}}}}")
    model.dropped.update(f"limit {word}" for word in ("effort", "velocity") if _number(limit, word, 0.0))
    if damping := _number(dynamics, "damping", 0.0):
        model.loads.append(f"{{damper: {{coordinate: {name}, damping: {damping!r} {rate}}}}}")
    if friction := _number(dynamics, "friction", 0.0):
        force = f"{friction!r} {effort}"
        model.contacts.append(
            f"{name}_friction: {{dry_friction: {{speed: rate({name}), static: {force}, kinetic: {force}}}}}"
        )
    if mimic is not None:
        leader = model.name("joint", str(mimic.get("joint")))
        ratio, offset = _number(mimic, "multiplier", 1.0), _number(mimic, "offset", 0.0)
        row = f"{name} - {ratio!r}*{leader} - {offset!r} {unit}"
        model.constraints.append(f"{name}_follows: {{position: {row}}}")


def _add_body(model: RobotModel, place: LinkPlace, link: Element, name: str) -> None:
    """Add the body of a link with a mass; one that is fixed to N does not move and has none."""
    inertial = link.find("inertial")
    mass = 0.0 if inertial is None else _number(inertial.find("mass"), "value", 0.0)
    if not mass > 0.0:
        return
    if place.frame == "N" and place.origin == "O":
        model.dropped["inertia of the root"] += 1
        return
    offset, matrix = _origin(inertial)
    center = place.origin
    if offset.any():
        center = f"{name}_center"
        model.points.append(f"{center}: {{from: {place.origin}, at: {vector_text(offset, place.frame)}}}")
    element = inertial.find("inertia") if inertial is not None else None
    entries = {pair: _number(element, f"i{pair}", 0.0) for pair in ("xx", "yy", "zz", "xy", "xz", "yz")}
    tensor = np.array([[entries["".join(sorted("xyz"[i] + "xyz"[j]))] for j in range(3)] for i in range(3)])
    tensor = matrix @ tensor @ matrix.T
    rounding = max(_ROUNDING * float(np.abs(tensor).max()), _SMALLEST**2 * mass)
    tensor[np.eye(3, dtype=bool) & (tensor < 0.0) & (tensor > -rounding)] = 0.0  # of the turn, or of another program
    values = {a + b: float(tensor["xyz".index(a), "xyz".index(b)]) for a, b in ("xx", "yy", "zz", "xy", "yz", "xz")}
    inertia = ", ".join(f"{pair}: {value!r} kg*m^2" for pair, value in values.items() if value)
    keys = [f"frame: {place.frame}", f"center: {center}", f"mass: {mass!r} kg"]
    model.bodies.append(f"{name}_body: {{{', '.join([*keys, *([f'inertia: {{{inertia}}}'] if inertia else [])])}}}")


def _add_shape(model: RobotModel, place: LinkPlace, collision: Element, name: str) -> None:
    """Add a sphere or a box of the collision geometry."""
    geometry = collision.find("geometry")
    solid = None if geometry is None else next(iter(geometry), None)
    if solid is None or solid.tag not in ("sphere", "box"):
        model.dropped[f"collision {'' if solid is None else solid.tag}".strip()] += 1
        return
    offset, matrix = _origin(collision)
    center = place.origin
    if offset.any():
        center = f"{name}_center"
        model.points.append(f"{center}: {{from: {place.origin}, at: {vector_text(offset, place.frame)}}}")
    if solid.tag == "sphere":
        size = f"radius: {_number(solid, 'radius', 0.0)!r} m"
        frame = place.frame
    else:
        lengths = ", ".join(f"{value!r} m" for value in _numbers(solid.get("size"), (0.0, 0.0, 0.0)).tolist())
        size, frame = f"size: [{lengths}]", turned_frame(model, place.frame, matrix, f"{name}_frame")
    model.shapes.append(f"{name}: {{{solid.tag}: {{frame: {frame}, center: {center}, {size}}}}}")


def model_text(model: RobotModel, robot: str, gravity: str = "-9.81 m/s^2*N.z") -> str:
    """Return the file; ``gravity`` is a vector."""
    dropped = ", ".join(f"{count} {word}" for word, count in sorted(model.dropped.items()))
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", robot).strip("_-")
    lines = [
        "fsm_dyn: 1", f"name: {name if name[:1].isalpha() else f'robot_{name}'}",
        "summary: From a robot description; z points up.",
        *([f"# Not taken over: {dropped}."] if dropped else []),
    ]  # fmt: skip
    for section in ("frames", "points", "joints", "bodies", "shapes", "contacts", "constraints"):
        entries = getattr(model, section)
        if entries:
            lines += [f"{section}:", *(f"  {entry}" for entry in entries)]
    loads = [f"{{gravity: {gravity}}}", *model.loads]
    return "\n".join([*lines, "loads:", *(f"  - {load}" for load in loads), ""])


# -- MJCF ----------------------------------------------------------------------------------------------------

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
    that of MuJoCo less its reference. ``path``: the description, `.xml`. Raises InputError: the file is unreadable, or
    MuJoCo refuses it, or mujoco is not installed (the extra ``mujoco``).
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


def _matrix(quaternion: Floats) -> Floats:
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

    def _at(self, base: LinkPlace, offset: Floats, name: str) -> str:
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
