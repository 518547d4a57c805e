"""The shipped models as a page lists them, and the start of one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fsm_dyn import models, spec
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.viewer.background_compile import compile_ahead
from fsm_dyn.viewer.live_broadcast import LiveBroadcast, package_error


class Catalogue:
    """Shipped models, one of which runs in a broadcast.

    Parameters
    ----------
    source : LiveBroadcast
    compiled : callable
        Returns the graph of a shipped model by its name; called in a thread when the cache has its parts.
    """

    def __init__(self, source: LiveBroadcast, compiled: Callable[[str], ModeGraph]) -> None:
        self._source, self._compiled = source, compiled
        self._options = source.options
        self._names = frozenset(models.names())
        self._starting: asyncio.Task[None] | None = None

    def entries(self) -> list[dict[str, Any]]:
        """Return name and summary of every model, and whether there is a picture."""
        return [
            {"name": name, "summary": spec.heading(models.find(name))[0], "picture": models.picture(name) is not None}
            for name in sorted(self._names)
        ]

    def picture(self, name: str) -> Path | None:
        """Return the picture of a model; None without one."""
        return models.picture(name) if name in self._names else None

    async def start(self, name: str) -> bool:
        """End the current run and begin to start a model; False if there is no such model."""
        if name not in self._names:
            return False
        await self.close()
        self._source.options = self._options  # without what a page chose for the model before
        await self._source.clear(name)
        self._starting = asyncio.create_task(self._start(name))
        return True

    async def close(self) -> None:
        """Cancel a start under way."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)

    async def _start(self, name: str) -> None:
        try:
            await compile_ahead(name, {}, partial(self._source.compiling, name))
            graph = await asyncio.to_thread(self._compiled, name)
        except Exception as error:
            self._source.failed(package_error(error, f"'{name}' was not compiled"))
        else:
            await self._source.start(graph)
