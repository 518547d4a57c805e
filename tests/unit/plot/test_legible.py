"""What makes a run legible, one test for each promise; the pages are judged in ``tests/browser/test_story.py``.

Each promise is judged for every shipped model, some of them always and the others among the long tests.
"""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from functools import cached_property
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.path import Path

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg
from fsm_dyn.draw.run_diagrams import MOST, Stay, visit_diagram, visit_graph_svg
from fsm_dyn.draw.svg import FILLS, phase_fills
from fsm_dyn.language import models
from fsm_dyn.language.elements import SpringLoad
from fsm_dyn.plot import style
from fsm_dyn.plot.mechanism import draw_scene, name_bodies, set_box
from fsm_dyn.plot.scene_projection import project, trajectory_scene, with_force_arrows
from fsm_dyn.plot.score import _Drawing
from fsm_dyn.run.run_timeline import MOST_COLUMNS
from fsm_dyn.run.visits import LONGEST
from fsm_dyn.run.words import OPEN

ALWAYS = {
    "ball_in_corner", "bouncing_ball", "escapement_anchor", "latch_door", "newtons_cradle", "piano_action",
    "planar_three_body", "push_button", "ratchet", "rolling_disk", "seat_belt_reel", "shopping_cart", "tray",
}  # fmt: skip
SHORTER = {"seven_body_mechanism": 1.0, "ball_chain": 0.5}  # s, of long runs
FORMULAS = re.compile(r"gap zero|normal force|end of its face|_face\d|·[a-z]")
IMPULSE = re.compile(r"strikes|bounces|impacts")
VIEW = 0.05  # s: of the drawing, the start and this time
DPI = 100.0  # px of an inch


class Shown:
    """A shipped model: its run, drawing, score and graph."""

    def __init__(self, name):
        self.name = name
        self.run = fsm_dyn.simulate(fsm_dyn.compile(name), until=SHORTER.get(name))

    @cached_property
    def drawn(self):
        """The scene at the start and a little later, the figure and the axes of the mechanism alone."""
        run = self.run
        view = with_force_arrows(run, project(run, trajectory_scene(run), np.array([0.0, min(VIEW, run.t[-1])])))
        figure = style.new_figure(8.0, 5.0)
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
        low, high = view.box(0)
        margin = 0.15 * (high - low).max()
        set_box(axes, low - margin, high + margin)
        axes.set_axis_off()
        draw_scene(axes, view, 0)
        figure.canvas.draw()
        name_bodies(axes, view, 0)
        return view, figure, axes

    @cached_property
    def drawing(self):
        with style.settings():
            return _Drawing(self.run)

    @cached_property
    def score(self):
        figure = plot.score(self.run)
        figure.canvas.draw()
        return figure


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[] if name in ALWAYS else pytest.mark.long) for name in models.names()],
)
def shown(request):
    return Shown(request.param)


# -- 1, 2: drawings ------------------------------------------------------------------------------------------


def test_1_every_model_is_drawn_and_every_spring_is_drawn_or_listed(shown):
    view, _, axes = shown.drawn
    labels = {artist.get_gid() for artist in axes.get_children()}
    for load in shown.run.model.automaton.mechanism.loads:
        if isinstance(load, SpringLoad):
            assert f"spring:{load.name}" in labels or f"spring {load.name}" in view.scene.missing


def test_2_no_construction_lines_of_a_body_with_a_view_and_no_colour_of_a_phase_on_the_mechanism(shown):
    view, _, axes = shown.drawn
    labels = {artist.get_gid() for artist in axes.get_children()}
    bars = {symbol.name for symbol in view.scene.symbols if symbol.kind in ("bar", "link")}
    for body in shown.run.model.automaton.mechanism.view:
        assert f"link:{body}" not in labels or body not in bars  # an arm to the spring of a slide is none
    fills = {fill for fill, _ in svg.body_colours(view.scene.bodies).values()}
    assert fills.isdisjoint(FILLS.values())


# -- 3: texts ------------------------------------------------------------------------------------------------


def overlaps(boxes, slack=0.5):
    """Return the pairs of named boxes (left, top, right, bottom) that share more than ``slack`` px either way."""
    return [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(boxes, 2)
        if a[0] + slack < b[2] and b[0] + slack < a[2] and a[1] + slack < b[3] and b[1] + slack < a[3]
    ]


def outside(boxes, size, slack=0.5):
    return [name for name, b in boxes if min(b[:2]) < -slack or b[2] > size[0] + slack or b[3] > size[1] + slack]


def test_3_texts_of_a_score_are_apart_and_inside(shown):
    figure = shown.score
    renderer = figure.canvas.get_renderer()
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    boxes = [(t.get_text(), t.get_window_extent(renderer).extents) for t in texts if t.get_text().strip()]
    assert outside(boxes, figure.canvas.get_width_height()) == []
    assert overlaps(boxes) == []


@pytest.mark.parametrize("narrow", [False, True])
def test_3_texts_of_a_graph_are_apart_and_inside_their_boxes(shown, narrow):
    diagram = shown.run.visits.diagram(narrow)
    root = ElementTree.fromstring(visit_graph_svg(diagram, "graph"))
    boxes = []
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        size = float(text.get("font-size"))
        half = 0.5 * style.text_width(text.text, size, text.get("font-weight", "normal"))
        x, y = float(text.get("x")), float(text.get("y"))  # of its middle and its base line
        boxes.append((text.text, (x - half, y - 0.75 * size, x + half, y + 0.2 * size)))
    assert len(boxes) >= 2 * len(diagram.boxes)
    assert outside(boxes, (diagram.width, diagram.height)) == []
    assert overlaps(boxes) == []
    frames = [(b.left, b.top, b.left + b.width, b.top + b.height) for b in diagram.boxes]
    for name, box in boxes:
        for frame in frames:
            if frame[0] < 0.5 * (box[0] + box[2]) < frame[2] and frame[1] < 0.5 * (box[1] + box[3]) < frame[3]:
                assert frame[0] <= box[0], name
                assert box[2] <= frame[2], name


def test_3_names_of_bodies_are_apart_and_not_inside_another_body(shown):
    view, figure, axes = shown.drawn
    named = [text for text in axes.texts if (text.get_gid() or "").startswith("name:")]
    boxes = [(t.get_gid(), t.get_window_extent(figure.canvas.get_renderer()).extents) for t in named]
    assert overlaps(boxes) == []
    assert all(figure.bbox.x0 <= box[0] and box[2] <= figure.bbox.x1 for _, box in boxes)
    for name, (left, low, right, high) in boxes:
        middle = [(0.5 * (left + right), 0.5 * (low + high))]
        below = [
            f"name:{shape.owner}"
            for shape, outline in zip(view.scene.shapes, view.shapes, strict=True)
            if shape.closed and shape.bounded and np.isfinite(outline[0]).all()
            and Path(axes.transData.transform(outline[0])).contains_points(middle).any()
        ]  # fmt: skip
        assert below[-1:] in ([], [name])  # of several the uppermost


# -- 4: the graph of a run -----------------------------------------------------------------------------------


@pytest.mark.parametrize("narrow", [False, True])
def test_4_boxes_are_few_apart_from_each_other_and_from_pills_and_counts_are_those_of_the_visits(shown, narrow):
    visits = shown.run.visits
    diagram = visits.diagram(narrow)
    check_graph(diagram)
    inside = sum(1 for one, other in pairwise(visits) if box_of(diagram, one.name) == box_of(diagram, other.name))
    assert sum(edge.count for edge in diagram.edges) == len(visits) - 1 - inside
    assert sum(box.visits for box in diagram.boxes) == len(visits) - inside
    assert sum(box.spent for box in diagram.boxes) == pytest.approx(shown.run.t[-1] - shown.run.t[0])


def box_of(diagram, name):
    """Return the name of the box of a visit: its own, or that of the others."""
    names = [box.name for box in diagram.boxes]
    return name if name in names else next(other for other in names if other.endswith(" others"))


def check_graph(diagram):
    assert len(diagram.boxes) <= MOST
    boxes = [(b.name, (b.left, b.top, b.left + b.width, b.top + b.height)) for b in diagram.boxes]
    for edge in diagram.edges:
        (x, y), (width, height) = edge.pill, edge.pill_size
        if width:
            place = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            boxes.append((f"{edge.source} {edge.target}", place))
    assert overlaps(boxes, 0.0) == []


def test_4_of_many_names_the_longest_keep_a_box():
    stays = [Stay(f"m{k % 20}", 1.0 + k % 20) for k in range(100)]
    diagram = visit_diagram(stays, {})
    check_graph(diagram)
    assert len(diagram.boxes) == MOST
    others = next(box for box in diagram.boxes if box.name == "9 others")
    assert others.spent == 5 * sum(1.0 + k for k in range(9))


# -- 5: colours ----------------------------------------------------------------------------------------------

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.119192, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])


def _linear(colour):
    rgb = np.array([int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _lab(linear):
    xyz = TO_XYZ @ np.clip(linear, 0.0, 1.0) / WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def _ciede2000(one, other):
    """Sharma, Wu and Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = 0.5 * (np.hypot(a1, b1) + np.hypot(a2, b2))
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2)
    lightness, c = 0.5 * (l1 + l2), 0.5 * (c1 + c2)
    h = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = 1 - 0.17 * np.cos(np.radians(h - 30)) + 0.24 * np.cos(np.radians(2 * h))
    t += 0.32 * np.cos(np.radians(3 * h + 6)) - 0.20 * np.cos(np.radians(4 * h - 63))
    rotation = -2 * np.sqrt(c**7 / (c**7 + 25.0**7)) * np.sin(np.radians(60 * np.exp(-(((h - 275) / 25) ** 2))))
    dl = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2))
    dc, dh = (c2 - c1) / (1 + 0.045 * c), dh / (1 + 0.015 * c * t)
    return float(np.sqrt(dl**2 + dc**2 + dh**2 + rotation * dc * dh))


def _contrast(one, other):
    low, high = sorted(float(TO_XYZ[1] @ _linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (50.0, 0.0, -2.5), 4.3065),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
    ],
)
def test_5_the_measure_of_distances_gives_published_values(one, other, expected):
    assert _ciede2000(one, other) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("vision", VISIONS)
def test_5_phases_differ_in_every_vision_or_in_their_texture(vision):
    labs = [_lab(np.array(VISIONS[vision]) @ _linear(colour)) for colour in FILLS.values()]
    assert min(_ciede2000(one, other) for one, other in itertools.combinations(labs, 2)) >= 12.0
    shown = phase_fills({f"{name} {turn}": name for turn in range(4) for name in FILLS})
    assert len({(fill.colour, fill.texture) for fill in shown.values()}) == 24
    assert len(set(shown.values())) == 32


def test_5_text_can_be_read_and_bodies_are_pale_with_dark_edges():
    assert min(_contrast(svg.TEXT, fill) for fill in FILLS.values()) >= 4.5
    for fill, edge in svg.BODIES:
        assert _lab(_linear(fill))[0] >= 85.0
        assert _lab(_linear(edge))[0] <= 45.0
        assert _contrast(edge, fill) >= 4.5


# -- 6: names and causes -------------------------------------------------------------------------------------


def test_6_names_are_short_words_distinct_for_modes_that_differ(shown):
    reading = shown.run.reading
    visits, states = reading.visits, reading.states
    for visit in (*visits, *reading.all_visits):
        assert 0 < len(visit.name) <= (16 if visits.are_phases else LONGEST)
        assert not FORMULAS.search(visit.name)
    touching = defaultdict(set)  # by short name
    for number, short in reading.names.items():
        assert 0 < len(short) <= LONGEST
        assert not FORMULAS.search(short)
        touching[short].add(tuple(states.states[entry][number] != OPEN for entry in states.names))
    assert all(len(found) == 1 for found in touching.values())


def test_6_causes_have_no_words_of_formulas_and_their_verbs_are_those_of_impacts(shown):
    run = shown.run
    for visit in (*run.visits, *run.reading.all_visits):
        assert visit.cause
        assert not FORMULAS.search(visit.cause)
    for item in run.reading.sentences.happenings(everything=True):
        assert item.text
        assert not FORMULAS.search(item.text)
        (number,) = item.transitions
        transition = run.transitions[number]
        if IMPULSE.search(item.text):
            assert transition.impulse, item.text
        if " meets " in item.text:
            assert not transition.impulse or transition.energy_lost == 0.0, item.text


# -- 7: visits -----------------------------------------------------------------------------------------------


def test_7_visits_tile_the_run_and_have_all_short_ones(shown):
    run = shown.run
    visits, everything = run.visits, run.reading.all_visits
    for found in (visits, everything):
        assert (found[0].begin, found[-1].end) == (run.t[0], run.t[-1])
        assert all(one.end == other.begin and one.name != other.name for one, other in pairwise(found))
    assert sum(visit.merged for visit in visits) == len(everything)
    for visit in visits:
        own = [item for item in everything if visit.begin <= item.begin and item.end <= visit.end]
        assert (own[0].begin, own[-1].end, len(own)) == (visit.begin, visit.end, visit.merged)


def test_7_happenings_have_all_transitions_once_and_their_energies(shown):
    run = shown.run
    lost = [item.energy_lost for item in run.transitions if item.impulse]
    sentences = run.reading.sentences
    for found in (run.happenings, sentences.happenings(), sentences.happenings(everything=True)):
        stated = sum(item.energy_lost for item in found)
        assert stated == pytest.approx(sum(lost), abs=1e-12 + 1e-12 * sum(map(abs, lost)))
        numbers = Counter(number for item in found for number in item.transitions)
        assert set(numbers.values()) <= {1}
        assert set(numbers) <= set(range(len(run.transitions)))
    assert len(run.happenings) <= len(run.transitions)
    one_by_one = sentences.happenings(everything=True)
    assert [item.transitions for item in one_by_one] == [(k,) for k in range(len(run.transitions))]


# -- 8: the score --------------------------------------------------------------------------------------------


def test_8_columns_are_equally_wide_and_the_bar_is_to_scale(shown):
    run, score = shown.run, shown.drawing.score
    parts = {a.get_gid(): a.get_window_extent() for axes in shown.score.axes for a in axes.patches if a.get_gid()}
    columns = [box for gid, box in parts.items() if gid.startswith("column:")]
    assert len(columns) == len(score.columns) <= MOST_COLUMNS
    assert max(box.width for box in columns) - min(box.width for box in columns) < 0.01
    bars = [parts[f"bar:{k}"] for k in range(len(run.visits))]
    left, full, begin = bars[0].x0, bars[-1].x1 - bars[0].x0, run.t[0]
    span = max(score.shown_end - begin, 1e-300)
    for box, visit in zip(bars, run.visits, strict=True):
        for edge, time in ((box.x0, visit.begin), (box.x1, visit.end)):
            assert abs(edge - left - full * min((time - begin) / span, 1.0)) < 1.0


def test_8_the_cause_of_a_visit_is_inside_its_close_up(shown):
    """Or else the body of its contact, of a mechanism that travels all of it."""
    pictures, words = shown.drawing.pictures, shown.run.reading.words
    frames = [a.get_window_extent() for axes in shown.score.axes for a in axes.patches if _is_frame(a)]
    assert all(min(box.width, box.height) >= 60.0 for box in frames)
    for number, visit in enumerate(pictures.columns):
        low, high = pictures.close_box(number)
        assert high[0] - low[0] == pytest.approx(high[1] - low[1])
        place = pictures._contact_place(visit.contact, visit.begin)
        if pictures._focus_of(visit):
            box = pictures.view.box(1 + number, pictures._focus_of(visit))
        elif pictures.travels:
            box = pictures._boxes[1 + number]
        elif place is not None:
            box, edge = (place, place), 0.05 * (high - low)
            low, high = low + edge, high - edge
        elif visit.contact >= 0:
            box = pictures.view.box(1 + number, (words.sentence(visit.contact).body,))
        else:
            continue
        assert (box[0] >= low - 1e-9).all()
        assert (box[1] <= high + 1e-9).all()


def _is_frame(artist):
    return (artist.get_gid() or "").startswith("frame:")


# -- 10: the runs of two models ------------------------------------------------------------------------------

SEQUENCES = {
    "piano_action": "rest, acceleration, let-off, free flight, strike, fall, check, repetition, settling, rest",
    "latch_door": "closing, ride over, snap in, shut, settle, held, unlatch, opening, open",
}


@pytest.mark.parametrize("shown", SEQUENCES, indirect=True)
def test_10_sequences_of_a_technician_and_a_locksmith(shown):
    assert ", ".join(visit.name for visit in shown.run.visits) == SEQUENCES[shown.name]
