"""A start belongs to the show from its first instant: a caller that waits for it may go; what fails leaves nothing."""

import asyncio
import contextlib
import threading

import pytest

import fsm_dyn
from fsm_dyn.live import session as live_session
from fsm_dyn.live.session import LiveSession
from fsm_dyn.page import live_view as taken
from fsm_dyn.page.broadcast import LiveBroadcast
from fsm_dyn.page.live_view import LiveOptions


@pytest.fixture
def sessions(monkeypatch):
    """The sessions that were made."""
    made = []

    class Kept(LiveSession):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(taken, "LiveSession", Kept)
    return made


@pytest.mark.parametrize("waits", [0.0, 0.05, 0.4])
def test_a_page_that_goes_after_restart_leaves_its_run_to_the_next_one(sessions, waits):
    """So does a file that is saved again while its run is started."""
    messages = []

    async def scene():
        show = LiveBroadcast(LiveOptions())
        await show.start(fsm_dyn.compile("latch"))
        page = asyncio.create_task(show.carry_out({"do": "restart"}))
        await asyncio.sleep(waits)
        page.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await page
        show.join(messages.append)  # the next page
        while show.view is None or show.view.number < 2:
            await asyncio.sleep(0.01)
        assert [session.alive for session in sessions] == [False, True]
        await show.close()
        return show.summary

    assert len(asyncio.run(scene())) == 2
    assert "model" in [message["kind"] for message in messages]
    assert not any(session.alive for session in sessions)


@pytest.mark.parametrize("where", ["before", "after", "within"])
def test_any_exception_of_a_start_reaches_the_page_and_leaves_no_process(sessions, monkeypatch, where, capsys):
    """Before the session, after it, and while the page is closed."""
    messages, reached = [], threading.Event()

    def fail(*given, **named):
        raise ZeroDivisionError("at fault")

    def stay(*given, **named):
        reached.set()
        threading.Event().wait(0.3)
        return real(*given, **named)

    real = live_session.LiveSession.start
    if where == "before":
        monkeypatch.setattr(live_session.LiveSession, "start", fail)
    elif where == "after":
        monkeypatch.setattr(taken, "RunParameters", fail)
    else:
        monkeypatch.setattr(live_session.LiveSession, "start", stay)

    async def scene():
        show = LiveBroadcast(LiveOptions())
        show.join(messages.append)
        start = asyncio.create_task(show.start(fsm_dyn.compile("latch")))
        if where == "within":
            await asyncio.to_thread(reached.wait)
            start.cancel()
        else:
            await start
        await show.close()
        assert show.view is None

    asyncio.run(scene())
    assert not any(session.alive for session in sessions)
    if where == "within":
        assert len(sessions) == 0, "broken off at its next stage"
    else:
        assert (messages[-1]["kind"], "at fault" in messages[-1]["message"]) == ("error", True)
        assert "ZeroDivisionError" in capsys.readouterr().err
