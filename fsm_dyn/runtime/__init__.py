"""The runtime: the C library to run an automaton, and the one module to call it (docs/runtime.md)."""
