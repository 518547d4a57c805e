"""Makes the hand-made automata importable as ``simulation_fakes``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location("simulation_fakes", Path(__file__).with_name("fakes.py"))
if _spec is None or _spec.loader is None:
    raise ImportError("fakes.py is missing")
_module = importlib.util.module_from_spec(_spec)
sys.modules["simulation_fakes"] = _module
_spec.loader.exec_module(_module)
