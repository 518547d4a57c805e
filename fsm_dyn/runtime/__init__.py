"""The runtime: the C library that runs an automaton, and the one module that calls it (docs/runtime.md)."""
