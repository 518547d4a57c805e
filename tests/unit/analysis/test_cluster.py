"""Studies on a cluster of dask: the bits of local processes, also after a loss of workers or scheduler."""

import os
import pickle
import signal
import socket

import dask
import distributed
import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis import study_runs
from fsm_dyn.core.errors import InputError, RunError
from tests.unit.analysis.test_ledger import bouncing_ball, rows, runs_made

VARY = {"e": np.linspace(0.2, 0.9, 40).tolist(), "m": ["1 kg", "2 kg"]}


@pytest.fixture(scope="module")
def ball():
    return bouncing_ball()


@pytest.fixture(scope="module")
def whole(ball):
    return rows(fsm_dyn.study(ball, VARY, until=0.5, jobs=1))


@pytest.fixture
def workers():
    """Two workers of one thread, a process each, restarted by a nanny."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "10s"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as found,
    ):
        yield found


def test_a_cluster_gives_the_same_bits_also_when_workers_are_lost(ball, whole, workers, tmp_path, monkeypatch):
    """The second study loses one of both workers after a fifth of its runs, and the third finds all in the ledger.

    The fourth loses the scheduler; its reported results are in the ledger, and the rest runs here.
    """
    with distributed.Client(workers) as client:
        assert rows(fsm_dyn.study(ball, VARY, until=0.5, client=client)) == whole
        processes, killed, done = client.run(os.getpid), [], []

        def kill(number, of):
            done.append(number)
            if number == 16:
                killed.append(processes.popitem()[1])
                os.kill(killed[0], signal.SIGKILL)

        path = tmp_path / "study.sqlite"
        found = fsm_dyn.study(ball, VARY, until=0.5, client=client, ledger=path, progress=kill)
        assert rows(found) == whole
        assert done == list(range(1, 81))
        assert len(killed) == 1
    assert rows(fsm_dyn.study(ball, VARY, until=0.5, client="tcp://127.0.0.1:1", ledger=path)) == whole

    path = tmp_path / "lost.sqlite"
    with pytest.raises(RunError, match=r"(?s)cluster at .* is lost.*same command continues"):
        fsm_dyn.study(
            ball, VARY, until=0.5, client=workers.scheduler_address, ledger=path,
            progress=lambda number, of: workers.close(timeout=5) if number == 24 else None,
        )  # fmt: skip
    made = runs_made(monkeypatch)
    assert rows(fsm_dyn.study(ball, VARY, until=0.5, jobs=1, ledger=path)) == whole
    assert 0 < sum(made) <= 80 - 24


@pytest.mark.parametrize(
    ("client", "message"),
    [
        ("nonsense", "no host and port"),
        ("tcp://127.0.0.1:seven", "seven"),
        (7, "distributed.Client, or tcp://HOST:PORT"),
    ],
)  # fmt: skip
def test_an_address_of_no_scheduler_is_refused(ball, client, message):
    with pytest.raises(InputError, match=message):
        fsm_dyn.study(ball, {"e": [0.5, 0.6]}, until=0.5, client=client)


def test_an_address_without_a_scheduler_is_refused(ball):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(InputError, match="no scheduler of dask answers"):
            fsm_dyn.study(ball, {"e": [0.5, 0.6]}, until=0.5, client=address)
    with pytest.raises(InputError, match="has no processes here"):
        fsm_dyn.study(ball, {"e": [0.5, 0.6]}, until=0.5, client=address, jobs=2)


def test_a_worker_of_another_version_is_refused():
    """Its sources may round differently; the error can be pickled."""
    with pytest.raises(RunError, match="install the same version") as caught:
        study_runs._received(None, "another version")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301  made here
