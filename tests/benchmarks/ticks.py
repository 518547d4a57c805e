"""Hands that move every shipped model with a port, and the times of their ticks, done as the loop does them."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import fsm_dyn
from fsm_dyn.devices.scripted import Driver
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.controller import RUNNING, RunController
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import usual_substeps
from fsm_dyn.live.tick_process import columns_of, ring_of
from fsm_dyn.runtime.abi import Counters, TickCounts

PERIOD = 1e-3  # s
REACH = {  # m or rad: how far a hand goes to either side of where the port begins
    "bouncing_ball": 1.2,
    "latch": 0.1,
    "latch_door": 0.08,
    "piano_action": 0.012,
    "piano_action_simple": 0.012,
    "push_button": 0.003,
    "shopping_cart": 0.3,
    "toggle_switch": 1.0,
    "virtual_wall": 0.03,
}
SEED = 13
WIDE = Limits(velocity=200.0, angular_velocity=2000.0)  # simulated hands are not disengaged for being quick


class RandomHand(Driver):
    """The scripted hand, drawn to places at random: each is reached within 20 to 500 ms and kept for up to 300 ms."""

    def __init__(self, axes: int, reach: float, seconds: float, seed: int = SEED) -> None:
        super().__init__({"axes": axes})
        random = np.random.default_rng(seed)
        ticks = round(seconds / PERIOD) + 1
        self._places = np.column_stack([random_way(random, ticks, reach) for _ in range(axes)])
        self._rates = np.gradient(self._places, PERIOD, axis=0)

    def read(self) -> Sample:
        k = min(self._readings, len(self._places) - 1)
        self._readings += 1
        for i in range(len(self._position)):
            away, along = self._places[k, i] - self._position[i], self._rates[k, i] - self._velocity[i]
            pull = self._stiffness * away + self._damping * along
            self._velocity[i] += PERIOD * (pull + self._force[i]) / self._mass
            self._position[i] += PERIOD * self._velocity[i]
        return Sample(k * PERIOD, self._readings, tuple(self._position), tuple(self._velocity))


def random_way(random: np.random.Generator, ticks: int, reach: float) -> NDArray[np.float64]:
    """Return places over ticks, shape (ticks,): from one to the next by a polynomial that begins and ends at rest."""
    way, here = [np.zeros(1)], 0.0
    while sum(len(part) for part in way) < ticks:
        there, taken, kept = random.uniform(-reach, reach), random.integers(20, 500), random.integers(0, 300)
        s = np.arange(1, taken + 1) / taken
        way += [here + (there - here) * s**3 * (10.0 - 15.0 * s + 6.0 * s**2), np.full(kept, there)]
        here = there
    return np.concatenate(way)[:ticks]


@dataclass
class Ticks:
    """Of every tick: processor time (s), transitions, modes met for the first time, 1 if left unfinished, work."""

    spent: NDArray[np.float64]
    made: NDArray[np.int64]
    new: NDArray[np.int64]
    behind: NDArray[np.int64]
    work: NDArray[np.int64]
    phase: int


def run_ticks(graph, hand, count, *, schedule=False, limits=None, prepare=True) -> Ticks:
    """Carry out ticks as the tick process does: read, one compiled call that also leaves a row, write."""
    axes = hand.spec.axes
    substeps = usual_substeps(graph.automaton.mechanism, graph.values, PERIOD)
    stepper = LiveStepper(graph, axes, substeps=substeps, limits=limits or WIDE, schedule=schedule)
    if prepare:
        stepper.prepare()
    controller = RunController(stepper, lambda event: None)
    columns = columns_of(stepper)
    block = tick_data.SharedBlock.create(
        tick_data.BlockLayout(columns.width, 1 + stepper.loop.buffers.transitions.shape[1])
    )
    try:
        stepper.publish_to(ring_of(block))
        counts, force = tick_data.plain(stepper.tick_data.counts), tick_data.plain(stepper.tick_data.force)
        clock, executable = time.thread_time_ns, stepper.executable
        spent = np.empty(count)
        made, new, behind, work = np.zeros((4, count), np.int64)
        done = stepper.counters
        gc.disable()
        for k in range(count):
            modes = len(executable.charts)
            begin = clock()
            sample = hand.read()
            controller.take(sample)
            if controller.run_tick(sample.sequence, sample.buttons, 1_000_000 * k, 0, 1000, 1000):
                status = counts[TickCounts.STATUS]
                if controller.wants(status):
                    controller.supply(status)
            hand.write(force.tolist())
            spent[k] = (clock() - begin) * 1e-9
            made[k], new[k], behind[k] = (
                counts[TickCounts.NEW_TRANSITIONS],
                len(executable.charts) - modes,
                counts[TickCounts.INCOMPLETE],
            )
            work[k] = done[Counters.WORK_DONE]
            if controller.phase != RUNNING:
                spent, made, new, behind, work = (part[: k + 1] for part in (spent, made, new, behind, work))
                break
        return Ticks(spent, made, new, behind, work, controller.phase)
    finally:
        gc.enable()
        block.close(remove=True)


def random_hand(name, graph, seconds):
    axes = len(port_axes(graph))
    return RandomHand(axes, REACH[name], seconds)


def port_axes(graph):
    from fsm_dyn.live.device_map import coupled_ports

    return coupled_ports(graph.automaton.mechanism)[0].axes


def compiled(name):
    return coupled_graph(fsm_dyn.compile(name))
