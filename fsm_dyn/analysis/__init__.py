"""Questions about motions: how they depend on where they begin, which repeat, which stay at rest."""
