"""Limit cycles against closed forms: rimless wheel, belt oscillator, a ball between walls."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import load

WALLS = {
    "fsm_dyn": 1,
    "name": "walls",
    "parameters": {"m": 2, "c": 0.3, "a": 1.0, "e": 0.7},
    "coordinates": ["x"],
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"ball": {"center": "P", "mass": "m"}},
    "speeds": {"v": "rate(x)"},
    "contacts": {"left": {"gap": "x + a", "restitution": "e"}, "right": {"gap": "a - x", "restitution": "e"}},
    "loads": [{"force": "c*v*N.x", "at": "P"}],
    "initial": {"x": 0, "v": 1.0},
}


@pytest.fixture(scope="module")
def wheel():
    return fsm_dyn.compile("rimless_wheel")


@pytest.fixture(scope="module")
def walls():
    return fsm_dyn.compile(WALLS)


@pytest.mark.parametrize("section", ["next closes", "the next spoke takes over", "x rising"])
def test_rimless_wheel(wheel, section):
    """Steady speed, time of a step and multiplier cos²(2 alpha); tolerances ten times what the runs' rtol leaves."""
    cycle = fsm_dyn.limit_cycle(wheel, section)
    alpha, slope = np.pi / 8, 0.08
    after = np.sqrt(4 * 9.81 * np.sin(alpha) * np.sin(slope)) / np.tan(2 * alpha)
    np.testing.assert_allclose(after, 1.0954628396476571, rtol=1e-15)
    np.testing.assert_allclose(cycle.period, 1.034549811423279, rtol=1e-10)
    np.testing.assert_allclose(cycle.floquet_multipliers, [0.5], rtol=1e-9)
    assert cycle.stable
    if section != "x rising":
        spin = cycle.u[0] * cycle.q[1] - cycle.u[1] * cycle.q[0]
        np.testing.assert_allclose(spin, after, rtol=1e-10)
        assert cycle.mode == "rolling"


@pytest.mark.parametrize("spokes", [9, 12])
def test_rimless_wheel_of_other_spokes(wheel, spokes):
    slope = 0.15
    cycle = fsm_dyn.limit_cycle(wheel, "next closes", parameters={"n": spokes, "slope": slope}, initial={"vx": 2.0})
    alpha = np.pi / spokes
    np.testing.assert_allclose(cycle.floquet_multipliers, [np.cos(2 * alpha) ** 2], rtol=1e-8)
    after = np.sqrt(4 * 9.81 * np.sin(alpha) * np.sin(slope)) / np.tan(2 * alpha)
    np.testing.assert_allclose(np.hypot(*cycle.u), after, rtol=1e-9)


def test_rimless_wheel_runs_into_its_cycle(wheel):
    """The multiplier is what a run shows: deviations halve from step to step."""
    cycle = fsm_dyn.limit_cycle(wheel, "next closes")
    run = fsm_dyn.simulate(wheel, until=12.0)
    energy = np.array([0.5 * np.dot(x.u_after, x.u_after) for x in run.transitions]) - 0.5 * np.dot(cycle.u, cycle.u)
    np.testing.assert_allclose(energy[1:8] / energy[:7], 0.5, rtol=1e-4)


@pytest.mark.parametrize("section", ["belt sticks", "belt slides", "v falling"])
def test_belt_oscillator(section):
    graph = fsm_dyn.compile("stick_slip_belt")
    values = {"m": 1.0, "k": 1.0, "press": 1.0, "mu_s": 1.0, "mu_k": 0.5}
    cycle = fsm_dyn.limit_cycle(graph, section, parameters=values, inputs={"v_belt": 0.2}, initial={"x": -0.2})
    np.testing.assert_allclose(cycle.period, 8.902605407814523, rtol=1e-10)
    np.testing.assert_allclose(cycle.floquet_multipliers, 0.0, atol=1e-9)  # what sticks forgets where it came from
    assert len(cycle.floquet_multipliers) <= 1


def test_half_cycle_by_symmetry(walls):
    """Pushed by its own speed the ball gains 2 a c/m from wall to wall and keeps the part e at each."""
    speed = 0.7 * 0.3 / 2 * 2 / (1 - 0.7)
    half = np.log(1 / 0.7) / (0.3 / 2)
    whole = fsm_dyn.limit_cycle(walls, "left closes")
    np.testing.assert_allclose(whole.period, 2 * half, rtol=1e-10)
    np.testing.assert_allclose(whole.floquet_multipliers, [0.49], rtol=1e-9)
    step = fsm_dyn.limit_cycle(walls, "left closes", symmetry={"x": "-x", "v": "-v"})
    np.testing.assert_allclose(step.period, half, rtol=1e-10)
    np.testing.assert_allclose(step.floquet_multipliers, [0.7], rtol=1e-9)
    np.testing.assert_allclose(step.u, [speed], rtol=1e-10)
    crossing = fsm_dyn.limit_cycle(walls, "x falling", symmetry={"x": "-x", "v": "-v"})
    np.testing.assert_allclose(crossing.floquet_multipliers, [0.7], rtol=1e-9)


def test_advancing_coordinates_are_left_out_of_the_return():
    """A ball that bounces on a driven-less floor loses; with a gain above it keeps a height while it travels."""
    model = {
        **WALLS,
        "name": "skipping",
        "coordinates": ["x", "y"],
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "speeds": {"w": "rate(x)", "v": "rate(y)"},
        "contacts": {"left": {"gap": "y + a", "restitution": "e"}, "right": {"gap": "a - y", "restitution": "e"}},
        "loads": [{"force": "c*v*N.y + (1 - w)*N.x", "at": "P"}],
        "initial": {"x": 0, "v": 1.0, "w": 0.3},
    }
    graph = fsm_dyn.compile(model)
    cycle = fsm_dyn.limit_cycle(graph, "left closes", advancing=["x"])
    period = 2 * np.log(1 / 0.7) / (0.3 / 2)
    np.testing.assert_allclose(cycle.period, period, rtol=1e-10)
    np.testing.assert_allclose(cycle.floquet_multipliers, [0.49, np.exp(-period / 2)], rtol=1e-8)
    np.testing.assert_allclose(cycle.u[0], 1.0, rtol=1e-9)
    with pytest.raises(fsm_dyn.RunError, match="advancing"):
        fsm_dyn.limit_cycle(graph, "left closes", max_return_time=20)


def test_a_cycle_goes_round_again(walls):
    cycle = fsm_dyn.limit_cycle(walls, "left closes")
    run = fsm_dyn.simulate(walls, until=3.1 * cycle.period, initial=cycle.initial, rtol=1e-11, atol=1e-13)
    strikes = [x.time for x in run.transitions if x.cause.startswith("left")]
    np.testing.assert_allclose(np.array(strikes[-2:]) / cycle.period, [2, 3], rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"section": "left opens"}, "does not return to 'left opens' within 20 s"),
        ({"section": "up closes"}, "no contact 'up'"),
        ({"section": "left"}, "the section is not valid"),
        ({"section": "x + y falling"}, "y"),
        ({"section": "left closes", "advancing": ["y"]}, "no coordinate or memory 'y'"),
        ({"section": "left closes", "symmetry": {"x": "-x"}}, "rates of the coordinates do not follow"),
        ({"section": "left closes", "symmetry": {"x": "z"}}, "unknown 'z'"),
        ({"section": "left closes", "guess": {"x": 0.0, "v": 0.0}}, "does not return"),
    ],
)
def test_says_what_is_wrong(walls, arguments, words):
    with pytest.raises(fsm_dyn.FsmDynError, match=words):
        fsm_dyn.limit_cycle(walls, max_return_time=20, **arguments)


def test_motions_that_depend_on_time_are_refused():
    with pytest.raises(fsm_dyn.InputError, match="depends on the time"):
        fsm_dyn.limit_cycle(fsm_dyn.compile("rolling_disk"), "ramp closes")


EVERY_OTHER_KICK = """
fsm_dyn: 1
name: every_other_kick
parameters: {k: 4 N/m, J: 0.3 N*s, c: 0.2 N*s/m}
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}}
bodies: {b1: {center: P, mass: 1 kg}}
memory: {n: 0, total: 0}
loads: [{spring: {coordinate: x, stiffness: k, damping: c}}]
transitions:
  - from: "*"
    when: x
    crossing: rising
    impulse: [{linear: "n*J*N.x", at: P}]
    set: {n: 1 - n, total: total + 1}
    because: kick
initial: {x: -0.5 m}
"""


@pytest.mark.parametrize("section", ["kick", "x falling", "x_dot rising"])
def test_memory_is_part_of_the_state_of_a_cycle(tmp_path, section):
    """A kick at every other passage: the cycle lasts two swings, and a run that begins on it returns to it."""
    (tmp_path / "kicks.yaml").write_text(EVERY_OTHER_KICK)
    graph = fsm_dyn.compile(tmp_path / "kicks.yaml")
    cycle = fsm_dyn.limit_cycle(graph, section)
    swing = 2 * np.pi / np.sqrt(4.0 - 0.1**2)
    assert cycle.period == pytest.approx(2 * swing, rel=1e-9)
    assert cycle.floquet_multipliers == pytest.approx([np.exp(-0.2 * swing)], rel=1e-8)
    assert set(cycle.memory) == {"n", "total"}
    long = fsm_dyn.simulate(graph, until=200.0)
    speeds = [abs(item.u_after[0]) for item in long.transitions[-2:]]  # after a kick, and a swing later without one
    assert max(speeds) == pytest.approx(0.3 / (1 - np.exp(-0.2 * swing)), rel=1e-7)
    again = fsm_dyn.simulate(graph, until=3 * cycle.period, initial=cycle.initial, rtol=1e-11, atol=1e-13)
    kicked = [abs(item.u_after[0]) for item in again.transitions]
    assert kicked[-2:] == pytest.approx(kicked[-4:-2], rel=1e-8)
    assert sorted(kicked[-2:]) == pytest.approx(sorted(speeds), rel=1e-7)


def test_memory_that_keeps_a_speed_is_a_state(tmp_path):
    """A ball is lifted at each impact as if it kept the mean of all speeds before: the map of (v, kept) is linear."""
    text = """
fsm_dyn: 1
name: keeps
parameters: {e: 0.5, up: 2}
coordinates: [y]
points: {P: {from: O, at: y*N.y}}
bodies: {ball: {center: P, mass: 1}}
memory: {kept: 0}
contacts: {ground: {gap: y, restitution: e}}
loads: [{gravity: -9.81*N.y}]
transitions:
  - from: "*"
    on: ground closes
    reset: {y_dot: y_dot + up + 0.2*kept}
    set: {kept: 0.5*kept + 0.5*y_dot}
    because: lift
initial: {y: 1}
"""
    (tmp_path / "keeps.yaml").write_text(text)
    graph = fsm_dyn.compile(tmp_path / "keeps.yaml")
    cycle = fsm_dyn.limit_cycle(graph, "lift")
    # (v, kept) after a lift: v' = e v + up + 0.2 kept, kept' = (kept + e v)/2
    matrix = np.array([[0.5, 0.2], [0.25, 0.5]])
    fixed = np.linalg.solve(np.eye(2) - matrix, [2.0, 0.0])
    assert [cycle.u[0], cycle.memory["kept"]] == pytest.approx(fixed.tolist(), rel=1e-9)
    expected = sorted(np.linalg.eigvals(matrix), key=lambda value: -abs(value))
    assert np.sort(cycle.floquet_multipliers.real)[::-1] == pytest.approx(expected, rel=1e-7)
    assert cycle.states == ("y", "y_dot", "kept")
    assert cycle.initial["kept"] == cycle.memory["kept"]


def test_memory_that_never_returns_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "kicks.yaml").write_text(EVERY_OTHER_KICK.replace("n*J", "J*(1 + n/100)").replace("1 - n", "n + 1"))
    graph = fsm_dyn.compile(tmp_path / "kicks.yaml")
    with pytest.raises(fsm_dyn.RunError, match=r"the memory that it had there.*n was 4 and became 5, 6") as refused:
        fsm_dyn.limit_cycle(graph, "kick", max_return_time=20)
    assert "advancing=['NAME']" in str(refused.value)
    assert fsm_dyn.limit_cycle(graph, "kick", advancing=["n"]).memory["n"] == 1.0


def test_memory_that_counts_is_no_state(wheel):
    assert fsm_dyn.limit_cycle(wheel, "next closes").states == ("x", "y", "vx", "vy")


def test_a_ratchet_repeats_itself_tooth_by_tooth():
    """Its tooth enters the gaps: with its growth named, the mechanism is the same one tooth later, and not without."""
    from fsm_dyn.analysis.limit_cycle import Relabelling

    graph = fsm_dyn.compile("ratchet")
    automaton, layout = graph.automaton, graph.automaton.terms.layout
    context, x = np.zeros(layout.n_c), np.array([0.1, 0.01, 0.3, 0.2])
    context[layout.p_slice] = graph.parameters
    pitch = graph.values["pitch"]
    found = Relabelling.of(automaton, {}, {"q": pitch, "tooth": 1.0}, x, context)
    assert (found.contacts, found.memory_shift.tolist()) == ((0, 1), [-1.0])
    with pytest.raises(fsm_dyn.InputError, match="contact 'flank' has no counterpart"):
        Relabelling.of(automaton, {}, {"q": pitch}, x, context)


@pytest.mark.parametrize("section", ["floor1 closes", "y_dot falling", "y_dot + 1 falling", "y - 0.5 falling"])
def test_every_section_has_the_same_multipliers(section):
    """An elastic ball keeps its height, and a wind that grows with its speed drives it by exp(c T / m) in a hop."""
    ball = fsm_dyn.compile({
        "fsm_dyn": 1, "name": "ball", "coordinates": ["y", "x"], "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"ball": {"center": "P", "mass": 1}}, "contacts": {"floor1": {"gap": "y", "restitution": 1}},
        "loads": [{"gravity": "-9.81*N.y"}, {"force": "0.2*x_dot*N.x", "at": "P"}], "initial": {"y": 1},
    })  # fmt: skip
    cycle = fsm_dyn.limit_cycle(ball, section, advancing=["x"])
    np.testing.assert_allclose(cycle.period, 2 * np.sqrt(2 / 9.81), rtol=1e-9)
    np.testing.assert_allclose(cycle.floquet_multipliers, [np.exp(0.2 * cycle.period), 1.0], rtol=1e-8)
    assert not cycle.stable


@pytest.mark.parametrize(("section", "corners"), [("q + 0.3 falling", 1), ("rim_1 closes", 8)])
def test_distance_without_effect_has_no_multiplier(section, corners):
    """An octagon rolls from corner to corner: the share of the spin kept by an impact, squared."""
    places = ", ".join(f"[sin({k}*pi/4)/2, -cos({k}*pi/4)/2]" for k in range(8))
    text = f"""
fsm_dyn: 1
name: octagon
coordinates: [x, y, q]
frames: {{B: {{parent: N, rotate: {{z: q}}}}}}
points: {{C: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{wheel: {{frame: B, center: C, mass: 2, inertia: {{zz: 0.1}}}}}}
shapes: {{hub: {{polygon: {{frame: B, points: [{places}]}}}}, slope: {{line: {{along: N.x}}, side: N.y}}}}
contacts: {{rim: {{between: [hub, slope], friction: inf}}}}
loads: [{{gravity: 9.81*(sin(0.1)*N.x - cos(0.1)*N.y)}}]
initial: {{y: 0.5, q_dot: -2, x_dot: 1}}
"""
    growth = {"q": -corners * np.pi / 4, "x": corners * np.sin(np.pi / 8)}
    cycle = fsm_dyn.limit_cycle(fsm_dyn.compile(load("octagon", text=text)), section, advancing=growth)
    kept = (0.1 + 2 * 0.5**2 * np.cos(np.pi / 4)) / (0.1 + 2 * 0.5**2)
    np.testing.assert_allclose(cycle.floquet_multipliers, [kept ** (2 * corners)], rtol=1e-6)
    assert cycle.stable
