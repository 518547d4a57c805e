"""The form of a model file: pydantic models over the composed tree, one file per group of sections."""
