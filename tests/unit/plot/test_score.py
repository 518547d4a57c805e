"""The score as a picture: columns of equal width, a bar to scale, texts that do not overlap; the graph of a run."""

import itertools
import re

import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw.run_diagrams import MOST, Stay, visit_diagram, visit_graph_svg
from fsm_dyn.language import models
from fsm_dyn.plot.score import _Drawing

FORMULAS = re.compile(r"gap zero|normal force zero|end of its face|_face\d|·[a-z]")
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


def check_texts(figure):
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


def check_columns_and_bar(run, figure):
    parts = {a.get_gid(): a.get_window_extent() for axes in figure.axes for a in axes.patches if a.get_gid()}
    columns = [box for gid, box in parts.items() if gid.startswith("column:")]
    assert max(box.width for box in columns) - min(box.width for box in columns) < 0.01
    bars = [parts[f"bar:{k}"] for k in range(len(run.visits))]
    drawing = _Drawing(run)
    left, full = bars[0].x0, bars[-1].x1 - bars[0].x0
    for box, visit in zip(bars, run.visits, strict=True):
        assert abs(box.x0 - left - full * drawing.score.on_bar(visit.begin)) < 1.0


@pytest.mark.parametrize("name", MODELS)
def test_texts_columns_bar_and_close_ups(scores, name):
    run, figure = scores(name)
    check_texts(figure)
    check_columns_and_bar(run, figure)
    check_close_ups(run)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*models.names()} - {*MODELS}))
def test_the_score_and_the_graph_of_every_shipped_model(name):
    run = fsm_dyn.simulate(fsm_dyn.compile(name), until=1.0 if name == "seven_body_mechanism" else None)
    figure = plot.score(run)
    check_texts(figure)
    check_columns_and_bar(run, figure)
    check_close_ups(run)
    for narrow in (False, True):
        check_graph(run, narrow)
    for words in (*(visit.name for visit in run.visits), *(visit.cause for visit in run.visits)):
        assert not FORMULAS.search(words)


def check_close_ups(run):
    """Check that the place of its cause, or else the body of its contact, is inside each close-up."""
    pictures = _Drawing(run).pictures
    for number, visit in enumerate(pictures.columns):
        if visit.contact < 0 or pictures._focus_of(visit):
            continue
        low, high = pictures.close_box(number)
        place = pictures._contact_place(visit.contact, visit.begin)
        if place is not None and not pictures.travels:
            share = (place - low) / (high - low)
            assert (share >= 0.05 - 1e-9).all()
            assert (share <= 0.95 + 1e-9).all()
        elif place is None:
            body = pictures.view.box(1 + number, (run.reading.words.sentence(visit.contact).body,))
            assert (body[0] >= low).all()
            assert (body[1] <= high).all()


def test_a_close_up_of_a_stop_at_a_pivot_shows_the_whole_pendulum():
    check_close_ups(fsm_dyn.simulate(fsm_dyn.compile("pendulum_with_stop")))


def test_a_mechanism_on_a_spring_is_drawn_once_and_a_free_one_along_its_way():
    held = fsm_dyn.simulate(fsm_dyn.compile("gripper_finger"))
    assert not _Drawing(held).pictures.travels
    thrown = _Drawing(fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"))).pictures
    assert thrown.travels
    poses = thrown._poses()
    assert 5 <= len(poses) <= 12
    boxes = thrown._boxes[len(thrown.view.times) :][poses]
    for one, other in itertools.combinations(boxes, 2):
        assert (one[1] <= other[0] + 1e-9).any() or (other[1] <= one[0] + 1e-9).any()


@pytest.mark.parametrize("narrow", [False, True])
def test_boxes_and_pills_of_a_graph_are_apart(narrow):
    run = fsm_dyn.simulate(fsm_dyn.compile("escapement_deadbeat"))
    diagram = check_graph(run, narrow)
    assert len(diagram.boxes) == len(run.visits.names) == 5
    svg = visit_graph_svg(diagram, "graph")
    assert svg.count('class="visit"') == 5
    assert "tooth strikes entry impulse face" in svg


def check_graph(run, narrow):
    diagram = run.visits.diagram(narrow)
    assert len(diagram.boxes) <= MOST
    if len(run.visits.names) <= MOST:
        assert sum(edge.count for edge in diagram.edges) == len(run.visits) - 1
    boxes = [(b.left, b.top, b.left + b.width, b.top + b.height) for b in diagram.boxes]
    for edge in diagram.edges:
        (x, y), (width, height) = edge.pill, edge.pill_size
        if width:
            boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    return diagram


def test_of_many_names_the_longest_keep_a_box():
    stays = [Stay(f"m{k % 20}", 1.0 + k % 20) for k in range(100)]
    diagram = visit_diagram(stays, {})
    assert len(diagram.boxes) == MOST
    others = next(box for box in diagram.boxes if box.name == "9 others")
    assert others.spent == 5 * sum(1.0 + k for k in range(9))


def test_a_graph_escapes_its_names():
    svg = visit_graph_svg(visit_diagram([Stay("<b>&", 1.0), Stay("c", 1.0, "<i>")], {}), "a<b")
    assert not re.search(r"<b>|<i>", svg)
