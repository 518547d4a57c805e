"""The log of candidates where more contacts meet than a double has digits or bits."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run.outcomes import candidates_fit, read_candidates


def entry(contacts, choice):
    """What the runtime logs of one combination: see ``fsm_write_log``."""
    code = 0.0
    for _ in contacts:
        code = 10.0 * code + choice
    return [sum(2.0**k for k in contacts), code, 0.5, 1000.0 + contacts[0]]


@pytest.mark.parametrize("count", [1, 2, 15, 16, 40, 60])
@pytest.mark.parametrize("choice", [0, 1, 8])
def test_what_is_read_is_the_candidates_examined(count, choice):
    contacts = list(range(count))
    log = np.array([entry(contacts, choice), entry([0], 1)])
    assert candidates_fit(log, count)
    *large, small = read_candidates(log.ravel(), 2)
    assert small.choices == ((0, 1),)
    assert [candidate.choices for candidate in large] in ([], [tuple((k, choice) for k in contacts)])
    assert large or count > 15


def test_a_run_in_which_many_contacts_meet_is_reported_and_read_back(tmp_path):
    """A row of blocks on one table, each rubbing on its neighbours: 23 contacts that are decided together."""
    count = 24
    row = range(1, count + 1)
    model = {
        "fsm_dyn": 1, "name": "row", "parameters": {"m": "1 kg", "d": "2 mm", "drag": "0.4 N"},
        "coordinates": {f"x{i}": "m" for i in row},
        "points": {f"P{i}": {"from": "O", "at": f"x{i}*N.x"} for i in row},
        "bodies": {f"block{i}": {"center": f"P{i}", "mass": "m"} for i in row},
        "speeds": {f"v{i}": f"rate(x{i})" for i in row},
        "contacts": {
            f"rubs{i}": {"dry_friction": {"speed": f"v{i} - v{i + 1}", "static": "drag", "kinetic": "drag"}}
            for i in row[:-1]
        },
        "loads": [{"force": "1 N*N.x", "at": "P1"}],
        "initial": {"x1": "0 m"},
    }  # fmt: skip
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.1, strategy="online")
    assert run.transitions
    run.save(tmp_path / "run.npz")
    again = fsm_dyn.open_run(tmp_path / "run.npz")
    assert [x.selection for x in again.transitions] == [x.selection for x in run.transitions]
