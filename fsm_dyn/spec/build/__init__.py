"""From forms to the frozen mechanism: which keys go together, defaults, expansions."""

from fsm_dyn.spec.build.mechanism import build

__all__ = ["build"]
