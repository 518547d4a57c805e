"""A run whose energy balance does not close warns: in Python, in its files, on the command line."""

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.analysis import judged_runs
from fsm_dyn.cli.console import app
from fsm_dyn.cli.study import print_study
from fsm_dyn.core.errors import EnergyWarning
from fsm_dyn.language.loader import load
from fsm_dyn.run import energy
from fsm_dyn.run.energy import energy_balance as balance
from fsm_dyn.run.energy import rows_verdicts
from fsm_dyn.run.loop_state import Rows
from fsm_dyn.runtime.abi import RowsVerdict

COARSE = {"method": "rk4", "step": 1e-3}  # a felt that is struck in five steps


@pytest.fixture(scope="module")
def coarse():
    with pytest.warns(EnergyWarning, match="felt_drop: the energy balance does not close") as caught:
        run = fsm_dyn.simulate(fsm_dyn.compile("felt_drop"), **COARSE)
    assert [item.filename for item in caught] == [__file__]
    return run


def test_the_run_has_the_warning(coarse, tmp_path):
    (text,) = coarse.warnings
    assert coarse.energy.relative_residual > 0.01
    assert f"{coarse.energy.relative_residual:.1%} of the energy exchanged" in text
    assert f"warning: {text}" in coarse.describe_outcome()
    assert fsm_dyn.open_run(coarse.save(tmp_path / "felt.run.json")).warnings == (text,)
    assert coarse.to_xarray().attrs["warnings"] == text


def test_it_names_the_step(coarse):
    residual = np.abs(np.diff(coarse.energy.residual))
    step = int(np.argmax(residual))
    assert f"between t = {coarse.t[step]:.6g} s and {coarse.t[step + 1]:.6g} s" in coarse.warnings[0]


def test_the_command_line_prints_it(coarse):
    arguments = ["run", "felt_drop", "--step", "1e-3"]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0
    assert said.output.count("the energy balance does not close") == 1
    told = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert told["warnings"] == list(coarse.warnings)


@pytest.mark.parametrize(
    ("options", "balances"),
    [({}, 0), ({"method": "radau"}, 0), (COARSE | {"step": 1e-4}, 0), ({"method": "euler", "step": 1e-3}, 2)],
)
@pytest.mark.filterwarnings("ignore::fsm_dyn.core.errors.EnergyWarning")
def test_a_balance_is_drawn_up_only_if_rows_give_cause(monkeypatch, options, balances):
    """It takes as long as the run: the states of a step are compared with their rates first."""
    drawn = []
    monkeypatch.setattr(energy, "energy_balance", lambda *args, **named: drawn.append(1) or balance(*args, **named))
    fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), **options)
    assert len(drawn) == balances


@pytest.mark.parametrize("method", ["euler", "heun", "rk4"])
@pytest.mark.parametrize(
    "model",
    [
        "felt_drop", "stick_slip_belt", "rimless_wheel",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("four_bar", "magnetic_latch", "virtual_wall")),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::fsm_dyn.core.errors.EnergyWarning")
def test_rows_of_fixed_steps_that_explain_themselves_have_a_closed_balance(model, method):
    graph, verdicts = fsm_dyn.compile(model), []
    for step in (1e-4, 1e-3, 1e-2):
        run = fsm_dyn.simulate(graph, method=method, step=step, on_failure="return", max_steps=3000)
        verdicts += rows_verdicts(run.record, len(run.model.layout.q), fixed_steps=True).tolist()
        if verdicts[-1] == RowsVerdict.EXPLAINED:
            assert run.energy.relative_residual < 0.002, step
    assert method != "euler" or RowsVerdict.CONTRADICTED in verdicts


@pytest.mark.parametrize("method", ["euler", "heun", "rk4", "moreau_jean"])
def test_fixed_steps_are_always_looked_at(method):
    graph = fsm_dyn.compile("double_pendulum_with_stop")
    for step in (2e-2, 1e-3):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = fsm_dyn.simulate(graph, method=method, step=step, on_failure="return")
        assert bool(run.warnings) == (run.energy.relative_residual > 0.01), step
        assert [item.category for item in caught] == [EnergyWarning] * len(run.warnings)


def test_states_that_their_rates_do_not_explain_are_found():
    run = fsm_dyn.simulate(fsm_dyn.compile("four_bar"), 1.0)
    assert run.warnings == ()
    record = run.record
    row = len(record.t) // 2
    record.x[row:, run.model.layout.u_slice] *= 0.9  # as if a step had lost a tenth of all speeds
    record.x_dot[row:, run.model.layout.q_slice] *= 0.9
    run.check((), (), False)
    assert f"between t = {record.t[row - 1]:.6g} s and {record.t[row]:.6g} s" in run.warnings[0]


@pytest.mark.parametrize("fixed_steps", [False, True])
@pytest.mark.parametrize("table", ["x", "x_dot", "x_mid"])
def test_a_run_that_ends_where_values_are_not_finite_has_no_balance(table, fixed_steps):
    run = fsm_dyn.simulate(fsm_dyn.compile("four_bar"), 0.1)
    getattr(run.record, table)[-2:] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.check((), (), fixed_steps)
    assert run.warnings == ()


def test_a_study_counts_open_balances(capsys):
    graph = fsm_dyn.compile("felt_drop")
    with pytest.warns(EnergyWarning, match="felt_drop: the energy balance of 2 of 2 runs does not close") as caught:
        found = fsm_dyn.study(graph, {"m": [8e-3, 9e-3]}, jobs=1, **COARSE)
    assert [item.filename for item in caught] == [__file__]
    assert found.open_energy.tolist() == [True, True]
    headings, rows = found.table()
    assert [row[headings.index("energy balance")] for row in rows] == ["open", "open"]
    assert found.to_dataset()["open_energy"].values.tolist() == [True, True]
    print_study(found, [])
    assert capsys.readouterr().out.count("warning: the energy balance of 2 of 2 runs does not close") == 1


def test_runs_of_a_study_that_are_made_together_are_looked_at_too(monkeypatch):
    """Runs whose states contradict their rates are made again alone, where a balance is drawn up."""
    simulator, looked_at = fsm_dyn.Simulator(fsm_dyn.compile("bouncing_ball")), []
    options = {"requirements": (), "outputs": ("y",), "times": np.empty(0), "run": {"until": 0.3}}
    cases = [{"h": float(h)} for h in np.linspace(0.1, 0.2, 6)]
    found = energy.rows_verdicts

    def some(rows, n_q, fixed_steps):
        looked_at.extend(found(rows, n_q, fixed_steps).tolist())
        return np.arange(len(rows.begin) - 1) % 2

    plain = judged_runs.judged_runs(simulator, options, cases)
    monkeypatch.setattr(judged_runs, "rows_verdicts", some)
    assert judged_runs.judged_runs(simulator, options, cases) == plain
    assert looked_at == [RowsVerdict.EXPLAINED] * 6
    assert not any(run.has_open_energy for run in plain)


def test_contradictions_are_found_run_by_run():
    t = np.array([0.0, 0.5, 1.0, 0.0, 0.5, 0.5, 1.0])
    u = t[:, None] ** 2
    u_dot, u_mid = 2.0 * t[:, None], np.array([[0.0], [0.0625], [0.5625], [9.0], [0.0625], [9.0], [0.5625]])
    mode = np.zeros(len(t), np.int64)
    rows = Rows(t, u, u_dot, u_mid, mode, np.zeros((len(t), 0)), begin=np.array([0, 3, 7]))
    assert rows_verdicts(rows, 0, fixed_steps=False).tolist() == [RowsVerdict.EXPLAINED] * 2
    u_mid[6] += 0.02
    assert rows_verdicts(rows, 0, fixed_steps=False).tolist() == [RowsVerdict.EXPLAINED, RowsVerdict.CONTRADICTED]
    assert rows_verdicts(rows, 0, fixed_steps=True).tolist() == [RowsVerdict.EXPLAINED] * 2  # ends alone
    u_mid[1] = np.nan
    assert rows_verdicts(rows, 0, fixed_steps=False).tolist() == [RowsVerdict.NOT_FINITE, RowsVerdict.CONTRADICTED]


@pytest.mark.parametrize("n_q", [0, 1])
def test_steps_that_jump_are_found_at_any_place(n_q):
    """Steps of any length follow a polynomial of degree three; one of them, or one behind an event, is then set off."""
    t = np.array([0.0, 0.3, 0.5, 0.5, 0.52, 1.0, 1.4, 1.4, 2.0])
    x, rate = (t**3 - t)[:, None], (3.0 * t**2 - 1.0)[:, None]
    rows = Rows(t, x, rate, x, np.zeros(len(t), np.int64), np.zeros((len(t), 0)))
    assert rows_verdicts(rows, n_q, fixed_steps=True).tolist() == [RowsVerdict.CONTRADICTED]  # the last step is alone
    x[-1] = x[-2] + 0.3 * (rate[-2] + rate[-1])
    assert rows_verdicts(rows, n_q, fixed_steps=True).tolist() == [RowsVerdict.EXPLAINED]
    for row in (1, 2, 4, 5, 6, 8):
        moved = Rows(t, x.copy(), rate, x, rows.mode, rows.held)
        moved.x[row:] += 0.01
        assert rows_verdicts(moved, n_q, fixed_steps=True).tolist() == [RowsVerdict.CONTRADICTED], row


# a linkage of two legs whose second leg folds in the instant in which the first gives no way to the chart's speeds
FOLDED = """
fsm_dyn: 1
points:
  B1: {from: O, at: 1*N.x}
  B2: {from: O, at: 1*N.y}
  K1: {from: B1, at: 1*L1.x}
  T1: {from: K1, at: 1*U1.x}
  PC: {from: P_origin, at: -1*P.x}
  K2: {from: B2, at: 1*L2.y}
  T2: {from: K2, at: 1*U2.y}
  P2: {from: PC, at: 1*P.y}
joints:
  a1: {revolute: {child: L1, at: B1, axis: N.y}}
  a2: {revolute: {parent: L1, child: U1, at: K1, axis: L1.y}}
  a3: {revolute: {parent: U1, child: P, at: T1, axis: U1.y}}
  b1: {revolute: {child: L2, at: B2, axis: N.x}}
  b2: {revolute: {parent: L2, child: U2, at: K2, axis: L2.x}}
  loop: {ball: {parent: U2, child: P, at: [T2, P2]}}
bodies:
  l1: {frame: L1, center: K1, mass: 1, inertia: {yy: 0.1}}
  u1: {frame: U1, center: T1, mass: 1, inertia: {yy: 0.1}}
  l2: {frame: L2, center: K2, mass: 1, inertia: {xx: 0.1}}
  u2: {frame: U2, center: T2, mass: 1, inertia: {xx: 0.1}}
  p: {frame: P, center: PC, mass: 2, inertia: {yy: 0.1}}
loads: [{gravity: -9.81*N.z}]
modes: {motion: {independent: [a2_dot, a3_dot]}}
initial: {a1: -1.0472, guess: {a2: -1.0472, a3: 2.0944, b1: -1.0472, b2: 2.0944}}
"""


def test_a_passage_of_a_change_point_that_loses_little_energy_warns():
    graph = fsm_dyn.compile(load(text=FOLDED))
    with pytest.warns(EnergyWarning):
        loose = fsm_dyn.simulate(graph, 0.6, rtol=1e-4)
    assert loose.change_points
    assert 1e-4 < loose.energy.relative_residual < 0.01
    assert fsm_dyn.simulate(graph, 0.6).warnings == ()


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}, {"method": "radau"}, {"method": "rk4", "step": 1e-3}])
def test_a_potential_that_jumps_warns(options):
    """A spring on ``mod`` slips from tooth to tooth, and its energy is lost each time; one on ``max`` loses none."""
    point = {
        "coordinates": ["x"],
        "points": {"P": {"from": "O", "at": "x*N.x"}},
        "bodies": {"b": {"center": "P", "mass": 1}},
    }
    teeth = {"fsm_dyn": 1, "initial": {"x": 0.1, "x_dot": 5}, **point}
    smooth = fsm_dyn.compile(
        teeth | {"name": "smooth", "loads": [{"spring": {"coordinate": "max(x, 0.3)", "stiffness": 50}}]}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", EnergyWarning)
        fsm_dyn.simulate(smooth, 0.5, **options)
    model = fsm_dyn.compile(
        teeth | {"name": "teeth", "loads": [{"spring": {"coordinate": "mod(x, 0.3)", "stiffness": 50}}]}
    )
    with pytest.warns(EnergyWarning, match="no force does its work"):
        run = fsm_dyn.simulate(model, 0.5, **options)
    lost = 0.5 * 50 * 0.3**2 * np.floor(run["x"][-1] / 0.3)
    assert lost > 0.0
    assert run.energy.residual[-1] == pytest.approx(-lost, rel=0.02)
    if not options:
        with pytest.warns(EnergyWarning, match="of 1 of 1 runs does not close"):
            assert fsm_dyn.study(model, {"initial.x": [0.1]}, until=0.5, jobs=1).open_energy.tolist() == [True]
