"""Room for the arrays of an instant: what is handed out, what happens when it is used up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run import structures as state
from fsm_dyn.runtime.abi import ArenaTop
from fsm_dyn.runtime.layouts import Work
from tests.runtime.internals import Arena, internals

MOST_FLOATS = 2  # entry of ``top``


def test_what_is_handed_out_is_zero_and_apart() -> None:
    arena, runtime = Arena(10, 5), internals()
    a, b = runtime.test_arena_vector(arena.struct, 4), runtime.test_arena_vector(arena.struct, 6)
    assert not a.any()
    assert not b.any()
    a[:] = 1.0
    assert not b.any()
    i = runtime.test_arena_indices(arena.struct, 5)
    i[:] = 3
    assert a.sum() == 4.0
    assert arena.top[ArenaTop.OVERFLOWN] == 0


def test_beyond_the_block_is_noted_and_stays_inside() -> None:
    arena, runtime = Arena(10, 5), internals()
    runtime.test_arena_vector(arena.struct, 8)
    assert runtime.test_arena_vector(arena.struct, 8).shape == (8,)
    assert arena.top[ArenaTop.OVERFLOWN] == 1
    runtime.test_arena_release(arena.struct, 0, 0)
    assert tuple(arena.top[:2]) == (0, 0)
    assert arena.top[MOST_FLOATS] == 8


def keep_work(monkeypatch: pytest.MonkeyPatch, **options: int) -> list[Work]:
    """Let workspace be made with these options, and collect what is made."""
    made, plain_new = [], state.new_work

    def new(*args: Any) -> Any:
        work = plain_new(*args) if len(args) > 2 else plain_new(*args, **options)
        made.append(work[0])
        return work

    monkeypatch.setattr(state, "new_work", new)
    return made


@pytest.mark.parametrize("model", ["newtons_cradle", "box_on_table"])
def test_a_run_that_needs_more_room_gets_it(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run with room for no contact at first is the run with plenty, bit for bit."""
    wide = fsm_dyn.simulate(fsm_dyn.compile(model), until=1.0)
    made = keep_work(monkeypatch, contacts=0)
    tight = fsm_dyn.simulate(fsm_dyn.compile(model), until=1.0)
    assert len(made) > 1
    assert wide.transitions
    np.testing.assert_array_equal(tight.t, wide.t)
    np.testing.assert_array_equal(tight.u, wide.u)
