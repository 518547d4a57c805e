"""The command line ``fsm-dyn`` as ``python -m fsm_dyn``."""

from fsm_dyn.cli import main

main()
