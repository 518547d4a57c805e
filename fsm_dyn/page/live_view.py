"""Live view of one run: session, frames, run parameters, event log, impact sounds."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Protocol, cast

import numpy as np

from fsm_dyn.automaton import compilation
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.labels import Labels
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language import expressions
from fsm_dyn.language.elements import TableSchedule
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.expression_tree import free_names
from fsm_dyn.language.impositions import CONTACT, GROUND, hand_inputs, hand_slots
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.values import Parameters, flat_parameters, flat_values, parameter_values
from fsm_dyn.language.values import units as units_of
from fsm_dyn.live.device_map import DeviceMap, Limits, add_couplers, coupled_ports
from fsm_dyn.live.hand_commands import Pair, between_bodies, pairs_in_advance
from fsm_dyn.live.launch import coupled_graph, merge_parameters
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession, RunReport
from fsm_dyn.live.tick import FIXED
from fsm_dyn.page.frames import FrameEncoder, RowSamples, live_forces, live_loads
from fsm_dyn.page.ports import CouplingDevice, PortHandles, default_coupler_parameters, of_row, with_default_ports
from fsm_dyn.page.scene_drawing import MODE, TIME
from fsm_dyn.page.story import LivePhases, phases_payload
from fsm_dyn.run.loop_state import read_transitions
from fsm_dyn.run.record import transition_of
from fsm_dyn.run.transitions import Transition
from fsm_dyn.run.words import GuardWords, Words
from fsm_dyn.runtime.abi import Event

# -- Run parameters: parameters, free inputs and initial mode of a live run, set from its page ---------------


class RunParameters:
    """Parameters of a run, and those pending until the next reset.

    ``graph``: coupled, as it runs; ``parameters``: values unlike the model's file; ``scheduled``: whether the model's
    input schedule is applied.
    """

    def __init__(self, graph: ModeGraph, session: LiveSession, parameters: Mapping[str, Any], scheduled: bool) -> None:
        self._mechanism: Mechanism = graph.automaton.mechanism
        self._session, self._scheduled = session, scheduled
        self.overrides: dict[str, Any] = dict(parameters)
        self._values: dict[str, ParameterValue] = dict(graph.values)
        self._begun: dict[str, ParameterValue] = dict(graph.values)
        self._units = units_of(self._mechanism)
        self._structural = session.structural
        self.waiting: set[str] = set()  # names applied at the next reset

    def payload(self) -> dict[str, Any]:
        """Return the payload of parameters and inputs."""
        return {"parameters": self._parameters(), "drives": self._drives(), "waiting": sorted(self.waiting)}

    def _parameters(self) -> list[dict[str, Any]]:
        """Return the independent scalar parameters, those of couplers last."""
        couplers = {
            name
            for port in coupled_ports(self._mechanism)
            for axis in port.axes
            for name in (axis.stiffness, axis.damping)
        }
        found = [
            {
                "name": name, "value": value, "now": self._values[name], "unit": self._units.get(name, ""),
                "reset": bool(self._followers(name) & self._structural), "hand": name in couplers,
            }
            for name, value in independent_parameters(self._mechanism, self._begun, self.overrides)
        ]  # fmt: skip
        return sorted(found, key=lambda item: bool(item["hand"]))

    def _followers(self, name: str) -> set[str]:
        """Return a parameter and its dependents, elements of vectors by their own names."""
        found = {name}
        for other, parameter in self._mechanism.parameters.items():  # a parameter depends on earlier ones
            if found & {free for text in parameter.values for free in free_names(expressions.parse(text))}:
                found.add(other)
        return {flat for flat in flat_parameters(self._mechanism) if flat.partition("[")[0] in found}

    def _drives(self) -> list[dict[str, Any]]:
        """Return the inputs set neither by a device nor by the active schedule."""
        held = {name for port in coupled_ports(self._mechanism) for name in port.inputs}
        held |= set(hand_inputs(self._mechanism))
        return [
            {
                "name": name,
                "unit": "" if item.is_boolean else item.unit or "",
                "size": self._size(name),
                "boolean": item.is_boolean,
            }
            for name, item in self._mechanism.inputs.items()
            if name not in held and (item.schedule is None or not self._scheduled)
        ]

    def _size(self, name: str) -> float:
        """Return the maximum magnitude of an input in the model's schedule, 1 without one."""
        schedule = self._mechanism.inputs[name].schedule
        texts = schedule.values if isinstance(schedule, TableSchedule) else ()
        return max((abs(float(np.sum(evaluate_expression(text, self._values)))) for text in texts), default=0.0) or 1.0

    def set(self, name: str, value: float) -> None:
        """Set a parameter and its dependents; structural ones are applied at the next reset.

        Raises InputError: the parameter is unknown or the value invalid.
        """
        overrides = {**self.overrides, name: value}
        values = parameter_values(self._mechanism, overrides)
        before = flat_values(self._mechanism, self.overrides)
        after = flat_values(self._mechanism, overrides)
        changed = {key: found for key, found in after.items() if found != before[key] and math.isfinite(found)}
        if changed:
            self._session.send("set", values=changed)
        self.overrides, self._values = overrides, values

    def drive(self, name: str, value: float) -> None:
        """Set an input; raises InputError if it is not free."""
        known = [item["name"] for item in self._drives()]
        if name not in known:
            raise InputError(f"no input '{name}' to set", allowed=", ".join(known))
        self._session.send("input", values={name: value})

    def apply_event(self, event: Mapping[str, Any], parameters: Floats, names: tuple[str, ...]) -> bool:
        """Apply an event of the run; return whether it is a reset that changed pending parameters.

        ``parameters``, in the order of ``names``, are those of the row evaluation; changed values are written there.
        """
        if event.get("event") == "pending_reset":
            self.waiting |= set(event["parameters"])
        if event.get("event") != "command_done":
            return False
        command = event["command"]
        if command["do"] == "set":
            for name, value in command["values"].items():
                if name not in self._structural and name in names:
                    parameters[names.index(name)] = float(value)
        anew = command["do"] == "reset" and bool(self.waiting)
        if command["do"] == "reset":
            self.waiting.clear()
        return anew


def independent_parameters(
    mechanism: Mechanism, values: Mapping[str, ParameterValue], overrides: Mapping[str, Any]
) -> list[tuple[str, float]]:
    """Return name and value of the scalar parameters that follow from no other one, or are overridden.

    ``values``: of all parameters, SI; ``overrides``: values unlike the file's.
    """
    found = []
    for name, value in values.items():
        free = free_names(expressions.parse(mechanism.parameters[name].values[0]))
        if not isinstance(value, tuple) and (not free & set(values) or name in overrides):
            found.append((name, value))
    return found


def check_mode(graph: ModeGraph, mode: str) -> None:
    """Raise InputError unless the model has an initial state in the mode."""
    if mode:
        initial_state(graph.automaton, graph.values, graph.parameters, {"mode": mode})


# -- Event log of a live run: transitions with causes, visit counts and dwell times of modes -----------------

KEPT: Final = 300  # latest entries, sent to a new page
_TICK_COLUMN: Final = FIXED.index("tick")
MAX_NEW: Final = 40  # entries per call, latest first; earlier ones are only counted


class EventLog:
    """Log of a session; call :meth:`new_entries` before the session's ring buffers overflow.

    ``labels`` are the names of modes for display, ``words`` those of contacts. A handover is logged but is no visit.
    """

    def __init__(self, session: LiveSession, labels: Labels, words: Words) -> None:
        self._session, self._words = session, words
        self._labels = labels
        self._asked = 0
        self.entries: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.visits: Counter[str] = Counter()
        self.crossings: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, float] = {}
        self._last: tuple[float, str] | None = None

    def new_entries(self, automaton: Automaton) -> list[dict[str, Any]]:
        """Return the entries of the transitions since the last call, oldest first."""
        records, following = self._session.records(self._asked)
        first, self._asked = following - len(records), following
        if not len(records):
            return []
        found = read_transitions(records[:, 1:], len(automaton.rows), len(automaton.terms.layout.u))
        news = []
        for i, record in enumerate(records):
            names, states = self._session.modes_at(record[0])
            source, target = (self._labels.of(states[int(end)]) for end in (found.source[i], found.target[i]))
            if found.source[i] == found.target[i] or source != target:  # else a handover
                self.visits[target] += 1
                self.crossings[source, target] += 1
            if i < len(records) - MAX_NEW:
                continue
            item = transition_of(automaton, names, found, states, i, self._labels)
            news.append({**entry(first + i, item), "words": GuardWords(self._words, automaton).cause(item)})
        self.entries.extend(news)
        return news

    def add_dwell_times(self, rows: Floats) -> None:
        """Add the time of new rows (one per tick) to the dwell times of their modes; a reset keeps them."""
        for row in rows:
            name = self._labels.of(self._session.modes_at(row[_TICK_COLUMN])[1][int(row[MODE])])
            t = float(row[TIME])
            if self._last is not None and t > self._last[0]:
                self.seconds[name] = self.seconds.get(name, 0.0) + t - self._last[0]
            self._last = (t, name)

    def totals(self) -> dict[str, Any]:
        """Return visit counts of modes and edges, and the dwell time of every mode, s."""
        return {
            "visits": dict(self.visits),
            "crossings": [[a, b, count] for (a, b), count in self.crossings.items()],
            "seconds": dict(self.seconds),
            "transitions": self._asked,
        }


def entry(number: int, x: Transition) -> dict[str, Any]:
    """Return the log entry of a transition. ``number``: of the transition, from 0."""
    return {
        "number": number,
        "t": x.time,
        "source": x.source_label or x.source,
        "target": x.target_label or x.target,
        "handover": x.is_handover,
        "cause": x.cause,
        "impulse": {name: [float(v) for v in np.atleast_1d(values)] for name, values in x.impulse.items()},
        "lost": x.energy_lost,
        "why": list(x.selection),
        "guards": [list(item) for item in x.fired],
    }


# -- Impact sounds: contacts that close, with time and speed, from the transition records --------------------

SLOWEST: Final = 0.012  # m/s or rad/s, threshold of audible impacts
APART: Final = 0.03  # s, least interval of audible impacts of one contact, unless the second is faster


class ImpactSounds:
    """Impacts of a session; much faster than the event log, to be polled often.

    ``automaton``: of the coupled model.
    """

    def __init__(self, session: LiveSession, automaton: Automaton) -> None:
        self._session = session
        self._names = [contact.name for contact in automaton.contacts]
        self._gaps = np.array([contact.contact_law.has_gap for contact in automaton.contacts] or [False])
        self._shape = len(automaton.rows), len(automaton.terms.layout.u)
        self._asked = 0
        self._last: dict[str, tuple[float, float]] = {}

    def new_impacts(self) -> list[tuple[str, float, float]]:
        """Return contact, model time, s, and approach velocity, m/s or rad/s, of the impacts since the last call."""
        if self._session.transition_count <= self._asked:
            return []
        records, self._asked = self._session.records(self._asked)
        found = read_transitions(records[:, 1:], *self._shape)
        closed = found.event == Event.CLOSES
        heard = closed & self._gaps[np.where(closed, found.contact, 0)] & (-found.slope > SLOWEST)
        impacts = [
            (self._names[found.contact[i, k]], float(found.time[i]), -float(found.slope[i, k]))
            for i, k in zip(*np.nonzero(heard), strict=True)
        ]
        return [impact for impact in impacts if self._apart(*impact)]

    def _apart(self, name: str, t: float, speed: float) -> bool:
        """Return whether an impact is audible after the previous one of its contact."""
        before, fast = self._last.get(name, (-np.inf, 0.0))
        if before <= t < before + APART and speed <= fast:
            return False
        self._last[name] = t, speed
        return True


# -- Live view of one run: session, frame encoder, run parameters, event log ---------------------------------

PIN_REACH: Final = 0.5  # of the unit of a picture, between points to be pinned
SAMPLES: Final = 2  # most rows per display frame for the strip charts
POINTER_SPEED: Final = 100.0  # m/s or rad/s; a pointer has no actuator
POINTER_TIMEOUT: Final = 10.0  # s without a heartbeat; long, as a pointer renders no force
_PHASE, _FAULT = FIXED.index("phase"), FIXED.index("fault")
_WALL: Final = FIXED.index("wall")
_TRANSITIONS, _TICK = FIXED.index("transitions"), FIXED.index("tick")


class Closable(Protocol):
    """Part of a run that is closed before it."""

    def close(self) -> Any:
        """End it; may be called again."""


@dataclass(frozen=True)
class LiveOptions:
    """Options of a live run with a page."""

    period: float = 1e-3  # of the tick, s
    substeps: int | None = None
    # whether the model's input schedule is applied; None: only if the model defines no port
    schedule: bool | None = None
    parameters: Parameters | None = None  # replacements for values of the file
    record: Path | None = None  # file of the recording; later runs get the next free name
    mode: str = ""  # initial mode; empty: the default of the model
    # replacements for entries of the model's ``initial``
    initial: Mapping[str, float | str] = field(default_factory=dict)
    device: CouplingDevice | None = None  # device coupled to the mechanism instead of the page's pointer
    passivity: str = "off"  # see :class:`fsm_dyn.live.live_settings.LiveSettings`
    edits: bool = False  # whether the page has an editor of the model file
    look_ahead: float = 0.0  # see :class:`fsm_dyn.live.live_settings.LiveSettings`, s
    # shows a session in viewers of other programs, until its result is closed
    follow: Callable[[LiveSession], Closable | None] = lambda session: None


class LiveView:
    """Live run with the encoder of its display frames.

    ``graph``: compiled model, without couplers; ``number``: number of the run, which the page compares with that of
    frames; ``progress``: called with the name of each stage of the start.
    """

    def __init__(
        self, graph: ModeGraph, number: int, options: LiveOptions, progress: Callable[[str], None] = lambda stage: None
    ) -> None:
        self.number, self.options = number, options
        progress("deriving the model with its handles")
        mechanism = graph.automaton.mechanism
        touching = pairs_in_advance(mechanism) if hand_slots(mechanism) else ()
        self.graph, parameters = coupled_for_page(graph, options.parameters, touching)
        self.schedule = options.schedule if options.schedule is not None else not mechanism.ports
        initial = {**options.initial, **({"mode": options.mode} if options.mode else {})}
        start = initial_state(self.graph.automaton, self.graph.values, self.graph.parameters, initial)
        ports = coupled_ports(self.graph.automaton.mechanism)
        by = options.device or pointer(max(len(port.axes) for port in ports))
        settings = LiveSettings(
            period=options.period,
            substeps=options.substeps,
            device_map=by.mapping,
            limits=by.limits,
            schedule=self.schedule,
            **by.timeouts(options.period),
            initial=initial,
            passivity=options.passivity,
            look_ahead=options.look_ahead,
        )
        self.recording = _free_name(options.record)
        self.session = LiveSession.start(
            self.graph,
            by.driver,
            by.options,
            settings=settings,
            parameters=parameters,
            record=self.recording,
            progress=progress,
        )
        self.columns = self.session.columns
        self.graph, parameters = self.session.graph, self.session.parameters  # with the usual dampings
        try:
            progress("locating contacts, and warming up")
            self.encoder = FrameEncoder(self.graph, self.columns, start.x, start.context)
            self._read_off(parameters, by)
            self._followed = options.follow(self.session)
        except BaseException:
            self.session.close()
            raise

    def _read_off(self, parameters: dict[str, Any], by: CouplingDevice) -> None:
        """Make the readers of the run's rows and its parameters."""
        self.evaluator, self.port_handles = self.encoder.evaluator, cast(PortHandles, self.encoder.port_handles)
        self.run_parameters = RunParameters(self.graph, self.session, parameters, self.schedule)
        self.event_log = EventLog(self.session, self.graph.automaton.labels, self.encoder.words)
        self.impact_sounds = ImpactSounds(self.session, self.graph.automaton)
        self.speed = 1.0
        self.port = by.mapping.port or self.port_handles.handles[0].port.name
        self.device = self.options.device
        self.fault = ""  # text of the last fault
        self.is_emulated = self.device is not None and self.device.emulation is not None
        self.twist = False
        self._asked = 0
        self._epoch = math.inf  # s since 1970 at which the loop began: the minimum over rows
        self._charted = -math.inf
        self._next: float | None = None  # s, foreseen
        self._last: Floats | None = None
        self._before: Floats | None = None
        self._modes = len(self.evaluator.automaton.modes)
        self._loads: tuple[RowSamples, list[str]] | None = None  # once asked for
        self.phases = LivePhases(self.evaluator) if self.graph.automaton.mechanism.phases else None

    def payload(self) -> dict[str, Any]:
        """Return the payload of the run without the parts that change from frame to frame."""
        mechanism = self.graph.automaton.mechanism
        return {
            "kind": "model",
            "number": self.number,
            **self.encoder.payload(),
            "port": self.port,
            "imposable": hand_slots(mechanism),
            "speed": self.speed,
            "schedule": self.schedule if is_scheduled(mechanism) else None,
            "period": self.options.period,
            "look_ahead": self.options.look_ahead,
            "setup": {**self.run_parameters.payload(), "mode": self.options.mode},
            "phases": phases_payload(mechanism),
            "offers_visits": self.device is None,
            "offers_loads": "on request",
            "edits": self.options.edits,
            "recording": str(self.recording) if self.recording else "",
            "device": self._device_payload(),
            "transitions": list(self.event_log.entries),
            "totals": self.event_log.totals(),
        }

    def _device_payload(self) -> dict[str, Any] | None:
        """Return the constant data of the device, None without one."""
        if self.device is None:
            return None
        pressed = any(port["press"] for port in self.port_handles.payload() if port["name"] == self.port)
        return self.device.payload(self.port_handles.port(self.port), pressed)

    def new_encoder(self) -> FrameEncoder:
        """Return a frame encoder with the parameters active since the last reset."""
        graph = graph_with_parameters(self.graph.automaton, self.run_parameters.overrides)
        start = initial_state(graph.automaton, graph.values, graph.parameters)
        return FrameEncoder(graph, self.columns, start.x, start.context)

    def adopt(self, encoder: FrameEncoder) -> None:
        """Replace the frame encoder."""
        self.encoder, self.evaluator, self.port_handles = (
            encoder,
            encoder.evaluator,
            cast(PortHandles, encoder.port_handles),
        )
        self.graph, self._charted, self._loads = encoder.graph, -math.inf, None
        self.phases = None if self.phases is None else LivePhases(self.evaluator)
        self.modes_added()

    def modes_added(self) -> bool:
        """Return whether modes were derived since the last call."""
        for states in self.session.states:
            self.evaluator.number(states)
        before, self._modes = self._modes, len(self.evaluator.automaton.modes)
        return self._modes != before

    # -- reading -------------------------------------------------------------------------------------------

    def frame(self) -> bytes | None:
        """Return the latest row as little-endian doubles, see :meth:`.FrameEncoder.frame`; None without a new one."""
        rows, self._asked = self.session.rows(self._asked)
        if not len(rows):
            return None
        self.event_log.add_dwell_times(rows)
        before = self._last
        if self.phases is not None:
            self.phases.follow(rows, before, self._states)
        self._last = rows[-1]
        self._epoch = min(self._epoch, time.time() - float(rows[-1][_WALL]))
        self._before = rows[-2] if len(rows) > 1 else before
        samples = self._samples(rows, before)
        x, c = self.evaluator.state(rows[-1], self._before)
        head = (self.number, *(rows[-1][i] for i in (_TICK, TIME, _PHASE, _FAULT, _TRANSITIONS)))
        frame = self.encoder.frame(head, self._states(rows[-1]), x, c, rows[-1], samples)
        return np.concatenate([frame, self._forces()]).astype("<f8").tobytes()

    def loads(self) -> dict[str, Any]:
        """Return the message that names the connections; from now on frames end with the forces in them.

        Equations of connections are derived at their first use, outside the tick.
        """
        rows = RowSamples(self.evaluator)
        found = live_loads(rows.start(), self.encoder.words, self.encoder.flat)
        self._loads = rows, [pin["name"] for pin in found["pins"]]
        return {"kind": "loads", "number": self.number, "loads": found}

    def _forces(self) -> Floats:
        """Return the forces in connections at the latest row, see :func:`.live_forces`; empty before a request."""
        if self._loads is None or self._last is None:
            return np.zeros(0)
        rows, names = self._loads
        with np.errstate(all="ignore"):
            x, c = self.evaluator.state(self._last, self._before)
            row = rows.at([self._states(self._last)], [0], self._last[[TIME]], x[None], c[None])
            return live_forces(row, names, self.encoder.flat)

    def _samples(self, rows: Floats, before: Floats | None) -> list[Floats]:
        """Return time, mode and quantities of at most ``SAMPLES`` new rows, including the last."""
        if rows[-1][TIME] < self._charted:
            self._charted = -math.inf  # a reset
        new = np.flatnonzero(rows[:, TIME] > self._charted)
        if not len(new):
            return []
        chosen = new[:: -max(1, -(-len(new) // SAMPLES))][::-1]
        self._charted = float(rows[-1][TIME])
        found = []
        for i in chosen:
            x, c = self.evaluator.state(rows[i], rows[i - 1] if i else before)
            values = self.encoder.values(self._states(rows[i]), x, c)
            found.append(np.concatenate([[rows[i][TIME], self._mode(rows[i])], values]))
        return found

    def _states(self, row: Floats) -> tuple[int, ...]:
        """Return the contact states of a row's mode by the numbering of its tick."""
        return self.session.modes_at(row[_TICK])[1][int(row[MODE])]

    def _mode(self, row: Floats) -> int:
        """Return the number of a row's mode in the page's mode graph."""
        return self.evaluator.number(self._states(row))

    def instant(self) -> dict[str, float] | None:
        """Return model time ``t``, s, the wall clock ``at`` that time, s since 1970, and the speed of the run.

        The page computes from them the wall clock of a transition, which is sent milliseconds later.
        """
        if self._last is None:
            return None
        return {
            "t": float(self._last[TIME]), "at": self._epoch + float(self._last[_WALL]), "speed": self.speed,
        }  # fmt: skip

    def foreseen(self) -> tuple[bool, float | None]:
        """Return whether the foreseen time of the next transition changed since the last call, and this time, s."""
        before, self._next = self._next, self.session.next_event
        return before != self._next, self._next

    def device_now(self) -> dict[str, Any]:
        """Return position, velocity and force of the device in the latest tick; empty without a live run."""
        return of_row(self._last, self.columns) if self._last is not None and self.session.alive else {}

    # -- pointer -------------------------------------------------------------------------------------------

    def point(self, port: str, at: tuple[float, float], turn: float, engaged: bool) -> None:
        """Move the pointer to a point of the picture, m; ``turn`` is its angle, rad."""
        if self._last is None:
            return
        x, c = self.evaluator.state(self._last, self._before)
        position = self.port_handles.sample(self._last, port, at, turn, x, c)
        if all(math.isfinite(value) for value in position):
            self.session.send_pointer(tuple(position), (0.0,) * len(position), 1 if engaged else 0)

    def press(self, port: str, down: bool, speed: float) -> None:
        """Press a key with the pointer, or release it: along half a cosine, peak velocity ``speed``, m/s or rad/s."""
        place = self.port_handles.press(port)[down]
        if port != self.port:
            self.use_port(port, False)
        axes = len(self.port_handles.port(port).axes)
        self.session.send_pointer((place, *(axes - 1) * (0.0,)), (speed,), 1)

    # -- constraints of a person -----------------------------------------------------------------------------

    def constrain(self, kind: str, clicked: Sequence[tuple[int, float, float]]) -> None:
        """Impose a constraint between two clicked points, each of a shape (-1: the ground), in its coordinates (m).

        Raises InputError: a shape is unknown, or the points are too far apart to be pinned.
        """
        if self._last is None or not self.encoder.picture.planar:
            raise InputError("nothing can be imposed on this run", remedy="a planar mechanism, after its first tick")
        x, c = self.evaluator.state(self._last, self._before)
        points, frames = self.evaluator.points(x, c)
        (first, at), (second, there) = (self._grasped(item, points, frames) for item in clicked)
        reach = PIN_REACH * self.encoder.picture.scene.unit
        if kind == "pin" and second[0] != GROUND and math.dist(at, there) > reach:
            raise InputError(
                "the points are too far apart to be pinned", found=f"{math.dist(at, there):.3g} m",
                allowed=f"{reach:.2g} m", remedy="bring them together, or hold their distance",
            )  # fmt: skip
        if kind != CONTACT:
            self.session.send("constrain", kind=kind, a=first, b=second)
            return
        pairs = between_bodies(self.graph.automaton.mechanism, first[0], second[0])
        if not pairs:
            raise InputError(
                f"no contact between {first[0]} and {second[0]} to impose", allowed="bodies with shapes",
                remedy="write it into the file: `imposed: {touch: {contact: [a, b]}}`",
            )  # fmt: skip
        for a, b in pairs:
            self.session.send("constrain", kind=kind, a=a, b=b)

    def _grasped(
        self, clicked: tuple[int, float, float], points: Floats, frames: Floats
    ) -> tuple[list[Any], tuple[float, float]]:
        """Return body and point along its axes, and the point in N (m)."""
        number, own_x, own_y = clicked
        picture = self.encoder.picture
        if number < 0:
            return [GROUND, [own_x, own_y]], (own_x, own_y)
        if number >= len(picture.scene.shapes):
            raise InputError("unknown shape of the picture", found=str(number))
        a, b, c, d, e, f = picture.placed(points, frames)[6 * number : 6 * number + 6].tolist()
        at = (a * own_x + c * own_y + e, b * own_x + d * own_y + f)
        bodies = self.graph.automaton.mechanism.bodies
        body = bodies.get(picture.scene.shapes[number].owner)
        if body is None:
            return [GROUND, [*at]], at
        turn = np.eye(3) if body.frame is None else frames[picture.scene.frames.index(body.frame)]
        arm = np.array([*at, 0.0]) - picture.point(points, body.center)
        arm[2] = 0.0
        return [str(body.name), (turn.T @ arm)[:2].tolist()], at

    def use_port(self, port: str, twist: bool) -> None:
        """Couple the pointer to another port, with its rotation if ``twist``."""
        self.session.send("port", port=port, axes=list(self.port_handles.mapping(port, twist)))
        self.port, self.twist = port, twist

    def close(self) -> RunReport:
        """End the run and return its report."""
        if self._followed is not None:
            self._followed.close()
        return self.session.close()


def pointer(axes: int) -> CouplingDevice:
    """Return the page's pointer as a coupling device."""
    limits = Limits(velocity=POINTER_SPEED, angular_velocity=POINTER_SPEED, dead_man_button=0)
    return CouplingDevice("pointer", {"axes": axes}, DeviceMap(), limits, POINTER_TIMEOUT, owner_timeout=0.0)


def is_scheduled(mechanism: Mechanism) -> bool:
    """Return whether a model gives some input a course."""
    return any(item.schedule is not None for item in mechanism.inputs.values())


def coupled_for_page(
    graph: ModeGraph, parameters: Parameters | None, touching: Sequence[Pair] = ()
) -> tuple[ModeGraph, dict[str, Any]]:
    """Return the coupled graph of the model's or of default ports, and its parameters unlike the file's.

    ``touching``: pairs of shapes with a contact to impose.
    """
    mechanism = graph.automaton.mechanism
    with_ports = with_default_ports(mechanism)
    if with_ports is mechanism:
        found, changed = coupled_graph(graph), {}
    else:
        found = coupled_with_default_ports(graph, with_ports)
        changed = default_coupler_parameters(found)
    changed |= merge_parameters(graph, parameters)
    return coupled_graph(found, changed, touching=touching), changed


def coupled_with_default_ports(graph: ModeGraph, mechanism: Mechanism) -> ModeGraph:
    """Return the coupled graph of a mechanism with default ports, with the parameters of its original graph."""
    return compilation.compile(add_couplers(mechanism), merge_parameters(graph, None))


def _free_name(path: Path | None) -> Path | None:
    """Return the path, with the next free number appended if the file exists."""
    if path is None or not path.exists():
        return path
    number = 2
    while (other := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return other
