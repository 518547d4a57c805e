"""A model file from a robot description (URDF): frames, joints, inertias, limits, spheres and boxes.

Source: ROS, URDF XML specification (links, joints, inertial). Roll, pitch and yaw are turns about fixed axes x, y, z.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, ParseError, fromstring

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import read_file
from fsm_dyn.language.expression_tree import RESERVED_NAMES

MAX_BYTES: Final = 20 * 2**20
MOST_LINKS: Final = 500
_ROUNDING: Final = 1e-9  # of the largest entry of an inertia
_SMALLEST: Final = 1e-6  # m, radius of gyration that is none
_MOVING: Final = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "planar": "planar"}
_UNREAD: Final = ("visual", "transmission", "gazebo", "sensor", "safety_controller", "calibration", "material")

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinkPlace:
    """Frame and origin of a link."""

    frame: str
    origin: str


@dataclass
class RobotModel:
    """The sections of the model, as lines, and what was left out."""

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

    Parameters
    ----------
    path : str or Path
        The description, `.urdf`.

    Raises
    ------
    InputError
        The file is unreadable, or describes no tree of links, or has a joint of another kind.
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


def _numbers(text: str | None, usual: Sequence[float]) -> Array:
    """Return the numbers of an attribute, as many as the usual ones."""
    values = np.array([float(word) for word in text.split()] if text is not None else usual, dtype=np.float64)
    if values.shape != (len(usual),) or not np.isfinite(values).all():
        raise ValueError(f"{len(usual)} numbers are wanted where there is {text!r}")
    return values


def _number(element: Element | None, name: str, usual: float) -> float:
    return usual if element is None else float(_numbers(element.get(name), (usual,))[0])


def _origin(element: Element | None) -> tuple[Array, Array]:
    """Return offset (m) and rotation matrix of an element with an ``origin``."""
    origin = None if element is None else element.find("origin")
    get = (lambda name: None) if origin is None else origin.get
    return _numbers(get("xyz"), (0.0, 0.0, 0.0)), rotation(_numbers(get("rpy"), (0.0, 0.0, 0.0)))


def rotation(angles: Array) -> Array:
    """Return the rotation matrix (3, 3) of roll, pitch and yaw (rad), about fixed axes."""
    (a, b, c), (d, e, f) = np.cos(angles), np.sin(angles)
    rows = [
        [c * b, c * e * d - f * a, c * e * a + f * d],
        [f * b, f * e * d + c * a, f * e * a - c * d],
        [-e, b * d, b * a],
    ]
    return np.array(rows)


def angles_of(matrix: Array) -> Array:
    """Return roll, pitch and yaw (rad) of a rotation matrix."""
    pitch = math.atan2(-matrix[2, 0], math.hypot(matrix[0, 0], matrix[1, 0]))
    if math.hypot(matrix[0, 0], matrix[1, 0]) < 1e-12:  # roll and yaw about one axis
        return np.array([0.0, pitch, math.atan2(-matrix[0, 1], matrix[1, 1])])
    return np.array([math.atan2(matrix[2, 1], matrix[2, 2]), pitch, math.atan2(matrix[1, 0], matrix[0, 0])])


def vector_text(values: Array, frame: str) -> str:
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


def turned_frame(model: RobotModel, frame: str, matrix: Array, name: str) -> str:
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


def moved_place(model: RobotModel, base: LinkPlace, kind: str, axis: Array, names: tuple[str, str]) -> LinkPlace:
    """Add a joint about or along an axis and return the place of its child, turned with it.

    Parameters
    ----------
    model : RobotModel
    base : LinkPlace
        Of the joint on its parent.
    kind : str
        ``revolute``, ``prismatic`` or ``planar``.
    axis : ndarray, shape (3,)
        In the frame of the base, of any length.
    names : tuple of str
        Of the joint and its child.

    Raises
    ------
    ValueError
        The axis is zero.
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


def _onto(axis: Array) -> Array:
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
