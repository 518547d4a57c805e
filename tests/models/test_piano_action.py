"""The piano action does, by its contacts alone, what players and technicians know of it.

Times and sizes are of the model's own estimates; what is tested are laws, orders and closed accounts, with margins that
say how far an order may bend.
"""

import numpy as np
import pytest
from scipy.ndimage import median_filter

import fsm_dyn

PRESS = 0.05
STROKES = {"piano": 2.0, "mezzo": 5.0, "forte": 10.0}  # N, held


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("piano_action")


@pytest.fixture(scope="module")
def led():
    return fsm_dyn.compile("piano_action:motion")


@pytest.fixture(scope="module")
def strokes(graph):
    return {
        name: fsm_dyn.simulate(graph, until=0.6, inputs={"finger": {"steps": [(0, 0), (PRESS, force), (0.4, 0)]}})
        for name, force in STROKES.items()
    }


def slowly(led, duration, **more):
    """A stroke of the whole dip by motion, as one half of a cosine."""
    speed = f"where(t < {duration}, 0.0049*pi/{duration}*sin(pi*t/{duration}), 0)"
    return fsm_dyn.simulate(led, until=duration + 0.2, inputs={"speed": speed}, **more)


def first(run, words, after=0.0):
    return next(x for x in run.transitions if words in x.cause and x.time >= after)


def speed_at_string(run):
    time = first(run, "string closes").time
    return float(run.sample([time - 1e-6])["hammer_speed"][0])


def test_it_rests_on_jack_and_lever_together(graph):
    run = fsm_dyn.simulate(graph, until=0.04)
    assert run.modes[0].startswith("rest")
    assert np.abs(run.q - run.q[0]).max() <= 1e-9  # a rest: nothing moves, for 40 ms
    for contact in ("back_rail", "capstan_heel", "jack_knuckle_face", "jack_stop", "lever_knuckle", "lever_stop"):
        assert run.multipliers[contact][0, 0] > 0.0, contact
    assert run["hammer_below"][0] == pytest.approx(46.5e-3, abs=0.3e-3)  # the impact


def test_hammer_moves_five_times_the_key(led):
    """From the rest to shortly before let-off; the literature's round figure is 5."""
    run = slowly(led, 1.0)
    before = run["key_travel"] < 5e-3
    ratio = np.polyfit(run["key_travel"][before], -run["hammer_below"][before], 1)[0]
    assert 4.5 < ratio < 5.5


def test_the_weight_a_player_feels(led):
    """About 50 g at the key's front, with friction; sources give 47 g to 55 g for a grand."""
    run = slowly(led, 2.0)
    middle = (run["key_travel"] > 3e-3) & (run["key_travel"] < 5e-3)
    felt = -run.multipliers["led"][middle, 0] / 9.81
    assert 0.035 < felt.mean() < 0.07


@pytest.mark.parametrize("let_off", [0.5e-3, 1.1e-3, 3e-3])
def test_let_off_is_where_the_technician_sets_it(led, let_off):
    """A slow stroke takes the hammer just so near, and sounds nothing."""
    run = slowly(led, 1.2, parameters={"let_off": let_off})
    assert run["hammer_below"].min() == pytest.approx(let_off, abs=0.2e-3)
    assert not any("string closes" in x.cause for x in run.transitions)


def test_let_off_is_felt_in_a_slow_stroke_and_not_in_a_fast_one(led):
    """The force in the band of let-off over that before it."""

    def bump(duration):
        run = slowly(led, duration)
        force, travel = -run.multipliers["led"][:, 0], run["key_travel"]
        before = np.median(force[(travel > 3.5e-3) & (travel < 5.0e-3)])
        return np.median(force[(travel > 7.8e-3) & (travel < 8.6e-3)]) / before

    assert bump(1.2) > 1.2
    assert bump(0.1) < 1.1


@pytest.mark.parametrize("duration", [0.12, 0.16])
def test_the_hammer_is_caught_after_one_strike(led, duration):
    """It does not come back to the string."""
    run = slowly(led, duration)
    assert sum("string closes" in x.cause for x in run.transitions) == 1


def test_the_bump_is_where_regulation_puts_it(led):
    """A key at 8 mm/s: 0.15 to 0.25 N, 1 to 2 mm wide, the hammer then 1 to 1.5 mm below the string."""
    speed, screw = 8e-3, 9.2e-3  # m/s, m: before the screw stops the lever
    run = fsm_dyn.simulate(led, until=9.9e-3 / speed, inputs={"speed": str(speed)})
    rows = run.sample(np.linspace(0.0, run.t[-1], 8000))
    travel, force = rows["key_travel"], median_filter(-rows.multipliers["led"][:, 0], 41)
    more = force - np.median(force[(travel > 6.8e-3) & (travel < 7.4e-3)])
    late = (travel > 7.4e-3) & (travel < screw)
    assert 0.15 < more[late].max() < 0.25
    felt = travel[late & (more > 0.5 * more[late].max())]
    assert 7.6e-3 < felt.min() < felt.max() < 9.0e-3
    assert 1.0e-3 < felt.max() - felt.min() < 2.0e-3
    assert np.median(more[(travel > screw - 0.1e-3) & (travel < screw)]) < 0.07  # and gives way after it
    assert 1.0e-3 < rows["hammer_below"].min() < 1.6e-3


def test_strokes_run_through_their_stages_each_with_its_cause(strokes):
    for name, run in strokes.items():
        assert run.outcome.name == "done"
        button = first(run, "regulating_button closes").time
        free = first(run, "jack_knuckle", button)
        string = first(run, "string closes").time
        caught = first(run, "backcheck_face closes", string).time
        assert PRESS < button <= free.time < string < caught, name
        assert "leaves" in free.cause or "opens" in free.cause
        assert all(x.cause for x in run.transitions)
        assert run.at(0.395).q[4] < 0.0  # below the string
        assert any("jack_stop closes" in x.cause for x in run.transitions if x.time > 0.4)  # it resets


def test_forte_is_checked(strokes):
    assert any(mode.startswith("checked") for mode in strokes["forte"].modes)
    held = strokes["forte"].sample(np.linspace(0.3, 0.39, 5))
    np.testing.assert_allclose(held["hammer_below"], held["hammer_below"][0], atol=1e-4)
    assert 10e-3 < held["hammer_below"][0] < 25e-3


def test_a_stronger_stroke_strikes_faster(strokes):
    speeds = [speed_at_string(strokes[name]) for name in STROKES]
    assert speeds[0] > 0.5
    assert speeds == sorted(speeds)


def test_energy_closes(strokes):
    """To 1e-6 of what the finger put in."""
    for run in strokes.values():
        account = run.energy
        assert np.abs(account.residual).max() <= 1e-6 * np.abs(account.work["finger_force"]).max()
        for heat in account.friction.values():
            assert np.diff(heat).min() >= -1e-12


def test_a_second_blow_from_a_key_half_up(graph):
    """After the check a partial release lets the jack back under the knuckle (the action's name: repetition)."""
    press = {"steps": [(0, 0), (PRESS, 10), (0.3, 0), (0.3145, 5), (0.5, 0)]}
    run = fsm_dyn.simulate(graph, until=0.45, inputs={"finger": press})
    released = (run.t > 0.3) & (run.t < 0.34)
    assert run["key_travel"][released].min() > 2.5e-3
    back = first(run, "jack_stop closes", 0.3).time
    second = first(run, "string closes", 0.3)
    assert back < second.time
    assert run.sample([second.time - 1e-6])["hammer_speed"][0] > 0.5


def test_let_off_set_too_late_blocks(graph):
    """The hammer is held against the string, and the mode says so."""
    push = {"linear": [(0, 0), (0.3, 0), (0.8, 6), (1.2, 6)]}
    run = fsm_dyn.simulate(graph, until=1.2, inputs={"finger": push}, parameters={"let_off": -6e-3})
    assert run.modes[-1].startswith("blocked")
    assert run["hammer_below"][-1] < 0.0
    assert run.multipliers["string"][-1, 0] > 1.0


TIGHT = {"rtol": 1e-11, "atol": 1e-13}


def blow(run):
    """The time (s) of the first impact inside the action: there the led key's force is an impulse."""
    return next(x.time for x in run.transitions if any(np.abs(part).max() > 1e-9 for part in x.impulse.values()))


def test_the_motion_of_a_force_takes_that_force(graph, led):
    """The key led as a force has moved it, up to the first blow inside the action.

    The speed is given as 1600 straight pieces, whose accelerations are the means over each: in the middle of a piece
    the force is right to the second order, but where the back rail lets go within one.  Before friction has let go, at
    9 ms, the key stands and its motion does not tell the force.
    """
    pushed = fsm_dyn.simulate(graph, until=0.1, inputs={"finger": "1.5*(1 - cos(pi*min(t/0.06, 1)))"}, **TIGHT)
    rest = {**fsm_dyn.static_equilibrium(graph).initial, "settle": False}
    del rest["mode"]  # the led action has other names
    times = np.linspace(0.0, 0.999 * blow(pushed), 1601)
    rows = pushed.sample(times)
    speed = {"linear": list(zip(times, 0.22 * np.cos(rows["k"]) * rows["k_dot"], strict=True))}
    run = fsm_dyn.simulate(led, until=times[-1], inputs={"speed": speed}, initial=rest, **TIGHT)
    middles = (times[1:] + times[:-1]) / 2
    middles = middles[middles > 0.0105]
    back = run.sample(middles)
    np.testing.assert_allclose(back["key_travel"], pushed.sample(middles)["key_travel"], atol=1e-8)
    error = np.abs(back.multipliers["led"][:, 0] + 1.5 * (1 - np.cos(np.pi * np.minimum(middles / 0.06, 1))))
    assert error.max() < 1e-3  # N, of 3 N
    assert np.mean(error) < 5e-6


def test_the_force_of_a_motion_makes_that_motion(graph, led):
    """And the reverse: what a led key takes, given as a force, moves the key as it was led.

    Both begin in motion, where friction has its direction; the force is given as 1600 straight pieces.
    """
    start = {**fsm_dyn.static_equilibrium(graph).initial, "settle": False}
    del start["mode"]
    by_motion = fsm_dyn.simulate(led, 0.1, inputs={"speed": "0.196*sin(pi*t/0.1)**2"}, initial=start, **TIGHT)
    begin, end = 2e-3, 0.9999 * blow(by_motion)
    assert end > 0.05
    times = np.linspace(begin, end, 1601)
    force = -by_motion.sample(times).multipliers["led"][:, 0]
    table = {"linear": list(zip(times - begin, force, strict=True))}
    here, layout = by_motion.at(begin), graph.automaton.terms.layout
    state = dict(zip((*layout.q, *layout.u), map(float, (*here.q, *here.u)), strict=True))
    by_force = fsm_dyn.simulate(
        graph, times[-1] - begin, inputs={"finger": table}, initial={**state, "settle": False}, **TIGHT
    )
    looks = np.linspace(0.0, by_force.t[-1], 60)
    led_rows, free_rows = by_motion.sample(begin + looks), by_force.sample(looks)
    for name, size in (("key_travel", 0.01), ("hammer_below", 0.045)):
        np.testing.assert_allclose(free_rows[name], led_rows[name], atol=1e-6 * size)


@pytest.mark.parametrize("duration", [0.3, 0.08, 0.05])
def test_a_led_stroke_of_any_speed_runs_to_its_end(led, duration):
    """Capstan and knuckles stuck at rest contradict each other as soon as the key is led; none of it stops the run.

    The led key loses nothing: what its row does is kept, lost in felts and by friction, to 1e-6 of the work.
    """
    run = slowly(led, duration)
    assert run.outcome.name == "done"
    assert "became inconsistent" in run.transitions[0].cause or "slides" in run.transitions[0].cause
    assert run.energy.relative_residual <= 1e-6


@pytest.mark.parametrize("release", [0.0, 0.2, 0.5, 2.0])
def test_a_key_pressed_slowly_may_be_let_go_of_at_any_pace(graph, release):
    """At the check capstan, jack and lever come to their friction limits in one instant; none goes round in circles."""
    table = [(0.0, 0.0), (0.1, 0.0), (2.1, 2.0), (2.1 + release, 0.0)]
    run = fsm_dyn.simulate(graph, until=3.1 + release, inputs={"finger": {"linear": table}})
    assert run.outcome.name == "done"
    assert run.modes[-1].startswith("rest")
    assert run.energy.relative_residual <= 1e-6
