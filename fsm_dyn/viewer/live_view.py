"""Live view of one run: session, frame encoder, run parameters, event log."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from fsm_dyn import compilation
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.live.live_stepper import DeviceMap, Limits
from fsm_dyn.live.port_coupling import add_couplers, coupled_ports
from fsm_dyn.live.run_report import RunReport
from fsm_dyn.live.session import LiveSession, Settings
from fsm_dyn.live.session_launch import coupled_graph, merge_parameters
from fsm_dyn.live.tick_columns import FIXED
from fsm_dyn.spec import Mechanism
from fsm_dyn.spec.values import Parameters
from fsm_dyn.viewer.default_ports import default_coupler_parameters, with_default_ports
from fsm_dyn.viewer.device_panel import CouplingDevice, of_row
from fsm_dyn.viewer.event_log import EventLog
from fsm_dyn.viewer.frame_encoder import HEAD as HEAD
from fsm_dyn.viewer.frame_encoder import FrameEncoder
from fsm_dyn.viewer.impact_sounds import ImpactSounds
from fsm_dyn.viewer.port_handles import PortHandles
from fsm_dyn.viewer.row_evaluation import MODE, TIME, Floats
from fsm_dyn.viewer.run_parameters import RunParameters

SAMPLES: Final = 2  # most rows per display frame for the strip charts
POINTER_SPEED: Final = 100.0  # m/s or rad/s; a pointer has no actuator
POINTER_TIMEOUT: Final = 10.0  # s without a heartbeat; long, as a pointer renders no force
_PHASE, _FAULT = FIXED.index("phase"), FIXED.index("fault")
_WALL: Final = FIXED.index("wall")
_TRANSITIONS, _TICK = FIXED.index("transitions"), FIXED.index("tick")


@dataclass(frozen=True)
class LiveOptions:
    """Options of a live run with a page.

    Attributes
    ----------
    period : float
        Of the tick, s.
    substeps : int, optional
    schedule : bool or None
        Whether the model's input schedule is applied; None: only if the model defines no port.
    parameters : mapping
        Values that replace those of the file.
    mode : str
        Initial mode; empty: the default of the model.
    initial : mapping
        What replaces entries of the model's ``initial``.
    record : path or None
        File of the recording; later runs get the next free name.
    device : CouplingDevice, optional
        Device that is coupled to the mechanism instead of the page's pointer.
    passivity : str
        See :class:`fsm_dyn.live.session.Settings`.
    """

    period: float = 1e-3
    substeps: int | None = None
    schedule: bool | None = None
    parameters: Parameters | None = None
    record: Path | None = None
    mode: str = ""
    initial: Mapping[str, float | str] = field(default_factory=dict)
    device: CouplingDevice | None = None
    passivity: str = "off"


class LiveView:
    """Live run with the encoder of its display frames.

    Parameters
    ----------
    graph : ModeGraph
        Compiled model, without couplers.
    number : int
        Number of the run, which the page compares with that of frames.
    options : LiveOptions
    progress : callable, optional
        Called with the name of each stage of a start that may take long.
    """

    def __init__(
        self, graph: ModeGraph, number: int, options: LiveOptions, progress: Callable[[str], None] = lambda stage: None
    ) -> None:
        self.number, self.options = number, options
        progress("deriving the model with its handles")
        mechanism = graph.automaton.mechanism
        self.graph, parameters = coupled_for_page(graph, options.parameters)
        self.schedule = options.schedule if options.schedule is not None else not mechanism.ports
        initial = {**options.initial, **({"mode": options.mode} if options.mode else {})}
        start = initial_state(self.graph.automaton, self.graph.values, self.graph.parameters, initial)
        ports = coupled_ports(self.graph.automaton.mechanism)
        by = options.device or pointer(max(len(port.axes) for port in ports))
        settings = Settings(
            period=options.period,
            substeps=options.substeps,
            device_map=by.mapping,
            limits=by.limits,
            schedule=self.schedule,
            **by.timeouts(options.period),
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
            progress("locating contacts, and warming up")
            self.encoder = FrameEncoder(self.graph, self.columns, start.x, start.context)
            self._read_off(parameters, by)
        except BaseException:
            self.session.close()
            raise

    def _read_off(self, parameters: dict[str, Any], by: CouplingDevice) -> None:
        """Make the readers of the run's rows and its parameters."""
        self.evaluator, self.port_handles = self.encoder.evaluator, cast(PortHandles, self.encoder.port_handles)
        self.run_parameters = RunParameters(self.graph, self.session, parameters, self.schedule)
        self.event_log = EventLog(self.session, self.graph.automaton.labels)
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
        self._last: Floats | None = None
        self._before: Floats | None = None
        self._modes = len(self.evaluator.automaton.modes)

    def payload(self) -> dict[str, Any]:
        """Return the payload of the run that does not change from frame to frame."""
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
        """Return the constant data of the device, None without one."""
        if self.device is None:
            return None
        pressed = any(port["press"] for port in self.port_handles.payload() if port["name"] == self.port)
        return self.device.payload(self.port_handles.port(self.port), pressed)

    def new_encoder(self) -> FrameEncoder:
        """Return a frame encoder with the parameters that are active since the last reset."""
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
        self.graph, self._charted = encoder.graph, -math.inf
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
        self._last = rows[-1]
        self._epoch = min(self._epoch, time.time() - float(rows[-1][_WALL]))
        self._before = rows[-2] if len(rows) > 1 else before
        samples = self._samples(rows, before)
        x, c = self.evaluator.state(rows[-1], self._before)
        head = (self.number, *(rows[-1][i] for i in (_TICK, TIME, _PHASE, _FAULT, _TRANSITIONS)))
        return self.encoder.frame(head, self._states(rows[-1]), x, c, rows[-1], samples).astype("<f8").tobytes()

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

    def use_port(self, port: str, twist: bool) -> None:
        """Couple the pointer to another port, with its rotation if ``twist``."""
        self.session.send("port", port=port, axes=list(self.port_handles.mapping(port, twist)))
        self.port, self.twist = port, twist

    def close(self) -> RunReport:
        """End the run and return its report."""
        return self.session.close()


def pointer(axes: int) -> CouplingDevice:
    """Return the page's pointer as a coupling device."""
    limits = Limits(velocity=POINTER_SPEED, angular_velocity=POINTER_SPEED, dead_man_button=0)
    return CouplingDevice("pointer", {"axes": axes}, DeviceMap(), limits, POINTER_TIMEOUT, owner_timeout=0.0)


def coupled_for_page(graph: ModeGraph, parameters: Parameters | None) -> tuple[ModeGraph, dict[str, Any]]:
    """Return the coupled graph of the model's or of default ports, and its parameters unlike the file's."""
    mechanism = graph.automaton.mechanism
    with_ports = with_default_ports(mechanism)
    if with_ports is mechanism:
        found, changed = coupled_graph(graph), {}
    else:
        found = coupled_with_default_ports(graph, with_ports)
        changed = default_coupler_parameters(found)
    changed |= merge_parameters(graph, parameters)
    return coupled_graph(found, changed), changed


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
