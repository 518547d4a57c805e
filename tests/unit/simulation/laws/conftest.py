"""The laws of contact as plain Python: the same sources, imported once more with the compiling decorator undone.

They are tested so because compiling them takes longer than the tests; the compiled form is what every run of a model
with contacts exercises.
"""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

NAMES = ("arena", "linear", "feasibility", "meeting", "combination", "contact_law", "lemke", "decision")
PACKAGE = "fsm_dyn.simulation."


def import_plain() -> SimpleNamespace:
    """Import the modules anew without compiling; those in use stay as they are."""
    from fsm_dyn.simulation import bundles, compiled

    kept = {name: sys.modules.pop(PACKAGE + name, None) for name in NAMES}
    package = sys.modules["fsm_dyn.simulation"]
    attributes = {name: getattr(package, name, None) for name in NAMES}
    kept_functions = compiled.lean, bundles.in_rows, bundles.Bundle.maker
    compiled.lean = lambda function: function  # type: ignore[assignment]
    bundles.in_rows = lambda values, n, m: values.reshape(n, m)
    bundles.Bundle.maker = lambda bundle: lambda table, arrays: arrays  # type: ignore[method-assign]
    try:
        plain = SimpleNamespace(**{name: importlib.import_module(PACKAGE + name) for name in NAMES})
    finally:
        compiled.lean, bundles.in_rows, bundles.Bundle.maker = kept_functions  # type: ignore[method-assign]
        for name in NAMES:
            sys.modules.pop(PACKAGE + name, None)
            if kept[name] is not None:
                sys.modules[PACKAGE + name] = kept[name]
            if attributes[name] is not None:
                setattr(package, name, attributes[name])
    return plain


def new_arena(plain: SimpleNamespace) -> SimpleNamespace:
    """Plenty of room for plain Python."""
    top = np.zeros(plain.arena.TOP_COUNT, int)
    return SimpleNamespace(floats=np.zeros(100_000), integers=np.zeros(10_000, int), top=top)


@pytest.fixture(scope="session")
def plain() -> SimpleNamespace:
    """The modules of the laws, not compiled."""
    return import_plain()


class Instant:
    """A meeting of contacts put together by hand, and its decision."""

    def __init__(self, plain: SimpleNamespace, K: Any, base: Any, contacts: list[dict[str, Any]], **options: Any):
        self.plain, self.arena = plain, new_arena(plain)
        meeting = plain.meeting
        K, base = np.array(K, float), np.array(base, float)
        n, count = len(base), len(contacts)
        m = meeting.empty_meeting(self.arena, count)
        target, floor = np.zeros(n), np.zeros(n)
        for k, item in enumerate(contacts):
            m.normal[k], m.tangent[k] = item.get("normal", -1), item.get("tangent", -1)
            m.kinetic[k] = item.get("mu", 0.0)
            m.static[k] = item.get("static", m.kinetic[k])
            m.infinite[k], m.two_sided[k] = item.get("infinite", 0), item.get("two_sided", 0)
            m.slipping[k] = item.get("slip", 0) != 0
            m.banned[k] = item.get("banned", -1)
            m.spatial[k] = item.get("spatial", 0)
            m.way[k] = item.get("way", (0.0, 0.0))
            m.slack[k] = item.get("slack", (0.0, 0.0))
            for choice in item.get("allowed", self._choices(item)):
                m.allowed[k, choice] = 1
            for choice, cost in item.get("cost", {}).items():
                m.cost[k, choice] = cost
            if m.normal[k] >= 0:
                target[m.normal[k]] = item.get("target", 0.0)
                floor[m.normal[k]] = item.get("floor", 0.0)
        m = m._replace(target=target, floor=floor)
        free = options.get("free", np.diag(K).copy())
        self.meeting = meeting.scaled(self.arena, m, K, base, free, options.get("scale", 0.0))
        self.best, self.forces, self.answers = np.zeros(count, int), np.zeros(n), np.zeros(n)
        self.log = np.zeros(plain.contact_law.LOG_SIZE * plain.contact_law.LOG_WIDTH)

    @staticmethod
    def _choices(item: dict[str, Any]) -> list[int]:
        choices = [] if item.get("normal", -1) < 0 else [0]
        slip = item.get("slip", 0)
        if item.get("tangent", -1) < 0:
            return [*choices, 1]
        if item.get("spatial"):
            return choices + ([2] if slip else [1, 2])
        return choices + ([2 if slip > 0 else 3] if slip else [1, 2, 3])

    def decide(self) -> tuple[int, Any]:
        """Decide; choices, forces and motions are left in ``best forces answers``."""
        who = np.arange(len(self.best))
        return self.plain.decision.decide(  # type: ignore[no-any-return]
            self.arena, self.meeting, 1e-9, self.best, self.forces, self.answers, who, self.log, 0
        )


@pytest.fixture
def arena(plain: SimpleNamespace) -> SimpleNamespace:
    """Room for arrays."""
    return new_arena(plain)


@pytest.fixture
def instant(plain: SimpleNamespace) -> Any:
    """Make an :class:`Instant`: ``instant(K, base, contacts)``."""
    return lambda K, base, contacts, **options: Instant(plain, K, base, contacts, **options)
