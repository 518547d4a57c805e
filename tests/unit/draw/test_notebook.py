"""What notebooks show of mode graphs and runs: well-formed, of bounded size, nothing but pictures and text."""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_rgba

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.graph_layout import MOST, Arrow, Box, Diagram, left_out, mode_graph
from fsm_dyn.draw.run_diagrams import Strip, Timeline, timeline_svg
from fsm_dyn.run.run_timeline import timeline_of

NAUGHTY = "</title><script>alert(1)</script>\" onload='x' & \x07\ufffe"
SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {
    "div", "p", "b", "br", "details", "summary", "table", "tr", "th", "td", "pre",
    *(SVG + name for name in ("svg", "title", "rect", "g", "text", "path", "defs", "pattern", "circle")),
}  # fmt: skip


def checked(markup):
    """The markup as a tree: it is XML, there are only known elements, and none of their attributes does anything."""
    tree = ElementTree.fromstring(markup)
    for each in tree.iter():
        assert each.tag in ALLOWED
        for name, value in each.attrib.items():
            assert not name.startswith("on")
            assert "javascript" not in value
            assert "url(" not in value.replace("url(#", "")  # a texture within the picture
            assert "nan" not in value, "a number that is none"
    return tree


def texts(tree):
    return ["".join(each.itertext()) for each in tree.iter(SVG + "text")]


@pytest.fixture(scope="module")
def ball():
    graph = fsm_dyn.compile("bouncing_ball")
    return graph, fsm_dyn.simulate(graph)


def test_a_graph_shows_its_modes_and_what_leads_from_one_to_another(ball):
    graph, _ = ball
    tree = checked(graph._repr_html_())
    found = texts(tree)
    for mode in graph.modes.values():
        assert mode.name in found
        assert [f"{name}: {state}" in found for name, state in mode.states.items()] == [True] * len(mode.states)
    assert {"ground closes", "ground opens", "ground impacts and rebounds"} <= set(found)
    thick = [each for each in tree.iter(SVG + "rect") if each.get("stroke-width") == "2.2"]
    assert len(thick) == 1, "where runs start"


def test_a_run_shows_its_modes_its_states_and_how_it_ended(ball):
    graph, run = ball
    tree = checked(run._repr_html_())
    words = "".join(tree.itertext())
    assert f"{len(run.transitions)} transitions; {run.outcome.name}" in words
    assert set(graph.modes) | {"y", "v", "time, s"} <= set(texts(tree))
    # the height falls to nothing: the last point of its curve is the lowest, at the right end
    curve = next(each for each in tree.iter(SVG + "path") if each.get("stroke-width") == "1.4")
    points = np.array([[float(x) for x in pair.split()] for pair in re.findall(r"[ML]([^ML]+)", curve.get("d"))])
    assert points[-1, 1] == points[:, 1].max()
    assert points[0, 1] == points[:, 1].min()
    assert np.diff(points[:, 0]).min() >= 0.0


def test_a_mode_has_one_colour_in_graph_and_timelines():
    """Also where a run meets the modes in another order than the graph has them."""
    graph = fsm_dyn.compile("latch")
    run = fsm_dyn.simulate(graph)
    timeline = timeline_of(run.model, run.record)
    assert list(timeline.dwell_times) != [name for name in timeline.colours if name in timeline.dwell_times]
    bands = {
        each.find(SVG + "title").text: each.get("fill")
        for each in checked(run._repr_html_()).iter(SVG + "rect")
        if each.find(SVG + "title") is not None
    }
    lines = plot.modes(run).axes[0].collections[: len(timeline.spans)]
    drawn = {name: line.get_facecolor()[0] for name, line in zip(timeline.spans, lines, strict=True)}
    assert bands == {name: timeline.colours[name] for name in timeline.dwell_times}
    for name, colour in bands.items():
        assert to_rgba(colour) == pytest.approx(drawn[name])
    boxes = {each.get("fill") for each in checked(graph._repr_html_()).iter(SVG + "rect")}
    assert set(bands.values()) <= boxes


def test_a_run_that_failed_says_why(ball):
    run = fsm_dyn.simulate(ball[0], max_steps=20, on_failure="return")
    assert run.outcome.failed
    told = "".join(checked(run._repr_html_()).find("pre").itertext())
    assert told == "\n".join(run.describe_outcome())


def test_names_are_text_and_nothing_else(ball):
    _, run = ball
    box, other = Box(NAUGHTY, NAUGHTY, (NAUGHTY,), initial=True), Box("b", "b", 20 * (NAUGHTY,))
    tree = checked(mode_graph(Diagram(NAUGHTY, (box, other), (Arrow(NAUGHTY, "b", 9 * (NAUGHTY,)),))))
    assert any(words.startswith("</title><script>") for words in texts(tree))
    strip, t = Strip(NAUGHTY, (NAUGHTY,), np.zeros((1, 2))), np.array([0.0, 1.0])
    checked(timeline_svg(Timeline(NAUGHTY, ((0.0, 1.0, NAUGHTY),), {NAUGHTY: palette.INK}, (), t, (strip,))))
    nasty = dataclasses.replace(run.transitions[0], cause=NAUGHTY)
    changed = fsm_dyn.Trajectory(
        dataclasses.replace(run.model, name=NAUGHTY),
        dataclasses.replace(run.record, read_transitions=lambda: 25 * (nasty,)),
    )
    words = "".join(checked(changed._repr_html_()).itertext())
    assert "<script>alert(1)</script>" in words
    assert "and 5 more" in words


def test_many_modes_and_long_runs_stay_small():
    boxes = tuple(Box(f"m{k}", f"m{k}", 30 * ("contact: stick",), initial=k == 40) for k in range(300))
    arrows = tuple(Arrow(f"m{a}", f"m{b}", (f"{a} to {b}",)) for a in range(300) for b in range(300) if abs(a - b) < 7)
    diagram = Diagram("many", boxes, arrows)
    text = mode_graph(diagram)
    assert len(text) < 100_000
    assert left_out(diagram) == 300 - MOST
    shown = {words for words in texts(checked(text)) if re.fullmatch(r"m\d+", words)}
    assert shown == {f"m{k}" for k in range(34, 46)}, "those that the first leads to"

    t = np.linspace(0.0, 600.0, 1_000_000)
    values = np.array([np.sin(1e3 * t), np.where(np.abs(t - 300.0) < 4e-4, 5.0, 0.0), np.full(len(t), np.nan)])
    bands = tuple((0.06 * k, 0.06 * (k + 1), f"m{k % 3}") for k in range(10_000))
    strip, colours = Strip("m", ("fast", "once", "none"), values), palette.mode_colours(["m0", "m1", "m2"])
    text = timeline_svg(Timeline("long", bands, colours, (), t, (strip,)))
    assert len(text) < 250_000
    curves = [each.get("d") for each in checked(text).iter(SVG + "path") if each.get("stroke-width") == "1.4"]
    heights = [[float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", d)] for d in curves]
    assert heights[1].count(min(heights[1])) <= 2, "one instant in a million is not lost"
    assert min(heights[1]) < min(heights[0])
    assert heights[2] == []


def test_tables_of_energy_explanation_and_study():
    graph = fsm_dyn.compile("bouncing_ball")
    run = fsm_dyn.simulate(graph, until=1.0)
    energy = checked(run.energy._repr_html_())
    rows = {row[0].text: [float(cell.text) for cell in row[1:]] for row in energy[1:]}
    assert rows["total"] == [float(f"{run.energy.total[k]:.4g}") for k in (0, -1)]
    told = checked(run.explain(0.9)._repr_html_())
    assert "ground" in "".join(told.itertext())
    study = fsm_dyn.study(graph, {"e": [0.4, 0.8]}, until=0.6)
    whole = "".join(checked(study._repr_html_()).itertext())
    assert "2 runs" in whole


def test_a_page_in_a_notebook_is_one_frame_whose_text_cannot_leave_it():
    from fsm_dyn.page.report import InlinePage

    page = InlinePage(fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), until=0.6))
    frame = ElementTree.fromstring(page._repr_html_().replace("&#x27;", "'"))
    assert frame.tag == "iframe"
    assert frame.attrib["srcdoc"].strip().startswith("<!doctype html>")
    assert page._repr_html_().count("<") == 2
