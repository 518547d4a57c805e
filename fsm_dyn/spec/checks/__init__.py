"""Cross-reference checks: names, references, orders, kinds and dimensions, values."""

from fsm_dyn.spec.checks.run_checks import check

__all__ = ["check"]
