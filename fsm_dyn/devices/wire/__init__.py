"""What is said to devices across a network, apart from who says it."""

from __future__ import annotations

import os
import socket

from fsm_dyn.errors import InputError


def shared(found: socket.socket) -> int:
    """Return the descriptor of a socket that the tick process and its guard are to inherit.

    Raises
    ------
    InputError
        On Windows, where a child cannot inherit one: the guard could not let the device go.
    """
    if os.name == "nt":
        found.close()
        raise InputError("a device across a network", found="Windows", allowed="Linux, macOS")
    return found.detach()
