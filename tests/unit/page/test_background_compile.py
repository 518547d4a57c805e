"""Compiling in another process: what is wrong comes back whole, the server stands still for none of it."""

import asyncio
import itertools
import time

import pytest

from fsm_dyn.core.errors import InputError, Location, ModelError, RunError
from fsm_dyn.page.broadcast import LiveBroadcast
from fsm_dyn.page.live_view import LiveOptions
from fsm_dyn.page.server import WatchedFile, _anew, compile_ahead, error_data, error_from

BALL = """\
fsm_dyn: 1
name: ball_{number}
parameters: {{m: 1 kg}}
coordinates: {{y: m}}
points: {{P: {{from: O, at: y*N.y}}}}
bodies: {{ball: {{center: P, mass: m}}}}
contacts: {{ground: {{gap: {gap}, restitution: 0.8}}}}
loads: [{{gravity: -9.81 m/s^2*N.y}}]
initial: {{y: 1 m}}
"""


def ball(folder, gap="y"):
    path = folder / "ball.yaml"
    path.write_text(BALL.format(number=time.time_ns(), gap=gap), encoding="utf-8")  # never seen before
    return path


@pytest.mark.parametrize(
    "error",
    [ModelError("no 'z'", Location("a.yaml", 3, 7), found="z", allowed="y", remedy="write y"), RunError("gone")],
)
def test_an_error_survives_its_journey(error):
    back = error_from(error_data(error))
    assert str(back) == str(error)
    assert isinstance(back, InputError) == isinstance(error, InputError)


def test_while_a_model_is_compiled_the_server_goes_on(tmp_path):
    stages, gaps = [], []

    async def clock():
        before = time.monotonic()
        while True:
            await asyncio.sleep(0.005)
            gaps.append(time.monotonic() - before)
            before = time.monotonic()

    async def both():
        ticking = asyncio.create_task(clock())
        await compile_ahead(str(ball(tmp_path)), {"m": 2.0}, stages.append)
        ticking.cancel()

    asyncio.run(both())
    assert len(stages) == 3
    assert stages[0] == "compiling ball.yaml"
    # in the same process it waits for whole stages of the derivation; the bound leaves room for a busy machine
    assert sorted(gaps)[len(gaps) * 99 // 100] < 0.1, sorted(gaps)[-5:]


def test_an_error_of_the_model_comes_with_its_line(tmp_path):
    path = ball(tmp_path, gap="y + z")
    messages = []
    show = LiveBroadcast(LiveOptions())
    show.join(messages.append)
    asyncio.run(_anew(WatchedFile(path, str(path), lambda: None), show))
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "y + z" in text)
    assert messages[-1]["kind"] == "error"
    assert messages[-1]["where"].startswith(f"{path}:{line}:")
    changes = [message["stage"] for message in messages if message["kind"] == "recompiling"]
    assert changes[0]
    assert changes[-1] == "", "and then the note goes"


def test_what_is_no_longer_wanted_is_ended(tmp_path):
    async def given_up():
        task = asyncio.create_task(compile_ahead(str(ball(tmp_path)), {}, lambda stage: None))
        await asyncio.sleep(0.5)
        task.cancel()
        begin = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - begin

    assert asyncio.run(given_up()) < 1.0


def test_a_start_tells_its_stages(tmp_path):
    import fsm_dyn

    messages = []
    show = LiveBroadcast(LiveOptions())
    show.join(messages.append)

    async def started():
        await show.start(fsm_dyn.compile("bouncing_ball"))
        late = []
        show.join(late.append)
        await show.close()
        return late

    late = asyncio.run(started())
    kinds = [kind for kind, _ in itertools.groupby(message["kind"] for message in messages)]
    assert kinds == ["starting", "model"]
    stages = [message["stage"] for message in messages if message["kind"] == "starting"]
    assert any("machine code" in stage for stage in stages)
    assert any("tick process" in stage for stage in stages)
    assert "starting" not in {message["kind"] for message in late}, "whoever comes later is told of no start"
