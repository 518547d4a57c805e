"""The page on which a mechanism moves: a server for this machine alone, and its display frames."""
