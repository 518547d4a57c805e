"""Components: other models as parts of a model, found, renamed and joined (the section ``use``)."""

from fsm_dyn.spec.components.merging import merge_components

__all__ = ["merge_components"]
