"""Put the shipped models inside the package, in wheels only: an editable install reads them from the checkout."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShippedModels(BuildHookInterface):  # type: ignore[type-arg]
    """Map ``yaml_models/`` to ``fsm_dyn/yaml_models/``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Leave editable builds alone: a copy in site-packages would go stale without a word."""
        if version != "editable":
            build_data["force_include"]["yaml_models"] = "fsm_dyn/yaml_models"
