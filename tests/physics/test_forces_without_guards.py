"""Rates and forces of rows are those of the whole programs of their modes, whether guards are evaluated or not."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run.online import OnlineFull


@pytest.mark.parametrize(("strategy", "substitute"), [("compiled", False), ("online", True)])
def test_outputs_are_those_of_the_whole(strategy, substitute):
    rows = fsm_dyn.simulate(fsm_dyn.compile("rocking_block"), until=0.5, strategy=strategy).rows
    met = np.unique(rows.mode)
    assert len(met) > 1
    for index in met:
        full, at = rows.model.full[index], rows.mode == index
        assert isinstance(full, OnlineFull) is substitute
        place = rows.t[at], rows.x[at], rows.context[at]
        part = full.evaluate(*place, {"x_dot": None, "multipliers": None})
        assert "guards" not in part or part["guards"].shape[-1] == 0
        for name in ("x_dot", "multipliers"):
            np.testing.assert_array_equal(part[name], full.evaluate(*place)[name])
