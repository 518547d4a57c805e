"""Straight-line programs: expression graphs, derivatives, machine code.  Without SymPy."""
