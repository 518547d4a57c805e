"""An exception anywhere behind the page is shown on the page: no task ends silently, and no run continues unseen."""

import asyncio
import json
import sys

import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.page import server as background_compile
from fsm_dyn.page import server as catalogue
from fsm_dyn.page import server as serve
from fsm_dyn.page.broadcast import LiveBroadcast
from fsm_dyn.page.live_view import LiveOptions
from fsm_dyn.page.playback import PlaybackSession, from_trajectory
from fsm_dyn.page.server import Catalogue, WatchedFile


def fail(*given, **named):
    raise ZeroDivisionError("at fault")


async def fail_later(*given, **named):
    fail()


def told(messages, capsys):
    """Whether the last message is of the defect, and its traceback was printed."""
    assert "Traceback" in capsys.readouterr().err
    return "at fault" in messages[-1]["message"] and messages[-1]["kind"]


@pytest.mark.parametrize("where", ["in its process", "here"])
def test_of_a_model_that_a_page_has_chosen(monkeypatch, capsys, where):
    messages = []

    async def nothing(*given):
        pass

    monkeypatch.setattr(catalogue, "compile_ahead", fail_later if where == "in its process" else nothing)

    async def scene():
        show = LiveBroadcast(LiveOptions())
        show.join(messages.append)
        models = Catalogue(show, fail)
        assert await models.start("latch")
        await models._starting

    asyncio.run(scene())
    assert told(messages, capsys) == "error"


def test_of_a_file_that_was_saved(monkeypatch, capsys, tmp_path):
    messages = []
    monkeypatch.setattr(serve, "compile_ahead", fail_later)

    async def scene():
        show = LiveBroadcast(LiveOptions())
        show.join(messages.append)
        await serve._anew(WatchedFile(tmp_path / "x.yaml", "x.yaml", fail), show)

    asyncio.run(scene())
    assert told(messages, capsys) == "error"


@pytest.mark.parametrize("what", ["frame", "_reread", "device"])
def test_of_a_run_that_cannot_be_shown(monkeypatch, capsys, what):
    """One whose frames fail is ended; new parameters and the device's state are only not shown."""
    messages = []

    async def scene():
        show = LiveBroadcast(LiveOptions())
        show.join(messages.append)
        await show.start(fsm_dyn.compile("latch"))
        if what == "frame":
            monkeypatch.setattr(show.view, "frame", fail)
            playing = asyncio.create_task(show.play())
            while not show.summary:
                await asyncio.sleep(0.01)
            assert not playing.done(), "the next run is shown"
            playing.cancel()
        elif what == "_reread":
            monkeypatch.setattr(show.view, "new_encoder", fail)
            await show._reread(show.view)
            assert show.view.session.alive
        else:
            show.options = LiveOptions(device=type("Device", (), {"now": fail})())
            await show.watch_device()
            assert show.view.session.alive
        await show.close()
        return show.summary

    assert len(asyncio.run(scene())) == 1
    assert told(messages, capsys) == "error"


def test_of_a_recorded_run(monkeypatch, capsys):
    messages = []

    async def scene(session):
        session.join(messages.append)
        await session.play()

    asyncio.run(scene(PlaybackSession(fail, "x")))
    assert told(messages, capsys) == "error"
    run = fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), 0.1)
    session = PlaybackSession(lambda: from_trajectory(run), "x")

    async def charts():
        await scene(session)
        monkeypatch.setattr(session._playback, "chosen", fail)
        await session.carry_out({"do": "charts", "from": 0.0, "to": 0.1})
        await session._charting

    asyncio.run(charts())
    assert told(messages, capsys) == "refused"


def test_of_a_command(client, show, monkeypatch):
    monkeypatch.setattr(show, "carry_out", fail_later)
    with client.socket() as socket:
        for _ in range(2):  # the connection stays
            socket.send('{"do": "run"}')
            payload = json.loads(socket.recv(5))
            assert payload["kind"] == "refused"
            assert "at fault" in payload["message"]


def test_a_long_error_of_a_model_comes_through_the_pipe(monkeypatch):
    """Texts that take six bytes a character."""
    text = " ".join(["\u202e" * 150] * 20)
    error = ModelError(text, found=text, allowed=text, remedy=text)
    line = json.dumps(background_compile.error_data(error))
    assert 2**15 < len(line) < background_compile.LONGEST_LINE
    program = f"print({line!r}, flush=True)"
    real = asyncio.create_subprocess_exec

    def instead(*words, **options):
        return real(sys.executable, "-c", program, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", instead)
    with pytest.raises(InputError, match="\u202e"):
        asyncio.run(background_compile.compile_ahead("x", {}, lambda stage: None))
