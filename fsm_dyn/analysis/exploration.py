"""Exploration of a mode graph by runs from states on guard surfaces, and its findings."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Final, TypeAlias

import networkx as nx
import numpy as np

from fsm_dyn.automaton.hybrid_automaton import outgoing
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters, group_of, grouped
from fsm_dyn.automaton.storage import from_bytes, to_bytes
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, ModelError, RunError
from fsm_dyn.core.processes import in_processes
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.memory import clock_names
from fsm_dyn.run.simulator import simulate
from fsm_dyn.run.trajectory import Trajectory

# -- Findings of an exploration ------------------------------------------------------------------------------
#
# Modes and edges seen, declared and derived, and modes without a way out.

Graph: TypeAlias = "nx.MultiDiGraph[str]"


@dataclass(frozen=True)
class SeenMode:
    """A visited mode: its first round, its contact states (codes), and its number of runs."""

    name: str
    depth: int
    states: tuple[int, ...] = ()
    runs: int = 0


@dataclass(frozen=True)
class SeenEdge:
    """An edge taken by ``seen`` of the ``runs`` in its source."""

    source: str
    target: str
    cause: str
    seen: int
    runs: int


@dataclass(frozen=True, eq=False)
class Exploration:
    """Modes and edges visited by runs.

    Attributes
    ----------
    graph : ModeGraph
        The explored graph.
    modes : mapping of str to SeenMode
        Modes in the order of their first visit.
    edges : tuple of SeenEdge
    instant_cycles : mapping of tuple of str to int
        Modes of cycles back to the first one within one instant, with their number.
    ends : mapping of str to int
        Number of runs by final mode and outcome.
    runs, refused : int
        Requested runs, and refused ones among them, with random speeds that contradict the constraints.
    depth, seed : int
        As given.
    """

    graph: ModeGraph
    modes: Mapping[str, SeenMode]
    edges: tuple[SeenEdge, ...]
    instant_cycles: Mapping[tuple[str, ...], int]
    ends: Mapping[str, int]
    runs: int
    refused: int
    depth: int
    seed: int

    def __repr__(self) -> str:
        return f"<Exploration of {self.graph.name}: {len(self.modes)} modes, {len(self.edges)} edges, {self.runs} runs>"

    @property
    def never_entered(self) -> tuple[str, ...]:
        """Modes of the graph without a run."""
        return tuple(name for name in self.graph.modes if name not in self.modes)

    @property
    def never_left(self) -> tuple[str, ...]:
        """Visited modes, left by no run."""
        left = {edge.source for edge in self.edges}
        return tuple(name for name in self.modes if name not in left)

    @property
    def terminal_modes(self) -> tuple[str, ...]:
        """Visited modes, left by no run, without a guard to another mode."""
        left = {edge.source for edge in self.edges}
        return tuple(name for name in self.modes if name not in left and not self._derived[name])

    @cached_property
    def _derived(self) -> Mapping[str, tuple[str, ...]]:
        """Targets of single guards of each visited mode, without those excluded by the geometry."""
        automaton, geometry = self.graph.automaton, self.graph.geometry
        names = [contact.name for contact in automaton.contacts]
        found = {}
        for mode in self.modes.values():
            leading = outgoing(automaton, mode.states)
            targets = dict.fromkeys(target for target, *_ in leading if target != mode.states)
            found[mode.name] = tuple(
                automaton.name_of(states).name
                for states in targets
                if geometry is None or not geometry.excluded(dict(zip(names, states, strict=True)))
            )
        return found

    @cached_property
    def nx(self) -> Graph:
        """The known graph as networkx.

        Nodes are modes visited or compiled, with ``label``, ``group``, ``found`` (``seen`` or ``declared``), ``depth``
        (-1 if not met), ``runs`` and ``initial``.  Edges have ``found``: ``seen`` (with ``seen`` of ``runs``),
        ``declared`` (a transition of the file) or ``derived`` (one guard alone leads there), and ``cause``.  All
        attributes are texts, numbers and truths, as GraphML and JSON hold them.
        """
        drawn: Graph = nx.MultiDiGraph(name=self.graph.name)
        labels = self.graph.automaton.labels
        for name, mode in self.modes.items():
            drawn.add_node(
                name,
                label=labels.of(mode.states),
                group=group_of(self.graph.automaton, mode.states),
                found="seen",
                depth=mode.depth,
                runs=mode.runs,
                initial=name == self.graph.initial,
            )
        compiled = self.graph.nx
        for name in self.never_entered:
            known = {key: compiled.nodes[name][key] for key in ("label", "group")}
            drawn.add_node(name, **known, found="declared", depth=-1, runs=0, initial=name == self.graph.initial)
        for edge in self.edges:
            drawn.add_edge(edge.source, edge.target, found="seen", cause=edge.cause, seen=edge.seen, runs=edge.runs)
        taken = {(edge.source, edge.target) for edge in self.edges}
        for source, target, data in compiled.edges(data=True):
            if source != target and (source, target) not in taken:
                found = "declared" if data["kind"] == "written" else "derived"
                drawn.add_edge(source, target, found=found, cause=data["cause"], seen=0, runs=self._runs(source))
                taken.add((source, target))
        for source, targets in self._derived.items():
            for target in targets:
                if target in drawn and (source, target) not in taken:
                    drawn.add_edge(source, target, found="derived", cause="", seen=0, runs=self._runs(source))
        return drawn

    @property
    def grouped(self) -> Graph:
        """The graph with one node for all modes of one name, see :func:`fsm_dyn.automaton.mode_graph.grouped`."""
        return grouped(self.nx)

    def _runs(self, mode: str) -> int:
        return self.modes[mode].runs if mode in self.modes else 0

    def to_data(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "model": self.graph.name,
            "runs": self.runs,
            "refused": self.refused,
            "depth": self.depth,
            "seed": self.seed,
            "modes": [
                {"name": mode.name, "depth": mode.depth, "runs": mode.runs, "states": list(mode.states)}
                for mode in self.modes.values()
            ],
            "edges": [{"source": a, "target": b, **data} for a, b, data in self.nx.edges(data=True)],
            "never_entered": self.never_entered,
            "never_left": self.never_left,
            "terminal_modes": self.terminal_modes,
            "instant_cycles": [{"modes": list(modes), "times": n} for modes, n in self.instant_cycles.items()],
            "ends": dict(self.ends),
        }


# -- Exploration of a mode graph -----------------------------------------------------------------------------
#
# Successors of modes by runs from states on guard surfaces. The first runs are those of the model: its schedule and its
# scenarios. From every visited mode, further runs begin in states of exits of runs, on the surfaces of its guards, and
# in states within it, with other speeds and random inputs. New modes are explored in the next round. The draws depend
# on the seed alone, and rounds have a fixed order: the result is the same for any number of processes.

KEPT: Final = 8  # initial states of a mode's runs
CORNERS: Final = 4  # of a random input
WIDER: Final = 1.5  # random inputs, than those of the model's runs
MOST_STEPS: Final = 100_000


@dataclass(frozen=True)
class _Case:
    """One run: its inputs, its length (None: until the last breakpoint), its starts: the first possible is taken.

    An empty start is the model's own.
    """

    starts: tuple[Mapping[str, float | str], ...] = ({},)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    scenario: str | None = None
    until: float | None = None


@dataclass(frozen=True)
class _Met:
    """Modes and transitions of a run.

    ``modes``: contact states by name.  ``edges``: source, target, cause, in order.  ``states``: by mode, rows of
    coordinates, speeds and memory.  ``inputs``: least and largest value of each input, shape (2, n_w).
    """

    modes: Mapping[str, tuple[int, ...]]
    edges: Sequence[tuple[str, str, str]]
    cycles: Sequence[tuple[str, ...]]
    states: Mapping[str, Floats]
    inputs: Floats
    outcome: str
    last: str
    length: float


@typed
def explore(
    graph: ModeGraph,
    *,
    from_: Mapping[str, float | str] | None = None,
    inputs: Mapping[str, tuple[float, float]] | None = None,
    depth: int = 2,
    samples: int = 6,
    duration: float | None = None,
    schedules: bool = True,
    seed: int = 0,
    jobs: int | None = 1,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> Exploration:
    """Return the modes and edges visited by runs from sampled states.

    Parameters
    ----------
    graph : ModeGraph
    from_ : mapping, optional
        Start of the first runs, as ``initial`` of :func:`fsm_dyn.simulate`; by default the model's.
    inputs : mapping of str to (float, float), optional
        Least and largest value of inputs drawn at random (SI units); by default 1.5 times the range of the model's own
        schedule and scenarios, zero included, or from -1 to 1.
    depth : int
        Number of rounds: each explores the modes first visited in the previous one.
    samples : int
        Runs from each mode in its round.
    duration : float, optional
        Length of a run from a sampled state, s; by default a quarter of the longest of the first runs.
    schedules : bool
        Whether the first runs have the inputs of the model's schedule and scenarios; else one run with inputs of zero.
    seed : int
        Seed of all draws.
    jobs : int, optional
        Processes; None: all cores.
    progress : callable
        Called with the numbers of finished and of known runs.

    Raises
    ------
    InputError
        An argument is not a positive number, an input does not exist or has no range, or ``from_`` is no start.
    RunError
        None of the first runs could begin.
    """
    _check(graph, depth, samples, inputs or {}, duration)
    found = _Findings(graph)
    first = [_Case((from_ or {},), scenario=name) for name in (None, *graph.automaton.mechanism.scenarios)]
    if not schedules:
        first = [_Case((from_ or {},), dict.fromkeys(graph.automaton.terms.layout.w, 0.0))]
    found.add(_met_in(graph, first, jobs), 0)
    if not found.modes:
        for case in first:  # raises errors of the start
            simulate(
                graph, scenario=case.scenario, initial=from_ or {}, inputs=case.inputs, on_failure="return", max_steps=1
            )
        raise RunError("no run of the model could begin: run it with fsm_dyn.simulate to see why")
    length = duration if duration is not None else 0.25 * found.longest
    low, high = found.input_ranges(inputs or {})
    for level in range(1, depth + 1):
        front = [name for name, mode in found.modes.items() if mode.depth == level - 1]
        cases = [
            case
            for number, name in enumerate(front)
            for case in _cases(graph, found, name, (low, high), length, samples, [seed, level, number])
        ]
        progress(found.runs, found.runs + len(cases))
        found.add(_met_in(graph, cases, jobs), level)
    progress(found.runs, found.runs)
    return found.result(depth, seed)


def _check(
    graph: ModeGraph, depth: int, samples: int, inputs: Mapping[str, tuple[float, float]], duration: float | None
) -> None:
    """Check the arguments of an exploration.

    Raises InputError: an argument is not a positive number, or an input does not exist or has no range.
    """
    for name, number in (("depth", depth), ("samples", samples)):
        if not isinstance(number, int) or number < (0 if name == "depth" else 1):
            raise InputError(name, found=repr(number), allowed="a whole number, 1 or more; depth may be 0")
    layout = graph.automaton.terms.layout
    for name in inputs:
        if name not in layout.w:
            raise InputError(f"no input '{name}'", allowed=", ".join(layout.w) or "the model has none")
    for name, bounds in inputs.items():
        numbers = np.asarray(bounds) if isinstance(bounds, Sequence) else np.zeros(0)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iuf" or not -np.inf < numbers[0] <= numbers[1] < np.inf:
            raise InputError(f"no range of input '{name}'", found=repr(bounds), allowed="(least, greatest), SI units")
    if duration is not None and not 0.0 < duration < np.inf:
        raise InputError("duration", found=repr(duration), allowed="a positive number of seconds")


def _cases(
    graph: ModeGraph,
    found: _Findings,
    mode: str,
    ranges: tuple[Floats, Floats],
    length: float,
    samples: int,
    seed: Sequence[int],
) -> Iterator[_Case]:
    """Yield runs from states of a mode, with random speeds and inputs."""
    layout, random = graph.automaton.terms.layout, np.random.default_rng(seed)
    names = (*layout.q, *layout.u, *layout.memory)
    clocks = clock_names(graph.automaton.mechanism)
    states = found.states[mode]
    n_q, n_u = len(layout.q), len(layout.u)
    for number in range(samples):
        state = states[number % len(states)]
        factor = random.choice([1.0, 0.5, 1.5, -1.0])
        noise = random.normal(size=n_u) * random.choice([0.0, 0.1, 0.5]) * found.speeds
        starts = [state.copy() for _ in range(3)]  # constraints may contradict the noise, contacts a turned motion
        starts[0][n_q : n_q + n_u] = factor * state[n_q : n_q + n_u] + noise
        starts[1][n_q : n_q + n_u] = factor * state[n_q : n_q + n_u]
        times = np.sort(random.uniform(0.0, length, CORNERS - 1))
        values = random.uniform(ranges[0], ranges[1], (CORNERS, len(layout.w)))
        values *= random.choice([0.0, 1.0], (CORNERS, len(layout.w)), p=[0.25, 0.75])
        drawn = {
            name: {"linear": [[0.0, float(values[0, k])], *zip(times.tolist(), values[1:, k].tolist(), strict=True)]}
            for k, name in enumerate(layout.w)
        }
        values_of = ({n: v for n, v in zip(names, start.tolist(), strict=True) if n not in clocks} for start in starts)
        named = tuple({"settle": False, **known} for known in values_of)
        yield _Case(named, drawn, None, length)


def _met_in(graph: ModeGraph, cases: Sequence[_Case], jobs: int | None) -> Iterator[_Met | None]:
    """Yield the modes and transitions of each run, in order; None for a failed start."""
    workers = min(len(cases), jobs or os.cpu_count() or 1)
    if workers < 2:
        yield from (_run(graph, case) for case in cases)
    else:
        sent = to_bytes(graph.automaton), dict(graph.values)
        yield from in_processes("the exploration", workers, _begin, sent, _run, cases)


def _begin(sent: tuple[bytes, Mapping[str, ParameterValue]]) -> ModeGraph:
    data, values = sent
    return graph_with_parameters(from_bytes(data), values)


def _run(graph: ModeGraph, case: _Case) -> _Met | None:
    for start in case.starts:
        try:
            run = simulate(
                graph, case.until, scenario=case.scenario, initial=start, inputs=case.inputs,
                on_failure="return", max_steps=MOST_STEPS,
            )  # fmt: skip
        except (InputError, ModelError):
            continue
        if run.record.t[-1] > 0.0:
            return _met(graph, run)
    return None


def _met(graph: ModeGraph, run: Trajectory) -> _Met:
    record, layout = run.record, graph.automaton.terms.layout
    names, n_x = run.model.modes, layout.n_x
    rows = np.concatenate([record.x[:, :n_x], run.rows.context[:, layout.memory_slice]], axis=1)
    ends = np.flatnonzero(np.diff(record.mode, append=-1) != 0)
    starts = np.concatenate([[0], ends[:-1] + 1])
    states: dict[str, list[Floats]] = {}
    for start, end in zip(starts, ends, strict=True):
        kept = states.setdefault(names[record.mode[end]], [])
        if len(kept) < KEPT:
            kept += [rows[end], rows[(start + end) // 2]]
    values = run.rows.context[:, layout.w_slice]
    return _Met(
        {names[i]: tuple(run.model.charts[i].states) for i in dict.fromkeys(record.mode.tolist())},
        [(item.source, item.target, item.cause) for item in run.transitions if item.source != item.target],
        list(_instant_cycles(run)),
        {name: np.array(kept) for name, kept in states.items()},
        np.array([values.min(axis=0), values.max(axis=0)]),
        run.outcome.name,
        names[record.mode[-1]],
        float(record.t[-1]),
    )


def _instant_cycles(run: Trajectory) -> Iterator[tuple[str, ...]]:
    """Yield the cycles of modes of a run within an instant."""
    path: list[str] = []
    time = -1.0
    for item in run.transitions:
        if item.source == item.target:
            continue
        path = path if item.time == time and path else [item.source]
        time = item.time
        if item.target in path:
            yield tuple(path[path.index(item.target) :])
            path = [item.target]
        else:
            path.append(item.target)


class _Findings:
    """Modes and edges visited by the runs."""

    def __init__(self, graph: ModeGraph) -> None:
        self.graph = graph
        self.modes: dict[str, SeenMode] = {}
        self.states: dict[str, Floats] = {}
        self.codes: dict[str, tuple[int, ...]] = {}
        self.runs = self.refused = 0
        self.longest = 0.0
        self.speeds = np.zeros(len(graph.automaton.terms.layout.u))
        self.inputs = np.zeros((2, len(graph.automaton.terms.layout.w)))
        self.in_mode: Counter[str] = Counter()
        self.on_edge: Counter[tuple[str, str, str]] = Counter()
        self.ended_in: Counter[tuple[str, str]] = Counter()
        self.cycles: Counter[tuple[str, ...]] = Counter()

    def add(self, met: Iterator[_Met | None], level: int) -> None:
        """Count the modes and edges of the runs of one round."""
        n_q, n_u = len(self.graph.automaton.terms.layout.q), len(self.speeds)
        for item in met:
            self.runs += 1
            if item is None:
                self.refused += 1
                continue
            for name, codes in item.modes.items():
                self.modes.setdefault(name, SeenMode(name, level))
                self.codes.setdefault(name, codes)
                old = self.states.get(name, item.states[name][:0])
                self.states[name] = np.concatenate([old, item.states[name]])[:KEPT]
                speeds = np.abs(item.states[name][:, n_q : n_q + n_u]).max(axis=0)
                self.speeds = np.maximum(self.speeds, speeds)
            self.in_mode.update(list(item.modes))
            self.on_edge.update(set(item.edges))
            self.cycles.update(item.cycles)
            self.ended_in[item.last, item.outcome] += 1
            if level == 0:
                self.longest = max(self.longest, item.length)
                self.inputs = np.array(
                    [np.minimum(self.inputs[0], item.inputs[0]), np.maximum(self.inputs[1], item.inputs[1])]
                )

    def input_ranges(self, given: Mapping[str, tuple[float, float]]) -> tuple[Floats, Floats]:
        """Return the least and largest values of random inputs, shape (n_w,) each."""
        still = (self.inputs == 0.0).all(axis=0)
        low, high = np.where(still, -1.0, WIDER * self.inputs[0]), np.where(still, 1.0, WIDER * self.inputs[1])
        for name, (least, most) in given.items():
            k = self.graph.automaton.terms.layout.w.index(name)
            low[k], high[k] = least, most
        return low, high

    def result(self, depth: int, seed: int) -> Exploration:
        """Return the exploration."""
        modes = {
            name: SeenMode(name, mode.depth, self.codes[name], self.in_mode[name]) for name, mode in self.modes.items()
        }
        edges = tuple(
            SeenEdge(source, target, cause, seen, self.in_mode[source])
            for (source, target, cause), seen in self.on_edge.items()
        )
        ends = {f"{mode}: {outcome}": number for (mode, outcome), number in self.ended_in.items()}
        return Exploration(self.graph, modes, edges, dict(self.cycles), ends, self.runs, self.refused, depth, seed)
