"""Online embedding: modes without kernels of their own, embedded at run time from the unconstrained terms."""
