"""Contact forces and where they act, by the features of shapes or recovered from the constraint rows."""
