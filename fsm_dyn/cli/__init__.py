"""The command line ``fsm-dyn``.

Commands import their dependencies when they run: ``fsm-dyn --help`` should answer at once, and SymPy and Matplotlib
together take seconds to import.
"""

import signal


def main() -> None:
    """Run the command line; the console script ``fsm-dyn``.

    Before a command begins, Ctrl-C ends the process by the system's default: inside the import system Python's own
    handler could only print a notice of an ignored exception.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fsm_dyn.cli import console

    console.main()
