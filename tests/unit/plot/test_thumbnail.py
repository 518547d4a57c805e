"""A thumbnail of a mechanism that stays in place shows different visits, up to the number of its snapshots."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn import plot


def test_snapshots_side_by_side_show_the_visits_of_the_run():
    run = fsm_dyn.simulate(fsm_dyn.compile("ratchet"), until=2.5)
    names = {"only pawl on flank", "nothing touches", "pawl behind tooth"}
    assert set(run.visits.names) == names
    headings = [text.get_text() for text in plot.thumbnail(run).texts]
    assert headings[0] == "0 s"
    assert {name for name in names for text in headings[1::2] if name.startswith(text.rstrip("…"))} == names
    times = [float(text.removesuffix(" s")) for text in headings[::2]]
    assert times == sorted(times)
    assert len(set(times)) == len(times) >= 3
    for time, text in zip(times[1:], headings[3::2], strict=True):
        near = {run.visits.at(t).name for t in np.linspace(max(time - 0.006, 0.0), time + 0.006, 25)}
        assert any(name.startswith(text.rstrip("…")) for name in near)


def test_a_mechanism_of_one_mode_is_shown_from_the_beginning_to_the_end():
    run = fsm_dyn.simulate(fsm_dyn.compile("four_bar"), until=1.0)
    assert len(set(run.labels)) == 1
    times = [text.get_text() for text in plot.thumbnail(run).texts if text.get_text().endswith(" s")]
    assert times[0].startswith("0 ")
    assert times[-1].endswith("1 s")


@pytest.mark.parametrize("name", ["latch_door", "cart_on_ramp", "escapement_anchor", "rolling_coin"])
def test_headings_are_above_what_is_drawn(name):
    figure = plot.thumbnail(fsm_dyn.simulate(fsm_dyn.compile(name), until=1.0))
    figure.canvas.draw()
    for text in figure.texts:
        box = text.get_window_extent()
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        for axes in figure.axes:
            drawn = axes.get_window_extent()
            beside = box.x1 <= drawn.x0 or drawn.x1 <= box.x0
            assert beside or box.y0 >= drawn.y1 - 0.5 or box.y1 <= drawn.y0 + 0.5, text.get_text()
