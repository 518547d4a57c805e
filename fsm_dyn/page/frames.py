"""Display frame of a row: drawing, handles, forces, guards, quantities, mode graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton, edges
from fsm_dyn.automaton.mode_graph import ModeGraph, Outgoing, Successors, group_of, successors_of
from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.guards import Guard
from fsm_dyn.derive.unconstrained_system import shared_name
from fsm_dyn.draw.svg import mode_colours
from fsm_dyn.language.contacts import SurfaceContact
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.interfaces import listed_outputs
from fsm_dyn.language.scales import force_units
from fsm_dyn.language.values import units as units_of
from fsm_dyn.live.device_map import coupled_ports
from fsm_dyn.live.mode_pool import PooledExecutable
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.page.ports import PortHandles
from fsm_dyn.page.scene_drawing import Picture, RowEvaluator, find_faces, find_grounds, find_solids
from fsm_dyn.programs.kernels import Kernel, compile_programs
from fsm_dyn.run.contact_forces import Forces, InputPushes
from fsm_dyn.run.pin_loads import words_of
from fsm_dyn.run.pins import Pin, Pins, pin_programs
from fsm_dyn.run.record import RunModel, run_model
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.scene import NEWTONIAN
from fsm_dyn.run.words import Words, guard_sentence, mode_words, words_at
from fsm_dyn.runtime.abi import Event

MOST_VALUES: Final = 24_000  # instants times connections
LEAST_INSTANTS: Final = 400
MOST_IMPULSES: Final = 60  # of a connection, the largest
_SMALL: Final = 1e-9  # part of the largest force of the run below which one is rounding


@dataclass(frozen=True)
class Impact:
    """Impulses of a transition: its time on the page (s), and the impulse of each connection, shape (6,), SI."""

    time: float
    impulse: Mapping[str, Floats]


def placed_pins(pins: Pins) -> list[Pin]:
    """Return the connections with a place, without contacts."""
    return [pin for pin in pins.values() if pin.info.kind != "contact" and np.isfinite(pin.at).all()]


def loads_payload(
    samples: Samples,
    clock: Floats,
    impacts: Sequence[Impact],
    words: Words,
    flat: Floats | None,
    packed: Callable[[Floats, str], str],
) -> Any:
    """Return the payload of the connections of a finished run with a place, without its contacts.

    ``samples``: in order. ``clock``, shape (n,): their times on the page, s. ``flat``, shape (2, 3): projection from N
    to the page; None: vectors in N, which the page projects itself. ``packed``: returns an array of any shape as base
    64. Returns ``times`` (s) of the instants; of each connection ``place`` (m) and ``force`` (N, of the parent on the
    child) with ``axes`` numbers an instant, ``size`` (N); ``peak``, with its time: the largest of all samples;
    ``impulses``: times and sizes (N·s) of rigid impacts.
    """
    pins = placed_pins(samples.pins)
    largest = max((float(pin.magnitude.max(initial=0.0)) for pin in pins), default=0.0)
    chosen = _chosen(len(clock), len(pins))

    def seen(vectors: Floats) -> str:
        return packed((vectors if flat is None else vectors @ flat.T)[chosen], "<f4")

    def payload(pin: Pin) -> dict[str, Any]:
        top = int(np.argmax(pin.magnitude))
        sizes = np.array([np.linalg.norm(item.impulse[pin.info.name][:3]) for item in impacts])
        hits = np.sort(np.argsort(-sizes, kind="stable")[:MOST_IMPULSES])
        least = _SMALL * float(sizes.max(initial=0.0))
        return {
            "name": pin.info.name,
            "words": words_of(words, pin.info),
            "place": seen(pin.at),
            "force": seen(pin.force),
            "size": packed(pin.magnitude[chosen], "<f4"),
            "peak": [float(pin.magnitude[top]), float(clock[top])],
            "impulses": [[impacts[k].time, float(sizes[k])] for k in hits.tolist() if sizes[k] > least],
            "determined": bool(pin.determined.all()),
        }

    return {
        "axes": 3 if flat is None else 2,
        "least": _SMALL * largest,
        "times": packed(clock[chosen], "<f8"),
        "pins": [payload(pin) for pin in pins],
    }


def live_loads(samples: Samples, words: Words, flat: Floats | None) -> dict[str, Any]:
    """Return names and words of the connections of a live run with a place; see :func:`live_forces`."""
    pins = placed_pins(samples.pins)
    return {
        "axes": 3 if flat is None else 2,
        "pins": [{"name": pin.info.name, "words": words_of(words, pin.info)} for pin in pins],
    }


def live_forces(sample: Samples, names: Sequence[str], flat: Floats | None) -> Floats:
    """Return the forces in connections at one row, as numbers for the page.

    ``flat``, shape (2, 3): as for :func:`loads_payload`. Result: of each connection ``axes`` numbers of its place (m)
    and of its force (N), the size of the force, and 1 if redundant supports share it.
    """
    pins = sample.pins
    numbers = [list(pins).index(name) for name in names]
    place, force = pins.table["place"][0, numbers], pins.table["wrench"][0, numbers, :3]
    shared: Booleans = np.asarray(pins.undetermined[0, numbers].any(axis=1))
    seen = [vectors if flat is None else vectors @ flat.T for vectors in (place, force)]
    return np.hstack([*seen, np.linalg.norm(force, axis=1)[:, None], shared[:, None]]).ravel()


def _chosen(instants_count: int, pins_count: int) -> Integers:
    """Return the numbers of the instants sent: all, or of too many evenly some, with the ends."""
    most = max(LEAST_INSTANTS, MOST_VALUES // max(pins_count, 1))
    return np.unique(np.linspace(0, instants_count - 1, min(instants_count, most)).round().astype(np.int64))


class RowSamples:
    """Rows of a live run as samples.

    ``evaluator``: of the run; these samples have separate kernels, so that another thread may ask for them.
    """

    def __init__(self, evaluator: RowEvaluator) -> None:
        self._evaluator = evaluator
        self._executable = PooledExecutable(evaluator.automaton, evaluator.start)
        self._models: dict[tuple[tuple[int, ...], ...], RunModel] = {}

    def start(self) -> Samples:
        """Return the row of the start, in the first mode."""
        x, c = self._evaluator.start
        return self.at([self._executable.automaton.modes[0].states], [0], np.zeros(1), x[None], c[None])

    def at(
        self,
        states: Sequence[tuple[int, ...]],
        mode: Sequence[int] | Integers,
        t: Floats,
        x: Floats,
        c: Floats,
    ) -> Samples:
        """Return samples of rows.

        ``states``: contact states of the modes; ``mode``: of each row, an index into ``states``; ``t``, ``x``, ``c``,
        shapes (n,), (n, n_x) and (n, n_c): times (s), states and contexts.
        """
        key = tuple(states)
        if key not in self._models:
            automaton = self._executable.automaton
            programs = [self._executable.mode_of(codes) for codes in key]
            names = [automaton.name_of(codes).name for codes in key]
            self._models[key] = run_model(
                automaton, names, programs, self._evaluator.parameters, self._evaluator.values
            )
        return Samples(self._models[key], t, x, np.asarray(mode, dtype=np.int64), c)


# -- Quantities of a run for charts: names, units, values at an instant --------------------------------------


@dataclass(frozen=True)
class Quantity:
    """Scalar with a value in every row; ``group`` is its heading in lists."""

    name: str
    unit: str
    group: str


class Quantities:
    """Quantities of a coupled graph.

    Order: coordinates and speeds, inputs without a coupler, forces of constraints and contacts, outputs, memory,
    energies (kinetic, potential, total), couplers' forces, listed outputs of connections.
    """

    def __init__(self, graph: ModeGraph, evaluator: RowEvaluator) -> None:
        automaton = graph.automaton
        mechanism, layout = automaton.mechanism, evaluator.layout
        units = units_of(mechanism)
        ports = coupled_ports(mechanism)
        coupling = {name for port in ports for name in port.inputs}
        reported = {name for port in ports for axis in port.axes for name in axis.outputs}
        contacts = {contact.name for contact in automaton.contacts}
        self._inputs = [i for i, name in enumerate(layout.w) if name not in coupling]
        self._outputs = [i for i, name in enumerate(mechanism.outputs) if name not in reported]
        outputs = list(mechanism.outputs)
        axes = [axis for port in ports for axis in port.axes if axis.outputs[0] in outputs]
        self._pulls = [outputs.index(axis.outputs[0]) for axis in axes]
        displacements = {
            name for port in ports for axis in port.axes for name in (axis.displacement, f"{axis.displacement}_dot")
        }
        self._state = [i for i, name in enumerate(layout.x) if name not in displacements]
        rows = _rows(automaton.rows)
        forces = [text.replace("*", "·") for text in force_units(mechanism, [(r.name, r.role) for r in automaton.rows])]
        defining = {axis.displacement_row for port in ports for axis in port.axes}
        self._rows = [i for i, (_, owner) in enumerate(rows) if owner not in defining]
        self.all: tuple[Quantity, ...] = (
            *(
                Quantity(layout.x[i], units.get(layout.x[i], ""), "coordinates" if i < len(layout.q) else "speeds")
                for i in self._state
            ),
            *(Quantity(layout.w[i], units.get(layout.w[i], ""), "inputs") for i in self._inputs),
            *(
                Quantity(rows[i][0], forces[i], "contacts" if rows[i][1] in contacts else "constraints")
                for i in self._rows
            ),
            *(Quantity(outputs[i], units.get(outputs[i], ""), "outputs") for i in self._outputs),
            *(Quantity(name, units.get(name, ""), "memory") for name in layout.memory),
            *(Quantity(f"{name} energy", "J", "energy") for name in ("kinetic", "potential", "total")),
            *(Quantity(f"{axis.name} pull", "N·m" if axis.is_rotational else "N", "hand") for axis in axes),
            *self._of_connections(graph),
        )
        self._evaluator = evaluator

    def _of_connections(self, graph: ModeGraph) -> list[Quantity]:
        """Return the outputs of connections listed in the model, and compile their program."""
        automaton = graph.automaton
        columns = [column for _, column in listed_outputs(automaton.mechanism.pins)]
        self._pins: Kernel | None = None
        if not columns:
            return []
        programs = pin_programs(automaton.mechanism, [(row.name, row.role) for row in automaton.rows])
        self._pins = compile_programs([programs.outputs(columns)])[0]
        units = [programs.unit(column).replace(" ", "·") for column in columns]
        return [Quantity(column, unit, "connections") for column, unit in zip(columns, units, strict=True)]

    @property
    def row_places(self) -> dict[int, int]:
        """The index in ``all`` of the force of each constraint row that has one."""
        first = len(self._state) + len(self._inputs)
        return {row: first + k for k, row in enumerate(self._rows)}

    @property
    def sources(self) -> dict[str, list[int]]:
        """Indices of the values of ``all``: numbers of states, inputs, rows and outputs."""
        return {
            "state": self._state, "inputs": self._inputs, "rows": self._rows, "outputs": self._outputs,
            "memory": list(range(self._evaluator.layout.n_c))[self._evaluator.layout.memory_slice],
            "pulls": self._pulls, "pins": [] if self._pins is None else list(range(self._pins.program.size)),
        }  # fmt: skip

    def values(self, x: Floats, c: Floats, x_dot: Floats, multipliers: Floats) -> Floats:
        """Return the values at one state, in the order of ``all``."""
        layout, pins = self._evaluator.layout, np.zeros(0)
        if self._pins is not None:
            arguments = np.concatenate([x, x_dot[layout.u_slice], multipliers])
            pins = self._pins.outputs(0.0, arguments, c)["outputs"]
        report = self._evaluator.report.outputs(0.0, x, c)
        outputs = report["outputs"]
        kinetic, potential = float(report["kinetic_energy"]), float(report["potential_energy"])
        return np.concatenate(
            [
                x[self._state],
                c[layout.w_slice][self._inputs],
                multipliers[self._rows],
                outputs[self._outputs],
                c[layout.memory_slice],
                [kinetic, potential, kinetic + potential],
                outputs[self._pulls],
                pins,
            ]
        )


def _rows(rows: tuple[object, ...]) -> list[tuple[str, str]]:
    """Return label and owner of every constraint row; the label has the role if the owner has several rows."""
    owners = [str(getattr(row, "name", "")) for row in rows]
    return [
        (owner if owners.count(owner) == 1 else f"{owner} {getattr(row, 'role', '')}", owner)
        for row, owner in zip(rows, owners, strict=True)
    ]


# -- Payload of the mode graph -------------------------------------------------------------------------------
#
# Payload of the mode graph: modes, derived and possible, edges with their causes, infeasible modes.

PRUNED_SHOWN: Final = 60
MOST_POSSIBLE: Final = 60  # possible modes above which none is sent: a page would lay out hundreds too slowly
MODES_WITH_POSSIBLE: Final = 40  # derived modes up to which possible ones are sent, at every new one again


def mode_map(automaton: Automaton, initial: str, known: Outgoing | None = None) -> dict[str, Any]:
    """Return modes with states and colours, edges with causes, infeasible modes with reasons.

    Modes different by handovers alone are one, under their common label ``name``; ``full`` is the whole label if it is
    longer. ``possible`` are underived modes behind a guard of a derived one, as long as there are few derived ones;
    ``known`` keeps their edges from call to call.
    """
    labels = {mode.name: automaton.labels.of(mode.states) for mode in automaton.modes}
    colours = mode_colours(list(labels.values()))
    modes = {labels[mode.name]: mode for mode in reversed(automaton.modes)}
    modes |= {labels[mode.name]: mode for mode in automaton.modes if mode.name == initial}
    causes: dict[tuple[str, str], dict[str, str]] = {}
    for edge in edges(automaton):
        pair = labels[edge.source], labels[edge.target]
        if edge.source == edge.target or pair[0] != pair[1]:
            causes.setdefault(pair, {})[edge.cause] = edge.reset
    found = successors_of(automaton, known=known) if len(modes) <= MODES_WITH_POSSIBLE else Successors({}, ())
    if len(found.modes) > MOST_POSSIBLE:
        found = Successors({}, ())
    names = labels | {name: automaton.labels.of(states) for name, states in found.modes.items()}
    possible = {names[name]: states for name, states in reversed(list(found.modes.items())) if names[name] not in modes}
    for source, target, cause, _ in found.edges:
        if names[source] != names[target]:
            causes.setdefault((names[source], names[target]), {}).setdefault(cause, "")
    return {
        "modes": [
            {
                "name": label,
                "group": group_of(automaton, modes[label].states),
                "states": _state_names(automaton, modes[label].states),
                "colour": colour,
                "initial": modes[label].name == initial,
                **_full_name(automaton, label, modes[label].states),
            }
            for label, colour in colours.items()
        ],
        "possible": [
            {"name": label, "group": group_of(automaton, states), "states": _state_names(automaton, states)}
            for label, states in reversed(list(possible.items()))
        ],
        "edges": [{"source": a, "target": b, "causes": found} for (a, b), found in causes.items()],
        "pruned": [{"name": n, "reason": why} for n, why in list(automaton.infeasible.items())[:PRUNED_SHOWN]],
        "pruned_count": len(automaton.infeasible),
        "complete": automaton.fully_enumerated,
    }


def _full_name(automaton: Automaton, label: str, states: Sequence[int]) -> dict[str, str]:
    """Return the label with all closed contacts, if the mode's own is shortened."""
    full = automaton.labels.in_full(states)
    return {} if full == label else {"full": full}


def _state_names(automaton: Automaton, states: Sequence[int]) -> dict[str, str]:
    return {contact.name: contact.states[code] for contact, code in zip(automaton.contacts, states, strict=True)}


def guard_texts(automaton: Automaton, guards: Sequence[Guard], words: Words) -> list[dict[str, str]]:
    """Return text, event, and the event as a sentence, of every guard of a mode."""
    return [
        {"text": guard.text, "event": _event_text(automaton, guard), "words": _guard_words(automaton, guard, words)}
        for guard in guards
    ]


def _guard_words(automaton: Automaton, guard: Guard, words: Words) -> str:
    if guard.event is Event.TRANSITION:
        return _event_text(automaton, guard)
    return guard_sentence(words, automaton, guard.event, guard.subject)


def _event_text(automaton: Automaton, guard: Guard) -> str:
    if guard.event is Event.TRANSITION:
        return automaton.mechanism.transitions[guard.subject].because or guard.text
    contact = automaton.contacts[guard.subject]
    if guard.event is Event.CLOSES:
        return f"{shared_name(automaton.contacts, guard.subject)} {contact.contact_law.verb(guard.event)}"
    sense = "" if contact.in_space or not guard.direction else " (+)" if guard.direction > 0 else " (−)"
    return f"{contact.name} {contact.contact_law.verb(guard.event)}{sense}"


# -- Frame encoder -------------------------------------------------------------------------------------------
#
# Frame encoder: drawing, handles, forces, guards and quantities of one row, live or recorded, as numbers.

HEAD: Final = 10  # numbers at the head of a frame


class FrameEncoder:
    """Encoder of the display frames of runs of one graph.

    ``graph``: with the parameters of the run; ``columns``: of the run's rows; ``x``, ``c``: initial state and context;
    ``coupled``: whether the model has couplers, whose port handles are drawn; ``travel``: of a finished run.
    """

    def __init__(
        self,
        graph: ModeGraph,
        columns: TickColumns,
        x: Floats,
        c: Floats,
        *,
        coupled: bool = True,
        travel: Samples | None = None,
    ) -> None:
        self.graph = graph
        self._outgoing: Outgoing = {}
        self.evaluator = RowEvaluator(graph, columns)
        self.words = words_at(graph.automaton, x, c)
        self.picture = Picture.of(graph, self.evaluator, x, c, travel)
        self.forces = Forces(self.evaluator, self.picture.scene, self.picture.flat, x, c)
        self.pushes = InputPushes(self.picture.scene, graph.automaton.mechanism, self.evaluator.layout.w, graph.values)
        self.grounds = find_grounds(self.evaluator, self.picture, self.forces.locations, x, c)
        self.port_handles = PortHandles(graph, self.evaluator, self.picture, columns, x, c) if coupled else None
        self.quantities = Quantities(graph, self.evaluator)
        self.faces = find_faces(self.evaluator, self.picture, x, c)
        self.solids = () if self.picture.planar else find_solids(graph, self.evaluator, x, c)
        points = self.evaluator.points(x, c)[0]
        self._size = max([float(np.ptp(points, axis=0).max(initial=0.0)), *(solid.radius for solid in self.solids)])

    @property
    def flat(self) -> Floats | None:
        """Projection from N to the page, shape (2, 3); None for a spatial mechanism, projected by the page."""
        return self.picture.flat if self.picture.planar else None

    def payload(self) -> dict[str, Any]:
        """Return the payload common to all frames."""
        mechanism = self.graph.automaton.mechanism
        return {
            "name": mechanism.name,
            "summary": mechanism.summary,
            "picture": {
                **self.picture.payload(),
                "grounds": [ground.payload() for ground in self.grounds],
                "faces": self.faces,
                "solids": [{**solid.payload(), **self.picture.colours(solid.frame)} for solid in self.solids],
                "size": self._size,
            },
            "pitches": self._pitches(),
            "ports": self.port_handles.payload() if self.port_handles is not None else [],
            "forces": self._forces(),
            "pushes": [symbol.name for symbol in self.pushes.symbols],
            "quantities": [vars(q) for q in self.quantities.all],
            "graph": self.mode_map(),
            "guards": self.guards(),
        }

    def _forces(self) -> list[dict[str, Any]]:
        """Return contact and kind of each location."""
        contacts = self.graph.automaton.contacts
        return [{"contact": contacts[one.contact].name, "kind": one.kind} for one in self.forces.locations]

    def _pitches(self) -> dict[str, float]:
        """Return the sound frequencies of contacts with one, Hz."""
        contacts = self.graph.automaton.mechanism.contacts.values()
        return {
            contact.name: evaluate_expression(contact.sound_frequency, self.graph.values)
            for contact in contacts
            if isinstance(contact, SurfaceContact) and contact.sound_frequency is not None
        }

    def mode_map(self) -> dict[str, Any]:
        """Return the payload of the mode graph, as far as it is derived."""
        automaton = self.evaluator.automaton
        found = mode_map(automaton, self.graph.initial, self._outgoing)
        for mode in (*found["modes"], *found["possible"]):
            states = [contact.states.index(mode["states"][contact.name]) for contact in automaton.contacts]
            mode["words"] = mode_words(self.words, states)
        return found

    def guards(self) -> list[list[dict[str, str]]]:
        """Return the lists of guards, whose numbers are in frames."""
        automaton = self.evaluator.automaton
        return [guard_texts(automaton, reader.mode.guards, self.words) for reader in self.evaluator.readers]

    def frame(
        self,
        head: Sequence[float],
        states: Sequence[int],
        x: Floats,
        c: Floats,
        row: Floats | None = None,
        samples: Sequence[Floats] = (),
        ghost: Floats | Sequence[float] = (),
    ) -> Floats:
        """Encode one row as numbers.

        ``head``: number of the run, tick, time (s), phase, fault, transitions so far; ``states``: contact states of the
        mode; ``row``: row of the live run, for the port handles; ``samples``: for the strip charts: time, mode, all
        quantities; ``ghost``: placements of the drawing of another run. Result: head: number of the run, tick, time,
        mode, phase, fault, transitions, samples, the number of the guards' list, guards.  Then the picture, arrows of
        inputs, the handles, the forces, (value, slope) of each guard, the placements of outlines and solids of a
        spatial mechanism, the ghost, and the samples.
        """
        with np.errstate(all="ignore"):  # of a state far off, undrawable points are NaN on the page
            return self._numbers(head, states, x, c, row, [np.asarray(ghost, dtype=np.float64)], samples)

    def _numbers(
        self,
        head: Sequence[float],
        states: Sequence[int],
        x: Floats,
        c: Floats,
        row: Floats | None,
        ghost: Sequence[Floats],
        samples: Sequence[Floats],
    ) -> Floats:
        """Return the numbers of :meth:`frame`."""
        evaluator, handles = self.evaluator, self.port_handles
        reader, full = evaluator.full(states, x, c)
        points, frames = evaluator.points(x, c)
        number, tick, t, *rest = head
        picture = self.picture.placed(points, frames)
        parts = [
            np.array(
                [
                    number, tick, t, evaluator.number(states), *rest, len(samples), reader.number,
                    len(reader.mode.guards),
                ],
                dtype=np.float64,
            ),
            picture,
            self._pushed(t, c, frames, picture),
            np.zeros(0) if handles is None or row is None else handles.drawn(row, x, c, points, frames),
            self.forces.drawn(x, c, states, full["multipliers"]),
            np.stack([full["guards"], full["slopes"]], axis=-1).ravel(),
            self._in_space(points, frames),
            *ghost,
            *samples,
        ]  # fmt: skip
        return np.concatenate(parts)

    def _pushed(self, t: float, c: Floats, frames: Floats, picture: Floats) -> Floats:
        """Return head, m, and force, N, of the arrow of each input, in the picture."""
        pushes, scene = self.pushes, self.picture.scene
        if not pushes.symbols:
            return np.zeros(0)
        anchors = picture[6 * len(scene.shapes) :].reshape(-1, 2)
        forces = pushes.forces(t, c[self.evaluator.layout.w_slice], frames)
        return pushes.arrows(forces, anchors, self.picture.flat).ravel()

    def _in_space(self, points: Floats, frames: Floats) -> Floats:
        """Return view directions, then axes and origin of every outline and solid; empty for a planar model."""
        picture = self.picture
        if picture.planar:
            return np.zeros(0)
        parts = [picture.flat.ravel()]
        outlines = [(shape.frame, shape.origin) for shape in picture.scene.shapes]
        for frame, origin in (*outlines, *((solid.frame, solid.origin) for solid in self.solids)):
            turn = np.eye(3) if frame == NEWTONIAN else frames[picture.scene.frames.index(frame)]
            parts += [turn.ravel(), picture.point(points, origin)]
        return np.concatenate(parts)

    def values(self, states: Sequence[int], x: Floats, c: Floats) -> Floats:
        """Return the values of all quantities at one state."""
        with np.errstate(all="ignore"):
            _, full = self.evaluator.full(states, x, c)
            return self.quantities.values(x, c, full["x_dot"], full["multipliers"])
