"""Runs to draw."""

import pytest

import fsm_dyn
from tests.unit.run.results.conftest import block  # noqa: F401 - the fixture


@pytest.fixture(scope="session")
def disk():
    """Slides, rolls, slides, rolls, flies, lands and bounces to rest."""
    graph = fsm_dyn.compile("rolling_disk")
    return graph, fsm_dyn.simulate(graph, until=4.0)


@pytest.fixture(scope="session")
def box():
    """Stands on two corners that share its weight, slides, tips over."""
    return fsm_dyn.simulate(fsm_dyn.compile("box_on_table"))
