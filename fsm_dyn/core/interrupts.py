"""Ctrl-C while processes run: noted by a flag, never raised while something is half made or half ended.

By default Ctrl-C raises an exception between any two instructions, which is lost if Python cannot pass it on, as in a
destructor or a callback from compiled code; a flag avoids both.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


class Asked:
    """Whether the process was asked to end; true once it was.

    ``on_request``: called at every request with the number of those before it, in the signal handler: it only sets
    flags.
    """

    def __init__(self, on_request: Callable[[int], None] = lambda before: None) -> None:
        self.times = 0
        self.first = 0
        self._on_request = on_request
        self._raises = False

    def __bool__(self) -> bool:
        """Return whether there was a request."""
        return self.times > 0

    def request(self, number: int = 0, _frame: FrameType | None = None) -> None:
        """Take note of a request, and of the number of the first signal; the handler of the signals."""
        before, self.times, self.first = self.times, self.times + 1, self.first or number
        self._on_request(before)
        if self._raises:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise KeyboardInterrupt at a request too, for long work without traces.

        An earlier request raises it at the beginning; one whose exception was lost raises it at the end.
        """
        self._raises = True
        if self:
            raise KeyboardInterrupt
        try:
            yield
        finally:
            self._raises = False
        if self:
            raise KeyboardInterrupt


@contextlib.contextmanager
def asked_to_end(on_request: Callable[[int], None] = lambda before: None) -> Iterator[Asked]:
    """Take Ctrl-C and requests to terminate as a flag, even if a shell had them ignored; in the main thread.

    A request noted by an enclosing context counts.
    """
    asked = Asked(on_request)
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, asked.request) for number in (signal.SIGINT, signal.SIGTERM)}
    around = getattr(before[signal.SIGINT], "__self__", None)
    if isinstance(around, Asked) and around:
        asked.request()
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


@contextlib.contextmanager
def held_back() -> Iterator[Asked]:
    """Defer Ctrl-C while something is made or ended, so that it is not left half done; then pass it on.

    It goes to the previous handler, which by default raises KeyboardInterrupt. A request to terminate is deferred
    likewise if the program handles it.
    """
    asked = Asked()
    before = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        before = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in before:
        signal.signal(number, asked.request)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if asked:
            signal.raise_signal(asked.first)
