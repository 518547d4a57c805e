"""States that cannot be drawn: a display frame of them prints no warning."""

import warnings

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.page.frames import FrameEncoder
from fsm_dyn.page.live_view import coupled_for_page


@pytest.mark.parametrize("name", ["virtual_wall", "shopping_cart", "billiard_ball"])
def test_a_state_that_is_far_off_is_drawn_without_a_warning(name):
    graph, _ = coupled_for_page(fsm_dyn.compile(name), {})
    start = initial_state(graph.automaton, graph.values, graph.parameters)
    layout = graph.automaton.terms.layout
    encoder = FrameEncoder(graph, TickColumns(layout.w, layout.x, 0, ()), start.x, start.context, coupled=False)
    head = (1, 0, 0.0, 1, 0, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        usual = encoder.frame(head, start.states, start.x, start.context)
        for value in (np.nan, np.inf, 1e200, -1e308):
            far = np.full_like(start.x, value)
            assert encoder.frame(head, start.states, far, start.context).shape == usual.shape
            encoder.values(start.states, far, start.context)
