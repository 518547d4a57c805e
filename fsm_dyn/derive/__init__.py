"""The derivation: Kane's terms of a mechanism, and the embedding of each mode (docs/theory.md)."""
