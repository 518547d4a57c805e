"""What the pictures show is what the run recorded."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot.drawing import diagram
from fsm_dyn.run.run_timeline import dense_rows
from tests.pictures import is_drawn

KINDS = ["modes", "states", "motion", "film_strip", "phase", "forces", "guards", "energy"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_every_picture_is_saved_in_every_format(disk, kind, suffix, tmp_path):
    path = plot.save(getattr(plot, kind)(disk[1]), tmp_path / f"{kind}.{suffix}")
    assert is_drawn(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_the_same_twice(disk, kind, tmp_path):
    one, two = (plot.save(getattr(plot, kind)(disk[1]), tmp_path / f"{i}.svg").read_bytes() for i in range(2))
    assert one == two


def test_dense_rows_contain_the_rows_and_follow_the_motion(disk):
    _, run = disk
    rows = dense_rows(run.rows, run.sample)
    assert len(rows) > len(run)
    assert np.all(np.diff(rows.t) >= 0.0)
    assert np.isin(run.t, rows.t).all()
    assert np.diff(rows.t).max() <= (run.t[-1] - run.t[0]) / 500
    flying = np.array(rows.modes) == "flying"
    between = np.flatnonzero(flying & (rows.t > 2.61) & (rows.t < 3.2))
    # without the push, a parabola under gravity: second differences are constant
    y, t = rows["y"][between], rows.t[between]
    fit = np.polyfit(t - t[0], y, 2)
    assert np.abs(np.polyval(fit, t - t[0]) - y).max() <= 1e-9


def test_the_timeline_covers_the_run_once(disk):
    _, run = disk
    axes = plot.modes(run).axes[0]
    pieces = [path.vertices[:, 0] for bars in axes.collections for path in bars.get_paths()]
    assert sum(np.ptp(x) for x in pieces) == pytest.approx(run.t[-1] - run.t[0])
    lasting = {name for i, name in enumerate(run.modes[1:]) if run.t[i + 1] > run.t[i]}
    assert {label.get_text() for label in axes.get_yticklabels()} == lasting
    shares = [float(text.get_text().split()[1]) for text in axes.texts]
    assert sum(shares) == pytest.approx(100.0, abs=0.5)


def test_a_phase_portrait_jumps_where_the_run_does(disk):
    _, run = disk
    axes = plot.phase(run, "y", "u2").axes[0]
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    index = run.model.layout.u.index("u2")
    impacts = {(item.u_before[index], item.u_after[index]) for item in run.transitions if item.impulse}
    drawn = {tuple(np.asarray(line.get_ydata()).tolist()) for line in dotted}
    # the last impact ends a train: its speeds are those of the train's end, reached in two rows
    assert len(drawn & impacts) == len(impacts) - 1 > 5


def test_forces_lie_in_the_cone_that_is_drawn(disk):
    _, run = disk
    axes = plot.forces(run).axes[0]
    slope = max(line.get_ydata()[-1] / line.get_xdata()[-1] for line in axes.lines if line.get_xdata()[-1] > 0)
    for points in axes.collections:
        normal, friction = np.asarray(points.get_offsets()).T
        assert np.all(np.abs(friction) <= slope * normal + 1e-9)


def test_shared_forces_are_rings(box):
    axes = {axes.get_title(loc="left"): axes for axes in plot.forces(box).axes}
    rings, own = axes["c1"].collections
    assert len(rings.get_offsets()) > 10
    assert len(rings.get_facecolors()) == 0
    assert to_hex(rings.get_edgecolors()[0]).upper() == palette.FAINT
    standing = np.array(box.modes) == "standing"
    bearing = box.multipliers["c1"][:, 0] > 0
    recorded = box.multipliers["c1"][bearing & ~standing]
    drawn = np.asarray(own.get_offsets())
    assert all(np.isclose(drawn, row).all(axis=1).any() for row in recorded[:20])


def test_forces_that_cannot_be_drawn_are_refused_by_name(disk):
    with pytest.raises(fsm_dyn.InputError, match="no contact 'rmap'") as caught:
        plot.forces(disk[1], ["rmap"])
    assert "ramp" in str(caught.value)


def test_a_guard_reaches_zero_where_its_transition_is(disk):
    _, run = disk
    axes = plot.guards(run, ["slip speed of ramp"]).axes[0]
    line = axes.lines[-2] if len(axes.lines[-1].get_xdata()) == 2 else axes.lines[-1]
    t, value = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    sticks = [item.time for item in run.transitions if "sticks" in item.cause]
    assert sticks
    for time in sticks:
        assert np.nanmin(np.abs(value[t == time])) <= 1e-9
    rolling = np.array(dense_rows(run.rows, run.sample).modes) == "rolling"
    assert np.isnan(value[rolling]).all()


def test_an_unknown_guard_is_refused_with_those_there_are(disk):
    with pytest.raises(fsm_dyn.InputError) as caught:
        plot.guards(disk[1], ["gap of rmap"])
    assert "gap of ramp" in str(caught.value)


def test_the_energy_picture_adds_up(disk):
    _, run = disk
    stored, passed, rest = plot.energy(run).axes
    lines = {line.get_label(): np.asarray(line.get_ydata()) for line in [*stored.lines, *passed.lines]}
    total = lines["total"]
    flows = sum(values for name, values in lines.items() if name not in ("kinetic", "potential", "total")
                and not name.startswith("_"))  # fmt: skip
    assert np.abs(total - total[0] - flows).max() <= 1e-9 * np.abs(total).max()
    assert np.asarray(rest.lines[0].get_ydata()) == pytest.approx(run.energy.residual)


def test_a_mode_graph_counts_the_visits_of_a_run(disk):
    graph, run = disk
    found = diagram(graph.nx, trajectory=run)
    boxes = {box.key: box for box in found.boxes}
    stays = {name: lines[-1] for name, lines in ((key, box.lines) for key, box in boxes.items()) if "×" in lines[-1]}
    assert set(stays) == set(run.modes)
    whole = sum(float(text.split("·")[1].split()[0]) for text in stays.values())
    assert whole == pytest.approx(run.t[-1] - run.t[0], rel=5e-3)
    labels = [arrow.labels[-1] for arrow in found.arrows if arrow.labels and arrow.labels[-1].startswith("taken")]
    taken = sum(int(label.split()[1][:-1]) for label in labels)
    assert taken == len(run.transitions)
    assert not any("×" in line for box in diagram(graph.nx).boxes for line in box.lines)
