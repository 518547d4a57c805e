"""Geometric proofs: checked by the intervals of mpmath; manipulated proofs are refused."""

import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from mpmath import libmp, mp

import fsm_dyn
from fsm_dyn.automaton.geometric_proofs import ExclusionProof, GeometricProofs, ProofCondition
from fsm_dyn.automaton.proof_check import bounds, narrowed, result
from fsm_dyn.core.errors import InputError

SMALL = ("box_on_table", "gripper", "push_button", "magnetic_latch", "toggle_switch", "latch_door", "twelve_contacts")
LONG = ("piano_action_simple", "cart_on_ramp", "geneva_drive", "seat_belt_reel", "escapement_anchor")


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)])
@pytest.mark.timeout(900)
def test_every_impossible_verdict_has_a_proof_that_holds(name):
    graph = fsm_dyn.compile(name)
    proofs = graph.prove_geometry()
    assert proofs.unproved == ()
    impossible = {(v.contacts, v.closed) for v in graph.assess_geometry().verdicts if v.verdict == "impossible"}
    assert impossible
    assert impossible <= {(proof.contacts, proof.closed) for proof in proofs.proofs}
    assert graph.check_proofs(proofs) == proofs.leaves >= len(impossible)


def test_proofs_are_written_and_read(tmp_path):
    graph = fsm_dyn.compile("box_on_table")
    graph.prove_geometry().save(tmp_path / "proofs.json")
    proofs = GeometricProofs.open(tmp_path / "proofs.json")
    assert proofs == graph.prove_geometry()
    graph.save(tmp_path / "graph.json")
    assert fsm_dyn.open_graph(tmp_path / "graph.json").check_proofs(proofs) == 12
    (tmp_path / "proofs.json").write_text('{"model": 3}')
    with pytest.raises(InputError, match="geometric proofs"):
        GeometricProofs.open(tmp_path / "proofs.json")


def box():
    """A graph with its proofs, the first with several boxes."""
    graph = fsm_dyn.compile("box_on_table")
    return graph, graph.prove_geometry()


def with_first(proofs, **changes):
    return replace(proofs, proofs=(replace(proofs.proofs[0], **changes), *proofs.proofs[1:]))


def test_the_proof_to_be_tampered_with():
    _, proofs = box()
    proof = proofs.proofs[0]
    assert (proof.contacts, proof.closed) == (("c1", "c3"), (True, True))
    assert proof.conditions == (
        ("residual", 0, "c1", 0), ("residual", 4, "c3", 0), ("residual", 2, "c2", 1), ("residual", 6, "c4", 1)
    )  # fmt: skip
    assert proof.cuts[0] == (1, 0.0)


@pytest.mark.parametrize(
    "shifts",
    [
        ((("x", 1.0),),), ((("x", 1.0), ("left_s", -1.0)),), ((("x", 1.0), ("left_s", 1.0 + 1e-15)),),
        ((("q", 1.0),),), ((("x", 1.0), ("left_s", 1.0), ("q", 1.0)),), ((("x", float("nan")), ("left_s", 1.0)),),
        ((("x", 1.0), ("left_s", 1.0)), (("left_s", 1.0), ("x", 1.0))), ((),), ((("x", 0.0),),), ((("nothing", 1.0),),),
        ((("m", 1.0),),), ((("x_dot", 1.0),),), ((("x", 1.0), ("left_s", 1.0), ("left_s", 1.0)),),
    ],
)  # fmt: skip
def test_shifts_that_change_conditions_are_refused(shifts):
    graph = fsm_dyn.compile("gripper")
    proofs = graph.prove_geometry()
    assert set(proofs.proofs[0].shifts) == {(("x", 1.0), ("left_s", 1.0)), (("y", 1.0), ("z", 1.0))}
    with pytest.raises(InputError, match="a shift that changes the conditions"):
        graph.check_proofs(with_first(proofs, shifts=shifts))


def test_a_coordinate_with_a_range_is_not_shifted():
    """A block between two moving walls: its place matters, as its range ends."""
    model = {
        "fsm_dyn": 1, "name": "walls", "coordinates": {"x": {"unit": "m", "range": ["-1 m", "1 m"]}, "a": "m"},
        "points": {"P": {"from": "O", "at": "x*N.x"}, "A": {"from": "O", "at": "a*N.x"}},
        "bodies": {"block": {"center": "P", "mass": "1 kg"}, "wall": {"center": "A", "mass": "1 kg"}},
        "contacts": {"near": {"gap": "x - a"}, "far": {"gap": "2 m + a - x"}},
    }  # fmt: skip
    bounded = fsm_dyn.compile(fsm_dyn.load(model)).prove_geometry()
    model["coordinates"]["x"] = "m"
    graph = fsm_dyn.compile(fsm_dyn.load(model))
    proofs = graph.prove_geometry()
    assert [proof.shifts for proof in bounded.proofs] == [()]
    assert [len(proof.shifts) for proof in proofs.proofs] == [1]
    graph.check_proofs(proofs)
    model["coordinates"]["x"] = {"unit": "m", "range": ["-1 m", "1 m"]}
    bounded_graph = fsm_dyn.compile(fsm_dyn.load(model))
    with pytest.raises(InputError, match="a shift that changes the conditions"):
        bounded_graph.check_proofs(with_first(bounded, shifts=proofs.proofs[0].shifts))


def lagging(dissipation):
    """A pad left behind, and a wall below it: with dissipation the pad is open inside."""
    compliant = {"stiffness": "100 N/m"} | ({"dissipation": dissipation} if dissipation else {})
    return {
        "fsm_dyn": 1, "name": "lag", "coordinates": {"y": "m", "x": {"unit": "m", "range": ["-1 m", "-0.05 m"]}},
        "points": {"P": {"from": "O", "at": "y*N.y"}, "Q": {"from": "O", "at": "x*N.y"}},
        "bodies": {"bb": {"center": "P", "mass": "0.1 kg"}, "cc": {"center": "Q", "mass": "10 kg"}},
        "contacts": {"pad": {"gap": "y", "compliant": compliant}, "push": {"gap": "y - x"}},
        "initial": {"y": "-0.5 m", "x": "-0.5 m", "y_dot": "2 m/s", "x_dot": "2 m/s"},
    }  # fmt: skip


def test_a_compliant_contact_with_dissipation_is_open_inside_too():
    graph = fsm_dyn.compile(fsm_dyn.load(lagging("1 s/m")))
    run = fsm_dyn.simulate(graph, until=0.3)
    assert run.modes[0] == "push_closed"
    assert run.q[0, 0] < 0.0
    found = graph.assess_geometry()
    assert found.verdict_on({"pad": False, "push": True}).verdict == "possible"
    assert found.modes["push_closed"].verdict == "possible"
    assert graph.prove_geometry().proofs == ()
    elastic = fsm_dyn.compile(fsm_dyn.load(lagging("")))
    proofs = elastic.prove_geometry()
    assert [(proof.contacts, proof.closed) for proof in proofs.proofs] == [(("pad", "push"), (False, True))]
    elastic.check_proofs(proofs)
    claimed = replace(proofs, digest=graph.automaton.mechanism.digest, parameters={})
    with pytest.raises(InputError, match="pad open and push closed does not hold: a condition that does not follow"):
        graph.check_proofs(claimed)


ALL = ((0, "c1", 0), (4, "c3", 0), (2, "c2", 1), (6, "c4", 1))


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"cuts": (None,)}, "the conditions may be met in a box"),
        ({"cuts": ((1, 0.0), None, None)}, "the conditions may be met in a box"),
        ({"cuts": ((1, 3.0), *[None] * 2)}, "the conditions may be met in a box"),
        ({"cuts": ((1, 0.0), None)}, "boxes are missing|may be met"),
        ({"cuts": ()}, "boxes are missing"),
        ({"cuts": ((2, 0.0), None, None)}, "a cut across nothing"),
        ({"cuts": ((-1, 0.0), None, None)}, "a cut across nothing"),
        ({"cuts": ((1, float("nan")), None, None)}, "a cut across nothing"),
        ({"variables": ("y", "angle")}, "no argument of the model"),
        ({"conditions": ()}, "the conditions may be met in a box"),
        ({"conditions": tuple(ProofCondition("residual", *c) for c in ALL[:1])}, "the conditions may be met in a box"),
        ({"conditions": (ProofCondition("residual", 2, "c2", 0),)}, "does not follow from the states"),
        ({"conditions": (ProofCondition("residual", 2, "c2", -1),)}, "does not follow from the states"),
        ({"conditions": (ProofCondition("residual", 1, "c1", 0),)}, "does not follow from the states"),
        ({"conditions": (ProofCondition("residual", 0, "c2", 0),)}, "a condition on nothing in the model"),
        ({"conditions": (ProofCondition("residual", 99, "c1", 0),)}, "a condition on nothing in the model"),
        ({"conditions": (ProofCondition("reach", 0, "c1", 1),)}, "does not follow from the states"),
        ({"contacts": ("c1", "c2")}, "does not follow from the states"),
        ({"contacts": ("c1", "c9")}, "no contact of the model"),
        ({"contacts": ("c1", "c1")}, "each contact needs one state"),
        ({"closed": (True, False)}, "does not follow from the states"),
        ({"closed": (True,)}, "each contact needs one state"),
    ],
)  # fmt: skip
def test_a_tampered_proof_is_refused(changes, refusal):
    graph, proofs = box()
    with pytest.raises(InputError, match=refusal):
        graph.check_proofs(with_first(proofs, **changes))


def test_a_proof_with_a_box_more_is_refused():
    graph, proofs = box()
    with pytest.raises(InputError, match="more boxes than cuts make"):
        graph.check_proofs(with_first(proofs, cuts=(*proofs.proofs[0].cuts, None)))


def test_no_subtree_of_cuts_can_be_left_out():
    """Large subtrees are needed; small ones at times not, as the check narrows boxes more often than the search."""
    graph = fsm_dyn.compile("geneva_drive")
    proofs = graph.prove_geometry()
    largest = max(proofs.proofs, key=lambda proof: proof.leaves)
    refused = 0
    for at in range(len(largest.cuts)):
        size, missing = 0, 1
        while missing:  # the length of the subtree from there
            missing += -1 if largest.cuts[at + size] is None else 1
            size += 1
        if size < 15:
            continue
        pruned = replace(largest, cuts=(*largest.cuts[:at], None, *largest.cuts[at + size :]))
        with pytest.raises(InputError, match="may be met in a box"):
            graph.check_proofs(replace(proofs, proofs=(pruned,)))
        refused += 1
        if refused == 5:
            break
    assert refused == 5


@pytest.mark.parametrize("change", [{"margin": 1.0}, {"margin": float("inf")}, {"margin": -1.0}])
def test_a_larger_margin_is_refused(change):
    graph, proofs = box()
    with pytest.raises(InputError, match=r"margin of the proofs|may be met"):
        graph.check_proofs(replace(proofs, **change))


def test_proofs_hold_for_one_model_and_its_parameters_alone():
    graph, proofs = box()
    with pytest.raises(InputError, match="the proofs are of another model"):
        fsm_dyn.compile("latch").check_proofs(proofs)
    with pytest.raises(InputError, match="the proofs are for other parameters"):
        fsm_dyn.compile("box_on_table", parameters={"a": 0.4}).check_proofs(proofs)
    with pytest.raises(InputError, match="the proofs are for other parameters"):
        graph.check_proofs(replace(proofs, parameters=proofs.parameters | {"a": 0.4}))


@pytest.mark.parametrize("name", ["box_on_table", "push_button", "twelve_contacts", "rocking_block"])
def test_what_is_possible_cannot_be_proved_impossible(name):
    """In any subdivision of the space the box with the configuration of the verdict stays."""
    graph, random = fsm_dyn.compile(name), np.random.default_rng(3)
    names, rows = [contact.name for contact in graph.automaton.contacts], graph.automaton.rows
    empty = replace(graph.prove_geometry(), proofs=())
    layout = graph.automaton.terms.layout
    for item in [v for v in graph.assess_geometry().verdicts if v.verdict == "possible"][:20]:
        conditions = []
        for contact, shut in zip(item.contacts, item.closed, strict=True):
            info = graph.automaton.contacts[names.index(contact)]
            sense = (-1 if info.contact_law.compliant else 0) if shut else 1
            conditions.append(ProofCondition("residual", info.normal_row, rows[info.normal_row].name, sense))
        place = int(random.integers(len(layout.q)))
        cuts = [(0, float(random.normal(scale=0.3))), *[(0, float(random.normal(scale=0.3))), None, None] * 2]
        proof = ExclusionProof(item.contacts, item.closed, "", tuple(conditions), (layout.q[place],), tuple(cuts))
        with pytest.raises(InputError, match="may be met in a box"):
            graph.check_proofs(replace(empty, proofs=(proof,)))


POINTS = {
    "neg": lambda a: -a, "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "sqrt": mp.sqrt, "sin": mp.sin, "cos": mp.cos, "exp": mp.exp, "atan": mp.atan,
    "abs": abs, "min": min, "max": max, "lt": lambda a, b: mp.mpf(a < b), "le": lambda a, b: mp.mpf(a <= b),
    "where": lambda c, a, b: a if c else b,
}  # fmt: skip


def inside(interval, number):
    return libmp.mpf_le(interval[0], number._mpf_) and libmp.mpf_le(number._mpf_, interval[1])


@pytest.mark.parametrize("op", POINTS)
def test_bounds_hold_what_points_in_them_give(op):
    """Forwards and backwards: the result of points, and points with a result in an interval."""
    random = np.random.default_rng(len(op))
    count = POINTS[op].__code__.co_argcount if op in ("neg",) or hasattr(POINTS[op], "__code__") else 1
    count = {"sqrt": 1, "sin": 1, "cos": 1, "exp": 1, "atan": 1, "abs": 1, "min": 2, "max": 2}.get(op, count)
    with mp.workprec(200):
        for _ in range(400):
            middle = random.normal(scale=random.choice([0.5, 3.0]), size=count)
            half = random.exponential(scale=random.choice([1e-9, 0.3, 3.0]), size=count)
            half[random.random(count) < 0.1] = np.inf
            if op == "sqrt":
                middle = abs(middle)
            if op == "where" and random.random() < 0.3:
                middle[0] = half[0] = 0.0
            operands = [bounds(float(m - h), float(m + h)) for m, h in zip(middle, half, strict=True)]
            shares = random.uniform(-1.0, 1.0, size=count)
            points = [
                mp.mpf(float(m)) + mp.mpf(float(s)) * mp.mpf(float(min(h, 5.0)))
                for m, h, s in zip(middle, half, shares, strict=True)
            ]
            if op == "sqrt" and points[0] < 0:
                continue
            if op == "div" and points[1] == 0:
                continue
            value = POINTS[op](*points)
            whole = result(op, operands, False)
            assert inside(whole, value)
            width = mp.mpf(float(random.exponential()))
            goal = bounds(float(value - width) - 1e-9, float(value + width) + 1e-9)
            found = narrowed(op, goal, operands, False)
            must_exist = [True] * count if op != "where" else [True, bool(points[0]), not points[0]]
            for interval, point, there in zip(found, points, must_exist, strict=True):
                assert inside(interval, point) or not there


def test_squares_are_not_negative():
    low, _ = result("mul", [bounds(-1.0, 2.0)] * 2, True)
    assert low == libmp.fzero
    assert narrowed("mul", bounds(-1.0, 4.0), [bounds(-9.0, 9.0)] * 2, True) == [bounds(-2.0, 2.0)] * 2


def test_the_check_shares_nothing_with_the_search():
    loaded = "import sys, fsm_dyn.automaton.proof_check; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()
    assert "fsm_dyn.automaton.proof_check" in modules
    shared = ("automaton.configuration_search", "automaton.feasibility", "programs.intervals")
    assert not {f"fsm_dyn.{name}" for name in shared} & set(modules)


def test_nothing_is_known_of_a_lock_that_is_released():
    graph = fsm_dyn.compile("magnetic_latch")
    found = graph.assess_geometry()
    assert found.modes["home"].verdict == "possible"  # at the stop, far below the range of the magnet
    verdict = {(item.contacts, item.closed): item.verdict for item in found.verdicts}
    assert (("stop", "magnet"), (True, False)) not in verdict  # not asked, as both hold alone
    assert verdict[("stop", "magnet"), (True, True)] == "impossible"
    condition = ProofCondition("residual", 1, "magnet", 1)
    proof = ExclusionProof(("stop", "magnet"), (True, False), "", (condition,), ("x",), (None,))
    with pytest.raises(InputError, match="does not follow from the states"):
        graph.check_proofs(replace(graph.prove_geometry(), proofs=(proof,)))


def test_states_of_single_contacts_are_named():
    graph, proofs = box()
    assert [" and ".join(itertools.chain(proof.contacts)) for proof in proofs.proofs] == ["c1 and c3", "c2 and c4"]
    assert graph.check_proofs(replace(proofs, proofs=())) == 0
