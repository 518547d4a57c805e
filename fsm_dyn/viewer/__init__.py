"""The page on which a mechanism moves: a server on this machine alone, which reads snapshots and writes commands."""
