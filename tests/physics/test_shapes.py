"""Runs with contacts of shapes: nothing sinks, faces end where they end, corners take over in the same instant."""

import numpy as np
import pytest

import fsm_dyn

G = 9.81


def planar(shapes, contacts, initial, inertia="m*(a**2 + b**2)/12", **more):
    """A body ``B`` that moves freely in the plane under its weight."""
    return {
        "fsm_dyn": 1,
        "parameters": {"m": 4, "a": 0.4, "b": 0.2, "r": 0.2, "g": G},
        "coordinates": ["x", "y", "q"],
        "frames": {"B": {"rotate": {"z": "q"}}},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}, **more.pop("points", {})},
        "bodies": {"body": {"frame": "B", "center": "C", "mass": "m", "inertia": {"zz": inertia}}},
        "shapes": shapes,
        "contacts": contacts,
        "loads": [{"gravity": "-g*N.y"}],
        "initial": initial,
        **more,
    }


BOX = {"polygon": {"frame": "B", "points": [["-a/2", "-b/2"], ["a/2", "-b/2"], ["a/2", "b/2"], ["-a/2", "b/2"]]}}
GROUND = {"line": {"along": "N.x"}, "side": "N.y"}
TABLE = {"segment": {"points": [["-2", "0.5"], ["1", "0.5"]]}, "side": "N.y"}


@pytest.fixture(scope="module")
def tumbling():
    contacts = {"hits": {"between": ["box", "ground"], "friction": 0.4, "restitution": 0.5}}
    return fsm_dyn.compile(planar({"box": BOX, "ground": GROUND}, contacts, {"y": 1}), cache=False)


@pytest.mark.parametrize("seed", range(6))
def test_a_tumbling_box_never_sinks(tumbling, seed):
    random = np.random.default_rng(seed)
    start = {"y": 0.6, "q": random.uniform(-3, 3), "q_dot": random.uniform(-8, 8), "x_dot": random.uniform(-2, 2)}
    run = fsm_dyn.simulate(tumbling, until=2.0, initial=start)
    samples = run.sample(np.linspace(0.0, 2.0, 4001))
    x, y, q = samples.x[:, 0], samples.x[:, 1], samples.x[:, 2]
    assert np.isfinite(x).all()
    corners = [y + px * np.sin(q) + py * np.cos(q) for px in (-0.2, 0.2) for py in (-0.1, 0.1)]
    assert np.min(corners) >= -1e-9
    assert run.energy.relative_residual <= 1e-7


def test_a_wheel_rolls_over_the_end_of_a_face_without_a_jump():
    shapes = {"rim": {"circle": {"frame": "B", "radius": "r"}}, "table": TABLE}
    start = {"x": 0, "y": 0.7, "x_dot": 0.5, "q_dot": -2.5}
    mechanism = planar(shapes, {"top": {"between": ["rim", "table"], "friction": "inf"}}, start, "m*r**2/2")
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism, cache=False), until=2.4)
    first, second = run.transitions[:2]
    assert first.time == pytest.approx(2.0, abs=1e-12)
    assert (first.source, first.target) == ("top_face_stick", "top_end_stick")
    np.testing.assert_allclose(first.u_after, first.u_before, atol=1e-11)
    # about the end: (3/4) m r² w² + m g r cos(angle) is kept, and it lets go where r w² = g cos(angle)
    angle = np.arccos((0.75 * 2.5**2 * 0.2 + G) / (G + 0.75 * G))
    now = run.sample([second.time])
    assert second.target == "all_free"
    assert np.arctan2(now.x[0, 0] - 1.0, now.x[0, 1] - 0.5) == pytest.approx(angle, abs=1e-9)
    assert now.x[0, 5] == pytest.approx(-np.sqrt(G * np.cos(angle) / 0.2), abs=1e-8)


def test_a_box_slides_over_the_edge_and_tips_where_its_centre_passes_it():
    mechanism = planar({"box": BOX, "table": TABLE}, {"rests": {"between": ["box", "table"]}}, {"x": 0.5, "y": 0.6})
    mechanism["initial"]["x_dot"] = 0.5
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism, cache=False), until=1.2)
    first, second = run.transitions[:2]
    assert [first.time, second.time] == pytest.approx([0.6, 1.0], abs=1e-10)
    assert set(first.source.split("+")) == {"rests_1_face_closed", "rests_2_face_closed"}
    assert set(first.target.split("+")) == {"rests_1_face_closed", "rests_face1_end_closed"}
    assert second.target == "rests_face1_end_closed"
    np.testing.assert_allclose(first.u_after, first.u_before, atol=1e-12)
    before = run.sample(np.linspace(0.0, 0.999, 500))
    np.testing.assert_allclose(before.x[:, 1], 0.6, atol=1e-12)


@pytest.mark.parametrize("rtol", [1e-8, 1e-9, 1e-10])
@pytest.mark.parametrize("strategy", ["compiled", "online"])
def test_a_ball_rolls_through_a_dish_and_leaves_at_its_rim(strategy, rtol):
    """Near the rim the gap to its end falls with the square of the way left: rounding must not make a blow of it."""
    shapes = {
        "rim": {"circle": {"frame": "B", "radius": "r"}},
        "dish": {"arc": {"radius": 1, "angles": ["200*pi/180", "300*pi/180"]}, "side": "inside"},
    }
    start = {"x": "-0.8*cos(0.5)", "y": "-0.8*sin(0.5)"}
    contacts = {"rolls": {"between": ["rim", "dish"], "friction": "inf"}}
    graph = fsm_dyn.compile(planar(shapes, contacts, start, "m*r**2/2"))
    run = fsm_dyn.simulate(graph, until=2.0, strategy=strategy, rtol=rtol)
    leaving = run.transitions[0]
    assert "leaves" in leaving.cause
    now = run.sample([leaving.time])
    angle = np.arctan2(now.x[0, 1], now.x[0, 0])
    assert np.degrees(angle) == pytest.approx(-60.0, abs=1e-8)
    speed = np.hypot(now.x[0, 3], now.x[0, 4])
    assert speed**2 == pytest.approx(4 / 3 * G * 0.8 * (np.sin(np.pi / 3) - np.sin(0.5)), rel=1e-6)


def test_a_transition_may_wait_for_a_contact_to_leave():
    stop = [{"from": "*", "on": "slides leaves_face", "stop": True, "because": "it slid off"}]
    mechanism = planar(
        {"table": TABLE}, {"slides": {"point": "C", "on": "table"}}, {"x": 0, "y": 0.5, "x_dot": 2}, transitions=stop
    )
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism, cache=False), until=2.0)
    assert run.t[-1] == pytest.approx(0.5, abs=1e-12)
    assert "it slid off" in run.transitions[-1].cause


def test_copies_stand_around_their_hub():
    """A disk falls between the second and third of six pegs, at 60 and 120 degrees, and comes to rest on both."""
    shapes = {
        "rim": {"circle": {"frame": "B", "radius": "r"}},
        "pegs": {"circle": {"center": "P", "radius": 0.05}, "repeat": {"count": 6, "about": "O"}},
    }
    contacts = {"lies": {"between": ["rim", "pegs"]}}
    mechanism = planar(
        shapes, contacts, {"x": 0.03, "y": 0.8}, "m*r**2/2", points={"P": {"from": "O", "at": "0.3*N.x"}}
    )
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism, cache=False), until=0.6)
    height = 0.3 * np.sin(np.pi / 3) + np.sqrt(0.25**2 - 0.15**2)
    assert run.modes[-1] == "lies_2_closed+lies_3_closed"
    np.testing.assert_allclose(run.record.x[-1], [0.0, height, 0.0, 0.0, 0.0, 0.0], atol=1e-9)


def driven_cam(curve, contact, **more):
    """A cam turned at constant speed under a follower that slides up and down."""
    return {
        "fsm_dyn": 1,
        "parameters": {"w": 2, "g": G},
        "coordinates": ["q", "y"],
        "frames": {"B": {"rotate": {"z": "q"}}},
        "points": {"T": {"from": "O", "at": "y*N.y"}},
        "bodies": {
            "cam": {"frame": "B", "center": "O", "mass": 1, "inertia": {"zz": 1}},
            "follower": {"center": "T", "mass": 0.3},
        },
        "constraints": {"turns": {"position": "q - w*t"}},
        "shapes": {"cam_outline": {"curve": {"frame": "B", **curve}}, **more},
        "contacts": {"lifts": contact},
        "loads": [{"gravity": "-g*N.y"}],
        "modes": {"up": {"lifts": "closed"}},
        "initial": {"mode": "up", "q_dot": 2},
    }


def test_an_ellipse_lifts_a_flat_follower_by_its_support_function():
    plate = {"line": {"from": "T", "along": "N.x"}, "side": "-N.y"}
    mechanism = driven_cam({"x": "0.3*cos(s)", "y": "0.2*sin(s)"}, {"between": ["cam_outline", "plate"]}, plate=plate)
    mechanism["initial"]["y"] = 0.2
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism, cache=False), until=6.0)
    assert set(run.modes) == {"up"}
    samples = run.sample(np.linspace(0.0, 6.0, 301))
    height = np.hypot(0.3 * np.sin(2 * samples.t), 0.2 * np.cos(2 * samples.t))
    np.testing.assert_allclose(samples.x[:, 1], height, atol=1e-9)


def test_a_cam_lifts_a_knife_edge_by_its_polar_radius():
    mechanism = driven_cam({"r": "0.3 + 0.05*cos(2*phi)"}, {"point": "T", "on": "cam_outline"})
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism, cache=False), until=6.0)
    assert set(run.modes) == {"up"}
    samples = run.sample(np.linspace(0.0, 6.0, 301))
    height = 0.3 + 0.05 * np.cos(2 * (np.pi / 2 - 2 * samples.t))
    np.testing.assert_allclose(samples.x[:, 1], height, atol=1e-8)


def test_a_fast_cam_throws_its_follower_off():
    plate = {"line": {"from": "T", "along": "N.x"}, "side": "-N.y"}
    mechanism = driven_cam({"x": "0.3*cos(s)", "y": "0.2*sin(s)"}, {"between": ["cam_outline", "plate"]}, plate=plate)
    mechanism["parameters"]["w"] = mechanism["initial"]["q_dot"] = 12
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism, cache=False), until=0.3)
    first = run.transitions[0]
    assert (first.source, first.target) == ("up", "all_free")

    # it lets go where h'' w² + g = 0, h the support function
    def force(t, h=1e-4):
        def support(q):
            return np.hypot(0.3 * np.sin(q), 0.2 * np.cos(q))

        q = 12 * t
        return (support(q + h) - 2 * support(q) + support(q - h)) / h**2 * 144 + G

    assert force(first.time) == pytest.approx(0.0, abs=1e-4)
