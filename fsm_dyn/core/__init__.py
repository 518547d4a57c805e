"""Errors, files, processes, interrupts: the ground of every room."""
