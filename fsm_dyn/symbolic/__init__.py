"""From a mechanism to Kane's unconstrained terms (docs/theory.md, "Kinematics and Kane").

Everything voluminous is built as nodes of a :class:`~fsm_dyn.programs.Graph`; sympy helps where a small
symbolic result is wanted (inverting the definitions of speeds, printing equations) and is imported only there.
"""

from fsm_dyn.symbolic.derive import derive
from fsm_dyn.symbolic.terms import ConstraintRow, ContactTerms, Terms, TransitionTerms

__all__ = ["ConstraintRow", "ContactTerms", "Terms", "TransitionTerms", "derive"]
