"""Components: other models as parts of a model, found, renamed and joined (the section ``use``)."""

from fsm_dyn.spec.components.joining import joined

__all__ = ["joined"]
