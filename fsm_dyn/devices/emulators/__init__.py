"""Emulated devices: the mechanics of a handle, and the firmware or service behind the driver's transport.

The emulator of a driver is the module here of the same name.  It has a function ``start(options) -> Emulation``, and
is itself a program, so the driver communicates with another process, across the same transport as the device's::

    python -m fsm_dyn.devices.emulators.hapkit --options '{"mass": 0.1}'

The program prints the options of the driver on its first line, takes commands as lines of JSON on its standard input,
one ``{"do": name, ...}`` each, and ends when the input closes.  ``state`` and ``log`` are answered by a line; see
:mod:`.emulated_device` for both sides of this.
"""
