"""The score as a picture: close-ups, poses on the way of a mechanism; the graph of a run."""

import itertools
import re

import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw.run_diagrams import Stay, visit_diagram, visit_graph_svg
from fsm_dyn.language.loader import load
from fsm_dyn.plot.score import _Drawing


def test_a_close_up_of_a_stop_at_a_pivot_shows_the_whole_pendulum():
    pictures = _Drawing(fsm_dyn.simulate(fsm_dyn.compile("pendulum_with_stop"))).pictures
    for number, visit in enumerate(pictures.columns):
        if visit.contact >= 0:
            low, high = pictures.close_box(number)
            box = pictures.view.box(1 + number, pictures.view.scene.bodies)
            assert (box[0] >= low).all()
            assert (box[1] <= high).all()


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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("focus", ["", "focus: [ball]"])
def test_a_particle_is_drawn_as_large_as_it_is_in_a_box_with_its_way(focus):
    text = f"""
fsm_dyn: 1
name: ball
coordinates: {{x: m, y: m}}
points: {{P: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{ball: {{center: P, mass: 1 kg}}}}
contacts: {{ground: {{gap: y, restitution: 0.8}}}}
loads: [{{gravity: -9.81 m/s^2*N.y}}]
phases: {{all: {{when: otherwise, {focus}}}}}
initial: {{y: 0.1 m, x_dot: 0.3 m/s}}
"""
    drawing = _Drawing(fsm_dyn.simulate(fsm_dyn.compile(load(text=text)), 0.3))
    pictures = drawing.pictures
    assert pictures.travels
    assert pictures._enlarged == 1.0
    low, high = pictures.close_box(0)
    extent = (pictures.high - pictures.low).max()
    assert 0.05 * extent < (high - low).max() <= extent
    assert low[0] < 0.0 < high[0]
    plot.score(drawing.run)


def test_a_graph_has_a_box_for_each_name_and_shows_causes():
    diagram = fsm_dyn.simulate(fsm_dyn.compile("escapement_deadbeat")).visits.diagram()
    assert len(diagram.boxes) == 5
    svg = visit_graph_svg(diagram, "graph")
    assert svg.count('class="visit"') == 5
    assert "tooth strikes entry impulse face" in svg


def test_a_graph_escapes_its_names():
    svg = visit_graph_svg(visit_diagram([Stay("<b>&", 1.0), Stay("c", 1.0, "<i>")], {}), "a<b")
    assert not re.search(r"<b>|<i>", svg)
