"""What a page may set of a live run, and when it counts."""

import asyncio
import time

import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.page.broadcast import LiveBroadcast
from fsm_dyn.page.live_view import LiveOptions


class Stage:
    """A show with one page that keeps the messages it gets."""

    def __init__(self, name, **options):
        self.show, self.heard = LiveBroadcast(LiveOptions(**options)), []
        self.show.join(self.heard.append)
        self.name = name

    async def __aenter__(self):
        self.playing = asyncio.create_task(self.show.play())
        await self.show.start(fsm_dyn.compile(self.name))
        return self

    async def __aexit__(self, *failure):
        self.playing.cancel()
        await self.show.close()

    def payload(self, kind):
        return [message for message in self.heard if isinstance(message, dict) and message["kind"] == kind]

    async def until(self, condition):
        patience = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < patience
            await asyncio.sleep(0.01)

    def named(self, key):
        return {item["name"]: item for item in self.show.view.run_parameters.payload()[key]}


def test_parameters_count_at_once_or_from_the_reset():
    """The disk: its friction at once; its radius, and what is drawn of it, from the reset on; J goes with m and r."""

    async def scene():
        async with Stage("rolling_disk") as stage:
            known = stage.named("parameters")
            assert set(known) >= {"m", "r", "mu", "e"}
            assert "J" not in known, "it follows m and r"
            assert known["phi"]["value"] == pytest.approx(0.20944, rel=1e-4)
            assert known["r"]["reset"]
            assert not known["mu"]["reset"]
            assert [known[name]["hand"] for name in ("mu", "disk_port_1_stiffness")] == [False, True]

            view = stage.show.view
            layout, parameters = view.evaluator.layout, view.evaluator.parameters
            await stage.show.carry_out({"do": "set", "name": "mu", "value": 0.6})
            await stage.until(lambda: parameters[layout.p.index("mu")] == 0.6)
            assert not stage.payload("setup")[-1]["waiting"]

            await stage.show.carry_out({"do": "set", "name": "r", "value": 0.2})
            await stage.until(lambda: "r" in stage.show.view.run_parameters.waiting)
            assert view.evaluator.parameters[layout.p.index("r")] == 0.1
            models = len(stage.payload("model"))
            await stage.show.carry_out({"do": "reset"})
            await stage.until(lambda: len(stage.payload("model")) > models)
            assert not view.run_parameters.waiting
            now = view.evaluator.parameters
            assert (now[layout.p.index("r")], now[layout.p.index("mu")]) == (0.2, 0.6)
            assert now[layout.p.index("J")] == pytest.approx(2.0 * 0.2**2 / 2)
            shapes = stage.payload("model")[-1]["picture"]["shapes"]
            extents = [max(abs(x) for x, _ in shape["points"]) for shape in shapes]
            disk = next(extent for extent in extents if extent < 1.0)  # not the ramp
            assert disk == pytest.approx(0.2, abs=1e-6)
            # and the mechanism itself rolls on the larger disk
            row = view.session.snapshot()
            assert row["state"]["y"] > 0.15

            with pytest.raises(InputError, match="no parameter"):
                await stage.show.carry_out({"do": "set", "name": "nonsense", "value": 1.0})
            with pytest.raises(InputError, match="m = -1: the mass"):
                await stage.show.carry_out({"do": "set", "name": "m", "value": -1.0})
            assert stage.named("parameters")["m"]["now"] > 0.0

    asyncio.run(scene())


def test_drives_are_those_that_nobody_else_drives():
    async def scene():
        async with Stage("shopping_cart", schedule=False) as stage:
            drives = stage.named("drives")
            of_its_schedule = {"push": 16.0, "turn": 15.0}
            assert {name: item["size"] for name, item in drives.items()} == of_its_schedule
            await stage.show.carry_out({"do": "input", "name": "push", "value": 12.5})
            view = stage.show.view
            await stage.until(lambda: view.session.snapshot() is not None)
            await stage.until(lambda: view.session.snapshot()["inputs"]["push"] == 12.5)
            with pytest.raises(InputError, match="no input"):
                await stage.show.carry_out({"do": "input", "name": "handle_1", "value": 1.0})

    asyncio.run(scene())


def test_the_mode_it_begins_in():
    async def scene():
        async with Stage("shopping_cart", schedule=False) as stage:
            with pytest.raises(InputError, match="nowhere"):
                await stage.show.carry_out({"do": "initial", "mode": "nowhere"})
            assert stage.show.view.number == 1
            await stage.show.carry_out({"do": "initial", "mode": "sticking"})
            view = stage.show.view
            assert view.number == 2
            await stage.until(lambda: view.session.snapshot() is not None)
            rows, _ = view.session.rows()
            assert view.session.modes[int(rows[0][5])] == "sticking"
            assert stage.payload("model")[-1]["setup"]["mode"] == "sticking"

    asyncio.run(scene())
