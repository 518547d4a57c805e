"""Enclosures of forces that are solved for hold what they enclose: random regions of runs, against states in them."""

from ctypes import CFUNCTYPE, c_double, c_int64, c_void_p
from functools import partial

import numpy as np
import pytest

from fsm_dyn.run.online import routine_address
from fsm_dyn.runtime.abi import JET_NUMBERS, Counters, OnlineKernel, Sizes
from tests.runtime import saved_states
from tests.runtime.internals import internals

pytestmark = pytest.mark.runtime

# a rod whose tip slides on a table in space, and a pendulum on a block: its bearing slides under its load
ROD = {
    "fsm_dyn": 1, "name": "rod", "coordinates": ["x", "y", "z", "q1", "q2"],
    "frames": {"A": {"parent": "N", "rotate": {"z": "q1"}}, "B": {"parent": "A", "rotate": {"y": "q2"}}},
    "points": {"C": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}, "T": {"from": "C", "at": "0.5*B.x"}},
    "bodies": {"rod": {"frame": "B", "center": "C", "mass": 2, "inertia": {"xx": 0.02, "yy": 0.1, "zz": 0.1}}},
    "contacts": {"tip": {"gap": "dot(pos(T), N.z)", "slip": ["dot(vel(T), N.x)", "dot(vel(T), N.y)"], "friction": 0.3}},
    "loads": [{"gravity": "-10*N.z"}], "modes": {"slides": {"tip": "slide"}},
    "initial": {"mode": "slides", "z": "0.5*sin(0.7)", "q2": 0.7, "x_dot": 1, "y_dot": 2, "q1_dot": 1},
}  # fmt: skip
PENDULUM = {
    "fsm_dyn": 1, "name": "pendulum", "coordinates": ["x", "y"],
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}, "T": {"from": "P", "at": "0.5*arm.x"}},
    "joints": {"pin": {"revolute": {"child": "arm", "at": "P", "axis": "N.z", "radius": 0.05, "friction": 0.4}}},
    "bodies": {"block": {"center": "P", "mass": 1},
               "bob": {"frame": "arm", "center": "T", "mass": 2, "inertia": {"zz": 0.1}}},
    "contacts": {"floor": {"gap": "y", "slip": "rate(x)", "friction": 0.2}},
    "loads": [{"gravity": "-10*N.y"}], "modes": {"both": {"floor": "slide", "pin_friction": "slide"}},
    "initial": {"mode": "both", "x_dot": 1, "pin": -1, "pin_dot": 1},
}  # fmt: skip
MODELS = {
    "shopping_cart": ("shopping_cart", 200),
    "cart_on_ramp": ("cart_on_ramp", 30),
    "piano_action_simple": ("piano_action_simple", 200),
    "rod": (ROD, 3),
    "pendulum": (PENDULUM, 3),
}  # turns until forces are watched
REGIONS, STATES = 8, 40  # of each model, of each region
WIDTHS = 10.0 ** np.arange(-8, 0)  # of a region, in the units of the states


class Stop:
    """A stopped run in a mode embedded online, the enclosing program of its guards, and those on forces."""

    def __init__(self, model):
        self.run = saved_states.stopped.__wrapped__(*MODELS[model], "online")
        self.handle, self.state, tables = self.run.handle(), self.run.loop.state, self.run.loop.tables
        mode = int(self.state.counters[Counters.MODE])
        begin, end = int(tables.mode_guard_start[mode]), int(tables.mode_guard_start[mode + 1])
        self.codes = np.ascontiguousarray(tables.guard_enclosure[begin:end])
        self.forces = np.flatnonzero(self.codes < -1)
        self.words, self.numbers = tables.enclosure_code[tables.mode_enclosure[mode] :], tables.enclosure_numbers
        self.program = internals().enclosure_at(self.words, self.numbers)
        call = CFUNCTYPE(c_int64, c_int64, c_int64, c_double, c_void_p, c_void_p, c_void_p)(routine_address())
        self.kernel = partial(call, int(tables.mode_online[mode]), OnlineKernel.FULL)
        self.n_q, self.n_u = (int(tables.sizes[k]) for k in (Sizes.N_Q, Sizes.N_U))
        self.room = len(self.run.loop.work.proof) // JET_NUMBERS
        arguments = (c_int64 * self.program.moving).from_address(self.program.arguments)
        self.moving = np.array(arguments) - 1  # of states and context; -1 is the time

    def evaluated(self, x):
        """A state with its dependent speeds, and the guards on forces there."""
        x, out, n = x.copy(), np.zeros(len(self.run.loop.work.full_end)), len(x)
        self.kernel(self.state.clock[0], x.ctypes.data, self.state.c.ctypes.data, out.ctypes.data)
        x[self.n_q :] = out[n : n + self.n_u]
        return x, out[n + self.n_u + 1 + self.forces]

    def bounds(self, low, high, by_terms):
        """Jets of the guards on forces along lines that cross a region in unit time, (n, 6).

        By bounds of the terms over a larger region, or by the program over this one.
        """
        inner, run, p = internals(), self.handle, self.program
        jets, needed = np.zeros((self.room, JET_NUMBERS)), np.zeros(p.operations, np.int8)
        inner.mark_terms(run, p, needed)
        inner.mark_needed(p, needed)
        inner.enclose_fixed(p, self.state.c, len(self.state.x), jets)
        if by_terms:
            kept = [np.zeros(max(2, p.moving, p.n_terms)) for _ in range(5)]
            terms = np.array([array.ctypes.data for array in kept])  # struct fsm_term_bounds
            inner.bound_forces(run, p, terms, self.codes, needed, low, high, jets)
        else:
            extent = high - low
            jets[: p.moving] = np.column_stack([low, high, -extent, extent, 0.0 * low, 0.0 * low])
            inner.enclose(p, needed, 2, jets, None, 1.0)
            inner.enclose_forces(run, p, self.codes, 2, jets, None, 1.0, None)
        return jets[inner.enclosure_size(p) + self.forces]


@pytest.mark.parametrize("model", MODELS)
def test_forces_lie_within(model):
    """Of states in a region, whose dependent speeds follow; changes between them within the rate."""
    stop, bounded = Stop(model), np.zeros(2)
    x0, t = stop.state.x, stop.state.clock[0]
    assert stop.forces.size
    for seed in range(REGIONS):
        rng = np.random.default_rng(seed)
        width = WIDTHS[seed % len(WIDTHS)] * (rng.random(len(x0)) < 0.7)
        found = [stop.evaluated(x0 + width * rng.uniform(-1.0, 1.0, len(x0))) for _ in range(STATES)]
        states, forces = (np.array(part) for part in zip(*found, strict=True))
        places = np.column_stack([states, np.tile([*stop.state.c, t], (STATES, 1))])[:, stop.moving]
        room = 1e-11 * np.abs(forces).max(axis=0)  # what the forces themselves err by
        for by_terms in (False, True):
            low, high, least, most, *_ = stop.bounds(places.min(axis=0), places.max(axis=0), by_terms).T
            assert (low - room <= forces.min(axis=0)).all(), (seed, by_terms)
            assert (forces.max(axis=0) <= high + room).all(), (seed, by_terms)
            assert (np.abs(forces - forces[0]) <= np.maximum(-least, most) + room).all(), (seed, by_terms)
            bounded[int(by_terms)] += np.isfinite(most).mean()
    assert bounded[0] > REGIONS / 3
    assert bounded[1] > REGIONS / 3 or model == "rod"  # in space a slip may have any direction in a larger region
