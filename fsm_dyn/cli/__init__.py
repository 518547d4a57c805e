"""The command line ``fsm-dyn``.

Commands import what they need when they run: ``fsm-dyn --help`` should answer at once, and SymPy and
Matplotlib together take seconds to import.
"""

from fsm_dyn.cli.app import app, main

__all__ = ["app", "main"]
