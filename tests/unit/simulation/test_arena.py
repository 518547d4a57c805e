"""Room for the arrays of an instant: what is handed out, what happens when it is used up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.simulation import arena, state


def room(floats: int, integers: int) -> SimpleNamespace:
    top = np.zeros(arena.TOP_COUNT, int)
    return SimpleNamespace(floats=np.full(floats, 7.0), integers=np.full(integers, 7), top=top)


def plain(function):  # type: ignore[no-untyped-def]
    return function.py_func


def test_what_is_handed_out_is_zero_and_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vector", "indices", "_room", "mark", "release"):
        monkeypatch.setattr(arena, name, plain(getattr(arena, name)))
    block = room(10, 5)
    a, b = arena.vector(block, 4), arena.vector(block, 6)
    assert not a.any()
    assert not b.any()
    a[:] = 1.0
    assert not b.any()
    i = arena.indices(block, 5)
    i[:] = 3
    assert a.sum() == 4.0
    assert block.top[arena.OVERFLOWN] == 0


def test_beyond_the_block_is_noted_and_stays_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vector", "indices", "_room", "mark", "release"):
        monkeypatch.setattr(arena, name, plain(getattr(arena, name)))
    block = room(10, 5)
    at = arena.mark(block)
    arena.vector(block, 8)
    assert arena.vector(block, 8).shape == (8,)
    assert block.top[arena.OVERFLOWN] == 1
    arena.release(block, at)
    assert tuple(block.top[:2]) == (0, 0)
    assert block.top[arena.MOST_FLOATS] == 8


def keep_work(monkeypatch: pytest.MonkeyPatch, **options: int) -> list[state.Work]:
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
