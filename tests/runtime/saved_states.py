"""Saved states of runs that were stopped somewhere, and states that were tampered with."""

from functools import cache
from typing import NamedTuple

import numpy as np

from fsm_dyn.automaton.compilation import compile as compile_model
from fsm_dyn.run import structures as st
from fsm_dyn.run.input_signals import assemble_inputs
from fsm_dyn.run.integrators import METHOD, METHODS
from fsm_dyn.run.loop_state import LoopState, Workspace, provide_requested
from fsm_dyn.run.simulator import Simulator
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import Counters
from fsm_dyn.runtime.layouts import Options

HEADER, LENGTH, CHECK_SUM = 8, 3, 7  # words of a saved state (``saved_state.h``)
MODELS = {"ball_in_corner": "compiled", "compass_gait": "compiled", "shopping_cart": "online", "four_bar": "compiled"}
DIGEST = 0xFEEDBEEF
AFTER_STEPS = (0, 1, 30, 200)
MOST_STEPS = 100_000  # of a turn: a state that was tampered with may ask for no rows, and then only this ends it


class Stopped(NamedTuple):
    """A run that was stopped: its loop, what makes its handle anew, the modes online, the words that were saved."""

    loop: LoopState
    handle: object
    executable: object
    words: np.ndarray
    options: Options


@cache
def stopped(model, steps, strategy=""):
    """A run that made so many turns; its arrays lie apart, so that a sanitizer sees what goes beyond one of them."""
    graph = compile_model(model)
    executable = Simulator(graph).take(strategy or MODELS[model])
    layout, start = graph.automaton.terms.layout, executable.home
    drive = assemble_inputs(list(layout.w), len(layout.p), {}, [])
    tables = executable.tables
    number = executable.mode_index(graph.automaton.modes[0].states)
    tables, method = executable.tables, METHODS["dopri5"].arrays()
    made, _ = st.new_state(tables, 0.0, start[0], start[1], number)
    loop = LoopState(
        Workspace(),
        tables,
        st.TABLES.pack(tables),
        *apart(st.STATE, made),
        *work_of(tables),
        *buffers_of(tables),
        stages=7,
    )
    options = Options(
        np.array([1e3, 0.0, np.inf, 1e-9]), np.array([1, MOST_STEPS, 100, 2**62, 0]), np.full(len(made.x), 1e-11),
        np.ones((1, len(made.x)), np.int8),
    )  # fmt: skip
    packed = (drive.packed, METHOD.pack(method), st.OPTIONS.pack(options))

    def handle():
        return loop.run(*packed)

    for _ in range(steps + 1):
        turn(loop, handle, executable)
    return Stopped(loop, handle, executable, library.save(handle(), executable.online_modes(), DIGEST), options)


def apart(bundle, made):
    """The same arrays, each with memory of its own, and their structure."""
    arrays = type(made)(*(array.copy() for array in made))
    return arrays, bundle.pack(arrays)


def work_of(tables):
    work, packed = st.new_work(tables, 7, 6)
    copied, again = apart(st.WORK, work)
    return copied, again._replace(arrays=(*again.arrays, packed))


def buffers_of(tables):
    buffers = st.new_buffers(tables, 64, 16)
    return buffers, st.BUFFERS.pack(buffers)


def turn(loop, handle, executable):
    """Make a turn of the loop; return whether it may make another."""
    for name in (Counters.ROWS, Counters.TRANSITIONS, Counters.PASSED):
        loop.state.counters[name] = 0
    while True:
        status = library.advance(handle())
        if not 1 < status <= 4:
            return status <= 1
        if provide_requested(loop, status, executable) is not None:
            return False


def check_sum(words):
    """The check sum of a saved state, as ``saved_words.c`` works it out."""
    total = 0xCBF29CE484222325
    for number, each in enumerate(words.tolist()):
        if number != CHECK_SUM:
            total = ((total ^ each) * 0x100000001B3) % 2**64
            total ^= total >> 32
    return total


def sealed(words):
    """The same words with the length and check sum that belong to them."""
    words = words.copy()
    words[LENGTH] = len(words)
    words[CHECK_SUM] = check_sum(words)
    return words
