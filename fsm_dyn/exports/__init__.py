"""Exports: an automaton as sources that run without Python."""
