"""Inputs: tables, callables, kernels, and what the compiled loop makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.run.input_signals import (
    InputSignals,
    KernelSource,
    assemble_inputs,
    constant,
    from_callable,
    linear,
    steps,
    tabulate,
)
from tests.runtime.internals import internals


def _write(address, t, segment, x, c):  # type: ignore[no-untyped-def]
    internals().write_inputs(address, t, segment, x, c)


def _update(address, t, segment, x, c):  # type: ignore[no-untyped-def]
    internals().update_inputs(address, t, segment, x, c)


def _next(address, segment):  # type: ignore[no-untyped-def]
    return internals().next_breakpoint(address, segment)


def written(drive: InputSignals, t: float, n_p: int = 0) -> np.ndarray:  # type: ignore[type-arg]
    """Return what the compiled loop writes into the context at ``t`` when a stretch begins there."""
    c = np.zeros(n_p + 4 * len(drive.names))
    _write(drive.packed.address, t, drive.segment_at(t), np.zeros(1), c)
    return c[n_p:]


def test_linear_runs_between_points_and_rests_outside() -> None:
    drive = assemble_inputs(["push"], 2, {"push": linear([[0.0, 30.0], [2.0, 30.0], [2.5, -20.0], [6.0, 0.0]])})
    for t, value, rate in [(-1.0, 30, 0), (1.0, 30, 0), (2.25, 5, -100), (4.25, -10, 20 / 3.5), (7.0, 0, 0)]:
        assert written(drive, t, 2) == pytest.approx([value, rate, 0.0, 0.0])
        assert drive([t])[0] == pytest.approx([value, rate, 0.0])


def test_two_rows_at_one_time_are_a_jump() -> None:
    drive = assemble_inputs(["w"], 0, {"w": linear([[0.0, 0.0], [1.0, 1.0], [1.0, 5.0], [2.0, 5.0]])})
    c = np.zeros(4)
    _write(drive.packed.address, 1.0, drive.segment_at(0.5), np.zeros(1), c)
    assert c[0] == pytest.approx(1.0)  # from the left, as seen by a step that ends here
    assert written(drive, 1.0)[0] == 5.0


def test_steps_hold_their_value() -> None:
    drive = assemble_inputs(["w"], 0, {"w": steps([[0.0, 0.0], [3.0, 6.0], [4.0, -6.0]])})
    assert list(drive([-1, 0, 2.9, 3.0, 3.5, 4.0, 9.0])[:, 0]) == [0, 0, 0, 6, 6, -6, -6]
    assert _next(drive.packed.address, 0) == 0.0
    assert _next(drive.packed.address, drive.segment_at(0.0)) == 3.0
    assert _next(drive.packed.address, drive.segment_at(10.0)) == np.inf


def test_several_inputs_share_breakpoints() -> None:
    drive = assemble_inputs(["a", "b", "c"], 1, {"a": steps([[1.0, 2.0]]), "c": linear([[0.5, 0.0], [1.5, 1.0]])})
    rows = drive([0.75, 1.25])
    assert rows[0] == pytest.approx([2.0, 0.0, 0.25, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    assert rows[1] == pytest.approx([2.0, 0.0, 0.75, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    assert written(drive, 1.25, 1)[:9] == pytest.approx(rows[1])


def test_constant_inputs_are_written_once_only() -> None:
    drive = assemble_inputs(["w"], 0, {"w": constant(4.0)})
    c = np.zeros(4)
    _update(drive.packed.address, 0.0, 0, np.zeros(1), c)
    assert c[0] == 0.0
    assert written(drive, 0.0)[0] == 4.0


def test_kernel_inputs_take_their_places() -> None:
    graph = ExpressionGraph()
    t, slope, none = graph.symbol("t"), graph.symbol("slope"), graph.constant(0.0)
    rows = [slope * t, sin(t), slope, cos(t), none, -sin(t), none, -cos(t)]
    program = Program.from_nodes(Layout(p=("slope",)), {"input": rows})
    kernels = compile_programs([program])
    both = KernelSource(kernels[0].address, ("c", "a"), kernels, program)
    drive = assemble_inputs(["a", "b", "c"], 0, {"b": constant(7.0)}, [both])
    parameters = np.array([3.0])
    rows = drive([0.5], parameters)
    assert rows[0, :3] == pytest.approx([np.sin(0.5), 7.0, 1.5])
    assert rows[0, 3:6] == pytest.approx([np.cos(0.5), 0.0, 3.0])
    assert rows[0, 6:] == pytest.approx([-np.sin(0.5), 0.0, 0.0])
    c = np.zeros(13)
    c[0] = 3.0
    drive = assemble_inputs(["a", "b", "c"], 1, kernels=[both])
    _write(drive.packed.address, 0.5, 0, c, c)
    assert c[10:] == pytest.approx([-np.cos(0.5), 0.0, 0.0])


def test_a_callable_is_tabulated() -> None:
    table = {"gain": [2.0, 3.0]}

    def odd(t: float) -> float:
        return float(sum(table["gain"]) * np.sin(t) + len(str(table)) * 0)

    source = from_callable(odd, (0.0, 10.0), 1e-8)
    drive = assemble_inputs(["w"], 0, {"w": source})
    t = np.linspace(0, 10, 3001)
    assert np.max(np.abs(drive(t)[:, 0] - 5 * np.sin(t))) < 5e-8
    # smooth pieces do not force steps to end
    assert _next(drive.packed.address, 0) == np.inf
    value, rate, second, _ = written(drive, 7.7)
    assert value == pytest.approx(5 * np.sin(7.7), abs=5e-8)
    assert rate == pytest.approx(5 * np.cos(7.7), abs=1e-5)
    assert second == pytest.approx(-5 * np.sin(7.7), abs=1e-2)


def test_tabulated_jump_becomes_a_breakpoint() -> None:
    pieces = tabulate(lambda t: 1.0 if t > 0.7 else 0.0, (0.0, 2.0))
    drive = assemble_inputs(["w"], 0, {"w": pieces})
    assert drive([0.699999, 0.700001])[:, 0] == pytest.approx([0.0, 1.0])
    assert _next(drive.packed.address, 0) == pytest.approx(0.7, abs=1e-9)


def test_declared_breakpoints_are_hard() -> None:
    drive = assemble_inputs(["w"], 0, {"w": constant(1.0)}, breakpoints=[0.7])
    assert _next(drive.packed.address, 0) == 0.7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear([[0.0, 1.0], [-1.0, 2.0]]), "must not go back"),
        (lambda: steps([[0.0, np.inf]]), "finite"),
        (lambda: linear([1.0, 2.0]), "rows of time and value"),
        (lambda: assemble_inputs(["push"], 0, {"pusch": constant(1.0)}), "did you mean 'push'"),
    ],
)
def test_bad_tables_are_refused(make, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        make()
