"""The format of a saved state: what is refused, by which name, and that a refusal changes nothing."""

import re

import numpy as np
import pytest

from fsm_dyn.run import structures as st
from fsm_dyn.run.moreau_jean import _arrays
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import Clock, Counters, Phase, Sizes
from tests.runtime import saved_states as saved
from tests.runtime.test_layers import FOLDER, code

HEADER = code(FOLDER / "saved_state.h")
NAMES = {int(number): name for name, number in re.findall(r"\bX\((\w+), (\d+),", HEADER)}
RESTORED = next(number for number, name in NAMES.items() if name == "RESTORED")
SECTIONS = {name.lower(): int(number) for name, number in re.findall(r"FSM_SECTION_(\w+) = (\d+)", HEADER)}


def restored(run, words, digest=saved.DIGEST):
    """Name of the result of restoring words, and whether the state is as it was."""
    before = [array.tobytes() for array in run.loop.state]
    result = library.restore(run.handle(), run.executable.online_modes(), digest, np.ascontiguousarray(words))
    return NAMES[result], before == [array.tobytes() for array in run.loop.state]


@pytest.fixture(scope="module", params=saved.MODELS)
def run(request):
    return saved.stopped(request.param, 30)


def test_what_is_saved_restores_and_goes_on_alike(run):
    assert (run.words[:8] == saved.sealed(run.words)[:8]).all()
    ends = []
    for _ in range(2):
        assert restored(run, run.words)[0] == "RESTORED"
        for _ in range(50):
            saved.turn(run.loop, run.handle, run.executable)
        again = library.save(run.handle(), run.executable.online_modes(), saved.DIGEST)
        ends.append(again.tobytes())
    assert ends[0] == ends[1] != run.words.tobytes()
    assert restored(run, run.words)[0] == "RESTORED"
    assert library.save(run.handle(), run.executable.online_modes(), saved.DIGEST).tobytes() == run.words.tobytes()


def test_any_bit_that_is_flipped_is_found(run):
    for number in range(len(run.words)):
        words = run.words.copy()
        words[number] ^= np.uint64(1) << np.uint64((number * 37) % 64)
        name, unchanged = restored(run, words)
        assert unchanged
        assert name == ("NOT_SAVED" if number == 0 else "OTHER_VERSION" if number == 1 else "DAMAGED"), number


def test_any_other_length_is_found(run):
    for count in range(len(run.words)):
        name, unchanged = restored(run, run.words[:count])
        assert unchanged
        assert name == ("NOT_SAVED" if count == 0 else "DAMAGED"), count
    assert restored(run, np.append(run.words, np.uint64(0))) == ("DAMAGED", True)


def test_what_belongs_elsewhere_is_refused_by_name(run):
    other = run.words.copy()
    other[6] = 1
    assert restored(run, run.words.byteswap()) == ("OTHER_BYTE_ORDER", True)
    assert restored(run, saved.sealed(other)) == ("OTHER_KIND", True)
    assert restored(run, run.words, digest=1) == ("OTHER_MODEL", True)
    others = [saved.stopped(model, 30) for model in saved.MODELS]
    for another in others:
        if another is not run:
            assert restored(run, another.words) == ("OTHER_LAYOUT", True)


def sections_of(words):
    """Place and length of every section, by its number."""
    found, at = {}, saved.HEADER
    while at < len(words):
        found[int(words[at])] = (at + 2, int(words[at + 1]))
        at += 2 + int(words[at + 1])
    return found


@pytest.mark.parametrize("change", ["missing", "one word less", "one word more"])
def test_sections_of_other_lengths_are_refused(run, change):
    for kind, (at, n) in sections_of(run.words).items():
        before, section, after = run.words[: at - 2], run.words[at - 2 : at + n], run.words[at + n :]
        if change == "one word less":
            if n == 0:
                continue
            section = np.concatenate([[section[0], n - 1], section[2:-1]])
        elif change == "one word more":
            section = np.concatenate([[section[0], n + 1], section[2:], [0]])
        else:
            section = section[:0]
        words = np.concatenate([before, section.astype(np.uint64), after])
        expected = "OTHER_METHOD" if kind == SECTIONS["method"] else "OUT_OF_RANGE"
        assert restored(run, saved.sealed(words)) == (expected, True), kind


def test_no_word_that_counts_or_numbers_may_be_anything(run):
    """Each word that is an integer; among those of a mode online is one real number, the level of its alarm."""
    sections = sections_of(run.words)
    for name in ("counters", "mode", "armed", "fired", "limits", "spent", "online"):
        at, n = sections[SECTIONS[name]]
        accepted = []
        for place in range(n):
            words = run.words.copy()
            words[at + place] = 2**63 + 5
            result, unchanged = restored(run, saved.sealed(words))
            assert result == "RESTORED" or (result, unchanged) == ("OUT_OF_RANGE", True)
            accepted += [place] if result == "RESTORED" else []
        assert len(accepted) == (name == "online" and n > 0), (name, accepted)
    assert restored(run, run.words)[0] == "RESTORED"


def test_numbers_out_of_range_are_refused():
    """A section that is missing, cut short, or holds what the runtime would take for an index or a time."""
    run = saved.stopped("ball_in_corner", 30)
    sections = sections_of(run.words)
    huge, nan = np.uint64(2**63 + 5), np.float64(np.nan).view(np.uint64)
    refused = {
        "clock": [(Clock.TIME, nan), (Clock.TIME, np.float64(np.inf).view(np.uint64))],
        "counters": [
            (Counters.PHASE, 2), (Counters.REASON, 9), (Counters.FIRED, 10**6), (Counters.SEGMENT, 10**9),
            (Counters.CYCLE, 99), (Counters.GRID, huge),
        ],
        "x": [(0, nan)], "context": [(0, nan)], "mode": [(0, 7), (1, 99), (0, huge)], "armed": [(0, 2), (0, huge)],
        "limits": [(0, 99)], "decision": [(0, 2)], "history": [],
    }  # fmt: skip
    for name, changes in refused.items():
        at, n = sections[SECTIONS[name]]
        for place, value in changes:
            words = run.words.copy()
            words[at + place] = value
            assert restored(run, saved.sealed(words)) == ("OUT_OF_RANGE", True), (name, place)
        missing = np.concatenate([run.words[: at - 2], run.words[at + n :]])
        assert restored(run, saved.sealed(missing)) == ("OUT_OF_RANGE", True), name
    words = run.words.copy()
    words[sections[SECTIONS["counters"]][0] + Counters.PHASE] = Phase.RESOLVING
    words[sections[SECTIONS["counters"]][0] + Counters.REASON] = 0  # a start whose row stands already
    assert restored(run, saved.sealed(words)) == ("OUT_OF_RANGE", True)
    unknown = np.concatenate([run.words, np.array([4711, 2, 1, 2], np.uint64)])
    assert restored(run, saved.sealed(unknown))[0] == "RESTORED"


def time_stepping(tables, fill=0):
    """A run by time stepping with room for two rows, and its arrays."""
    n_x = int(tables.sizes[Sizes.N_Q] + tables.sizes[Sizes.N_U])
    arrays = {
        **_arrays(tables, n_x, 2),
        "times": np.zeros(2),
        "free_side": np.zeros(tables.sizes[Sizes.N_CONTACTS], np.int8),
    }
    report = np.zeros(4)
    rng = np.random.default_rng(fill)
    if fill:
        for each in (arrays["x"], arrays["c"], report):
            each[...] = rng.normal(size=each.shape)
        arrays["codes"][...] = rng.integers(0, 4, arrays["codes"].shape)
        arrays["free_side"][...] = rng.integers(0, 2, arrays["free_side"].shape)
    return library.time_stepping(fill, report, **arrays), {**arrays, "report": report}


def test_time_stepping_goes_on_where_it_was_saved_and_refuses_the_rest():
    tables = saved.stopped("ball_in_corner", 0).executable.tables
    address = st.TABLES.pack(tables).address
    given, sent = time_stepping(tables, fill=3)
    given.row = 1
    words = library.save_steps(address, given, 41, saved.DIGEST)
    taken, found = time_stepping(tables)
    assert library.restore_steps(address, taken, 4, saved.DIGEST, words) == (RESTORED, 41)
    assert (taken.row, taken.segment) == (0, 3)
    for name in ("x", "c", "codes"):
        assert found[name][0].tobytes() == sent[name][1].tobytes()
    for name in ("free_side", "report"):
        assert found[name].tobytes() == sent[name].tobytes()
    sections, n_contacts = sections_of(words), int(tables.sizes[Sizes.N_CONTACTS])
    step, codes = sections[SECTIONS["step"]][0], sections[SECTIONS["codes"]][0]
    changes = [(step, 2**63 + 5), (step + 1, 4), (step + 1, 2**63), (codes, 99), (codes + n_contacts, 2)]
    others = [words[: at - 2].tolist() + words[at + n :].tolist() for at, n in sections.values()]
    for place, value in changes:
        others.append([value if k == place else each for k, each in enumerate(words.tolist())])
    for other in others:
        empty, untouched = time_stepping(tables)
        result, _ = library.restore_steps(address, empty, 4, saved.DIGEST, saved.sealed(np.array(other, np.uint64)))
        assert NAMES[result] == "OUT_OF_RANGE"
        assert not any(each.any() for each in untouched.values())
    assert NAMES[library.restore_steps(address, taken, 4, 1, words)[0]] == "OTHER_MODEL"


def test_too_little_room_is_reported():
    run = saved.stopped("four_bar", 1)
    words = np.full(20, 7, np.uint64)
    save = library.function("fsm_save")
    online = library.vector(run.executable.online_modes())
    order = np.zeros(online.n, np.int64)
    count = save(run.handle(), online, library.vector(order), saved.DIGEST, words.ctypes.data, 10)
    assert count == len(run.words)
    assert (words[10:] == 7).all()


def test_results_have_sentences():
    assert sorted(NAMES) == list(range(len(NAMES)))
    assert all(library.restored_sentence(number) for number in NAMES)
    assert library.function("fsm_restored_sentence")(len(NAMES)) is None
