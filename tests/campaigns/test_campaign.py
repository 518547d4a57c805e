"""The harness of the campaigns, and a minute of each of them with seeds that stay the same."""

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, Location
from tests.campaigns import (  # fmt: skip
    artefacts,
    caches,
    continued,
    edges_of_shapes,
    endurance,
    faults,
    files,
    flush,
    judging,
    laws,
    ledger,
    messages,
    ramps,
    refutations,
    report,
    steps,
)
from tests.campaigns.kinds import CAMPAIGNS, Kind
from tests.campaigns.ledger import ROOT, Ledger, key
from tests.campaigns.run import outcome, pending, run
from tests.campaigns.stand_in import good, work

RAMPS = {"toggle_switch": 60, "push_button": 60, "piano_action_simple": 10}
CONTACT_MODELS = 60
EXCLUDED = 24
LAWS_FOUND = (
    1627,  # the error of the method is larger than the energy balance may leave
    6883,  # a ratchet that is driven back with its pawl in the air
    28924,  # 2,050 sweeps of plastic impacts in sequence, of a light body between heavy ones
    40966,  # impulses exchange far more energy than moved before, and their rounding with it
)
STEPS = 40
STEPS_FOUND = (
    41,  # corners inside a step of three nanometres from the start, which are not to be watched before they came out
    90,  # a corner that waits, and sinks, is taken for one that came out and fell in again within a long step
    71, 144, 838,  # strokes too low to be seen make a train that seems to go on for long, and is passed in one step
    311, 803, 1276, 1557,  # the first of these again
    567,  # a brick that rocks on a step
    699,  # a corner that slides within the tolerance of the end of its face, as the brick turns
    652,  # a flight that ends in the very middle of the step that follows it
    1616, 5485,  # a corner of the brick and one of the step nanometres apart, of which the wrong one is kept
)  # fmt: skip
FLUSH = {"tower_2": 12, "tiles_2": 12}
FLUSH_FOUND = (
    125,  # a brick without friction, under one that slides a nanoradian askew: its corners let go in turn
    310,
    432,  # towers that let go a nanosecond after the limit: pivots of 1e-9 in the complementarity problem
    349,  # a rebound that is over long before the step after it, in which the corner passes to another face
    393,  # an impact so low that others pull within the tolerance
    2870,  # rebounds of micrometres at the end of a slab, which the corner has left when the step after them ends
    972,  # redundant rows: pivots of Lemke's method that are rounding alone
)
REFUTED = {  # share of the impossible verdicts that are searched against
    "box_on_table": 1.0, "push_button": 1.0, "toggle_switch": 1.0, "magnetic_latch": 1.0,
    "latch_door": 0.4, "geneva_drive": 0.01, "piano_action_simple": 0.02, "gripper": 0.05,
}  # fmt: skip
LAGS = {
    "fsm_dyn": 1, "name": "lags", "coordinates": {"y": "m", "x": {"unit": "m", "range": ["-1 m", "-0.05 m"]}},
    "points": {"P": {"from": "O", "at": "y*N.y"}, "Q": {"from": "O", "at": "x*N.y"}},
    "bodies": {"one": {"center": "P", "mass": "0.1 kg"}, "other": {"center": "Q", "mass": "10 kg"}},
    "contacts": {
        "pad": {"gap": "y", "compliant": {"stiffness": "100 N/m", "dissipation": "1 s/m"}}, "push": {"gap": "y - x"},
    },
    "initial": {"x": "-0.5 m"},
}  # fmt: skip
FLUSH_LONG = {125, 432}  # 432 has the cause of 310
BATCHES = {
    files.read: 150, files.compiled: 10, artefacts.automata: 60, artefacts.runs: 20, artefacts.recordings: 20,
    caches.kernels: 100, messages.messages: 100,
}  # fmt: skip


def fail_on(results):
    """Fail with the first bad results."""
    bad = [f"{seed}: {result}" for seed, result in results if not result["ok"]]
    assert not bad, f"{len(bad)} of {len(results)}:\n" + "\n".join(bad[:5])


@pytest.mark.parametrize(("model", "share"), REFUTED.items())
def test_no_search_refutes_what_the_geometry_excludes(model, share):
    graph, found = refutations.assessed(model)
    complaints, tried = refutations.refuted(graph, found, np.random.default_rng(1), share)
    assert complaints == []
    assert tried > 0


def test_searches_find_what_is_possible_and_refute_what_is_not_excluded():
    """Without the configurations that are known; a surface with dissipation lags behind, open inside."""
    graph, found = refutations.assessed("box_on_table")
    possible = [item for item in found.verdicts if item.verdict == "possible"]
    assert len(possible) > 10
    for item in possible:
        conditions = refutations.Conditions(graph, dict(zip(item.contacts, item.closed, strict=True)), held=False)
        begin = conditions.starts(np.random.default_rng(2), np.zeros((0, conditions.n_q)))
        assert refutations.nearest(conditions, begin)[0] < 0.5 * refutations.PROVED
    graph = fsm_dyn.compile(fsm_dyn.load(LAGS))
    conditions = refutations.Conditions(graph, {"pad": False, "push": True}, held=False)
    begin = conditions.starts(np.random.default_rng(3), np.zeros((0, conditions.n_q)))
    assert refutations.nearest(conditions, begin)[0] < 0.5 * refutations.PROVED


@pytest.mark.parametrize("campaign", [name for name in CAMPAIGNS if name.split(" ")[0] in ledger.OF_RUNS])
def test_a_case_loads_no_source_that_its_version_leaves_out(campaign):
    """In a separate process, with the module that makes the case alone."""
    module, case = CAMPAIGNS[campaign].case.__module__, CAMPAIGNS[campaign].case.__name__
    code = (
        f"import sys, {module}\n{module}.{case}(0)\n"
        "print(*(m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = [
        Path(line).relative_to(ROOT).as_posix() for line in done.stdout.splitlines() if Path(line).is_relative_to(ROOT)
    ]
    loaded = [name for name in loaded if not name.startswith(".venv")]
    assert "fsm_dyn/run/simulator.py" in loaded
    assert not [name for name in loaded if name.removeprefix("fsm_dyn/").startswith(ledger.NOT_OF_RUNS)]


@pytest.mark.parametrize("model", RAMPS)
def test_ramps(model):
    fail_on([(seed, ramps.case(model, seed)) for seed in range(RAMPS[model])])


def test_laws_of_models_with_contacts():
    fail_on([(seed, laws.contact_models(seed, contacts=6)) for seed in (*range(CONTACT_MODELS), *LAWS_FOUND)])


def test_edges_of_shapes():
    count = len(edges_of_shapes.NAMES)  # hollow curves, behind the first three, have separate tests
    fail_on([(seed, edges_of_shapes.case(seed)) for first in range(3) for seed in (first, first + count)])


def test_no_run_meets_a_mode_that_the_geometry_excludes():
    """Of all models of up to twelve contacts with impossible combinations, as the page on feasibility lists them."""
    page = (ROOT / "docs" / "how_to" / "feasibility.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if re.match(r"\| `\w+` \| \d+ \|", line)]
    assert {row[1].strip(" `") for row in rows if row[4].strip() != "0"} == set(laws.EXCLUDING)
    fail_on([(seed, laws.excluded_modes(seed)) for seed in range(EXCLUDED)])


@pytest.mark.parametrize("name", FLUSH)
def test_laws_of_flush_geometry(name):
    fail_on([(seed, laws.flush_case(name, seed)) for seed in range(FLUSH[name])])


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.long if seed in FLUSH_LONG else ()) for seed in FLUSH_FOUND]
)
def test_laws_of_flush_geometry_where_they_did_not_hold(seed):
    fail_on([(seed, laws.flush_geometry(seed))])


@pytest.mark.long
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1077, id="one of two motions ends at a limit of friction, with one contact that sticks"),
        pytest.param(1759, id="a flush end below zero waits for ever"),
        pytest.param(2056, id="one of two motions ends at a limit of friction, with all others sliding"),
    ],
)
def test_laws_of_flush_geometry_where_long_runs_broke_them(seed):
    fail_on([(seed, laws.flush_geometry(seed))])


def test_laws_of_steps_of_nanometres():
    fail_on([(seed, steps.case(seed)) for seed in (*range(STEPS), *STEPS_FOUND)])


@pytest.mark.parametrize(
    ("seed", "number"),
    [pytest.param(12, 130, id="more directions of rolling than there are")],
)
def test_damage_that_was_not_answered_by_name(seed, number):
    found = judging.batch(seed, [files._reading(seed, number)])
    assert found["ok"], found["reason"]


@pytest.mark.parametrize("kind", BATCHES, ids=lambda kind: f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}")
def test_damage_is_answered_by_name(kind):
    result = kind(0, BATCHES[kind])
    assert result["ok"], result["reason"]
    assert result["tried"] == BATCHES[kind] == sum(result["answers"].values())


def test_faults_leave_nothing():
    found = faults.fault("device", "emulator", "killed", random.Random(1))
    assert found["ok"], found


def test_play_goes_on_and_on():
    found = endurance.play(10.0)
    assert found["plays"] == 5
    assert all(words.startswith("the memory has grown by ") for words in found["found"])  # it is not warm


@pytest.mark.parametrize("model", ["latch_door"])
def test_play_is_continued_in_fresh_processes(model):
    found = continued.day(model, 1, hours=2, length=1.0, piece=0.3)
    assert found["ok"], found
    assert found["starts"] == 1


# -- cases ---------------------------------------------------------------------------------------------------


def test_a_case_follows_from_its_seed():
    for model in RAMPS:
        assert ramps.ramp(model, 5) == ramps.ramp(model, 5) != ramps.ramp(model, 6)
        rows = np.array(ramps.ramp(model, 5))
        assert (np.diff(rows[:, 0]) > 0.0).all()
    assert laws.flush_start("tower_3", 4) == laws.flush_start("tower_3", 4) != laws.flush_start("tower_3", 5)


def test_overlap_is_that_of_plain_geometry():
    """A brick let down by d overlaps by d; moved aside it overlaps by the width that is left; turned, by its corner."""
    model = flush.tower(2)

    def depth(x=0.0, y=0.0, q=0.0):
        return flush.deepest(model, np.array([[0.0, 0.05, 0.0, x, 0.15 + y, q]]))

    assert depth() == pytest.approx(0.0, abs=1e-15)
    assert depth(y=-3e-3) == pytest.approx(3e-3, abs=1e-15)
    assert depth(x=0.199, y=-0.05) == pytest.approx(1e-3, abs=1e-15)
    assert depth(x=1.0, y=0.5) == pytest.approx(0.0, abs=1e-15)  # the other one stands on the table
    angle = 0.01
    assert depth(q=angle) == pytest.approx(0.1 * np.sin(angle) - 0.05 * (1.0 - np.cos(angle)), rel=1e-2)


@pytest.mark.parametrize("name", laws.FLUSH)
def test_flush_models_begin_without_overlap(name):
    make, n = laws.FLUSH[name]
    model = make(n)
    names = [*model["coordinates"]]
    q = np.array([[model["initial"].get(coordinate, 0.0) for coordinate in names]])
    assert flush.deepest(model, q) <= 1e-15


def test_trials_follow_from_their_seed():
    assert files.file(1, 2) == files.file(1, 2) != files.file(1, 3)
    assert messages.message(1, 2) == messages.message(1, 2) != messages.message(2, 2)
    assert artefacts.live("latch")[0] == artefacts.live.__wrapped__("latch")[0]


def refused(message="no", line=0, allowed=""):
    raise InputError(message, Location("a.yaml", line), allowed=allowed)


def crowded():
    return bytearray(2 * judging.MOST_MEMORY)


LONG = " ".join(["x + y"] * 100)


@pytest.mark.parametrize(
    ("work", "wrong"),
    [
        (lambda: None, ""),
        (lambda: refused(line=3), ""),
        (refused, "no line"),
        (lambda: refused(line=1, allowed=LONG), "echoes"),
        (lambda: raising(1), "raises ValueError"),
        (crowded, "raises MemoryError"),
        (lambda: endless(1), "hangs"),
        (lambda: busy(1), "hangs"),
    ],
)
def test_judges_of_damage(monkeypatch, work, wrong):
    monkeypatch.setattr(judging, "LONGEST", 1.0)
    monkeypatch.setattr(judging, "WAITING", 2.0)
    found, _ = judging.misdeed(work, LONG, placed=True)
    assert found.startswith(wrong) if wrong else found == ""


LEAVES = """
import os, subprocess, sys, tempfile
open(os.path.join(tempfile.gettempdir(), "x"), "w").close()
open("/dev/shm/{name}", "w").close()
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
sys.exit(1)
"""


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="shared memory has no names here")
def test_judge_of_faults_sees_what_is_left(monkeypatch):
    name = f"left_by_{os.getpid()}"  # what other tests share meanwhile is not judged
    monkeypatch.setattr(faults, "PATIENT", 1.0)
    monkeypatch.setattr(faults, "CLI", ("-c", LEAVES.replace("{name}", name)))
    monkeypatch.setattr(faults, "next_start", lambda *_: [])
    monkeypatch.setattr(faults, "shared_memory", lambda: {name} & set(os.listdir("/dev/shm")))
    try:
        found = faults.fault("run", "command", faults.STOPPED, random.Random(0))
    finally:
        os.unlink(f"/dev/shm/{name}")
    assert not found["ok"]
    assert [part.split(":")[0] for part in found["reason"].split("; ")] == [
        "exit code 1 without a word", "processes stay", "files stay", "memory stays",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "text", "asked", "sent", "good"),
    [
        (0, "", False, None, True),
        (1, "failed: x", False, None, True),
        (1, "x", False, None, False),
        (2, "error: x", False, None, True),
        (130, "", True, None, True),
        (130, "", False, None, False),
        (-9, "", False, 9, True),
        (-11, "", False, 9, False),
        (1, "Traceback\nfailed: x", False, None, False),
        (130, "Traceback\nKeyboardInterrupt", True, None, True),
        (130, "Traceback\nValueError", True, None, False),
    ],
)
def test_judge_of_exit_codes(code, text, asked, sent, good):
    assert (faults.said(code, text, asked, sent) == []) == good


# -- harness -------------------------------------------------------------------------------------------------


def raising(seed):
    raise ValueError(f"case {seed}")


def endless(seed):
    while True:
        time.sleep(0.01)


def busy(seed):
    while True:
        seed += 1


def test_ledger_goes_on_where_it_was_left(tmp_path):
    path = tmp_path / "deep" / "ledger.jsonl"
    first = Ledger(path)
    for seed in (0, 2):
        first.add("some", seed, good(seed))
    with path.open("ab") as file:
        file.write(b'{"key": "abc", "campai')  # the machine stops
    again = Ledger(path)
    assert [entry["seed"] for entry in again.of("some")] == [0, 2]
    some = {"some": Kind(good, 4, "")}
    assert list(pending(again, some)) == [("some", 1), ("some", 3)]
    assert list(pending(again, some, 2)) == [("some", 1)]
    again.add("some", 1, good(1))
    assert [entry["seed"] for entry in Ledger(path).of("some")] == [0, 2, 1]


def test_other_sources_begin_anew(tmp_path, monkeypatch):
    book = Ledger(tmp_path / "ledger.jsonl")
    book.add("some", 0, good(0))
    assert key("some", 0) in book
    monkeypatch.setattr(ledger, "version", lambda campaign: "another")
    assert key("some", 0) not in book
    assert book.of("some") == []


def test_the_page_keeps_what_was_found_with_other_sources(tmp_path, monkeypatch):
    book = Ledger(tmp_path / "ledger.jsonl")
    name, version = next(iter(CAMPAIGNS)), ledger.version(next(iter(CAMPAIGNS)))
    book.add(name, 0, good(0))
    monkeypatch.setattr(report, "version", lambda campaign="": "another")
    assert [entry["seed"] for entry in report.latest(book, name)[0]] == [0]
    assert f"`{version}` |" in report.page(book)


def test_the_page_names_seeds_that_were_run_again(tmp_path, monkeypatch):
    book, name = Ledger(tmp_path / "ledger.jsonl"), next(iter(CAMPAIGNS))
    book.add(name, 0, good(0))
    book.add(name, 7, {"ok": False, "reason": "ends"})
    before = report.page(book)
    row, section = report.written_before(before, name)
    assert f"| 2 | {CAMPAIGNS[name].cases} | 1 |" in row
    with monkeypatch.context() as other:
        other.setattr(ledger, "version", lambda campaign: "later")
        again = Ledger(tmp_path / "again.jsonl")
        assert list(pending(again, {name: CAMPAIGNS[name]}, seeds=[7, 9])) == [(name, 7), (name, 9)]
        again.add(name, 7, good(7) | {"again": True})
        again.add(name, 9, {"ok": False, "reason": "ends", "again": True})
    monkeypatch.setattr(report, "version", lambda campaign="": "later")
    text = report.page(again, before)
    assert report.written_before(text, name) == (
        row, section + "\nSeeds run again with the sources `later`: good 7; bad 9.\n"
    )  # fmt: skip
    assert report.page(again, text) == text


def test_campaigns_take_turns(tmp_path):
    two = {"a": Kind(good, 2, ""), "b": Kind(good, 3, "")}
    order = list(pending(Ledger(tmp_path / "ledger.jsonl"), two))
    assert order == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("case", "reason"), [(raising, "raises ValueError: case 7"), (endless, "took longer than 1 s")]
)
def test_bad_cases_are_results(monkeypatch, case, reason):
    monkeypatch.setitem(CAMPAIGNS, "bad", Kind(case, 1, ""))
    found = outcome("bad", 7, longest=1)
    assert not found["ok"]
    assert found["reason"] == reason


def test_a_case_may_take_its_process_with_it(tmp_path):
    book = Ledger(tmp_path / "ledger.jsonl")
    assert run(book, (("some", seed) for seed in range(6)), 2, work=work) == 6
    assert {entry["seed"]: entry["ok"] for entry in Ledger(book.path).of("some")} == {k: k != 3 for k in range(6)}


def test_time_is_kept(tmp_path):
    book = Ledger(tmp_path / "ledger.jsonl")
    assert run(book, (("some", seed) for seed in range(100)), 1, seconds=0.0, work=work) == 0


def test_page_counts_what_the_ledger_holds(tmp_path):
    book = Ledger(tmp_path / "ledger.jsonl")
    name = next(iter(CAMPAIGNS))
    book.add(name, 0, good(0) | {"model": "a"})
    book.add(name, 5, {"ok": False, "reason": "ends at 0.25 s", "model": "b"})
    book.add(name, 3, {"ok": False, "reason": "ends at 1.5e-3 s", "model": "b"})
    text = report.page(book)
    assert f"| 2 | `{ledger.version(name)}` |" in text
    assert f"| {name} | {CAMPAIGNS[name].says} | 3 | {CAMPAIGNS[name].cases} | 2 |" in text
    assert "| b | 2 | 2 |" in text
    assert "| ends at … s | 2 | 3 |" in text
    assert all(json.loads(line)["version"] in text for line in book.path.read_text().splitlines())
