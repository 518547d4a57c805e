"""Phases and visits for the page: of a live run tick by tick; causes, lanes and graph of a finished one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.draw.run_diagrams import Stay, VisitDiagram, dwell, visit_diagram
from fsm_dyn.draw.svg import PhaseFill, phase_fills
from fsm_dyn.language.model import Mechanism
from fsm_dyn.page.scene_drawing import TIME, RowEvaluator
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.run.phases import NO_PHASE, PhaseFollower, phase_rules
from fsm_dyn.run.run_timeline import Lane, Score, Segment
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import Transition
from fsm_dyn.run.visits import UNNAMED, Visit, Visits, clock, span

# -- Visits of a finished run ----------------------------------------------------------------------------------


MOST_COLUMNS: Final = 40  # visits with a column, which the page scrolls; of more one cycle, or the first ones
_NEAREST: Final = 0.12  # of a column, between two marks
_HEIGHTS: Final = 48  # most points of a lane in one column
_INSTANTS: Final = 1200  # in the visits, shown beside the rows of a run
_CHARTS: Final = 3  # of each group, at first
_EVEN: Final = 600  # in the run


def story_payload(
    trajectory: Trajectory, places: Mapping[int, int], before: Trajectory | None = None
) -> dict[str, Any]:
    """Return the payload of the visits of a run.

    ``places``: index of the force of each constraint row among the quantities of a display frame; ``before``: earlier
    run for comparison: each visit gets the begin of its visit of the same name and number, s. ``visits`` are those with
    a column, from number ``first`` of all; ``begins``, ``names`` all; times in s. Positions in lanes are fractions of a
    column.
    """
    score = Score(trajectory.reading, nearest=_NEAREST, most=MOST_COLUMNS)
    visits = score.visits
    first = next(k for k, visit in enumerate(visits) if visit is score.columns[0])
    numbers = {name: k for k, name in enumerate(visits.names)}
    earlier = {} if before is None else _numbered(before.visits)
    own = list(_numbered(visits))
    return {
        "headline": trajectory.reading.headline,
        "note": score.note,
        "phases": visits.are_phases,
        "fills": {name: [fill.colour, fill.texture, fill.mark] for name, fill in visits.fills.items()},
        "first": first,
        "begins": [visit.begin for visit in visits],
        "names": [numbers[visit.name] for visit in visits],
        "named": list(visits.names),
        "end": score.end,
        "shown_end": score.shown_end,
        "visits": [
            {**_visit(visit), "before": earlier.get(own[first + k])} for k, visit in enumerate(score.columns)
        ],
        "lanes": [{**_lane(lane, score.columns), **_forces(trajectory, lane, places)} for lane in score.lanes],
        "always": list(score.always),
        "graph": graph_payload(visits.diagram()),
        "narrow": graph_payload(visits.diagram(narrow=True)),
    }  # fmt: skip


def _numbered(visits: Visits) -> dict[tuple[str, int], float]:
    """Return the begin of each visit by its name and its number among those of the name."""
    counts: Counter[str] = Counter()
    found = {}
    for visit in visits:
        found[visit.name, counts[visit.name]] = visit.begin
        counts[visit.name] += 1
    return found


def _visit(visit: Visit) -> dict[str, Any]:
    return {
        "name": visit.name,
        "begin": visit.begin,
        "end": visit.end,
        "clock": clock(visit.begin),
        "span": span(visit.duration),
        "cause": visit.cause,
        "text": visit.text,
    }


def _lane(lane: Lane, columns: Sequence[Visit]) -> dict[str, Any]:
    segments, marks = [], []
    for k, visit in enumerate(columns):
        for segment in lane.segments[k]:
            x, heights = _reduced(segment, visit)
            segments.append({"column": k, "slides": segment.is_sliding, "x": x, "heights": heights})
        marks += [[k, _rounded(_share(mark.time, visit)), mark.count] for mark in lane.marks[k]]
    return {"name": lane.name, "segments": segments, "marks": marks}


def _forces(trajectory: Trajectory, lane: Lane, places: Mapping[int, int]) -> dict[str, Any]:
    """Return the indices of the normal forces of a lane, of friction alone those of friction, and their unit.

    Forces and torques have no sum: a lane with both has none.
    """
    contacts = [trajectory.model.contacts[k] for entry in lane.entries for k in trajectory.reading.words.entries[entry]]
    rows = [contact.normal_row if contact.normal_row >= 0 else contact.tangent_row for contact in contacts]
    rows = [row for row in rows if row in places]
    units = {trajectory.model.force_units[row].replace("*", "·") for row in rows}
    return {"forces": [places[row] for row in rows], "unit": units.pop()} if len(units) == 1 else {"forces": []}


def _reduced(segment: Segment, visit: Visit) -> tuple[list[float], list[float]]:
    """Return positions and heights of a segment; of many the largest height of each part."""
    times, heights = segment.times, segment.heights
    if len(times) > _HEIGHTS:
        edges = np.linspace(times[0], times[-1], _HEIGHTS - 1)
        starts = np.unique(np.searchsorted(times, edges[:-1]))
        heights = np.maximum.reduceat(heights, starts)
        times = times[starts]
        times, heights = np.append(times, segment.end), np.append(heights, heights[-1])
    return [_rounded(x) for x in _share(times, visit).tolist()], np.round(heights, 3).tolist()


def _share(time: Any, visit: Visit) -> Any:
    return np.clip((time - visit.begin) / max(visit.duration, 1e-300), 0.0, 1.0)


def _rounded(x: float) -> float:
    return round(float(x), 5)


def graph_payload(diagram: VisitDiagram) -> dict[str, Any]:
    """Return boxes and edges of the graph of a run, px."""
    return {
        "width": diagram.width,
        "height": diagram.height,
        "boxes": [
            {
                "name": box.name, "left": box.left, "top": box.top, "width": box.width, "height": box.height,
                "text": dwell(box), "fill": [box.fill.colour, box.fill.texture],
            }
            for box in diagram.boxes
        ],
        "edges": [
            {
                "title": f"{edge.source} → {edge.target}" + (f": {'; '.join(edge.causes)}" if edge.causes else ""),
                "course": edge.course, "pill": edge.pill, "size": edge.pill_size, "words": edge.words,
            }
            for edge in diagram.edges
        ],
    }  # fmt: skip


def in_words(trajectory: Trajectory, number: int) -> Transition:
    """Return a transition of a run with its cause as a sentence."""
    return replace(trajectory.transitions[number], cause=trajectory.reading.sentences.cause(number))


def quantity_words(trajectory: Trajectory, places: Mapping[int, int], count: int) -> list[str | None]:
    """Return words for the forces of contacts among the quantities of a display frame; None for the others."""
    found: list[str | None] = [None] * count
    words = trajectory.reading.words
    for number, contact in enumerate(trajectory.model.contacts):
        rows = [(contact.normal_row, "normal"), *((row, "friction") for row in contact.tangent_rows)]
        for row, part in rows:
            if row in places:
                single = len(words.entries[words.entry_of[number]]) == 1
                name = words.entry(words.entry_of[number]) if single else words.feature(number)
                found[places[row]] = name if len(contact.tangent_rows) == 0 else f"{name}, {part}"
    return found


def usual_charts(trajectory: Trajectory, quantities: Sequence[tuple[str, str]]) -> list[int]:
    """Return the numbers of the quantities shown first: outputs, coordinates that move, inputs unlike zero.

    ``quantities``: name and group of each.
    """
    found = []
    for group in ("outputs", "coordinates", "inputs"):
        own = [(number, trajectory[name]) for number, (name, kind) in enumerate(quantities) if kind == group]
        moving = [(number, values) for number, values in own if len(values) and np.ptp(values) > 0.0]
        found += [number for number, _ in moving][:_CHARTS]
    return found


def visit_times(trajectory: Trajectory, count: int) -> Floats:
    """Return about ``count`` times, s, equally many in each visit with a column, of which the first is its begin."""
    columns = Score(trajectory.reading, most=MOST_COLUMNS).columns
    each = max(2, count // len(columns))
    return np.concatenate([np.linspace(visit.begin, visit.end, each, endpoint=False) for visit in columns])


def instants(trajectory: Trajectory) -> Floats:
    """Return times between the rows of a run at which the page shows it too, s: many in each visit, however short."""
    even = np.linspace(float(trajectory.t[0]), float(trajectory.t[-1]), _EVEN)
    return np.setdiff1d(np.concatenate([visit_times(trajectory, _INSTANTS), even]), trajectory.t)


# -- Phases of a live run --------------------------------------------------------------------------------------


KEPT: Final = 4000  # latest visits in the graph


def fills_of(mechanism: Mechanism) -> Mapping[str, PhaseFill]:
    """Return the fills of the phases of a model, and of none, as those of its runs."""
    return phase_fills({**{phase.name: phase.colour for phase in mechanism.phases.values()}, UNNAMED: "grey"})


def phases_payload(mechanism: Mechanism) -> list[dict[str, Any]]:
    """Return name, text and fill of no phase and of the phases of a model, in this order; empty without any."""
    fills = fills_of(mechanism)
    texts = {UNNAMED: "", **{phase.name: phase.text for phase in mechanism.phases.values()}}
    found = [
        {"name": name, "text": text, "fill": [fills[name].colour, fills[name].texture]} for name, text in texts.items()
    ]
    return found if mechanism.phases else []


class LivePhases:
    """Follows the phases of a live run by its rows, one per tick: a change is seen at the end of its tick.

    ``evaluator``: of a model with phases.
    """

    def __init__(self, evaluator: RowEvaluator) -> None:
        rules = phase_rules(evaluator.automaton)
        assert rules is not None
        self._evaluator, self._rules, self._follower = evaluator, rules, PhaseFollower(rules)
        self._kernel = None if rules.program is None else compile_programs([rules.program])[0]
        self._fills = fills_of(evaluator.automaton.mechanism)
        self._stays: deque[Stay] = deque(maxlen=KEPT)
        self._since = self._last = -np.inf
        self._sent: int | None = None

    def follow(self, rows: Floats, before: Floats | None, states_of: Callable[[Floats], Sequence[int]]) -> None:
        """Judge new rows; ``before`` is the row before them, ``states_of`` returns the contact states at a row."""
        for row in rows:
            time = float(row[TIME])
            if time <= self._last:
                if time == self._last:
                    continue
                self._follower.restart()  # a reset
                self._stays.clear()
                self._since = time
            self._judge(row, before, states_of(row), time)
            before, self._last = row, time

    def _judge(self, row: Floats, before: Floats | None, states: Sequence[int], time: float) -> None:
        was = self._follower.phase
        now = self._follower.judge(states, self._margins(row, before, states))
        if self._stays:
            self._stays[-1] = Stay(self._stays[-1].name, time - self._since)
        if not self._stays or now != was:
            self._since = time
            self._stays.append(Stay(self._name(now), 0.0))

    def _margins(self, row: Floats, before: Floats | None, states: Sequence[int]) -> Floats:
        if self._kernel is None:
            return np.zeros(0)
        with np.errstate(all="ignore"):
            x, c = self._evaluator.state(row, before)
            if self._rules.reads_forces:
                _, full = self._evaluator.full(states, x, c)
                x = np.concatenate([x, full["x_dot"][self._evaluator.layout.u_slice], full["multipliers"]])
            found: Floats = self._kernel.outputs(float(row[TIME]), x, c)["margins"]
        return found

    def _name(self, phase: int) -> str:
        return UNNAMED if phase == NO_PHASE else self._rules.names[phase]

    def news(self) -> dict[str, Any] | None:
        """Return the message of another phase than at the last call; None if it is the same."""
        if self._sent == self._follower.phase or not self._stays:
            return None
        self._sent = self._follower.phase
        return self.now()

    def now(self) -> dict[str, Any]:
        """Return the message of the present phase, by its number in :func:`phases_payload`."""
        return {"kind": "phase_begins", "phase": self._follower.phase + 1}

    def graph(self) -> dict[str, Any] | None:
        """Return the graph of the visits so far, in a column; None before the first."""
        return graph_payload(visit_diagram(list(self._stays), self._fills, narrow=True)) if self._stays else None
