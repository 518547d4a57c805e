"""The language: text to a frozen, typed, checked mechanism whose expressions are still text."""
