"""The page of the Python interface has every public name and an example that uses it."""

import re
from pathlib import Path

import fsm_dyn

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def test_every_public_name_has_its_entry_and_is_used_in_an_example():
    entries = re.findall(r"^::: (\S+)$", PAGE, re.MULTILINE)
    assert sorted(entries) == sorted(f"fsm_dyn.{name}" for name in fsm_dyn.__all__)
    examples = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))  # run by test_pages.py
    assert {name for name in fsm_dyn.__all__ if not re.search(rf"fsm_dyn\.{name}\b", examples)} == set()
