"""The planetary gear: Willis' equation, the run-up in closed form, what the brake holds; and verified derivations."""

import numpy as np
import pytest

import fsm_dyn


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("planetary_gear")


@pytest.fixture(scope="module")
def run(graph):
    return fsm_dyn.simulate(graph, until=1.5, rtol=1e-10, atol=1e-12)


def test_willis(graph, run):
    """(ω_sun - ω_carrier) / (ω_ring - ω_carrier) = -r_ring / r_sun, the ring held or not."""
    p = graph.values
    sun, carrier, ring = (
        run.u[:, graph.automaton.terms.layout.u.index(f"{name}_dot")] for name in ("sun", "carrier", "ring")
    )
    assert {"reduced", "slipping"} <= set(run.labels)
    np.testing.assert_allclose(p["rs"] * (sun - carrier), -p["rr"] * (ring - carrier), atol=1e-12)
    assert np.abs(ring).max() > 1.0  # it was not held all the time


def test_run_up_in_closed_form(graph, run):
    """Everything turns with the sun: ``I ω̇ = D - c i² ω`` until the load comes."""
    p = graph.values
    ratio = p["rs"] / (2 * (p["rs"] + p["rp"]))
    spin = p["rs"] / (2 * p["rp"])
    inertia = p["Is"] + ratio**2 * (p["Ic"] + 3 * p["mp"] * (p["rs"] + p["rp"]) ** 2) + 3 * p["Ip"] * spin**2
    early = run.t <= 0.4
    drag = p["c"] * ratio**2
    expected = 0.15 / drag * -np.expm1(-drag / inertia * run.t[early])
    sun = run.u[early, graph.automaton.terms.layout.u.index("sun_dot")]
    np.testing.assert_allclose(sun, expected, rtol=1e-8, atol=1e-9)  # the tolerance of the run, over 0.4 s


def test_the_brake_holds_what_it_can(run):
    torque = np.abs(run.multipliers["brake"]).ravel()
    slipping = np.array(run.labels) == "slipping"
    assert torque[~slipping].max() == pytest.approx(0.6, rel=1e-6)
    np.testing.assert_allclose(torque[slipping], 0.5, rtol=1e-12)


@pytest.mark.parametrize("name", ["planetary_gear", pytest.param("ball_chain", marks=pytest.mark.long)])
def test_derivations_agree(name):
    found = fsm_dyn.verify(name, states=2)
    assert found.passed, str(found)


def test_chain_in_free_flight():
    """The chain's centre moves on a parabola; energy and the moment of momentum about that centre stay."""
    graph = fsm_dyn.compile("ball_chain")
    layout = graph.automaton.terms.layout
    run = fsm_dyn.simulate(graph, until=0.5, rtol=1e-9, atol=1e-11)
    centres = [graph.automaton.point_names.index(f"G{k}") for k in range(1, 11)]
    rows = np.linspace(0, len(run.t) - 1, 20).astype(int)
    c = np.zeros(layout.n_c)
    c[layout.p_slice] = graph.parameters
    x = np.hstack([run.q[rows], run.u[rows]])
    points = graph.automaton.geometry.evaluate(run.t[rows], x, c)["points"][:, centres]
    table = [np.asarray(graph.modes["motion"].partial_velocities(q))[centres] for q in run.q[rows]]
    velocities = np.array([np.einsum("psk,s->pk", each, u) for each, u in zip(table, run.u[rows], strict=True)])
    fall = np.array([0.0, -9.81, 0.0])
    t = run.t[rows][:, None]
    start, speed = points[0].mean(axis=0), velocities[0].mean(axis=0)
    np.testing.assert_allclose(points.mean(axis=1), start + speed * t + 0.5 * fall * t**2, atol=1e-8)
    energy = run.energy.kinetic + run.energy.potential
    np.testing.assert_allclose(energy, energy[0], rtol=1e-7)
    assert len(layout.u) == 33


def test_connections_of_gears_on_a_moving_carrier(graph):
    """A mesh acts on three parts, none the parent of another; its torques add up to none, in the ratio of radii."""
    pins = fsm_dyn.simulate(graph, until=0.02).rows.pins
    p = graph.values
    for number in (1, 2, 3):
        sun, carrier, planet = (pins[f"sun_planet{number}.{part}"] for part in ("S", "K", f"P{number}"))
        np.testing.assert_allclose(sun.torque + carrier.torque + planet.torque, 0.0, atol=1e-12)
        np.testing.assert_allclose(p["rp"] * sun.torque[:, 2], p["rs"] * planet.torque[:, 2], atol=1e-12)
    assert np.abs(pins["sun_planet1.S"].torque[:, 2]).max() > 1e-4
