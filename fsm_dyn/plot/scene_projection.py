"""A mechanism at several times in the plane of a figure, with its contact forces."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes

from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.run.contact_forces import LEAST, LONGER, SHORTEST, WIDTH, Forces, InputPushes, Kinematics
from fsm_dyn.run.run_timeline import Placed, place_scene
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.scene import ORIGIN, Outlines, Scene, SceneShape, scene_of
from fsm_dyn.run.scene_inference import with_symbols
from fsm_dyn.run.trajectory import Trajectory

# -- Projection of a scene -----------------------------------------------------------------------------------
#
# Projection of a scene: outlines of a mechanism at several times in the plane of the figure.

PATH_POINTS = 600
_AROUND_PATCH = 1.4  # half width of the square of a plane, of that of the mechanism
_EVEN = 0.15  # share of snapshots spaced evenly in time, the others by displacement

# Projection of spatial mechanisms: x to the lower left, y to the right, z up.
_AXONOMETRIC = np.array([[-0.35, 0.94, 0.0], [-0.33, -0.12, 0.94]])
PLANAR = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@dataclass(frozen=True)
class View:
    """A scene at n instants in the plane of a figure, m.

    Attributes
    ----------
    scene : Scene
    times : ndarray, shape (n,)
        s
    visits : tuple of str
        Names of the visits: phases, or short names of modes.
    flat : ndarray, shape (2, 3)
        The projection.
    shapes : list of ndarray, shape (n, k, 2)
        The outlines.
    anchors : ndarray, shape (n, n_anchors, 2)
    paths : mapping of str to ndarray, shape (PATH_POINTS, 2)
        Of the origins of outlines, by body or shape.
    touching : ndarray, shape (n, n_contacts, 2)
        Points of contacts with a known place, NaN for open ones.
    arrows : ndarray, shape (n, n_contacts, 2, 2)
        Tails and heads of contact forces, NaN: none.
    open_contacts : tuple of frozenset of str
        Open contacts, by instant.
    lit : ndarray, shape (n, n_faces, 2, 2)
        Ends of straight faces that are touched, NaN while they are not.
    pushes : ndarray, shape (n, n_inputs, 2, 2)
        Tails and heads of the forces of inputs, NaN at zero.
    brakes : ndarray, shape (n, n_brakes, 2)
        Pivots with dry friction.
    sticking : ndarray of bool, shape (n, n_brakes)
        Whether they stick.
    """

    scene: Scene
    times: Floats
    visits: tuple[str, ...]
    flat: Floats
    shapes: list[Floats]
    anchors: Floats
    paths: dict[str, Floats]
    touching: Floats
    arrows: Floats
    open_contacts: tuple[frozenset[str], ...] = ()
    lit: Floats = field(default_factory=lambda: np.zeros((0, 0, 2, 2)))
    pushes: Floats = field(default_factory=lambda: np.zeros((0, 0, 2, 2)))
    brakes: Floats = field(default_factory=lambda: np.zeros((0, 0, 2)))
    sticking: Booleans = field(default_factory=lambda: np.zeros((0, 0), np.bool_))

    @property
    def planar(self) -> bool:
        """Whether all motion is in the plane of the figure."""
        return self.flat is PLANAR

    @property
    def unit(self) -> float:
        """The unit of symbols, m."""
        if self.scene.unit > 0.0:
            return self.scene.unit
        low, high = self.box(0)
        return max(float((high - low).max()) / 100.0, 1e-9)

    def box(self, instant: int, bodies: Collection[str] | None = None) -> tuple[Floats, Floats]:
        """Return the lower left and the upper right corner of one instant, or of some bodies then.

        Parameters
        ----------
        bodies : collection of str, optional
            By default all, with symbols and arrows.
        """
        every = zip(self.scene.shapes, self.shapes, strict=True)
        shown = [(shape, outline[instant]) for shape, outline in every if shape.bounded]
        parts = [part for shape, part in shown if bodies is None or shape.owner in bodies]
        for symbol in self.scene.symbols:
            if bodies is None or symbol.owner in bodies:
                parts.append(self.anchors[instant, list(symbol.anchors)])
        if bodies is None:
            parts += [*self.arrows[instant], *(self.pushes[instant] if len(self.pushes) else ())]
        finite = [part for part in parts if len(part) and np.isfinite(part).all()]
        everything = np.concatenate(finite) if finite else np.zeros((1, 2))
        return everything.min(axis=0), everything.max(axis=0)

    def limits(self) -> tuple[Floats, Floats]:
        """Return the lower left and the upper right corner, m, of all instants."""
        boxes = np.array([self.box(i) for i in range(len(self.times))])
        return boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)


_SCENES: WeakKeyDictionary[Trajectory, dict[float, Scene]] = WeakKeyDictionary()
_SCENE_STATES = 200  # of a run, from which its scene is found


def trajectory_scene(trajectory: Trajectory, end: float | None = None) -> Scene:
    """Return the scene of a run, with symbols; it is made once for each run.

    Parameters
    ----------
    end : float, optional
        Of the part of the run whose travel determines the sizes of symbols, s; by default that of the run.

    Raises
    ------
    InputError
        The model has nothing to draw.
    """
    model = trajectory.model
    if model.scene is None:
        raise InputError(f"{model.name} has nothing to draw")
    if model.automaton is None:
        return model.scene
    last = float(trajectory.t[-1]) if end is None else end
    known = _SCENES.setdefault(trajectory, {})
    if last not in known:
        rows = trajectory.sample(np.linspace(trajectory.t[0], last, _SCENE_STATES))
        place_scene(model.scene, rows)  # refuses positions without numbers
        known[last] = with_symbols(model.scene, model.automaton, model.values, rows.t, rows.x, rows.context)
    return known[last]


def project(trajectory: Trajectory, scene: Scene, times: Floats) -> View:
    """Project the scene of a run at these times, s, on the plane of the figure."""
    start, end = float(trajectory.t[0]), float(trajectory.t[-1])
    samples = trajectory.sample(times)
    placed = place_scene(scene, samples)
    along = place_scene(scene, trajectory.sample(np.linspace(start, end, PATH_POINTS)))
    flat = _projection(along)
    middle, reach = _extent(placed)
    outlines = [
        _patch(placed, shape, middle, reach) @ flat.T if shape.plane else _flat_outline(placed, shape, flat)
        for shape in scene.shapes
    ]
    none = np.zeros((len(times), 0, 2))
    return View(
        scene=scene,
        times=samples.t,
        visits=tuple(trajectory.visits.at(time).name for time in samples.t.tolist()),
        flat=flat,
        shapes=outlines,
        anchors=placed.anchors() @ flat.T,
        paths={shape.body: along.point(shape.origin) @ flat.T for shape in scene.shapes if shape.origin != ORIGIN},
        touching=none,
        arrows=none[..., None],
        open_contacts=_open_contacts(trajectory, samples),
        pushes=_pushes(trajectory, placed, samples, flat),
    )


def visit_colours(trajectory: Trajectory) -> dict[str, str]:
    """Return the colours of the visits of a run by their names."""
    return {name: fill.colour for name, fill in trajectory.visits.fills.items()}


_INPUT_STATES = 100  # of a run, for the largest value


def _pushes(trajectory: Trajectory, placed: Placed, samples: Samples, flat: Floats) -> Floats:
    """Return tails and heads of the forces of inputs in the plane of the figure, m, shape (n, k, 2, 2)."""
    scene, model = placed.scene, trajectory.model
    if model.automaton is None:
        return np.full((len(samples), 0, 2, 2), np.nan)
    pushes = InputPushes(scene, model.automaton.mechanism, model.layout.w, model.values)
    if not pushes.symbols:
        return np.full((len(samples), 0, 2, 2), np.nan)

    def forces(own: Samples, rotations: Floats) -> list[list[Floats]]:
        inputs = own.context[:, model.layout.w_slice]
        return [pushes.forces(float(t), w, r) for t, w, r in zip(own.t, inputs, rotations, strict=True)]

    every = trajectory.sample(np.linspace(trajectory.t[0], trajectory.t[-1], _INPUT_STATES))
    whole = forces(every, place_scene(scene, every).rotations)
    largest = np.array([[np.linalg.norm(force) for force in row] for row in whole]).max(axis=0)
    found = np.array(
        [
            pushes.arrows(own, anchors, flat)
            for own, anchors in zip(forces(samples, placed.rotations), placed.anchors() @ flat.T, strict=True)
        ]
    )
    head, along = found[..., :2], found[..., 2:]
    size = np.linalg.norm(along, axis=-1, keepdims=True)
    share = np.minimum(size / np.maximum(largest, 1e-300)[None, :, None], 1.0)
    length = np.where(share < LEAST, np.nan, (SHORTEST + LONGER * share) * scene.unit)
    tail = head - along / np.where(size > 0.0, size, np.nan) * length
    return np.stack([tail, head + 0.0 * tail], axis=2)


def _open_contacts(trajectory: Trajectory, samples: Samples) -> tuple[frozenset[str], ...]:
    model = trajectory.model
    names = [contact.name for contact in model.contacts]
    open_in = [
        frozenset(name for name, state in zip(names, chart.states, strict=False) if state == 0)
        for chart in model.charts
    ]
    return tuple(open_in[mode] for mode in samples.mode) if open_in else ()


def _flat_outline(placed: Placed, shape: SceneShape, flat: Floats) -> Floats:
    """Return a shape's outline in the plane of the figure, shape (n, k, 2), m."""
    if shape.facing:
        return np.asarray((placed.point(shape.origin) @ flat.T)[:, None, :] + shape.points)
    outline = np.asarray(placed.outline(shape) @ flat.T)
    if shape.outward:
        ahead = np.roll(outline, -1, axis=1)
        area = (outline[..., 0] * ahead[..., 1] - outline[..., 1] * ahead[..., 0]).sum(axis=1)
        outline[area <= 0.0] = np.nan
    return outline


def _extent(placed: Placed) -> tuple[Floats, float]:
    """Return the middle of all that is bounded at each instant, shape (n, 3), m, and its largest half width, m."""
    parts = [placed.outline(shape) for shape in placed.scene.shapes if shape.bounded]
    parts += [placed.anchors()] if placed.scene.anchors else []
    if not parts:
        return np.zeros((len(placed.positions), 3)), 1.0
    everything = np.concatenate(parts, axis=1)
    low, high = everything.min(axis=1), everything.max(axis=1)
    return 0.5 * (low + high), 0.5 * float((high - low).max())


def _patch(placed: Placed, shape: SceneShape, middle: Floats, reach: float) -> Floats:
    """Return the square of a plane below (or next to) the mechanism, shape (n, 4, 3), m."""
    origin = placed.point(shape.origin)[:, None, :]
    across = placed.outline(shape) - origin
    foot = origin + np.einsum("nk,nik->ni", middle - origin[:, 0], across)[:, None, :] @ across
    sides = _AROUND_PATCH * reach * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return np.asarray(foot + sides @ across)


def _projection(placed: Placed) -> Floats:
    return PLANAR if placed.is_planar() else _AXONOMETRIC


def filling(axes: Axes, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the corners (2,), m, of the box around another with which axes of equal scale are filled."""
    place = axes.get_window_extent()
    size = np.array([place.width, place.height])
    half = 0.5 * size * float(((high - low) / size).max())
    middle = 0.5 * (low + high)
    return middle - half, middle + half


def representative_times(trajectory: Trajectory, scene: Scene, count: int) -> Floats:
    """Return ``count`` times of a run, s, with its ends, spaced by displacement."""
    times = np.linspace(trajectory.t[0], trajectory.t[-1], PATH_POINTS)
    placed = place_scene(scene, trajectory.sample(times))
    bounded = [placed.outline(shape) for shape in scene.shapes if shape.bounded]
    bounded += [placed.anchors()] if scene.anchors else []
    if not bounded:
        return np.linspace(times[0], times[-1], count)
    moved = np.linalg.norm(np.diff(np.concatenate(bounded, axis=1), axis=0), axis=-1).max(axis=1)
    even = np.full(len(moved), 1.0 / len(moved))
    weights = (1.0 - _EVEN) * moved / max(float(moved.sum()), 1e-300) + _EVEN * even
    passed = np.concatenate([[0.0], np.cumsum(weights)])
    return np.asarray(np.interp(np.linspace(0.0, passed[-1], count), passed, times))


# -- Contact forces as arrows, with one scale for all instants of a drawing ----------------------------------

LONGEST: Final = 0.15  # of the larger side of the drawing
FULL: Final = 90.0  # percent of the instants with contact forces
_SHORTEST: Final = 0.03  # of the longest: shorter arrows are left out


def with_force_arrows(trajectory: Trajectory, view: View) -> View:
    """Return a view of a run with the contact forces as arrows.

    Their length is proportional to the force, up to :data:`LONGEST` of the larger side of the drawing.  In
    :data:`FULL` percent of the instants with contact forces, at least, none is longer; greater forces are shortened.
    """
    found = _contacts(trajectory, view)
    places, forces = found.points, found.forces
    view = replace(
        view,
        touching=np.where(found.closed[..., None], places, np.nan),
        lit=_lit_faces(trajectory, view),
        arrows=np.full((*places.shape, 2), np.nan),
        brakes=found.brakes,
        sticking=found.sticking,
    )
    norms = np.linalg.norm(forces, axis=-1)
    largest = norms.max(axis=1, initial=0.0)
    if not largest.any():
        return view
    low, high = view.limits()
    share = np.minimum(norms / np.percentile(largest[largest > 0.0], FULL, method="higher"), 1.0)
    share[share < _SHORTEST] = np.nan
    along = forces * (LONGEST * (high - low).max() * share / np.where(norms > 0.0, norms, 1.0))[..., None]
    return replace(view, arrows=np.stack([places, places + along], axis=2))


def _lit_faces(trajectory: Trajectory, view: View) -> Floats:
    """Return the ends of straight faces of planar shapes, m, shape (n, k, 2, 2); NaN where no contact touches them."""
    model, samples = trajectory.model, trajectory.sample(view.times)
    found: list[Floats] = []
    if model.automaton is not None:
        outlines = Outlines(model.automaton, model.parameters, model.values)
        shapes, placed = model.automaton.mechanism.shapes, place_scene(view.scene, samples)
        for name, contact in model.automaton.mechanism.contacts.items():
            faces = contact.features if isinstance(contact, FeatureContact) else ()
            closed = np.array([name not in names for names in view.open_contacts], np.bool_)
            for face in faces:
                bounded = face.part == "face" and shapes[face.shape].straight_faces > 0
                one = outlines.feature(face) if bounded and closed.any() else None
                if one is None or one.along is None:
                    continue
                ends = np.array([one.offset, one.offset + one.along])
                drawn = placed.outline(SceneShape(face.shape, one.frame, one.origin, ends)) @ view.flat.T
                found.append(np.where(closed[:, None, None], drawn, np.nan))
    return np.stack(found, axis=1) if found else np.zeros((len(view.times), 0, 2, 2))


def contact_forces(trajectory: Trajectory, view: View) -> tuple[Floats, Floats]:
    """Return contact points, m, and the forces there on the first body, N, in the plane of a view, each (n, k, 2).

    For the k contacts with forces at a known point. The force is zero for open contacts and nonfinite forces.
    """
    found = _contacts(trajectory, view)
    return found.points, found.forces


@dataclass(frozen=True)
class _Contacts:
    """Contact points (n, k, 2), m, forces there (n, k, 2), N, and which are closed (n, k); then dry friction at pivots.

    ``brakes`` (n, m, 2), m, are the pivots, ``sticking`` (n, m) marks the sticking ones.
    """

    points: Floats
    forces: Floats
    closed: Booleans
    brakes: Floats
    sticking: Booleans


def _contacts(trajectory: Trajectory, view: View) -> _Contacts:
    """Return the contacts of a run at the instants of a view, in its plane."""
    model, rows = trajectory.model, trajectory.rows
    if model.automaton is None or not model.contacts:
        none, no = np.zeros((len(view.times), 0, 2)), np.zeros((len(view.times), 0), np.bool_)
        return _Contacts(none, none, no, none, no)
    kinematics = Kinematics(model.automaton)
    scene = scene_of(model.automaton, model.parameters, model.values, solids=False)
    forces = Forces(kinematics, scene, view.flat, rows.x[0], rows.context[0])
    samples = trajectory.sample(view.times)
    drawn = [
        forces.drawn(x, c, model.charts[mode].states, multipliers)
        for x, c, mode, multipliers in zip(
            samples.x, samples.context, samples.mode, samples.multiplier_table, strict=True
        )
    ]
    acting = np.array([location.kind == "force" for location in forces.locations], dtype=np.bool_)
    table = np.reshape(drawn, (len(drawn), len(acting), WIDTH))
    table[~np.isfinite(table).all(axis=2)] = 0.0
    turning = [location.contact for location in forces.locations if location.kind != "force"]
    states = np.array([[model.charts[mode].states[contact] for contact in turning] for mode in samples.mode])
    own, brakes = table[:, acting], table[:, ~acting, 1:3]
    return _Contacts(
        own[..., 1:3], own[..., 3:5] + own[..., 5:7], own[..., 0] > 0.0, brakes,
        states.reshape(len(drawn), len(turning)) == 1,
    )  # fmt: skip
