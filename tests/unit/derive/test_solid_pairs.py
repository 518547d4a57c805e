"""Pairs of features of polyhedra, derived together, against the derivatives of each gap and slip."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive.contact_geometry import ContactGeometry, feature_contacts
from fsm_dyn.derive.derivation import derive, flow_of
from fsm_dyn.derive.features import Shapes
from fsm_dyn.derive.speeds import solve_speeds
from fsm_dyn.derive.symbols import build_system
from fsm_dyn.programs.traversal import evaluate, support, tangent

WEDGE = [[0, 0, 0], ["a", 0, 0], [0, "b", 0], ["a", "b", 0], [0, 0, "0.1 m"], [0, "b", "0.1 m"]]

INERTIA = {"xx": "m*b**2", "yy": "m*a**2", "zz": "m*a*b"}


def model():
    """A wedge on a bar that turns on a shaken carriage, against a box free in space: every kind of frame and speed."""
    return {
        "fsm_dyn": 1,
        "name": "wedge_and_box",
        "parameters": {"m": "2 kg", "a": "0.3 m", "b": "0.2 m", "mu": 0.3},
        "inputs": {"push": "m"},
        "coordinates": {"x": "m", "y": "m", "z": "m", "phi": "rad", "psi": "rad"},
        "frames": {
            "B": {"parent": "N", "euler_parameters": "e"},
            "A": {"parent": "N", "body": "zx", "angles": ["phi", "psi"]},
        },
        "points": {
            "P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"},
            "Q": {"from": "O", "at": "push*N.x + 0.1 m*A.y"},
        },
        "bodies": {
            "box": {"frame": "B", "center": "P", "mass": "m", "inertia": INERTIA},
            "wedge": {"frame": "A", "center": "Q", "mass": "m", "inertia": INERTIA},
        },
        "speeds": {"vx": "rate(x)", "vy": "rate(y) + 0.5*rate(x)", "vz": "rate(z)", "w1": "dot(omega(B), B.x)",
                   "w2": "dot(omega(B), B.y)", "w3": "dot(omega(B), B.z)", "n": "rate(phi)", "k": "rate(psi)"},
        "shapes": {
            "brick": {"box": {"frame": "B", "size": ["a", "b", "0.1 m"]}},
            "ramp": {"polyhedron": {"frame": "A", "corners": WEDGE}},
        },
        "contacts": {"rubs": {"between": ["brick", "ramp"], "friction": "mu"}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def terms():
    return derive(fsm_dyn.load(model()))


def test_rows_are_the_derivatives_of_gaps_and_slips(terms):
    system = build_system(fsm_dyn.load(model()))
    speeds = solve_speeds(system)
    motion = system.motion(speeds.rates)
    flow = flow_of(system, speeds)
    contacts = feature_contacts(system.mechanism)
    geometry = ContactGeometry(system, Shapes(system, system.algebra(motion, {})), motion)
    rows = {(row.name, row.role): row for row in terms.rows}
    extra = {item.name: item for item in terms.contacts}
    mine, theirs = [], []
    for name, meeting in geometry.all(contacts).items():
        for role, node in (("normal", None), ("tangent", meeting.slip), ("tangent2", meeting.across)):
            row = rows[name, role]
            rate = tangent([meeting.gap], flow)[0] if node is None else node
            slopes = [tangent([rate], {symbol: system.graph.one})[0] for symbol in motion.speeds]
            theirs += [*slopes, *tangent([rate], flow)]
            mine += [*row.A, row.gamma]
        mine += [rows[name, "normal"].residual, extra[name].reach, extra[name].reach_rate, extra[name].aspect]
        theirs += [meeting.gap, meeting.reach, *tangent([meeting.reach], flow), meeting.aspect]
        if meeting.valid is not None:
            mine.append(extra[name].firm)
            theirs.append(meeting.valid)
    random = np.random.default_rng(7)
    values = {symbol.name: random.uniform(-1.0, 1.0, 40) for symbol in support([*mine, *theirs])}
    values |= {name: np.full(40, value) for name, value in (("m", 2.0), ("a", 0.3), ("b", 0.2), ("mu", 0.3))}
    norm = np.sqrt(sum(values[f"e{i}"] ** 2 for i in range(4)))
    values |= {f"e{i}": values[f"e{i}"] / norm for i in range(4)}
    for one, other in zip(evaluate(mine, values), evaluate(theirs, values), strict=True):
        assert np.broadcast_to(one, 40) == pytest.approx(np.broadcast_to(other, 40), rel=1e-7, abs=1e-8)
    assert len(mine) > 5000


def test_pairs_share_the_terms_of_their_frames():
    """All pairs together cost some times as much as their results, not as much as every pair alone."""
    automaton = fsm_dyn.compile(model(), cache=False).automaton
    assert len(automaton.terms.instructions) < 45 * len(automaton.rows)


def test_a_gap_that_no_motion_changes_is_refused():
    still = model()
    still["frames"]["B"] = {"parent": "N", "rotate": {"x": "0.3 rad"}}
    still["frames"]["A"] = {"parent": "N", "rotate": {"z": "0.2 rad"}}
    for name in ("w1", "w2", "w3", "n", "k", "vy", "vz"):
        del still["speeds"][name]
    still["coordinates"] = {"x": "m"}
    still["points"]["P"]["at"] = "x*N.x"
    for body in still["bodies"].values():
        body["inertia"] = dict.fromkeys(("xx", "yy", "zz"), "1 kg*m^2")
    with pytest.raises(ModelError, match="constrains nothing: no speed has a share in it"):
        derive(fsm_dyn.load(still))
