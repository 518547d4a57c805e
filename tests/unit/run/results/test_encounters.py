"""Pairs of shapes in a run against distances and impacts worked out from its rows."""

from itertools import combinations

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.cli.run import describe
from fsm_dyn.run.encounters import touched_pairs


@pytest.fixture(scope="module")
def run():
    """Five disks without weight between two walls, the first of which runs into the others."""
    m = fsm_dyn.Model("row").parameter("r", "0.1 m").point("R", from_="O", at="3 m*N.x")
    for i in range(5):
        m.coordinate(f"x{i}", "m").coordinate(f"y{i}", "m")
        m.point(f"P{i}", from_="O", at=f"x{i}*N.x + y{i}*N.y").body(f"d{i}", center=f"P{i}", mass="1 kg")
        m.shape(f"s{i}", circle={"center": f"P{i}", "radius": "r"})
        m.initial(**{f"x{i}": f"{0.3 + 0.5 * i} m", f"y{i}": f"{0.02 * i} m"})
    m.shape("left", line={"along": "N.y"}, side="N.x")
    m.shape("right", line={"from": "R", "along": "N.y"}, side="-N.x")
    m.initial(x0_dot="1 m/s").contact("touch", between="all", restitution=1)
    return fsm_dyn.simulate(fsm_dyn.compile(m), until=4.0, max_step=0.01)


def test_pairs_of_disks_by_distance(run):
    found = {item.pair: item for item in run.encounters(near=0.05)}
    assert len(found) == 10 + 10
    for i, j in combinations(range(5), 2):
        gaps = np.hypot(run[f"x{i}"] - run[f"x{j}"], run[f"y{i}"] - run[f"y{j}"]) - 0.2
        item = found[f"s{i}_s{j}"]
        assert item.least == pytest.approx(gaps.min(), abs=1e-12)
        assert item.least_at == run.t[gaps.argmin()]
        assert item.near == (run.t[np.argmax(gaps <= 0.05)] if gaps.min() <= 0.05 else None)


def test_first_touches_and_their_number_are_those_of_the_impacts(run):
    hits = {}
    for item in run.transitions:
        for name in item.impulse:
            hits.setdefault(name, []).append(item.time)
    found = run.encounters()
    assert {item.pair: item.touched for item in found if item.touched is not None} == {k: v[0] for k, v in hits.items()}
    assert {item.pair: item.count for item in found if item.count} == {k: len(v) for k, v in hits.items()}
    first = [item.touched for item in found if item.touched is not None]
    assert len(first) >= 4
    assert first == sorted(first)
    assert [item.least for item in found[len(first) :]] == sorted(item.least for item in found[len(first) :])
    assert {name: list(times) for name, times in touched_pairs(run.model, run.transitions).items()} == hits


def test_a_run_of_many_pairs_lists_those_that_touched(run):
    text = describe(run)
    assert "of 20 pairs of shapes came to touch:" in text
    assert f"{run.encounters()[0].pair}" in text


def test_of_many_contacts_the_nearest_are_explained():
    m = fsm_dyn.Model("fall").coordinate("y", "m").point("P", from_="O", at="y*N.y").body("b", center="P", mass="1 kg")
    m.shape("ball", circle={"center": "P", "radius": "1 cm"}).load(gravity="-9.81 m/s^2*N.y").initial(y="1 m")
    for i in range(30):
        m.point(f"Q{i}", from_="O", at=f"{-0.1 * i} m*N.y").shape(
            f"g{i}", line={"from": f"Q{i}", "along": "N.x"}, side="N.y"
        )
    m.contact("touch", between="all")
    run = fsm_dyn.simulate(fsm_dyn.compile(m), until=0.2)
    found = run.explain(0.1)
    assert len(found.contacts) == len(found.guards) == 30
    text = str(found)
    assert "and 18 more, open, farther away" in text
    assert "and 18 more, later or never by their slopes" in text
    assert "ball_g11 " in text
    assert "ball_g12 " not in text


def test_a_pair_that_touches_from_the_start_and_a_post_near_it():
    box = {"points": [["-5 cm", "-5 cm"], ["5 cm", "-5 cm"], ["5 cm", "5 cm"], ["-5 cm", "5 cm"]]}
    m = fsm_dyn.Model("box").coordinate("x", "m").coordinate("y", "m").coordinate("q", "rad")
    m.frame("B", rotate={"z": "q"}).point("P", from_="O", at="x*N.x + y*N.y")
    m.body("b", frame="B", center="P", mass="1 kg", inertia={"zz": "0.002 kg*m^2"})
    m.point("Q", from_="O", at="0.4 m*N.x + 0.05 m*N.y")
    m.shape("block", polygon={"frame": "B", **box}).shape("ground", line={"along": "N.x"}, side="N.y")
    m.shape("post", circle={"center": "Q", "radius": "1 cm"}).load(gravity="-9.81 m/s^2*N.y").initial(y="5 cm")
    m.contact("touch", between="all", friction=0.5)
    ground, post = fsm_dyn.simulate(fsm_dyn.compile(m), until=0.05).encounters()
    assert (ground.pair, ground.touched, ground.count) == ("block_ground", 0.0, 1)
    assert (post.pair, post.touched, post.count) == ("block_post", None, 0)
    assert post.least == pytest.approx(0.4 - 0.05 - 0.01, abs=1e-9)
