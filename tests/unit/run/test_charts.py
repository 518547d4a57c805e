"""Changing the choice of independent speeds, and Euler parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fsm_dyn.runtime.abi import Status
from fsm_dyn.runtime.layouts import Tables
from tests.unit.run import fakes


def _chart(degenerate_at: float) -> tuple[Any, Any, list[int], list[Any]]:
    """One chart of q'' = -q whose pivot is (q - degenerate_at)^2."""

    @fakes.kernel
    def rhs(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = x[1]
        out[1] = -x[0]

    @fakes.kernel
    def full(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = x[1]
        out[1] = -x[0]
        out[2] = x[1]
        out[3] = (x[0] - degenerate_at) ** 2

    fakes._KEEP.extend([rhs, full])
    return rhs, full, [], []


def swing(tables: Tables, **options: Any) -> Any:
    return fakes.run_automaton(tables, [1.0, 0.0], [], 0, 0.0, 6.0, method="rk4", step=1e-3, **options)


def test_chart_changes_where_the_pivot_degrades_and_the_motion_goes_on() -> None:
    raw = swing(fakes.make_tables(1, 1, modes=[_chart(0.3), _chart(-0.3)], groups=[7, 7]))
    assert raw.outcome.code == Status.DONE
    assert set(raw.mode) == {0, 1}
    assert np.max(np.abs(raw.x[:, 0] - np.cos(raw.t))) < 1e-11
    assert len(raw.transitions) == 0
    # each chart is left where its pivot has fallen to a tenth of its best (1.69 at the far end), not back and forth
    changes = np.flatnonzero(np.diff(raw.mode))
    assert len(changes) <= 4
    assert np.all(np.abs(np.abs(raw.x[changes, 0]) - 0.3) < 0.411)
    pivots = (raw.x[:, 0] - np.where(raw.mode == 0, 0.3, -0.3)) ** 2
    assert pivots.min() >= 0.0066  # where neither is twice as good as the other, one is kept for another tenth


def test_modes_of_another_group_are_no_charts() -> None:
    raw = swing(fakes.make_tables(1, 1, modes=[_chart(0.3), _chart(-0.3)], groups=[7, 8]))
    assert set(raw.mode) == {0}


class Source:
    def __init__(self, more: bool) -> None:
        self.charts = [_chart(0.3)]
        self.more = more
        self.asked: list[int] = []

    @property
    def tables(self) -> Tables:
        return fakes.make_tables(1, 1, modes=self.charts, groups=[0] * len(self.charts))

    def provide_mode(self, states: Any, t: float, x: Any, c: Any) -> Tables:
        raise NotImplementedError

    def provide_chart(self, number: int, t: float, x: Any, c: Any) -> Tables:
        self.asked.append(number)
        if self.more and len(self.charts) == 1:
            self.charts.append(_chart(-0.3))
        return self.tables


def test_a_chart_is_asked_for_seldom() -> None:
    source = Source(more=True)
    raw = swing(source.tables, mode_source=source)
    assert raw.outcome.code == Status.DONE
    assert source.asked[0] == 0
    assert 1 <= len(source.asked) <= 4
    assert set(raw.mode) == {0, 1}


def test_without_another_chart_a_poor_pivot_is_lived_with_and_a_vanished_one_is_named() -> None:
    source = Source(more=False)
    assert swing(source.tables, mode_source=source).outcome.code == Status.DONE
    flat = _chart(0.0)
    raw = fakes.run_automaton(fakes.make_tables(1, 1, modes=[flat]), [0.0, 0.0], [], 0, 0.0, 1.0)
    assert raw.outcome.code == Status.SINGULAR


@pytest.mark.parametrize(
    "options", [{"method": "rk4", "step": 0.01}, {"rtol": 1e-10, "atol": 1e-12}, {"method": "radau", "rtol": 1e-8}]
)
def test_euler_parameters_keep_unit_norm(options: dict[str, Any]) -> None:
    @fakes.kernel
    def rhs(t, x, c, out):  # type: ignore[no-untyped-def]
        w = x[4]
        out[0] = -0.5 * w * x[3]
        out[1] = 0.5 * w * x[2]
        out[2] = -0.5 * w * x[1]
        out[3] = 0.5 * w * x[0]
        out[4] = 0.0

    @fakes.kernel
    def full(t, x, c, out):  # type: ignore[no-untyped-def]
        w = x[4]
        out[0] = -0.5 * w * x[3]
        out[1] = 0.5 * w * x[2]
        out[2] = -0.5 * w * x[1]
        out[3] = 0.5 * w * x[0]
        out[4] = 0.0
        out[5] = w
        out[6] = 1.0

    tables = fakes.make_tables(4, 1, modes=[(rhs, full, [], [])], quaternions=[0])
    raw = fakes.run_automaton(tables, [1.0, 0.0, 0.0, 0.0, 3.0], [], 0, 0.0, 5.0, **options)
    assert np.max(np.abs(np.linalg.norm(raw.x[:, :4], axis=1) - 1.0)) < 4e-16
    assert raw.x[-1, :4] == pytest.approx([np.cos(7.5), 0.0, 0.0, np.sin(7.5)], abs=1e-6)
