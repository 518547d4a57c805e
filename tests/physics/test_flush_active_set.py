"""Which pairs of corner and face are active, told twice: by the compiled rules of a run, and by NumPy at its start.

The bodies lie flush, at rest or sliding; what approaches is reported after its impact, which is the run's affair alone.
Contacts that keep the same gap may stand for each other, so the constraint rows of the active ones are compared.
"""

import ctypes
import itertools

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.initial_state import active_features
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.structures import TABLES, TERM_NAMES, TERMS, TermArrays, nonzero_of
from tests.physics.flush import Tiles, brick, scene
from tests.runtime.internals import Arena, internals

TOUCHING = 1e-9
CUTS = (-1.0, -0.25, 0.0, 0.25, 1.0)


def choose(tables, terms, u, wanted, before, event, closed, implied):
    """Leave the active contacts in ``closed``, as the runtime does."""
    arena, runtime = Arena(), internals()
    packed, packed_terms = TABLES.pack(tables), TERMS.pack(terms)
    outcome = runtime.struct("outcome", wanted=wanted, implied=implied)
    instant = runtime.struct("resolution", u=u, before=before, event=event, closed=closed)
    instant.arena, instant.outcome = ctypes.addressof(arena.struct), ctypes.addressof(outcome)
    instant.tables, instant.terms = packed.address, packed_terms.address
    runtime.choose_features(instant)
    runtime.rest_on_one(instant)


class Scene:
    """A model, its tables, and the states in which its bodies lie flush."""

    def __init__(self, bodies, fixed):
        self.graph = fsm_dyn.compile(scene(bodies, fixed, friction=0.3), cache=False)
        self.automaton = self.graph.automaton
        self.tables = Executable(self.automaton).tables

    def terms(self, x, context):
        values = self.automaton.terms.evaluate(0.0, x, context)
        parts = [np.ascontiguousarray(values[name], dtype=float) for name in TERM_NAMES]
        return values, TermArrays(np.zeros(1), *parts, *nonzero_of(self.tables))

    def touching(self, values, rates):
        """The contacts that touch where their face is and do not part."""
        found = []
        for k, contact in enumerate(self.automaton.contacts):
            gap, reach = values["residual"][contact.normal_row], values["reach"][k]
            near = abs(gap) <= TOUCHING and rates[contact.normal_row] <= TOUCHING and values["aspect"][k] >= -TOUCHING
            stays = reach > TOUCHING or (reach >= -TOUCHING and values["reach_rate"][k] >= -TOUCHING)
            if near and stays:
                found.append(k)
        return found

    def compare(self, x):
        """Return the normal rows of the active contacts by both, and how many contacts touch."""
        layout = self.automaton.terms.layout
        context = np.zeros(layout.n_c)
        values, terms = self.terms(x, context)
        u = x[layout.u_slice].copy()
        rates = values["A"][:, : len(u)] @ u + values["b"]
        touching = self.touching(values, rates)
        n = len(self.automaton.contacts)
        closed = np.zeros(n, np.int64)
        closed[touching] = 1
        idle = [np.zeros(n, np.int64) for _ in range(3)]
        choose(self.tables, terms, u, np.zeros(n, np.int8), idle[0], idle[1], closed, idle[2])
        mine = active_features(self.automaton.contacts, values, rates, touching, TOUCHING)
        rows = [self.automaton.contacts[k].normal_row for k in range(n)]
        return (
            self.distinct(values["A"][[rows[k] for k in np.flatnonzero(closed)]]),
            self.distinct(values["A"][[rows[k] for k in sorted(mine)]]),
            len(touching),
        )

    @staticmethod
    def distinct(rows):
        return sorted({tuple(np.round(row, 6) + 0.0) for row in rows})


def flat(random, count):
    """Bricks on each other on a table of tiles, their edges at seams and above each other more often than not."""
    places, rates = [], []
    for i in range(count):
        x = random.choice([*(cut - 0.125 for cut in CUTS[1:]), 0.0, random.uniform(-0.5, 0.5)])
        places += [x if i == 0 or random.random() < 0.5 else places[0], 0.05 + 0.1 * i, 0.0]
        rates += [random.normal() if random.random() < 0.6 else 0, 0, 0]
    return np.array([*places, *rates], float)


SCENES = {
    "row of tiles": lambda: (1, Tiles([(a, b, 0.0) for a, b in itertools.pairwise(CUTS)]).shapes),
    "segments": lambda: (1, Tiles([(a, b, 0.0) for a, b in itertools.pairwise(CUTS)], "segment").shapes),
    "tower": lambda: (2, Tiles([(-1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]).shapes),
}


@pytest.mark.parametrize("name", SCENES)
def test_both_tell_the_same_active_set(name):
    count, fixed = SCENES[name]()
    told = Scene({f"b{i}": brick(0.25, 0.1) for i in range(count)}, fixed)
    random = np.random.default_rng(7)
    busy = 0
    for _ in range(60):
        x = flat(random, count)
        compiled, plain, touching = told.compare(x)
        assert compiled == plain, x
        busy += touching > len(plain) > 0
    assert busy > 10  # that there was a choice to make
