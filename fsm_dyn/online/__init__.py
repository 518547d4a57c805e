"""Online embedding: modes without kernels of their own, worked out at run time from the unconstrained terms."""
