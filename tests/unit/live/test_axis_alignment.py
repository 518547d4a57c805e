"""Axes of a port moved by a device with fewer axes, and its zero."""

import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.live.device_map import aligned_axes, device_map_for


def test_a_paddle_is_put_where_it_meets_the_wall(held):
    """The plate is met along N.y, the second axis of the port; the tool begins 10 mm above it."""
    graph = held("virtual_wall")
    assert aligned_axes(graph, "", 1) == (-1, 0)
    mapping = device_map_for(graph, "", 1, scale=2.0)
    assert (mapping.port, mapping.axes, mapping.scale) == ("handle", (-1, 0), 2.0)
    assert mapping.offset == pytest.approx((0.0, 0.01), abs=1e-15)


def test_a_device_with_axes_enough_moves_them_in_order(held):
    assert aligned_axes(held("virtual_wall"), "", 2) == ()
    assert device_map_for(held("bouncing_ball"), "", 3).axes == ()


def test_what_is_given_stands(held):
    assert device_map_for(held("virtual_wall"), "handle", 1, (0, -1)).axes == (0, -1)
    free = device_map_for(held("virtual_wall"), "handle", 1, zeroed=False)
    assert free.offset == (), "at the port wherever it takes hold"
    with pytest.raises(InputError, match="no port 'handel'"):
        device_map_for(held("virtual_wall"), "handel", 1)
