"""The score as a picture: columns of equal width, a bar to scale, texts that do not overlap; the graph of a run."""

import itertools
import re

import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw.visit_graph import MOST, Stay, visit_diagram, visit_graph_svg
from fsm_dyn.plot.score import _Drawing

MODELS = ("latch_door", "escapement_anchor", "shopping_cart", "tray", "rolling_disk")


@pytest.fixture(scope="module")
def scores():
    kept = {}

    def score(name):
        if name not in kept:
            run = fsm_dyn.simulate(fsm_dyn.compile(name))
            kept[name] = run, plot.score(run)
        return kept[name]

    return score


def labels(figure):
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text().strip()]


@pytest.mark.parametrize("name", MODELS)
def test_no_texts_overlap_or_are_cut(scores, name):
    _, figure = scores(name)
    found = labels(figure)
    width, height = figure.canvas.get_width_height()
    cut = [t for t, b in found if b.x0 < -0.5 or b.y0 < -0.5 or b.x1 > width + 0.5 or b.y1 > height + 0.5]
    assert cut == []
    over = [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(found, 2)
        if a.x0 + 0.5 < b.x1 and b.x0 + 0.5 < a.x1 and a.y0 + 0.5 < b.y1 and b.y0 + 0.5 < a.y1
    ]
    assert over == []


@pytest.mark.parametrize("name", MODELS)
def test_columns_are_equal_and_the_bar_is_to_scale(scores, name):
    run, figure = scores(name)
    parts = {a.get_gid(): a.get_window_extent() for axes in figure.axes for a in axes.patches if a.get_gid()}
    columns = [box for gid, box in parts.items() if gid.startswith("column:")]
    assert max(box.width for box in columns) - min(box.width for box in columns) < 0.01
    bars = [parts[f"bar:{k}"] for k in range(len(run.visits))]
    drawing = _Drawing(run)
    left, full = bars[0].x0, bars[-1].x1 - bars[0].x0
    for box, visit in zip(bars, run.visits, strict=True):
        assert abs(box.x0 - left - full * drawing.score.on_bar(visit.begin)) < 1.0


@pytest.mark.parametrize("name", ["latch_door", "cart_on_ramp"])
def test_what_began_a_visit_is_inside_its_close_up(name):
    run = fsm_dyn.simulate(fsm_dyn.compile(name))
    pictures = _Drawing(run).pictures
    for number, visit in enumerate(pictures.columns):
        place = None if visit.contact < 0 else pictures._contact_place(visit.contact, visit.begin)
        if place is not None:
            low, high = pictures.close_box(number)
            share = (place - low) / (high - low)
            assert (share >= 0.05 - 1e-9).all()
            assert (share <= 0.95 + 1e-9).all()


@pytest.mark.parametrize("narrow", [False, True])
def test_boxes_and_pills_of_a_graph_are_apart(narrow):
    run = fsm_dyn.simulate(fsm_dyn.compile("escapement_deadbeat"))
    diagram = run.visits.diagram(narrow)
    assert len(diagram.boxes) == len(run.visits.names) == 5
    assert sum(edge.count for edge in diagram.edges) == len(run.visits) - 1
    boxes = [(b.left, b.top, b.left + b.width, b.top + b.height) for b in diagram.boxes]
    for edge in diagram.edges:
        (x, y), (width, height) = edge.pill, edge.pill_size
        if width:
            boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    svg = visit_graph_svg(diagram, "graph")
    assert svg.count('class="visit"') == 5
    assert "tooth strikes entry impulse face" in svg


def test_of_many_names_the_longest_keep_a_box():
    stays = [Stay(f"m{k % 20}", 1.0 + k % 20) for k in range(100)]
    diagram = visit_diagram(stays, {})
    assert len(diagram.boxes) == MOST
    others = next(box for box in diagram.boxes if box.name == "9 others")
    assert others.spent == 5 * sum(1.0 + k for k in range(9))


def test_a_graph_escapes_its_names():
    svg = visit_graph_svg(visit_diagram([Stay("<b>&", 1.0), Stay("c", 1.0, "<i>")], {}), "a<b")
    assert not re.search(r"<b>|<i>", svg)
