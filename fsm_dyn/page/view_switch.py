"""A live run and a finished one of the same model, of which pages show one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from fsm_dyn.core.errors import InputError
from fsm_dyn.page.broadcast import Listener, LiveBroadcast
from fsm_dyn.page.playback import PlaybackSession, Reruns


class ViewSwitch:
    """Source of pages: the live run, and on request a finished run of its model with the same parameters.

    The finished run has the model's own inputs and end. The live one is paused meanwhile.

    Parameters
    ----------
    live : LiveBroadcast
    """

    def __init__(self, live: LiveBroadcast) -> None:
        self._live = live
        self._finished: PlaybackSession | None = None
        self._listeners: list[Listener] = []
        self._playing: asyncio.Task[None] | None = None

    @property
    def _shown(self) -> LiveBroadcast | PlaybackSession:
        return self._finished or self._live

    def join(self, listener: Listener) -> None:
        """Add a page."""
        self._listeners.append(listener)
        self._shown.join(listener)

    def leave(self, listener: Listener) -> None:
        """Remove a page."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        self._shown.leave(listener)

    async def carry_out(self, command: Mapping[str, Any]) -> None:
        """Execute a page command: ``visits`` and ``live`` exchange the runs, all others go to the shown one.

        Raises
        ------
        FsmDynError
            The command cannot be executed.
        """
        match command["do"]:
            case "visits" if self._finished is None:
                self._finish()
            case "live" if self._finished is not None:
                await self._end_finished()
            case "visits" | "live":
                return
            case _:
                await self._shown.carry_out(command)

    def _finish(self) -> None:
        graph, view = self._live.graph, self._live.view
        if graph is None or view is None:
            raise InputError("no active run", remedy="correct the model, or restart")
        view.session.send("pause")
        known = set(graph.automaton.mechanism.parameters)
        own = {name: value for name, value in view.run_parameters.overrides.items() if name in known}
        finished = PlaybackSession(Reruns(graph, own), graph.name, live=True)
        for listener in self._listeners:
            self._live.leave(listener)
            finished.join(listener)
        self._finished = finished
        self._playing = asyncio.create_task(finished.play())

    async def _end_finished(self) -> None:
        finished, self._finished = self._finished, None
        if finished is not None:
            await finished.close()
        for listener in self._listeners:
            if finished is not None:
                finished.leave(listener)
            self._live.join(listener)

    async def close(self) -> None:
        """End the finished run; the live one is closed by its owner."""
        await self._end_finished()
