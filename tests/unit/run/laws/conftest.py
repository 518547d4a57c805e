"""The laws of contact by themselves: instants put together by hand, decided by the runtime's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fsm_dyn.runtime.abi import LOG_LENGTH
from tests.runtime.internals import Arena, internals


class Instant:
    """A contact problem put together by hand, and its solution."""

    def __init__(self, K: Any, base: Any, contacts: list[dict[str, Any]], **options: Any):
        self.runtime, self.arena = internals(), Arena()
        K, base = np.array(K, float), np.array(base, float)
        n, count = len(base), len(contacts)
        m = self.runtime.allocate_problem(self.arena.struct, count)
        target, floor = np.zeros(n), np.zeros(n)
        for k, item in enumerate(contacts):
            kinetic = item.get("mu", 0.0)
            values = {
                "normal": item.get("normal", -1), "tangent": item.get("tangent", -1), "kinetic_friction": kinetic,
                "static_friction": item.get("static", kinetic), "infinite": item.get("infinite", 0),
                "bilateral": item.get("bilateral", 0), "slipping": item.get("slip", 0) != 0,
                "excluded": item.get("excluded", -1), "lasting": item.get("lasting", 0),
                "spatial": item.get("spatial", 0),
                "slip_direction": item.get("way", (0.0, 0.0)),
                "slack": item.get("slack", (0.0, 0.0)),
            }  # fmt: skip
            for name, value in values.items():
                m.get(name)[k] = value
            for choice in item.get("allowed", self._choices(item)):
                m.get("allowed")[k, choice] = 1
            for choice, cost in item.get("cost", {}).items():
                m.get("cost")[k, choice] = cost
            if values["normal"] >= 0:
                target[values["normal"]] = item.get("target", 0.0)
                floor[values["normal"]] = item.get("floor", 0.0)
        m.put("contact", np.arange(count))
        m.put("target", target)
        m.put("floor", floor)
        free = options.get("free", np.diag(K).copy())
        self.problem = self.runtime.scale_problem(self.arena.struct, m, K, base, free, options.get("scale", 0.0))
        self.best, self.forces, self.answers = np.zeros(count, np.int64), np.zeros(n), np.zeros(n)
        self.log = np.zeros(LOG_LENGTH)
        self.solution = self.runtime.struct(
            "contact_solution", choices=self.best, forces=self.forces, motions=self.answers
        )

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
        log = self.runtime.struct("candidate_log", entries=self.log)
        return self.runtime.solve_contact_problem(  # type: ignore[no-any-return]
            self.arena.struct, self.problem, 1e-9, self.solution, log
        )


@pytest.fixture
def runtime() -> Any:
    """The functions of the runtime."""
    return internals()


@pytest.fixture
def arena() -> Arena:
    """Room for arrays."""
    return Arena()


@pytest.fixture
def instant() -> Any:
    """Make an :class:`Instant`: ``instant(K, base, contacts)``."""
    return Instant
