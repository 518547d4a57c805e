"""Loads in the connections of a run: the largest with time, phase and cause; force and torque on a body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.svg import table
from fsm_dyn.run.scene import NEWTONIAN

if TYPE_CHECKING:
    from fsm_dyn.core.arrays import Floats
    from fsm_dyn.programs.pin_programs import PinInfo
    from fsm_dyn.run.extremes import Extremes
    from fsm_dyn.run.pins import Pin, Pins
    from fsm_dyn.run.transitions import Transitions
    from fsm_dyn.run.visits import RunReading
    from fsm_dyn.run.words import Words

UNITS: Final = {"force": "N", "torque": "N*m", "impulse": "N*s"}
_HEADINGS: Final = ("connection", "of", "quantity", "peak", "time, s", "phase", "since")
_SMALL: Final = 1e-9  # part of the largest load of the run below which one is rounding
_SMALL_IN_UNITS: Final = 1e-12  # the same, of the force in the mechanism's own units


class LoadedRun(Protocol):
    """A run with its connections; :class:`fsm_dyn.run.trajectory.Trajectory`."""

    @property
    def t(self) -> Floats:
        """Times (s)."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the modes."""
        ...

    @property
    def transitions(self) -> Transitions:
        """Transitions in order."""
        ...

    @property
    def reading(self) -> RunReading:
        """Visits, sentences of causes and words of contacts."""
        ...

    @property
    def pins(self) -> Pins:
        """Connections."""
        ...

    def extremes(self, name: str) -> Extremes:
        """Return the extremes of a column."""
        ...


@dataclass(frozen=True)
class PeakLoad:
    """The largest load of one sort in a connection.

    Attributes
    ----------
    name, kind, parent, child : str
        Of the connection.
    quantity : {"force", "torque", "impulse"}
    value : float
        Magnitude, SI.
    time : float
        s.
    mode : str
        Label of the mode; of an impulse the one before the transition.
    phase : str
        Name of the visit at the time: the phase, or the mode by its short name.
    cause : str
        Cause of the last transition before, as a sentence; of an impulse its own cause; empty before the first.
    words : str
        The connection, named: "guide of the door on the ground", "striker on ramp".
    """

    name: str
    kind: str
    parent: str
    child: str
    quantity: str
    value: float
    time: float
    mode: str
    phase: str
    cause: str
    words: str


def peak_loads(run: LoadedRun) -> tuple[PeakLoad, ...]:
    """Return the largest force, torque and impulse in every connection of a run, the largest force first.

    Forces and torques are those of finite motion, between the rows too; a rigid impact is in the impulses alone.
    Result: without zeros, to the rounding of the model's forces.
    """
    found = [*_of_motion(run), *_of_impacts(run)]
    zero = _zeros(run, found)
    kept = [item for item in found if item.value > zero[item.quantity]]
    order = list(UNITS)
    return tuple(sorted(kept, key=lambda item: (order.index(item.quantity), -item.value)))


def _zeros(run: LoadedRun, found: Sequence[PeakLoad]) -> dict[str, float]:
    """Return the value of each quantity below which it is rounding: torques are forces times the mechanism's length."""
    largest = {quantity: max((p.value for p in found if p.quantity == quantity), default=0.0) for quantity in UNITS}
    scales = run.pins.scales
    unit = _SMALL_IN_UNITS * scales.mass * scales.length / scales.time**2
    force = max(_SMALL * max(largest["force"], largest["torque"] / scales.length), unit)
    impulse = max(_SMALL * largest["impulse"], unit * scales.time)
    return {"force": force, "torque": force * scales.length, "impulse": impulse}


def _of_motion(run: LoadedRun) -> Iterator[PeakLoad]:
    transitions = run.transitions
    for name, pin in run.pins.items():
        for quantity in ("force", "torque"):
            most = run.extremes(f"pin.{name}.{quantity}")
            time = most.maximum_time
            near = int(np.argmin(np.abs(run.t - time)))
            before = sum(1 for item in transitions if item.time < time or item.time == time == run.t[0])
            yield PeakLoad(
                name, pin.info.kind, pin.info.parent, pin.info.child, quantity, most.maximum, time, run.labels[near],
                run.reading.visits.at(time).name, run.reading.sentences.cause(before - 1) if before else "",
                words_of(run.reading.words, pin.info),
            )  # fmt: skip


def _of_impacts(run: LoadedRun) -> Iterator[PeakLoad]:
    impacts = [(number, item) for number, item in enumerate(run.transitions) if item.impulse]
    for name, pin in run.pins.items():
        if impacts:
            sizes = [float(np.linalg.norm(item.pin_impulse[name][:3])) for _, item in impacts]
            number, hit = impacts[int(np.argmax(sizes))]
            yield PeakLoad(
                name, pin.info.kind, pin.info.parent, pin.info.child, "impulse", max(sizes), hit.time,
                hit.source_label or hit.source, run.reading.visits.at(hit.time).name,
                run.reading.sentences.cause(number), words_of(run.reading.words, pin.info),
            )  # fmt: skip


def words_of(words: Words, info: PinInfo) -> str:
    """Name a connection: of a contact its own words, of others "pin of the shank on the thigh"."""
    number = next((k for k, item in enumerate(words.model.contacts) if item.name == info.name), -1)
    if number >= 0:
        return words.feature(number)
    kind = "joint" if info.kind == "rows" else info.kind
    return f"{kind} of {_segment(words, info.child)} on {_segment(words, info.parent)}"


def _segment(words: Words, name: str) -> str:
    """Name a segment: its first body, "ground" for N."""
    if name == NEWTONIAN:
        return "ground"
    mechanism = words.mechanism
    bodies = [] if mechanism is None else [str(body.name) for body in mechanism.bodies.values() if body.frame == name]
    return words.word(bodies[0] if bodies else name)


def loads_table(peaks: Sequence[PeakLoad]) -> str:
    """Return peak loads as text, a line for each."""
    rows = [
        (p.name, p.words, p.quantity, f"{p.value:.6g} {UNITS[p.quantity]}", f"{p.time:.6f}", p.phase, p.cause)
        for p in peaks
    ]
    return table(_HEADINGS, rows)


# -- Force and torque on a body, in a chosen frame --------------------------------------------------------


@dataclass(frozen=True)
class Wrench:
    """Force and torque of a joint or contact on a body along a run.

    Attributes
    ----------
    t : ndarray, shape (n,)
    force : ndarray, shape (n, 3)
        N, components in `frame`.
    torque : ndarray, shape (n, 3)
        N m, about the point `about`, components in `frame`.
    on, frame, about : str
    """

    t: Floats
    force: Floats
    torque: Floats
    on: str
    frame: str
    about: str


@typed
def wrench(
    graph: ModeGraph,
    run: LoadedRun,
    name: str,
    *,
    on: str | None = None,
    frame: str = NEWTONIAN,
    about: str | None = None,
) -> Wrench:
    """Return the force and torque of a joint or contact on a body at every row of a run; see ``run.pins``.

    Parameters
    ----------
    graph : ModeGraph
        Of the run.
    run : Trajectory
    name : str
        A connection of ``run.pins``: a joint, contact or constraint of the model.
    on : str, optional
        The body, or its frame; a joint's child where not given.
    frame : str
        The frame whose axes the components are along.
    about : str, optional
        The point that torques are about; by default the origin of the body's frame, ``<frame>_origin``, if there is
        one, else the point of the connection.

    Raises
    ------
    InputError
        There is no such connection, body, frame or point.
    """
    if name not in run.pins:
        raise InputError(
            f"there is no joint or contact {name!r}", found=name, allowed=", ".join(run.pins),
            remedy=did_you_mean(name, list(run.pins)),
        )  # fmt: skip
    pin = run.pins[name]
    segment = pin.info.child if on is None else _segment_of(graph, pin, on)
    origin = f"{segment}_origin"
    about = origin if about is None and origin in graph.automaton.point_names else about
    found = pin.wrench(frame, segment, about)
    return Wrench(run.t, found[:, :3], found[:, 3:], segment, frame, about or pin.info.at)


def _segment_of(graph: ModeGraph, pin: Pin, name: str) -> str:
    """Return the segment of a connection that a body, or a frame, belongs to."""
    bodies = graph.automaton.mechanism.bodies
    frame = bodies[name].frame if name in bodies else name
    known = {pin.info.parent, pin.info.child}
    for candidate in (name, frame):
        if candidate in known:
            return str(candidate)
    if name not in bodies and name not in graph.automaton.frame_names:
        raise InputError(
            f"there is no body {name!r}", found=name, remedy=did_you_mean(name, [*bodies, *graph.automaton.frame_names])
        )
    raise InputError(f"{pin.info.name!r} does not act on {name!r}", found=name, allowed=", ".join(sorted(known)))
