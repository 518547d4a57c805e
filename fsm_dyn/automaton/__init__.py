"""The compiled mechanism as data, saved and read; its initial states, static equilibria, labels and geometry."""
