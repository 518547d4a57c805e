"""Rings and mailboxes, and the histogram of times."""

import numpy as np
import pytest

from fsm_dyn.live import shared_memory, watchdog
from fsm_dyn.live.realtime import bin_upper_edge, percentiles
from tests.runtime.internals import internals

bin_of = internals().bin_of


@pytest.fixture
def block():
    made = shared_memory.SharedBlock.create(shared_memory.BlockLayout(3, 5))
    yield made
    made.close(remove=True)


def test_two_processes_see_the_same_memory(block):
    other = shared_memory.SharedBlock(block.shape, block.descriptor, block.path)
    block.rows[7] = [1.0, 2.0, 3.0]
    block.header[shared_memory.FAULT] = 5
    assert other.rows[7].tolist() == [1.0, 2.0, 3.0]
    assert watchdog.Header(block.address)[shared_memory.FAULT] == 5


def test_the_guard_counts_the_header_as_the_others_do():
    for name in ("BEATS", "GUARD_BEATS", "STOPPING", "TICK_STATE", "GUARD_ACTION", "TICK_PID"):
        assert getattr(watchdog, name) == getattr(shared_memory, name)
    for name in ("STARTING", "RUNNING", "BUSY", "ENDED"):
        assert getattr(watchdog, name) == getattr(shared_memory, name)


def test_a_ring_gives_every_row_once(block):
    since, taken = 0, []
    for k in range(10_000):
        shared_memory.put_row(block.rows, block.header, shared_memory.ROWS, np.array([k, 2.0 * k, 0.0]))
        if k % 700 == 0:
            rows, since, lost = shared_memory.take_rows(block.rows, block.header, shared_memory.ROWS, since)
            assert lost == 0
            taken += rows[:, 0].tolist()
    rows, since, lost = shared_memory.take_rows(block.rows, block.header, shared_memory.ROWS, since)
    assert [*taken, *rows[:, 0].tolist()] == list(range(10_000))


def test_a_reader_that_is_late_is_told_what_it_missed(block):
    for k in range(shared_memory.ROW_SLOTS + 100):
        shared_memory.put_row(block.rows, block.header, shared_memory.ROWS, np.full(3, float(k)))
    rows, following, lost = shared_memory.take_rows(block.rows, block.header, shared_memory.ROWS, 0)
    assert following == shared_memory.ROW_SLOTS + 100
    assert lost + len(rows) == following
    assert rows[0, 0] == lost
    assert rows[-1, 0] == following - 1


def test_texts_round_trip_and_too_long_ones_are_refused(block):
    shared_memory.put_text(
        block.mail, block.header, shared_memory.MAIL, {"do": "set", "values": {"k": 0.1}, "name": "é"}
    )
    shared_memory.put_text(block.mail, block.header, shared_memory.MAIL, {"do": "run"})
    texts, following = shared_memory.take_texts(block.mail, block.header, shared_memory.MAIL, 0)
    assert texts == [{"do": "set", "values": {"k": 0.1}, "name": "é"}, {"do": "run"}]
    assert following == 2
    with pytest.raises(ValueError, match="bytes"):
        shared_memory.put_text(block.mail, block.header, shared_memory.MAIL, {"x": "y" * shared_memory.TEXT_BYTES})


def test_bins_hold_what_they_say():
    """Every time lies in a bin whose upper end is at most a sixteenth above it."""
    values = np.unique(np.concatenate([np.arange(2000), np.logspace(3, 15, 5000).astype(np.int64)])).tolist()
    bins = [bin_of(v) for v in values]
    assert bins == sorted(bins)
    for value, number in zip(values, bins, strict=True):
        assert value <= bin_upper_edge(number) <= value * 17 / 16 + 1


def test_percentiles_of_a_known_distribution():
    counts = np.zeros(shared_memory.BINS, np.int64)
    for value in range(1, 10_001):
        counts[bin_of(value * 1000)] += 1
    found = percentiles(counts)
    for name, exact in {"p50": 5e-3, "p99": 9.9e-3, "p99.9": 9.99e-3, "worst": 1e-2}.items():
        assert exact <= found[name] <= exact * 17 / 16
    assert np.isnan(percentiles(np.zeros(shared_memory.BINS, np.int64))["p50"])
