"""Overwritten rows of a ring: named by an event, with their number."""

import fsm_dyn
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession

TICKS, KEPT = 6000, 4095


def test_rows_that_the_ring_no_longer_has_are_reported():
    with LiveSession.start(
        fsm_dyn.compile("bouncing_ball"), "scripted", {"axes": 1}, settings=LiveSettings(paced=False, ticks=TICKS)
    ) as session:
        session.wait_for_ticks(TICKS)
        rows, following = session.rows(0)
        assert (len(rows), following) == (KEPT, TICKS)
        lost = [event for event in session.events() if event["event"] == "overwritten"]
        assert [(event["what"], event["count"]) for event in lost] == [("rows", TICKS - KEPT)]
        assert session.rows(TICKS - 10)[1] == TICKS
        assert not [event for event in session.events() if event["event"] == "overwritten"]
