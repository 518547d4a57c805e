"""Many runs and what they say: studies, requirements, gradients, cycles, verification."""
