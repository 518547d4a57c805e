"""The compiled mechanism as data: modes, edges, starts, storage, geometric verdicts."""
