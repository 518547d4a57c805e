"""Mode graphs as pictures and as text: nothing is lost, no name breaks out of its quotes."""

import importlib.util
import re
import sys
import xml.etree.ElementTree as ET
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_dyn.core.errors import InputError
from fsm_dyn.draw.graph_layout import Arrow, Box, Diagram, is_dense, place, place_radially, without_causes
from fsm_dyn.plot import drawing as files
from fsm_dyn.plot.drawing import FORMATS, diagram, draw, to_dot, to_mermaid
from tests.pictures import is_drawn

GRAPHVIZ = pytest.mark.skipif(importlib.util.find_spec("pygraphviz") is None, reason="pygraphviz is not installed")
NASTY = '"];\n}<script>\\N & --> é'


def disk():
    graph = nx.MultiDiGraph(name="disk")
    for name, state in (("rolling", "stick"), ("sliding", "slide"), ("flying", "open")):
        graph.add_node(name, label=name, states={"ramp": state}, initial=name == "sliding")
    graph.add_edge("sliding", "rolling", cause="ramp sticks", priority=2)
    graph.add_edge("sliding", "rolling", cause="brake is pulled", priority=1)
    graph.add_edge("rolling", "sliding", cause="ramp slides")
    graph.add_edge("sliding", "sliding", cause="ramp reverses")
    graph.add_edge("rolling", "flying", cause="ramp opens")
    graph.add_edge("flying", "rolling", cause="ramp closes")
    return graph


def test_arrows_of_one_pair_are_gathered_in_order_of_priority():
    reduced = diagram(disk())
    labels = {(arrow.source, arrow.target): arrow.labels for arrow in reduced.arrows}
    assert labels["sliding", "rolling"] == ("brake is pulled", "ramp sticks")
    assert [box.initial for box in reduced.boxes] == [False, True, False]
    assert reduced.boxes[0].lines == ("ramp: stick",)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("graphviz", [False, pytest.param(True, marks=GRAPHVIZ)])
def test_every_format_is_written(tmp_path, kind, graphviz):
    path = draw(disk(), tmp_path / "graph", kind, graphviz=graphviz)
    head = path.read_bytes()[:400]
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml", "dot": b"digraph", "mermaid": b"flowchart",
              "graphml": b"<graphml", "json": b"{", "transitions": b"{",
              "uppaal": b"<?xml"}  # fmt: skip
    assert head.startswith(starts[kind])


@pytest.mark.parametrize("graphviz", [False, pytest.param(True, marks=GRAPHVIZ)])
def test_svg_shows_every_name_and_cause(tmp_path, graphviz):
    root = ET.parse(draw(disk(), tmp_path / "graph.svg", graphviz=graphviz)).getroot()
    text = " ".join("".join(root.itertext()).split())
    for word in ("rolling", "sliding", "flying", "ramp: slide", "brake is pulled", "ramp reverses"):
        assert word in text


def test_a_wrong_suffix_and_a_wrong_format_are_answered(tmp_path):
    with pytest.raises(InputError, match=r"\.svg"):
        draw(disk(), tmp_path / "graph.sgv")
    with pytest.raises(InputError, match="did you mean 'mermaid'"):
        draw(disk(), tmp_path / "graph.svg", "mermiad")


def nasty():
    graph = nx.MultiDiGraph(name=NASTY)
    graph.add_node("a", label=NASTY, states={NASTY: NASTY})
    graph.add_edge("a", "a", cause=NASTY)
    return graph


@GRAPHVIZ
def test_dot_reads_back_whatever_the_names_are(tmp_path):
    import pygraphviz

    parsed = pygraphviz.AGraph(string=to_dot(diagram(nasty())))
    assert parsed.nodes() == ["a"]
    assert len(parsed.edges()) == 1
    text = "".join(ET.parse(draw(nasty(), tmp_path / "n.svg", graphviz=True)).getroot().itertext())
    assert "<script>\\N &" in text


def test_mermaid_codes_what_it_would_interpret():
    text = to_mermaid(diagram(nasty()))
    assert "<script>" not in text
    assert "#60;script#62;" in text
    inside = re.findall(r'"([^"\n]*)"', text)
    assert len(inside) == 2
    assert all(line.count('"') in (0, 2) for line in text.splitlines())


def test_matplotlib_draws_dollar_signs_and_markup_as_they_are(tmp_path):
    graph = nx.MultiDiGraph()
    graph.add_node("a", label="$\\frac{")
    assert is_drawn(draw(graph, tmp_path / "a.svg", graphviz=False), 3)


def test_what_is_installed_does_not_change_a_drawing(tmp_path, monkeypatch):
    """Graphviz is imported where it is asked for, and named where it is missing then."""
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    assert (
        draw(disk(), tmp_path / "a.svg").read_bytes() == draw(disk(), tmp_path / "b.svg", graphviz=False).read_bytes()
    )
    monkeypatch.setattr(files, "has_graphviz", lambda: False)
    with pytest.raises(InputError, match="Graphviz is not installed"):
        draw(disk(), tmp_path / "c.svg", graphviz=True)


def test_an_empty_graph_can_be_drawn(tmp_path):
    draw(nx.MultiDiGraph(), tmp_path / "a.png", graphviz=False)


@given(st.integers(1, 9), st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30))
@settings(max_examples=30, deadline=None)
def test_boxes_never_overlap_and_arrows_meet_them(count, pairs):
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(((a, b, {"cause": "x"}) for a, b in pairs if a < count and b < count))
    reduced = diagram(graph)
    sizes = {box.key: (60.0 + 10 * i, 30.0 + 5 * i) for i, box in enumerate(reduced.boxes)}
    labels = {(arrow.source, arrow.target): (50.0, 10.0) for arrow in reduced.arrows}
    placed = place(reduced, sizes, labels)
    boxes = [(np.array(placed.centres[key]), np.array(size)) for key, size in sizes.items()]
    for i, (centre, size) in enumerate(boxes):
        for other, another in boxes[:i]:
            assert np.any(np.abs(centre - other) >= 0.5 * (size + another))
    assert len(placed.curves) == len(reduced.arrows)
    for curve in placed.curves:
        for end, key in ((0, curve.arrow.source), (3, curve.arrow.target)):
            off = np.abs(curve.control[end] - placed.centres[key]) - 0.5 * np.array(sizes[key])
            assert off.max() == pytest.approx(0.0, abs=1e-9)


def test_a_dense_graph_is_drawn_around_its_start_without_overlaps():
    names = [f"mode_{i}" for i in range(14)]
    boxes = tuple(Box(name, name, ("line of text",), name == "mode_3") for name in names)
    arrows = tuple(Arrow(a, b, (f"{a} to {b}",), dashed=True) for a in names for b in names)
    found = Diagram("dense", boxes, arrows)
    assert is_dense(found)
    assert not is_dense(Diagram("few", boxes, arrows[:20]))
    bare = without_causes(found)
    assert len(bare.arrows) == 14 * 13  # no loops
    assert not any(arrow.labels for arrow in bare.arrows)
    sizes = {name: (90.0 + 10 * i, 30.0) for i, name in enumerate(names)}
    placed = place_radially(bare, sizes)
    assert placed.centres["mode_3"] == (0.0, 0.0)
    for a, b in combinations(names, 2):
        apart = np.abs(np.subtract(placed.centres[a], placed.centres[b]))
        assert (apart > 0.5 * np.add(sizes[a], sizes[b])).any()
    for curve in placed.curves:  # ends are on the borders of the two boxes
        for name, end in ((curve.arrow.source, curve.control[0]), (curve.arrow.target, curve.control[3])):
            share = np.abs(end - placed.centres[name]) / (0.5 * np.array(sizes[name]))
            assert share.max() == pytest.approx(1.0)
