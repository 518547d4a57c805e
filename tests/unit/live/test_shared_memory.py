"""Rings and mailboxes, and the histogram of times."""

from types import SimpleNamespace

import numpy as np
import pytest

from fsm_dyn.live import tick as tick_data
from fsm_dyn.live import watchdog
from fsm_dyn.live.pacing import bin_upper_edge, percentiles
from fsm_dyn.live.tick_process import TickProcess
from fsm_dyn.runtime.abi import BINS, LiveHeader
from tests.runtime.internals import internals


def bin_of(duration):
    return internals().bin_of(duration)


@pytest.fixture
def block():
    made = tick_data.SharedBlock.create(tick_data.BlockLayout(3, 5))
    yield made
    made.close(remove=True)


def test_two_processes_see_the_same_memory(block):
    other = tick_data.SharedBlock(block.shape, block.descriptor, block.path)
    block.rows[7] = [1.0, 2.0, 3.0]
    block.header[LiveHeader.FAULT] = 5
    assert other.rows[7].tolist() == [1.0, 2.0, 3.0]
    assert watchdog.Header(block.address)[LiveHeader.FAULT] == 5


def test_a_ring_gives_every_row_once(block):
    since, taken = 0, []
    for k in range(10_000):
        tick_data.put_row(block.rows, block.header, LiveHeader.ROWS, np.array([k, 2.0 * k, 0.0]))
        if k % 700 == 0:
            rows, since, lost = tick_data.take_rows(block.rows, block.header, LiveHeader.ROWS, since)
            assert lost == 0
            taken += rows[:, 0].tolist()
    rows, since, lost = tick_data.take_rows(block.rows, block.header, LiveHeader.ROWS, since)
    assert [*taken, *rows[:, 0].tolist()] == list(range(10_000))


def test_a_reader_that_is_late_gets_the_count_of_what_it_missed(block):
    for k in range(tick_data.ROW_SLOTS + 100):
        tick_data.put_row(block.rows, block.header, LiveHeader.ROWS, np.full(3, float(k)))
    rows, following, lost = tick_data.take_rows(block.rows, block.header, LiveHeader.ROWS, 0)
    assert following == tick_data.ROW_SLOTS + 100
    assert lost + len(rows) == following
    assert rows[0, 0] == lost
    assert rows[-1, 0] == following - 1


def test_texts_round_trip_and_too_long_ones_are_refused(block):
    tick_data.put_text(block.mail, block.header, LiveHeader.COMMANDS, {"do": "set", "values": {"k": 0.1}, "name": "é"})
    tick_data.put_text(block.mail, block.header, LiveHeader.COMMANDS, {"do": "run"})
    texts, following = tick_data.take_texts(block.mail, block.header, LiveHeader.COMMANDS, 0)
    assert texts == [{"do": "set", "values": {"k": 0.1}, "name": "é"}, {"do": "run"}]
    assert following == 2
    with pytest.raises(ValueError, match="bytes"):
        tick_data.put_text(block.mail, block.header, LiveHeader.COMMANDS, {"x": "y" * tick_data.TEXT_BYTES})


def test_long_texts_take_several_slots(block):
    """For any length: also if a part ends with the text, or a reader comes between two parts."""
    short = {"n": 0}
    lengths = [k * tick_data.PART_BYTES + more for k in (1, 2, 17) for more in (-8, -7, -6, 0, 1)]
    long = [{"x": "y" * length} for length in (*lengths, tick_data.MAX_EVENT_SLOTS * tick_data.PART_BYTES - 9)]
    since, found = 0, []
    for value in long:
        for each in (short, value, short):
            tick_data.put_text(block.events, block.header, LiveHeader.EVENTS, each, tick_data.MAX_EVENT_SLOTS)
        last = int(block.header[LiveHeader.EVENTS])
        for until in (last - 2, last):  # once as if the writer had not come to the end of the long one yet
            block.header[LiveHeader.EVENTS] = until
            texts, since = tick_data.take_texts(block.events, block.header, LiveHeader.EVENTS, since)
            found += texts
        assert since == last
    assert found == [each for value in long for each in (short, value, short)]
    with pytest.raises(ValueError, match="bytes"):
        tick_data.put_text(
            block.events, block.header, LiveHeader.EVENTS, {"x": "y" * 300_000}, tick_data.MAX_EVENT_SLOTS
        )


def test_a_text_whose_beginning_was_overwritten_is_left_out(block):
    tick_data.put_text(block.events, block.header, LiveHeader.EVENTS, {"x": "y" * 10_000}, tick_data.MAX_EVENT_SLOTS)
    for k in range(tick_data.EVENT_SLOTS - 3):
        tick_data.put_text(block.events, block.header, LiveHeader.EVENTS, {"n": k})
    texts, following = tick_data.take_texts(block.events, block.header, LiveHeader.EVENTS, 0)
    assert texts == [{"n": k} for k in range(tick_data.EVENT_SLOTS - 3)]
    assert following == block.header[LiveHeader.EVENTS]


def test_events_of_thousands_of_contacts_are_reported_as_they_are(block):
    """Of more than 600 contacts ``taken over`` was reported without its states, and ``supplied`` could not be read."""
    states = [k % 4 for k in range(5000)]
    told = [
        {"event": "kernel_adopted", "tick": 10**9, "t": 1 / 3, "states": states, "evaluations": 2**40, "wall": 0.0},
        {"event": "mode_added", "t": 1 / 3, "what": "x", "modes": ["+".join(f"contact{k}" for k in range(5000))],
         "states": [states], "wall": 0.0},
    ]  # fmt: skip
    telling = SimpleNamespace(block=block, header=block.header)
    for event in told:
        TickProcess.emit_event(telling, dict(event))
    assert tick_data.take_texts(block.events, block.header, LiveHeader.EVENTS, 0)[0] == told


def test_bins_hold_what_they_say():
    """Every time lies in a bin with an upper end at most a sixteenth above it."""
    values = np.unique(np.concatenate([np.arange(2000), np.logspace(3, 15, 5000).astype(np.int64)])).tolist()
    bins = [bin_of(v) for v in values]
    assert bins == sorted(bins)
    for value, number in zip(values, bins, strict=True):
        assert value <= bin_upper_edge(number) <= value * 17 / 16 + 1


def test_percentiles_of_a_known_distribution():
    counts = np.zeros(BINS, np.int64)
    for value in range(1, 10_001):
        counts[bin_of(value * 1000)] += 1
    found = percentiles(counts)
    for name, exact in {"p50": 5e-3, "p99": 9.9e-3, "p99.9": 9.99e-3, "worst": 1e-2}.items():
        assert exact <= found[name] <= exact * 17 / 16
    assert np.isnan(percentiles(np.zeros(BINS, np.int64))["p50"])
