"""The magnetic latch, written out by hand: parabolas between samples, events as roots of their quadratics.

The hand's program shares no code with the package: it takes samples, rounds, delays and bounces by itself.
"""

import math

import numpy as np
import pytest

import fsm_dyn

UNTIL = 1.0  # s, two rebounds before the drawer comes to rest on its stop


def earliest_root(x, v, a, place, falling):
    """Return when ``x + v t + a t²/2`` first passes a position in a direction, s; infinity where it does not."""
    roots = np.roots([0.5 * a, v, x - place]) if a else np.array([(place - x) / v if v else math.inf])
    times = [r.real for r in roots if abs(r.imag) == 0.0 and r.real > 1e-12 and (v + a * r.real < 0) == falling]
    return min(times, default=math.inf)


def by_hand(p, aim, delay=1):
    """Return events (time, kind), and place, speed and force just before each sample."""
    x = v = last = 0.0
    force, waiting, mode = 0.0, [0.0] * delay, "home"
    events, rows = [], []
    for number in range(round(UNTIL / p["T"])):
        time = number * p["T"]
        rows.append((x, v, force))
        place = p["fine"] * math.floor(x / p["fine"] + 0.5)
        command = p["k"] * (aim(time) - place) - p["c"] * (place - last) / p["T"]
        waiting.append(p["resolution"] * math.floor(command / p["resolution"] + 0.5))
        force, last = waiting.pop(0), place
        if mode == "caught" and abs(force) > p["hold"]:
            mode = "moving"
            events.append((time, "released"))
        if mode == "home" and force > 0.0:
            mode = "moving"
            events.append((time, "opens"))
        left = p["T"]
        while mode == "moving" and left > 0.0:
            a = force / p["m"]
            struck, caught = earliest_root(x, v, a, 0.0, True), earliest_root(x, v, a, p["reach"], False)
            step = min(left, struck, caught)
            x, v = x + v * step + 0.5 * a * step**2, v + a * step
            left -= step
            if step == struck:
                x, v = 0.0, -p["e"] * v
                events.append((time + p["T"] - left, "strikes"))
            elif step == caught:
                x, v, mode = p["reach"], 0.0, "caught"
                events.append((time + p["T"] - left, "caught"))
    return events, np.array(rows)


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("magnetic_latch")


@pytest.mark.parametrize("values", [{}, {"fine": 1e-6, "resolution": 1e-5}, {"T": 4e-3, "hold": 4.0}, {"k": 60.0}])
@pytest.mark.parametrize("strategy", ["compiled", "online"])
def test_all_instants_and_forces_are_those_found_by_hand(graph, values, strategy):
    run = fsm_dyn.simulate(graph, UNTIL, parameters=values, strategy=strategy, rtol=1e-11, atol=1e-13)
    p = {**graph.values, **values}
    events, wanted = by_hand(p, lambda t: np.interp(t, [0.05, 0.1, 0.5, 0.8], [0.0, 0.11, 0.11, -0.01]))
    kinds = {("home", "moving"): "opens", ("moving", "caught"): "caught", ("caught", "moving"): "released"}
    met = [kinds.get((item.source, item.target), "strikes") for item in run.transitions]
    assert met == [kind for _, kind in events]
    assert {"opens", "caught", "released"} <= set(met)
    assert [item.time for item in run.transitions] == pytest.approx([time for time, _ in events], abs=1e-10)
    columns = dict(run.rows.columns())
    first = [np.flatnonzero(np.abs(run.t - k * p["T"]) < 1e-9)[0] for k in range(len(wanted))]
    found = np.array([columns[name][first] for name in ("x", "x_dot", "drive")]).T
    assert found[1:] == pytest.approx(wanted[1:], abs=1e-10)  # m, m/s, N


def test_the_magnet_releases_at_the_first_sample_whose_force_is_too_large(graph):
    run = fsm_dyn.simulate(graph, UNTIL)
    (released,) = (item for item in run.transitions if (item.source, item.target) == ("caught", "moving"))
    period = graph.values["T"]
    assert released.time == round(released.time / period) * period
    caught = (np.array(run.labels) == "caught") & (run.t < released.time)
    held = np.abs(run["drive"][caught])
    assert held.max() <= graph.values["hold"] < abs(run["drive"][run.t > released.time][0])
    force = np.abs(run.multipliers["magnet"][caught, 0])
    assert force == pytest.approx(held, abs=1e-12)  # what it holds is the drive


@pytest.mark.parametrize("method", ["rk4", "radau", "bdf"])
def test_other_methods_take_the_same_samples(graph, method):
    options = {"step": 1e-3} if method == "rk4" else {}
    run, other = fsm_dyn.simulate(graph, UNTIL), fsm_dyn.simulate(graph, UNTIL, method=method, **options)
    assert [item.time for item in other.transitions] == pytest.approx([item.time for item in run.transitions], abs=1e-9)
    assert other.rows.memory["servo.samples"][-1] == run.rows.memory["servo.samples"][-1] == 200
