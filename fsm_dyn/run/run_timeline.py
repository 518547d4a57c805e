"""A run as a timeline and in a notebook, the placement of its scene over time, the contents of its score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.run_diagrams import Strip, Timeline, timeline_svg, visit_graph_svg
from fsm_dyn.draw.svg import element, escaped
from fsm_dyn.run.record import RunModel, RunRecord
from fsm_dyn.run.run import Run
from fsm_dyn.run.samples import Samples, stacked
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN, Scene, SceneShape
from fsm_dyn.run.transitions import Transitions, counted
from fsm_dyn.run.visits import RunReading, Visit, Visits, clock
from fsm_dyn.run.words import OPEN, slides

# -- A run as a timeline: its modes, transitions and columns, dense enough for smooth lines ------------------

_POINTS = 600  # over a run, if steps are longer


def timeline_of(
    model: RunModel, record: RunRecord, rows: Samples | None = None, groups: Iterable[tuple[str, Sequence[str]]] = ()
) -> Timeline:
    """Return a run as a timeline.

    ``rows``: rows to read the columns from; ``groups``: the columns: a unit and their names, for each strip.
    """
    labels, mode = np.array(model.labels), np.asarray(record.mode)
    edges = [0, *(np.flatnonzero(labels[mode[1:]] != labels[mode[:-1]]) + 1).tolist()]
    times = [float(record.t[k]) for k in edges] + [float(record.t[-1])]
    bands = tuple((times[i], times[i + 1], str(labels[mode[k]])) for i, k in enumerate(edges))
    transitions = tuple(item.time for item in record.transitions)
    t = record.t if rows is None else rows.t
    return Timeline(model.name, bands, palette.mode_colours(model.labels), transitions, t, _strips(rows, groups))


def visits_timeline(
    reading: RunReading, rows: Samples | None = None, groups: Iterable[tuple[str, Sequence[str]]] = ()
) -> Timeline:
    """Return a run as a timeline whose bands are its visits: phases, or modes by their short names.

    ``rows``, ``groups``: see :func:`timeline_of`.
    """
    if reading.model.automaton is None:  # no contacts to name modes after
        return timeline_of(reading.model, reading.record, rows, groups)
    visits = reading.visits
    return Timeline(
        reading.model.name,
        tuple((visit.begin, visit.end, visit.name) for visit in visits),
        {name: fill.colour for name, fill in visits.fills.items()},
        tuple(item.time for item in reading.transitions),
        reading.rows.t if rows is None else rows.t,
        _strips(rows, groups),
    )


def _strips(rows: Samples | None, groups: Iterable[tuple[str, Sequence[str]]]) -> tuple[Strip, ...]:
    if rows is None:
        return ()
    return tuple(Strip(unit, tuple(names), np.array([rows[name] for name in names])) for unit, names in groups)


def columns_by_unit(model: RunModel, kinds: Iterable[Sequence[str]]) -> list[tuple[str, list[str]]]:
    """Return columns of one unit together, in the order of the kinds, which stay apart."""
    groups: dict[tuple[int, str], list[str]] = {}
    for number, names in enumerate(kinds):
        for name in names:
            groups.setdefault((number, model.units.get(name, "")), []).append(name)
    return [(unit, names) for (_, unit), names in groups.items()]


def dense_rows(rows: Samples, sample: Callable[[Floats], Samples]) -> Samples:
    """Return the rows of a run with points of the dense output between them; ``sample`` returns states between rows."""
    t = rows.t
    pieces = np.minimum(np.ceil(np.diff(t) / max((t[-1] - t[0]) / _POINTS, 1e-300)).astype(int), _POINTS)
    long = np.flatnonzero(pieces > 1)
    if not len(long):
        return rows
    return merged_samples(
        rows, sample(np.concatenate([np.linspace(t[i], t[i + 1], pieces[i] + 1)[1:-1] for i in long]))
    )


def merged_samples(rows: Samples, extra: Samples) -> Samples:
    """Return two sets of samples of a run as one, in order of time."""
    both = stacked([rows, extra])
    return both.only(np.argsort(both.t, kind="stable"))


# -- Placement of a scene at the times of a run --------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """A scene at n instants: ``positions`` (n, n_points, 3), m, and ``rotations`` (n, n_frames, 3, 3)."""

    scene: Scene
    positions: Floats
    rotations: Floats

    def point(self, name: str) -> Floats:
        """Return the path of a point, shape (n, 3); the Newtonian origin rests."""
        if name == ORIGIN:
            return np.zeros((len(self.positions), 3))
        path: Floats = self.positions[:, self.scene.points.index(name)]
        return path

    def outline(self, shape: SceneShape) -> Floats:
        """Return a shape's points in the Newtonian frame, shape (n, k, 3)."""
        origin = self.point(shape.origin)[:, None, :]
        count, dimensions = shape.points.shape
        solid = np.hstack([shape.points, np.zeros((count, 3 - dimensions))])
        if shape.frame == NEWTONIAN:
            return np.asarray(origin + solid)
        rotation = self.rotations[:, self.scene.frames.index(shape.frame)]
        placed: Floats = origin + np.einsum("nij,kj->nki", rotation, solid)
        return placed

    def anchors(self) -> Floats:
        """Return the anchors of the scene in the Newtonian frame, m, shape (n, n_anchors, 3)."""
        scene, count = self.scene, len(self.positions)
        if not scene.anchors:
            return np.zeros((count, 0, 3))
        points = np.concatenate([self.positions, np.zeros((count, 1, 3))], axis=1)
        frames = np.concatenate([self.rotations, np.broadcast_to(np.eye(3), (count, 1, 3, 3))], axis=1)
        point = [-1 if item.origin == ORIGIN else scene.points.index(item.origin) for item in scene.anchors]
        frame = [-1 if item.frame == NEWTONIAN else scene.frames.index(item.frame) for item in scene.anchors]
        offsets = np.array([item.offset for item in scene.anchors])
        return np.asarray(points[:, point] + np.einsum("naij,aj->nai", frames[:, frame], offsets))

    def is_planar(self) -> bool:
        """Return whether everything moves in planes across N.z."""
        level = np.ptp(self.positions[..., 2]) if self.positions.size else 0.0
        turned = np.abs(self.rotations[..., 2, 2] - 1.0).max(initial=0.0)
        return bool(level < 1e-9 and turned < 1e-9)


def place_scene(scene: Scene, samples: Samples) -> Placed:
    """Return the positions of all parts of ``scene`` at the times of ``samples``.

    Raises InputError: something is nowhere: its position is not finite.
    """
    out = scene.geometry.evaluate(samples.t, samples.x, samples.context)
    if not all(np.isfinite(out[name]).all() for name in ("points", "frames")):
        raise InputError(
            "the model cannot be drawn", found="positions that are infinite or not a number",
            remedy="look for a division by zero in the positions of points",
        )  # fmt: skip
    n, n_points, n_frames = len(samples), len(scene.points), len(scene.frames)
    return Placed(
        scene,
        positions=np.broadcast_to(out["points"], (n, n_points, 3)),
        rotations=np.broadcast_to(out["frames"], (n, n_frames, 3, 3)),
    )


# -- Contents of a score, without a picture: columns of equal width, lanes of contacts, marks of impacts -----

MOST_COLUMNS: Final = 9
_ROUNDS: Final = 3  # least repetitions to show only one round
_REPEATED: Final = 0.75  # of the visits
_QUIET: Final = 0.5  # of a run: a longer last visit is cut
_SHOWN: Final = 0.08  # its remaining part of the bar
_PERCENTILE: Final = 99.5  # of the forces of a lane, for its full height
LEAST_HEIGHT: Final = 0.22  # of a lane, for a contact closed without force


@dataclass(frozen=True)
class Segment:
    """A contact not open from ``begin`` to ``end``, s; ``heights`` (n,) at ``times`` (n,), 0 to 1."""

    begin: float
    end: float
    is_sliding: bool
    times: Floats
    heights: Floats


@dataclass(frozen=True)
class Mark:
    """Impacts of a lane, those near to each other as one: the time of the first, s, their number and energy, J."""

    time: float
    count: int
    energy_lost: float


@dataclass(frozen=True)
class Lane:
    """A lane of the roll: contacts of one name, in each column their segments and marks."""

    name: str
    entries: tuple[str, ...]
    segments: tuple[tuple[Segment, ...], ...]
    marks: tuple[tuple[Mark, ...], ...]

    def touches(self, time: float) -> bool:
        """Whether one of the contacts touches at a shown time."""
        return any(segment.begin <= time < segment.end for own in self.segments for segment in own)


class Score:
    """Contents of a score.

    ``nearest``: least distance of separate marks, as a fraction of a column; ``most``: most columns.
    """

    def __init__(self, reading: RunReading, nearest: float = 0.1, most: int = MOST_COLUMNS) -> None:
        self.reading, self.visits, self._nearest, self._most = reading, reading.visits, nearest, most
        self.begin, self.end = float(reading.rows.t[0]), float(reading.rows.t[-1])

    @cached_property
    def cycle(self) -> tuple[int, int, int] | None:
        """First visit, length and number of rounds of a repeated sequence; None if too little repeats."""
        return repeated([visit.name for visit in self.visits])

    @cached_property
    def columns(self) -> tuple[Visit, ...]:
        """The visits at full width: the second round of a cycle, or the first ones."""
        if len(self.visits) > self._most and self.cycle is not None and self.cycle[1] <= self._most:
            first, length, _ = self.cycle
            return self.visits[first + length : first + 2 * length]
        return self.visits[: self._most]

    @property
    def note(self) -> str:
        """Text about visits not shown at full width."""
        if len(self.columns) == len(self.visits):
            return ""
        if self.columns[0] is not self.visits[0] and self.cycle is not None:
            return f"one cycle of {self.cycle[2]}: {clock(self.columns[0].begin)} s to {clock(self.columns[-1].end)} s"
        later = len(self.visits) - len(self.columns)
        return f"{later} later visit{'' if later == 1 else 's'}: see the bar"

    @cached_property
    def shown_end(self) -> float:
        """The time up to which the bar is to scale, s: of a quiet end a part is left out."""
        last = self.visits[-1]
        if len(self.visits) > 1 and last.duration > _QUIET * (self.end - self.begin):
            return last.begin + _SHOWN * (last.begin - self.begin) / (1.0 - _SHOWN)
        return self.end

    @property
    def is_cut(self) -> bool:
        """Whether the bar ends before the run does."""
        return self.shown_end < self.end

    def on_bar(self, time: float) -> float:
        """Return the position of a time on the bar, 0 to 1."""
        span = max(self.shown_end - self.begin, 1e-300)
        return min(max((time - self.begin) / span, 0.0), 1.0)

    # -- Lanes -------------------------------------------------------------------------------------------------

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        """Contacts with changes in the columns, those of one name together, in the order of the model."""
        groups: dict[str, list[str]] = {}
        words = self.reading.words
        for entry in words.entries:
            if self._changes(entry):
                groups.setdefault(words.entry(entry), []).append(entry)
        return tuple(self._lane(name, tuple(entries)) for name, entries in groups.items())

    @cached_property
    def always(self) -> tuple[str, ...]:
        """Names of the contacts touching during all of the shown time, in one state."""
        words = self.reading.words
        found = [e for e in words.entries if not self._changes(e) and self._state_at(e)[self._rows_shown].any()]
        return tuple(dict.fromkeys(words.entry(entry) for entry in found))

    @cached_property
    def _rows_shown(self) -> np.ndarray:
        t = self.reading.rows.t
        rows = (t >= self.columns[0].begin) & (t <= self.columns[-1].end)
        rows[max(int(np.searchsorted(t, self.columns[0].begin, side="right")) - 1, 0)] = True
        return rows

    def _state_at(self, entry: str) -> Floats:
        """Return the state of an entry at each row: 0 open, 1 touching, 2 sliding."""
        codes = np.array([0 if s == OPEN else 2 if slides(s) else 1 for s in self.reading.states.states[entry]])
        return np.asarray(codes[self.reading.record.mode])

    def _changes(self, entry: str) -> bool:
        """Whether an entry changes its state, or has an impact, in the columns."""
        states = self._state_at(entry)[self._rows_shown]
        return bool(len(states) and np.ptp(states)) or bool(self._impacts((entry,)))

    def _impacts(self, entries: Sequence[str]) -> list[tuple[float, float]]:
        """Return times and energies of the impacts of entries in the columns."""
        numbers = {k for entry in entries for k in self.reading.words.entries[entry]}
        acts = self.reading.sentences.acts
        first, last = self.columns[0].begin, self.columns[-1].end
        return [
            (item.time, item.energy_lost)
            for item, own in zip(self.reading.transitions, acts, strict=True)
            if first <= item.time <= last and any(act.impact and act.contact in numbers for act in own)
        ]

    def _lane(self, name: str, entries: tuple[str, ...]) -> Lane:
        t = self.reading.rows.t
        state = np.max([self._state_at(entry) for entry in entries], axis=0)
        for entry in entries:  # a sticking one beside a sliding one
            state[self._state_at(entry) == 1] = 1
        force = np.sum([self.reading.normal_force(entry) for entry in entries], axis=0)
        shown = force[self._rows_shown]
        full = max(float(np.percentile(shown, _PERCENTILE)) if len(shown) else 0.0, 1e-12)
        height = LEAST_HEIGHT + (1.0 - LEAST_HEIGHT) * np.sqrt(np.clip(force / full, 0.0, 1.0))
        impacts = self._impacts(entries)
        return Lane(
            name,
            entries,
            tuple(tuple(_segments(t, state, height, visit.begin, visit.end)) for visit in self.columns),
            tuple(tuple(self._marks(impacts, visit, k)) for k, visit in enumerate(self.columns)),
        )

    def _marks(self, impacts: Sequence[tuple[float, float]], visit: Visit, number: int) -> list[Mark]:
        """Return the marks of a lane in a column."""
        last = number == len(self.columns) - 1
        found: list[Mark] = []
        end = -np.inf
        for time, lost in impacts:
            if not (visit.begin <= time < visit.end or (last and time == visit.end)):
                continue
            if found and time - end < self._nearest * visit.duration:
                before = found[-1]
                found[-1] = Mark(before.time, before.count + 1, before.energy_lost + lost)
            else:
                found.append(Mark(time, 1, lost))
            end = time
        return found


def _segments(t: Floats, state: Floats, height: Floats, begin: float, end: float) -> list[Segment]:
    """Return the stays of a lane between two times, except open ones."""
    first = max(int(np.searchsorted(t, begin, side="right")) - 1, 0)
    last = int(np.searchsorted(t, end, side="left"))
    rows = np.arange(first, min(last, len(t) - 1) + 1)
    found: list[Segment] = []
    row = 0
    while row < len(rows):
        stop = row
        while stop + 1 < len(rows) and state[rows[stop + 1]] == state[rows[row]]:
            stop += 1
        own = rows[row : stop + 1]
        start = max(float(t[own[0]]), begin) if row else begin
        finish = min(float(t[rows[stop + 1]]) if stop + 1 < len(rows) else end, end)
        if state[own[0]] and finish > start:
            times = np.clip(np.concatenate([[start], t[own], [finish]]), start, finish)
            heights = np.concatenate([[height[own[0]]], height[own], [height[own[-1]]]])
            found.append(Segment(start, finish, bool(state[own[0]] == 2), times, heights))
        row = stop + 1
    return found


def repeated(names: Sequence[str]) -> tuple[int, int, int] | None:
    """Return the first repetition in a sequence: its start, its length and the number of its rounds.

    None if fewer than three rounds, or less than three quarters of the sequence, repeat.
    """
    count = len(names)
    for length in range(2, count // _ROUNDS + 1):
        for first in range(min(length + 2, count)):
            last = first
            while last + length < count and names[last] == names[last + length]:
                last += 1
            rounds = (last + length - first) // length
            if rounds >= _ROUNDS and rounds * length >= _REPEATED * count:
                return first, length, rounds
    return None


# -- Notebook representation of a run: summary, timeline, table of transitions -------------------------------

_MOST_ROWS: Final = 20  # transitions in the table
_MOST_STRIPS: Final = 4


def _run_svg(run: Run) -> str:
    """Return the picture of a run over time: its modes, coordinates, speeds."""
    groups = columns_by_unit(run.model, (run.model.layout.q, run.model.layout.u))[:_MOST_STRIPS]
    return timeline_svg(timeline_of(run.model, run.record, dense_rows(run.all, run.sample), groups))


def run_html(run: Run, ending: Callable[[], tuple[str, ...]], visits: Visits | None = None) -> str:
    """Return a run as a notebook shows it; whatever the model's text says stays text.

    ``ending`` describes the end of a failed run, line by line.
    """
    model, record, transitions = run.model, run.record, run.record.transitions
    told = (
        f"{record.t[0]:g} s to {record.t[-1]:g} s, {len(record.t)} rows, {counted(transitions)}; {record.outcome.name}"
    )
    head = element("p", f"{element('b', escaped(model.name))}: {escaped(told)}")
    parts = [head]
    if visits is not None:
        parts += [visit_graph_svg(visits.diagram(), f"Graph of this run of {model.name}"), visits._repr_html_()]
    parts.append(_run_svg(run))
    if record.outcome.failed:
        parts.append(element("pre", escaped("\n".join(ending()))))
    if transitions:
        shown = Transitions(transitions[:_MOST_ROWS])._repr_html_()
        more = len(transitions) - _MOST_ROWS
        rest = element("p", f"and {more} more") if more > 0 else ""
        parts.append(element("details", element("summary", "Transitions") + shown + rest))
    return element("div", parts)
