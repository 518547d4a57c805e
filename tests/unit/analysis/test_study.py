"""Studies: ranges, agreement with runs one by one, over one process and several, and failed runs."""

import numpy as np
import pytest
from matplotlib import image
from matplotlib.colors import to_rgb

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.analysis.study import read_range, study
from fsm_dyn.cli.study import write_study
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.loader import load


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("bouncing_ball")


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("let_off=0.5..3mm:6", "let_off", ["0.5 mm", "1 mm", "1.5 mm", "2 mm", "2.5 mm", "3 mm"]),
        ("mu=0.1..0.5", "mu", ["0.1", "0.2", "0.3", "0.4", "0.5"]),
        ("k=1e2 .. 3e2 N/m:3", "k", ["100 N/m", "200 N/m", "300 N/m"]),
        ("q=-1..1deg:2", "q", ["-1 deg", "1 deg"]),
    ],
)
def test_ranges(text, name, values):
    assert read_range(text) == (name, values)


@pytest.mark.parametrize("text", ["let_off", "let_off=3mm", "=1..2", "x=1..2:1", "x=a..b:3", "x=--1..2"])
def test_what_is_no_range(text):
    with pytest.raises(InputError):
        read_range(text)


@pytest.mark.parametrize("jobs", [1, 2])
def test_rows_are_those_of_single_runs(graph, jobs):
    told = []
    found = study(
        graph, {"e": [0.5, 0.7, 0.9]}, until=1.5, jobs=jobs, progress=lambda done, of: told.append((done, of))
    )
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert [row.values["e"] for row in found.rows] == [0.5, 0.7, 0.9]
    for row in found.rows:
        run = fsm_dyn.simulate(graph, until=1.5, parameters={"e": row.values["e"]})
        assert row.outcome == "done"
        assert row.transitions == len(run.transitions)
        for name in found.outputs:
            assert row.final[name] == run[name][-1]
            assert row.maximum[name] >= run[name].max()
            assert row.minimum[name] <= run[name].min()
            np.testing.assert_array_equal(row.curves[name], run.sample(found.times)[name])


def test_all_combinations_and_a_table(graph):
    found = study(graph, {"e": [0.5, 0.9], "m": ["1 kg", "2 kg"]}, until=0.2, jobs=1)
    headings, lines = found.table()
    assert headings[:3] == ["e", "m", "outcome"]
    assert [line[:2] for line in lines] == [[0.5, 1.0], [0.5, 2.0], [0.9, 1.0], [0.9, 2.0]]


def test_a_run_that_fails_is_a_row(graph):
    found = study(graph, {"e": [0.5, 0.9]}, until=1.0, jobs=1, max_steps=3)
    assert {row.outcome for row in found.rows} == {"too many steps"}


def test_what_is_unknown_is_refused(graph):
    with pytest.raises(InputError, match="quantity"):
        study(graph, {"e": [0.5]}, until=1.0, outputs=["nothing"])
    with pytest.raises(InputError, match="parameter"):
        study(graph, {"nothing": [0.5]}, until=1.0)


def test_extremes_are_those_between_rows_in_the_table_and_in_the_figure(graph, tmp_path):
    """A throw of 3 m/s from 1 m: v²/2g higher, in closed form, in no row and at no time of the curves."""
    found = study(graph, {"e": [0.5, 0.9]}, until=1.0, jobs=1, initial={"v": 3.0}, outputs=["y"])
    highest = 1.0 + 3.0**2 / (2 * 9.81)
    for row in found.rows:
        assert row.maximum["y"] == pytest.approx(highest, abs=1e-12)
        assert np.nanmax(row.curves["y"]) < highest - 1e-7
    headings, lines = found.table()
    assert [line[headings.index("y_max")] for line in lines] == [row.maximum["y"] for row in found.rows]
    drawn = {}

    def kept(figure, path):
        drawn[path.name] = figure
        return path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plot, "save", kept)
        write_study(found, graph, tmp_path)
    figure = drawn["bouncing_ball_study.png"]
    for axes, part in zip(figure.axes[1:], ("minimum", "maximum"), strict=True):
        assert axes.lines[0].get_ydata() == pytest.approx([getattr(row, part)["y"] for row in found.rows], rel=1e-15)


def test_figure(graph, tmp_path):
    found = study(graph, {"e": [0.5, 0.9]}, until=1.0, jobs=1)
    curves = {name: [row.curves[name] for row in found.rows] for name in found.outputs}
    figure = plot.study("title", ("e", [0.5, 0.9]), found.times, curves, found.units)
    assert len(figure.axes) == 3 * len(curves)
    assert len(figure.axes[0].lines) == 2
    drawn = image.imread(plot.save(figure, tmp_path / "study.png"))[..., :3]
    colours = {tuple(to_rgb(line.get_color())) for line in figure.axes[0].lines}
    assert all((np.abs(drawn - colour).max(axis=-1) < 0.02).sum() > 50 for colour in colours)


def test_figure_over_words(graph):
    curves = {"y": [np.linspace(0.0, k, 5) for k in (1.0, 2.0, 3.0)]}
    figure = plot.study("title", ("variant", ["none", "felt", "none"]), np.linspace(0.0, 1.0, 5), curves, {"y": "m"})
    assert [text.get_text() for text in figure.axes[1].get_xticklabels()] == ["none", "felt"]
    assert figure.axes[2].lines[0].get_xydata().tolist() == [[0.0, 1.0], [1.0, 2.0], [0.0, 3.0]]


def test_the_figure_writes_small_lengths_in_plain_numbers_with_a_prefix():
    times, gaps = np.linspace(0.0, 1.0, 20), [0.5e-3, 3e-3]
    curves = {"travel": [1.6e-5 + gap * times for gap in gaps], "ratio": [1e-7 * gap * times for gap in gaps]}
    figure = plot.study("title", ("gap", gaps), times, curves, {"gap": "m", "travel": "m", "ratio": "1"})
    figure.canvas.draw()
    for axes in figure.axes:
        assert {axis.get_offset_text().get_text() for axis in (axes.xaxis, axes.yaxis)} == {""}
    curve, _, greatest = figure.axes[:3]
    assert curve.get_ylabel() == "travel, mm"
    np.testing.assert_allclose(curve.lines[1].get_ydata(), 1e3 * curves["travel"][1])
    np.testing.assert_allclose(greatest.lines[0].get_ydata(), [0.516, 3.016])
    np.testing.assert_allclose(greatest.lines[0].get_xdata(), [0.5, 3.0])
    assert figure.axes[-1].get_xlabel() == "gap, mm"
    assert figure.axes[3].get_ylabel() == "ratio, 1"


def test_the_data_set_has_parameters_extremes_and_curves(graph):
    found = study(graph, {"e": [0.5, 0.9]}, until=1.0, jobs=1)
    data = found.to_dataset()
    assert data["e"].values.tolist() == [0.5, 0.9]
    assert data["y"].dims == ("run", "time")
    np.testing.assert_array_equal(data["y"].values, [row.curves["y"] for row in found.rows])
    assert data["y_final"].values.tolist() == [row.final["y"] for row in found.rows]
    assert data["y"].attrs == {"units": "m"}


TEXT = """
fsm_dyn: 1
name: drop
parameters: {h: 1 m +- 5 cm, e: {normal: 0.5, sigma: 0.02}}
coordinates: {y: m}
points: {C: {from: O, at: y*N.y}}
bodies: {ball: {center: C, mass: 1 kg}}
contacts: {ground: {gap: y, restitution: e}}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {y: h}
requirements:
  fast: peak(y_dot) > 2.1 m/s
  early: eventually ground closes before 0.46 s
"""


@pytest.fixture(scope="module")
def drop():
    return fsm_dyn.compile(load("drop", text=TEXT))


def test_a_grid_is_judged_and_has_sequences(drop):
    """Of every run those of the run by itself, and grouped."""
    found = study(drop, {"h": ["0.9 m", 1.0, "1.1 m"], "e": [0.4, 0.6]}, until=0.6, jobs=1)
    for row in found.rows:
        run = fsm_dyn.simulate(drop, until=0.6, parameters=row.values)
        judged = run.judge()
        assert row.verdicts == {name: item.verdict for name, item in judged.items()}
        assert row.margins == {name: item.margin for name, item in judged.items()}
        assert row.modes == run.record.mode_sequence(run.model.modes)
    assert found.counts("early") == {"met": 4, "violated": 2}
    assert {modes: sum(counts.values()) for modes, counts in found.mode_sequences().items()} == {
        (row.modes): found.sequences.count(row.modes) for row in found.rows
    }
    # 0.5 sqrt(2 g h) > 2.1 m/s is missed by e = 0.4 alone, and nearest to h = 1 m is 1 m itself
    assert found.rows[found.nearest_failure("fast")].values == {"h": 1.0, "e": 0.4}
    assert found.sensitivity("early") == {"h": pytest.approx(-1.0), "e": pytest.approx(0.0, abs=1e-12)}
    some = study(drop, {"h": [1.0]}, until=0.6, jobs=1, requirements=["early"], outputs=["y"])
    assert ([*some.margins], [*some.outputs]) == (["early"], ["y"])
    with pytest.raises(InputError, match="grid are no sample"):
        found.estimate("fast")


def test_every_sample_gives_a_data_set_of_the_same_kind(drop):
    names = []
    for sample in ("grid", "random", "lhs", "sobol"):
        vary = {"h": [0.9, 1.1], "e": [0.4, 0.6]} if sample == "grid" else None
        found = fsm_dyn.study(drop, vary, sample=sample, n=8, seed=1, outputs=["y"], until=0.6, jobs=1)
        data = found.to_dataset()
        assert set(data.coords) - {"time"} == {"h", "e"}
        assert data["runs"].sum() == data.sizes["run"] == len(found.rows)
        names.append({name for name in data.data_vars if name != "y"})  # curves
    assert names == [names[0]] * 4
    assert names[0] == {
        "outcome", "end", "mode", "transitions", "sequence", "modes", "digest", "runs", "verdict_all", "open_energy",
        *(f"{part}_{name}" for part in ("verdict", "margin") for name in ("fast", "early")),
        *(f"y_{part}" for part in ("minimum", "maximum", "final")),
    }  # fmt: skip


def test_a_grid_ends_where_the_model_does(drop):
    """Without an end given: after 5 s, if there is no schedule."""
    (row,) = study(drop, {"e": [0.3]}, jobs=1).rows
    assert row.end == 5.0
    assert np.isfinite(row.curves["y"]).all()


@pytest.mark.parametrize("name", ["quantites", "output", "progres", "on_failure", "rtl"])
def test_an_unknown_keyword_is_refused_as_by_python(drop, name):
    for function in (fsm_dyn.study, fsm_dyn.worst_case, fsm_dyn.fit, fsm_dyn.tolerance_study):
        needed = {"tolerance_study": {"n": 8, "seed": 1}, "worst_case": {"requirement": "fast"}}
        needed |= {"study": {"vary": {"h": [1.0]}}, "fit": {"measured": "none.csv", "vary": ["h"]}}
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            function(drop, **needed[function.__name__], **{name: 1})
    if name == "output":
        with pytest.raises(TypeError, match=r"^simulate\(\) takes from 1 to 2 positional arguments"):
            fsm_dyn.simulate(drop, 1.0, {"h": 1.0})
        with pytest.raises(TypeError, match="did you mean 'outputs'"):
            fsm_dyn.study(drop, {"h": [1.0]}, output=["y"])
