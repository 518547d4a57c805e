"""Event-driven runs: calls the runtime and serves its requests for modes, charts and room."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from fsm_dyn.core.arrays import Codes, Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.run import structures as st
from fsm_dyn.run.continuation import NEARLY_SPENT, Saver, restore
from fsm_dyn.run.executable import FirstRow, SavedState
from fsm_dyn.run.input_signals import InputSignals, assemble_inputs
from fsm_dyn.run.integrators import METHOD, METHODS, STIFF_METHODS
from fsm_dyn.run.loop_state import (
    LoopState,
    ModeProvider,
    RunArrays,
    Workspace,
    begin,
    end_window,
    enter_next_window,
    finish,
    provide_requested,
)
from fsm_dyn.run.run_options import RunOptions, check_step
from fsm_dyn.run.structures import Packed
from fsm_dyn.runtime.abi import (
    Clock,
    Counters,
    MethodCounts,
    OptionCounts,
    OptionNumbers,
    Sizes,
    Status,
)
from fsm_dyn.runtime.layouts import MethodArrays, Options, Tables
from fsm_dyn.runtime.library import RunStructure, advance, end_is_near

# -- Event-driven run: calls the runtime and serves its requests for modes, charts and room ------------------


RTOL: Final = 1e-9
ATOL: Final = 1e-12
MOST_AT_ONCE: Final = 100  # transitions in one instant; ten times as many in a microsecond
_FIRST_CHUNK: Final = 2000
_CHUNK_SECONDS: Final = 0.1


@lru_cache(maxsize=len(METHODS))
def tableau(name: str) -> tuple[MethodArrays, Packed]:
    """Return the arrays of a method, and their structure."""
    arrays = METHODS[name].arrays()
    return arrays, METHOD.pack(arrays)


def run_automaton(
    tables: Tables,
    x0: ArrayLike,
    c0: ArrayLike,
    mode0: int,
    t0: float,
    options: RunOptions,
    *,
    drive: InputSignals | None = None,
    mode_source: ModeProvider | None = None,
    mask: Codes | None = None,
    workspace: Workspace | None = None,
    saver: Saver | None = None,
    resumed: tuple[SavedState, FirstRow] | None = None,
    saved_by: str = "",
) -> RunArrays:
    """Run an automaton from ``t0`` (s) to the end in the options; return the record, whatever the outcome.

    ``tables``, ``x0``, ``c0``, ``mode0``: the automaton, coordinates and speeds (n_q + n_u,), context (its inputs are
    overwritten from ``drive``) and mode at ``t0``; the resolution at the start may choose another mode. ``options``:
    with ``until``; of ``method``, ``rtol``, ``atol``, ``step``, ``max_step``, ``max_steps`` and ``progress`` any.
    ``drive``: inputs over time; all zero without. ``mode_source``: asked for missing modes and charts. ``mask``, int8
    array, shape (1 or n_modes, n_q + n_u): zero for states outside the error estimate. ``workspace``: memory of earlier
    runs in this thread. ``saver``, ``resumed``: saves the state to continue from; the saved state and the row recorded
    last, with which the recording begins: ``max_steps`` are further ones then, and the values at ``t0`` are
    overwritten. ``saved_by``: the method that made the saved state, if it is another one or had another step.

    Raises InputError: an argument is impossible.

    Raises RunError from ``mode_source``.
    """
    x, c = np.asarray(x0, dtype=np.float64), np.asarray(c0, dtype=np.float64)
    sizes = tables.sizes.tolist()
    _check(sizes, x, c, mode0, t0, options)
    if drive is None:
        drive = assemble_inputs([f"w{i}" for i in range(sizes[Sizes.N_W])], sizes[Sizes.N_P])
    drive = drive.at(t0 if resumed is None else float(resumed[1].values[0]))
    method = tableau("dopri5" if options.method in STIFF_METHODS else options.method)
    before = tableau("dopri5" if saved_by in STIFF_METHODS else saved_by) if saved_by else method
    stages = max(int(item[0].counts[MethodCounts.STAGES]) for item in (method, before))
    loop = begin(tables, t0, x, c, mode0, drive, stages, workspace or Workspace())
    steps = set_options(loop, options, _FIRST_CHUNK, saver is not None, mask)
    if options.method in STIFF_METHODS:
        # scipy takes a fifth of a second to import, and few runs need it
        from fsm_dyn.run.implicit_methods import run_stiff

        return run_stiff(
            loop, steps, options.method, method[1], drive, mode_source, options.progress, saver, resumed,
            renewed=bool(saved_by),
        )  # fmt: skip
    return _run_windows(
        loop, steps, method[1], drive, mode_source, options, saver, resumed, before[1] if saved_by else None
    )


def _run_windows(
    loop: LoopState,
    steps: tuple[Options, Packed],
    method: Packed,
    signals: InputSignals,
    mode_source: ModeProvider | None,
    options: RunOptions,
    saver: Saver | None,
    resumed: tuple[SavedState, FirstRow] | None,
    before: Packed | None = None,
) -> RunArrays:
    """Run a new loop, over one window of the switches of its inputs after the other."""
    counts, until = steps[0].counts, end_of(options)

    def handle() -> RunStructure:
        return loop.run(signals.packed, method, steps[1])

    if resumed is not None and saver is not None and before is not None:
        # the state is that of the method that saved it; its step lengths are not those of the present one
        restore(loop, lambda: loop.run(signals.packed, before, steps[1]), *resumed, saver, mode_source, renewed=True)
    elif resumed is not None and saver is not None:
        restore(loop, handle, *resumed, saver, mode_source)
    if resumed is not None and saver is not None:
        counts[OptionCounts.MAX_STEPS] += steps_tried(loop)
    while True:
        last = end_window(steps[0], signals, until)
        counts[OptionCounts.BEFORE_END] = last and saver is not None and not saver.before_end
        status = _drive_loop(loop, steps[0], handle, mode_source, options.progress, saver)
        if last or status != Status.DONE:
            return finish(loop, status, saver.saved_of(status) if saver is not None else None)
        signals = enter_next_window(loop, signals)


def end_of(options: RunOptions) -> float:
    """Return the end of a run, s; not a number if the options have none."""
    return math.nan if options.until is None else options.until


def set_options(
    loop: LoopState, options: RunOptions, chunk: int, saves: bool = False, mask: Codes | None = None
) -> tuple[Options, Packed]:
    """Return the options of a run with their structure, written over those of the run before in this memory."""
    n = len(loop.state.x)
    if loop.options is None or mask is not None:
        shown = np.ones((1, n), dtype=np.int8) if mask is None else mask
        made = Options(np.empty(OptionNumbers.COUNT), np.empty(OptionCounts.COUNT, dtype=np.int64), np.empty(n), shown)
        structure = made, st.OPTIONS.pack(made)
        loop.options = structure if mask is None else None
    else:
        structure = loop.options
    rtol = RTOL if options.rtol is None else options.rtol
    structure[0].numbers[:] = end_of(options), options.step or 0.0, options.max_step, rtol
    structure[0].counts[:] = chunk, options.max_steps, MOST_AT_ONCE, 2**62, saves
    structure[0].atol[:] = ATOL if options.atol is None else _one_for_each_state(options.atol, n)
    return structure


def _one_for_each_state(atol: float | Sequence[float] | Floats, n: int) -> Floats:
    """Return the absolute tolerance of a step's error for each of `n` states."""
    found = np.atleast_1d(np.asarray(atol, np.float64))
    if found.shape not in ((1,), (n,)) or not all(0.0 < value < math.inf for value in found.tolist()):
        raise InputError(
            "the tolerance 'atol'", found=f"{np.array2string(found, threshold=6)}",
            allowed=f"a positive number, or one for each of {n} coordinates and speeds",
        )  # fmt: skip
    return found


def _check(sizes: list[int], x: Floats, c: Floats, mode0: int, t0: float, options: RunOptions) -> None:
    until = end_of(options)
    for name, found, wanted in (
        ("x0", len(x), sizes[Sizes.N_Q] + sizes[Sizes.N_U]),
        ("c0", len(c), st.context_length(sizes)),
    ):
        if found != wanted:
            raise InputError(f"{name} has the wrong length", found=str(found), allowed=str(wanted))
    if not 0 <= mode0 < sizes[Sizes.N_MODES]:
        raise InputError("there is no such mode number", found=str(mode0), allowed=f"0 to {sizes[Sizes.N_MODES] - 1}")
    if not (math.isfinite(t0) and math.isfinite(until) and until >= t0):
        raise InputError("a run goes forward between two finite times", found=f"from {t0} to {until}")
    if not ((options.rtol is None or options.rtol > 0.0) and options.max_step > 0.0):
        raise InputError(
            "rtol and max_step must be positive", found=f"rtol = {options.rtol}, max_step = {options.max_step}"
        )
    check_step(options.method, options.step)


def _drive_loop(
    loop: LoopState,
    options: Options,
    handle: Callable[[], RunStructure],
    mode_source: ModeProvider | None,
    progress: Callable[[float], None] | None,
    saver: Saver | None,
) -> int:
    """Call the compiled loop until the run has ended, and provide its requests; return how the run ended."""
    counts, chunk = options.counts, _FIRST_CHUNK
    run = handle()
    try:
        while True:
            if saver is not None:
                counts[OptionCounts.CHUNK] = min(chunk, _turns(loop, int(counts[OptionCounts.MAX_STEPS])))
            began = time.perf_counter()
            status = int(advance(run))
            if status == Status.PAUSED:
                took = max(time.perf_counter() - began, 1e-6)
                if counts[OptionCounts.CHUNK] == chunk:
                    chunk = counts[OptionCounts.CHUNK] = max(100, int(chunk * min(_CHUNK_SECONDS / took, 10.0)))
                if saver is not None and counts[OptionCounts.BEFORE_END] and end_is_near(run):
                    counts[OptionCounts.BEFORE_END] = 0
                    saver.save(loop, run, before_end=True)
                elif saver is not None and counts[OptionCounts.CHUNK] < chunk:
                    saver.save(loop, run)  # the steps allowed are nearly spent
                if progress is not None:
                    progress(float(loop.state.clock[Clock.TIME]))
            elif status > Status.LAST_INTERNAL:
                return status
            else:
                refused = provide_requested(loop, status, mode_source)
                if refused is not None:
                    return refused
                run = handle()
    except KeyboardInterrupt:
        if saver is not None:
            saver.save(loop, handle())  # memory may have moved
        return Status.INTERRUPTED


def steps_tried(loop: LoopState) -> int:
    """Return how many steps a run has tried, accepted and rejected ones."""
    return int(loop.state.counters[Counters.STEPS] + loop.state.counters[Counters.REJECTED])


def _turns(loop: LoopState, most: int) -> int:
    """Return after how many turns at most to pause: more often where the ``most`` steps allowed are nearly spent."""
    left = most - steps_tried(loop)
    return 1 if left < NEARLY_SPENT else left // 8
