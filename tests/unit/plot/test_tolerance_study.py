"""Figures of samples: what is drawn are the shares, correlations, margins and sequences themselves."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.analysis.study_results import Study, shares_diagram, shares_svg
from fsm_dyn.draw.graph_layout import sequence_labels
from tests.pictures import is_drawn

SEQUENCES = (("a", "b"), ("a", "b"), ("a", "c"), ("a", "b", "c"))
VERDICTS = ("met", "met", "violated", "met")


@pytest.fixture
def found():
    return Study(
        "model", "random", {"p": np.array([1.0, 2.0, 3.0, 4.0])}, ("done",) * 4, SEQUENCES,
        {"r": VERDICTS, "all": VERDICTS}, {"r": np.array([0.5, 0.5, -1.0, 2.0])}, nominal={"p": 2.5},
    )  # fmt: skip


def test_shares_and_where_verdicts_part(found):
    assert found.transition_shares() == {("a", "b"): 0.75, ("a", "c"): 0.25, ("b", "c"): 0.25}
    parting = found.parting("r")
    assert parting.before == ("a",)
    assert parting.following == {"b": Counter(met=3), "c": Counter(violated=1)}
    same = replace(found, sequences=(("a", "b"),) * 4)
    assert same.parting() is None


def test_the_mode_graph_has_shares_and_marks(found):
    ball = fsm_dyn.compile("bouncing_ball")
    arrows = {(a.source, a.target): a for a in shares_diagram(found, ball).arrows}
    assert (arrows["a", "b"].weight, arrows["a", "b"].marked, arrows["a", "b"].dashed) == (0.75, True, False)
    assert (arrows["b", "c"].weight, arrows["b", "c"].marked) == (0.25, False)
    never = [a for a in arrows.values() if a.dashed]
    assert never, "the transitions of the graph itself, which no run made"
    assert all((a.weight, a.labels) == (0.0, ("never",)) for a in never)
    assert "stroke-width" in shares_svg(found, ball)


def test_yields_correlations_and_margins(found, tmp_path):
    figure = plot.requirements("r", {"r": (0.75, 0.3, 0.95)}, {"r": {"p": 0.8, "q": np.nan}}, found.margins, {"r": "m"})
    bars, tornado, margins = figure.axes
    assert [patch.get_width() for patch in bars.patches] == [75.0]
    assert bars.lines[0].get_xdata().tolist() == [30.0, 95.0]
    assert [patch.get_width() for patch in tornado.patches] == [0.8, 0.0]
    left = sum(patch.get_height() for patch in margins.patches if patch.get_x() + patch.get_width() < 1e-9)
    assert (left, sum(patch.get_height() for patch in margins.patches)) == (1, 4)
    assert is_drawn(plot.save(figure, tmp_path / "r.png"))


@pytest.mark.parametrize("margins", [[np.nan] * 3, [1e-17, 2e-17, 0.0], [5.0] * 3, [5.0, 5.0 + 1e-15, 5.0]])
def test_margins_that_do_not_differ(margins, tmp_path):
    figure = plot.requirements("r", {"r": (np.nan, 0.0, 1.0)}, {"r": {}}, {"r": np.array(margins)}, {})
    drawn = sum(patch.get_height() for patch in figure.axes[2].patches)
    assert drawn == np.isfinite(margins).sum()
    plot.save(figure, tmp_path / "r.png")


def test_a_map_has_the_sequence_of_the_nearest_run(tmp_path):
    x, y = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])
    figure = plot.sequence_map("map", ("p", x), ("q", y), SEQUENCES, VERDICTS, {"p": "1", "q": "m"})
    axes = figure.axes[0]
    areas = axes.collections[0].get_array().reshape(240, 240)
    assert (areas[0, 0], areas[0, -1], areas[-1, 0], areas[-1, -1]) == (0, 0, 1, 2)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("p", "q, m")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["met", "violated", "2×  a > b", "1×  a > c", "1×  a > b > c"]
    plot.save(figure, tmp_path / "map.png")


def test_long_sequences_are_labelled_from_where_they_part():
    assert sequence_labels([("a", "b"), ("a",)], 10) == ["a > b", "a"]
    long = [(*(f"mode_{k}" for k in range(30)), *end) for end in (("x", "y"), ("z",), ())]
    labels = sequence_labels(long, 60)
    assert labels == ["… > mode_29 > x > y", "… > mode_29 > z", "… > mode_29"]
    beginning = [("x", *long[0]), ("y", *long[0])]
    assert [label[:14] for label in sequence_labels(beginning, 60)] == ["x > mode_0 > m", "y > mode_0 > m"]
    assert all(len(label) <= 60 and label.endswith(" > …") for label in sequence_labels(beginning, 60))


def test_a_map_without_verdicts_has_plain_points():
    x = np.array([0.0, 1.0, 2.0])
    figure = plot.sequence_map("m", ("a", x), ("b", x[::-1]), (("p",), ("q",), ("q",)), None, {})
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["2×  q", "1×  p"]
    assert sum(len(points.get_offsets()) for points in axes.collections if hasattr(points, "get_sizes")) >= 3
