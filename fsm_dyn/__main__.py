"""``python -m fsm_dyn`` does what ``fsm-dyn`` does."""

from fsm_dyn.cli import main

main()
