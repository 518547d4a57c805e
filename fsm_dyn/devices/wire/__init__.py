"""Wire formats and connections of devices across a network, without the drivers."""

from __future__ import annotations

import os
import socket

from fsm_dyn.errors import InputError


def shared(found: socket.socket) -> int:
    """Return the descriptor of a socket for the tick process and the watchdog process to inherit.

    Parameters
    ----------
    found : socket.socket
        An open socket.

    Raises
    ------
    InputError
        On Windows, where a child process cannot inherit one: the watchdog process could not remove the force.
    """
    if os.name == "nt":
        found.close()
        raise InputError("a device across a network", found="Windows", allowed="Linux, macOS")
    return found.detach()
