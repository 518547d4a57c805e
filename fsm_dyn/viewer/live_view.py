"""One live run with all that its page needs: the session, the drawing, the forces, the story."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from fsm_dyn import compilation
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.compilation import Parameters, graph_with_parameters
from fsm_dyn.live.live_stepper import DeviceMap, Limits
from fsm_dyn.live.port_coupling import add_couplers, coupled_ports
from fsm_dyn.live.session import LiveSession, Settings
from fsm_dyn.live.session_launch import coupled_graph, merge_parameters
from fsm_dyn.live.tick_columns import FIXED
from fsm_dyn.spec import Mechanism
from fsm_dyn.viewer.default_ports import default_coupler_parameters, with_default_ports
from fsm_dyn.viewer.device_panel import CouplingDevice, of_row
from fsm_dyn.viewer.event_log import EventLog
from fsm_dyn.viewer.frame_encoder import HEAD as HEAD
from fsm_dyn.viewer.frame_encoder import FrameEncoder
from fsm_dyn.viewer.impact_sounds import ImpactSounds
from fsm_dyn.viewer.port_handles import PortHandles
from fsm_dyn.viewer.row_evaluation import MODE, TIME, Floats
from fsm_dyn.viewer.run_parameters import RunParameters

SAMPLES: Final = 2  # rows charted per frame, at most
POINTER_SPEED: Final = 100.0  # m/s or rad/s; a pointer feels nothing that could hurt it
PATIENCE: Final = 10.0  # s without a heartbeat; the pointer shows no force that would have to end sooner
_PHASE, _FAULT = FIXED.index("phase"), FIXED.index("fault")
_WALL: Final = FIXED.index("wall")
_TRANSITIONS, _TICK = FIXED.index("transitions"), FIXED.index("tick")


@dataclass(frozen=True)
class LiveOptions:
    """How a run for the page is to go.

    Attributes
    ----------
    period : float
        Of the tick, s.
    substeps : int, optional
    schedule : bool or None
        Whether the model's scheduled inputs run; None: where the model has no port of its own.
    parameters : mapping
        Values that replace the file's.
    mode : str
        In which the run begins; empty: as the model says.
    record : path or None
        The file for the recording; a run after the first one takes the next free name.
    device : HeldBy, optional
        What holds the mechanism instead of the page's pointer.
    passivity : str
        See :class:`fsm_dyn.live.session.Settings`.
    """

    period: float = 1e-3
    substeps: int | None = None
    schedule: bool | None = None
    parameters: Parameters | None = None
    record: Path | None = None
    mode: str = ""
    device: CouplingDevice | None = None
    passivity: str = "off"


class LiveView:
    """A live run and its reading.

    Parameters
    ----------
    graph : ModeGraph
        As the model was compiled.
    number : int
        Of the run, for the page to tell frames apart.
    wishes : Wishes
    progress : callable, optional
        Called with a few words before everything that may take long.
    """

    def __init__(
        self, graph: ModeGraph, number: int, options: LiveOptions, progress: Callable[[str], None] = lambda stage: None
    ) -> None:
        self.number, self.options = number, options
        progress("deriving the model with its handles")
        mechanism = graph.automaton.mechanism
        self.graph, parameters = coupled_for_page(graph, options.parameters)
        self.schedule = options.schedule if options.schedule is not None else not mechanism.ports
        initial = {"mode": options.mode} if options.mode else {}
        start = initial_state(self.graph.automaton, self.graph.values, self.graph.parameters, initial)
        ports = coupled_ports(self.graph.automaton.mechanism)
        by = options.device or pointer(max(len(port.axes) for port in ports))
        settings = Settings(
            period=options.period,
            substeps=options.substeps,
            device_map=by.mapping,
            limits=by.limits,
            schedule=self.schedule,
            **by.patience(options.period),
            initial=initial,
            passivity=options.passivity,
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
        try:
            progress("reading off where contacts act, and warming up")
            self.encoder = FrameEncoder(self.graph, self.columns, start.x, start.context)
            self._read_off(parameters, by)
        except BaseException:
            self.session.close()
            raise

    def _read_off(self, parameters: dict[str, Any], by: CouplingDevice) -> None:
        """Make what reads the run's rows and commands it."""
        self.evaluator, self.port_handles = self.encoder.evaluator, cast(PortHandles, self.encoder.port_handles)
        self.run_parameters = RunParameters(self.graph, self.session, parameters, self.schedule)
        self.event_log = EventLog(self.session, self.graph.automaton.labels)
        self.impact_sounds = ImpactSounds(self.session, self.graph.automaton)
        self.speed = 1.0
        self.port = by.mapping.port or self.port_handles.handles[0].port.name
        self.device = self.options.device
        self.fault = ""  # the last one, in words
        self.twist = False
        self._asked = 0
        self._epoch = math.inf  # s, when the loop began by the clock of this machine: the least that rows tell of it
        self._charted = -math.inf
        self._last: Floats | None = None
        self._before: Floats | None = None
        self._modes = len(self.evaluator.automaton.modes)

    def payload(self) -> dict[str, Any]:
        """Return everything about the run that does not change in every frame."""
        mechanism = self.graph.automaton.mechanism
        return {
            "kind": "model",
            "number": self.number,
            **self.encoder.payload(),
            "port": self.port,
            "speed": self.speed,
            "schedule": self.schedule if mechanism.inputs and any(mechanism.inputs.values()) else None,
            "period": self.options.period,
            "setup": {**self.run_parameters.payload(), "mode": self.options.mode},
            "recording": str(self.recording) if self.recording else "",
            "device": self._device_payload(),
            "transitions": list(self.event_log.entries),
            "totals": self.event_log.totals(),
        }

    def _device_payload(self) -> dict[str, Any] | None:
        """Return what does not change of the device."""
        if self.device is None:
            return None
        pressed = any(port["press"] for port in self.port_handles.payload() if port["name"] == self.port)
        return self.device.payload(self.port_handles.port(self.port), pressed)

    def new_encoder(self) -> FrameEncoder:
        """Return what reads the run with the parameters that are in force since its reset."""
        graph = graph_with_parameters(self.graph.automaton, self.run_parameters.overrides)
        start = initial_state(graph.automaton, graph.values, graph.parameters)
        return FrameEncoder(graph, self.columns, start.x, start.context)

    def adopt(self, encoder: FrameEncoder) -> None:
        """Read the run by another sight from now on."""
        self.encoder, self.evaluator, self.port_handles = (
            encoder,
            encoder.evaluator,
            cast(PortHandles, encoder.port_handles),
        )
        self.graph, self._charted = encoder.graph, -math.inf
        self.modes_added()

    def modes_added(self) -> bool:
        """Tell whether modes were derived since this was asked last."""
        for states in self.session.states:
            self.evaluator.number(states)
        before, self._modes = self._modes, len(self.evaluator.automaton.modes)
        return self._modes != before

    # -- reading -------------------------------------------------------------------------------------------

    def frame(self) -> bytes | None:
        """Return the newest tick as numbers (little-endian doubles), see :meth:`.sight.Sight.frame`.

        None where there is none since the last.
        """
        rows, self._asked = self.session.rows(self._asked)
        if not len(rows):
            return None
        self.event_log.add_dwell_times(rows)
        before = self._last
        self._last = rows[-1]
        self._epoch = min(self._epoch, time.time() - float(rows[-1][_WALL]))
        self._before = rows[-2] if len(rows) > 1 else before
        samples = self._samples(rows, before)
        x, c = self.evaluator.state(rows[-1], self._before)
        head = (self.number, *(rows[-1][i] for i in (_TICK, TIME, _PHASE, _FAULT, _TRANSITIONS)))
        return self.encoder.frame(head, self._states(rows[-1]), x, c, rows[-1], samples).astype("<f8").tobytes()

    def _samples(self, rows: Floats, before: Floats | None) -> list[Floats]:
        """Return time, mode and quantities of a few of the rows that are new, the last one among them."""
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
        """Return the contact states of a row's mode, which the session knows from when it gave the row."""
        return self.session.modes_at(row[_TICK])[1][int(row[MODE])]

    def _mode(self, row: Floats) -> int:
        """Return the number of a row's mode among those told to the page."""
        return self.evaluator.number(self._states(row))

    def instant(self) -> dict[str, float] | None:
        """Return a model time, the time of this machine's clock (s since 1970) when it came, and the speed of the run.

        A page works out from them when a transition was, as it is told milliseconds later.
        """
        if self._last is None:
            return None
        return {
            "t": float(self._last[TIME]), "at": self._epoch + float(self._last[_WALL]), "speed": self.speed,
        }  # fmt: skip

    def device_now(self) -> dict[str, Any]:
        """Return position, velocity and force of the device in the latest tick, nothing where the run has none."""
        return of_row(self._last, self.columns) if self._last is not None and self.session.alive else {}

    # -- telling -------------------------------------------------------------------------------------------

    def point(self, port: str, at: tuple[float, float], turn: float, engaged: bool) -> None:
        """Move the pointer to a place of the picture."""
        if self._last is None:
            return
        x, c = self.evaluator.state(self._last, self._before)
        position = self.port_handles.sample(self._last, port, at, turn, x, c)
        if all(math.isfinite(value) for value in position):
            self.session.send_pointer(tuple(position), (0.0,) * len(position), 1 if engaged else 0)

    def press(self, port: str, down: bool, speed: float) -> None:
        """Press a key with the pointer's hand, or let it up: along half a cosine, as fast as ``speed`` half-way."""
        place = self.port_handles.press(port)[down]
        if port != self.port:
            self.use_port(port, False)
        axes = len(self.port_handles.port(port).axes)
        self.session.send_pointer((place, *(axes - 1) * (0.0,)), (speed,), 1)

    def use_port(self, port: str, twist: bool) -> None:
        """Put the pointer at another port."""
        self.session.send("port", port=port, axes=list(self.port_handles.mapping(port, twist)))
        self.port, self.twist = port, twist

    def close(self) -> dict[str, Any]:
        """End the run and return its report."""
        return self.session.close()


def pointer(axes: int) -> CouplingDevice:
    """Return the page's own pointer as what holds the mechanism."""
    limits = Limits(velocity=POINTER_SPEED, angular_velocity=POINTER_SPEED, dead_man_button=0)
    return CouplingDevice("pointer", {"axes": axes}, DeviceMap(), limits, PATIENCE, owner_timeout=0.0)


def coupled_for_page(graph: ModeGraph, parameters: Parameters | None) -> tuple[ModeGraph, dict[str, Any]]:
    """Return a graph held by its ports, or by ports made up for it, and the parameters that differ from its file."""
    mechanism = graph.automaton.mechanism
    with_ports = with_default_ports(mechanism)
    found = coupled_graph(graph) if with_ports is mechanism else coupled_with_default_ports(graph, with_ports)
    changed = {**default_coupler_parameters(found), **merge_parameters(graph, parameters)}
    return coupled_graph(found, changed), changed


def coupled_with_default_ports(graph: ModeGraph, mechanism: Mechanism) -> ModeGraph:
    """Return the held graph of a mechanism that was given ports, with the parameters of the graph it came from."""
    return compilation.compile(add_couplers(mechanism), merge_parameters(graph, None))


def _free_name(path: Path | None) -> Path | None:
    """Return the path, or the next one with a number behind its name where a run before has taken it."""
    if path is None or not path.exists():
        return path
    number = 2
    while (other := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return other
