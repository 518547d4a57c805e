"""The machinery under the loop: bundles, caching, interruption."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import simulation_fakes as fakes
from numpy.typing import NDArray

from fsm_dyn.simulation import compiled, outcomes
from fsm_dyn.simulation.bundles import Bundle
from fsm_dyn.simulation.compiled import entry, lean, whole
from fsm_dyn.simulation.run import run


class Pair(NamedTuple):
    numbers: NDArray[np.float64]
    counts: NDArray[np.int64]
    flags: NDArray[np.int8]
    table: NDArray[np.float64]


PAIR = Bundle(Pair, {"table": 2})
_open = PAIR.opener()


@lean
def _total(pair, scale):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(pair.table.shape[0]):
        for j in range(pair.table.shape[1]):
            total += pair.table[i, j] * pair.numbers[j]
    pair.counts[0] += pair.flags[1]
    return scale * total


@lean
def _row(pair, i):  # type: ignore[no-untyped-def]
    return pair.table[i]


@lean
def _summed(pair):  # type: ignore[no-untyped-def]
    return _row(pair, 1).sum()


@whole
def _use(address, scale):  # type: ignore[no-untyped-def]
    pair = _open(address)
    return _total(pair, scale) + _summed(pair)


def _pair() -> Pair:
    return Pair(
        np.array([1.0, 10.0, 100.0]),
        np.zeros(2, dtype=np.int64),
        np.array([3, 5], dtype=np.int8),
        np.arange(6.0).reshape(2, 3),
    )


def test_compiled_code_sees_the_arrays_of_a_bundle() -> None:
    pair = _pair()
    packed = PAIR.pack(pair)
    assert _use(packed.address, 2.0) == 2.0 * (210.0 + 543.0) + 12.0
    assert pair.counts[0] == 5


def test_bundle_refuses_what_it_did_not_announce() -> None:
    pair = _pair()
    for wrong in (
        pair._replace(numbers=np.zeros(3, dtype=np.float32)),
        pair._replace(table=np.zeros(3)),
        pair._replace(table=np.zeros((3, 4))[:, :3]),
    ):
        with pytest.raises(TypeError, match=r"Pair\.(numbers|table) must be"):
            PAIR.pack(wrong)


def test_allocated_bundle_is_one_block_of_zeros() -> None:
    class Flat(NamedTuple):
        numbers: NDArray[np.float64]
        flags: NDArray[np.int8]
        none: NDArray[np.float64]
        counts: NDArray[np.int64]

    bundle = Bundle(Flat)
    flat, packed = bundle.allocate(3, 5, 0, 2)
    assert [len(item) for item in flat] == [3, 5, 0, 2]
    assert [item.dtype for item in flat] == [np.float64, np.int8, np.float64, np.int64]
    assert all(not item.any() for item in flat)
    flat.flags[:] = 7
    assert not flat.counts.any()
    assert not flat.numbers.any()
    open_flat = bundle.opener()

    @whole
    def write(address):  # type: ignore[no-untyped-def]
        flat = open_flat(address)
        flat.numbers[2] = 4.0
        flat.counts[1] = flat.flags[4]

    write(packed.address)
    assert flat.numbers[2] == 4.0
    assert flat.counts[1] == 7


@lean
def _refuse(n):  # type: ignore[no-untyped-def]
    if n == 3:
        raise ValueError("three")
    return 0.0


@lean
def _between(n):  # type: ignore[no-untyped-def]
    return _refuse(n) + 1.0


@whole
def _outside(n):  # type: ignore[no-untyped-def]
    return _between(n)


def test_exceptions_of_functions_below_come_out() -> None:
    assert _outside(2) == 1.0
    with pytest.raises(ValueError, match="three"):
        _outside(3)


def _cached() -> Any:
    def double(x):  # type: ignore[no-untyped-def]
        return 2.0 * x

    return entry(double)


def test_code_is_kept_and_bad_files_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path))
    assert _cached()(1.5) == 3.0
    files = sorted((tmp_path / "stepper").iterdir())
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    again = _cached()
    assert again(1.5) == 3.0
    assert sum(again.stats.cache_hits.values()) == 1
    for path in files:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    truncated = _cached()
    assert truncated(1.5) == 3.0
    assert sum(truncated.stats.cache_hits.values()) == 0
    for path in files:
        path.write_bytes(b"no such thing")
    assert _cached()(1.5) == 3.0


def test_installations_of_the_same_sources_share_code_and_few_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path))
    digests = [str(number) * 32 for number in range(7)]
    for number, digest in enumerate(digests):
        monkeypatch.setattr(compiled, "sources_digest", lambda file, digest=digest: digest)
        assert _cached()(1.5) == 3.0
        for path in (tmp_path / "stepper").glob(f"*-{digest[:12]}.*"):
            os.utime(path, (number, number))
    assert {path.name.rpartition("-")[2][:12] for path in (tmp_path / "stepper").iterdir()} == {
        digest[:12] for digest in digests[-5:]
    }
    monkeypatch.setattr(compiled, "sources_digest", lambda file: digests[-1])
    again = _cached()
    assert again(1.5) == 3.0
    assert sum(again.stats.cache_hits.values()) == 1


class Planted:
    """Unpickled, it ends the program."""

    def __reduce__(self) -> Any:
        return sys.exit, ("what was planted was run",)


@pytest.mark.skipif(sys.platform == "win32", reason="modes say nothing there")
@pytest.mark.parametrize("what", ["folder", "index", "data"])
def test_what_others_may_have_planted_is_never_unpickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """In a folder that others may write to, or whose files they may, under a seal that fits: its sources are public."""
    monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path))
    assert _cached()(1.5) == 3.0
    folder = tmp_path / "stepper"
    assert folder.stat().st_mode & 0o777 == 0o700
    planted = pickle.dumps(Planted())
    seal = hashlib.sha256(compiled.sources_digest(__file__).encode() + planted).digest()
    target = next(folder.glob("*.nbi" if what != "data" else "*.nbc"))
    assert target.stat().st_mode & 0o777 == 0o600
    target.write_bytes(seal + planted)
    with pytest.raises(SystemExit):  # it would be run
        _cached()(1.5)
    if what == "folder":
        folder.chmod(0o777)
        with pytest.warns(UserWarning, match="may be written by others"):
            assert _cached()(1.5) == 3.0
    else:
        target.chmod(0o666)
        assert _cached()(1.5) == 3.0


def test_without_a_place_for_caches_code_is_made_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled.cache, "cache_directory", lambda: None)
    for _ in range(2):
        made = _cached()
        assert made(1.5) == 3.0
        assert sum(made.stats.cache_hits.values()) == 0


def test_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("FSM_DYN_CACHE", str(blocked))
    assert _cached()(1.5) == 3.0


def test_stamp_follows_every_source_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiled.sources_digest()
    compiled.sources_digest.cache_clear()
    assert compiled.sources_digest() == before
    (tmp_path / "compiled.py").write_text("other")
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    compiled.sources_digest.cache_clear()
    assert compiled.sources_digest() != before
    compiled.sources_digest.cache_clear()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_from_the_keyboard_ends_a_long_run_with_what_it_has() -> None:
    tables = fakes.written(lambda t, q, u: -q, [(lambda t, q, u: q + 2.0, lambda t, q, u: u)])
    run(tables, [1.0, 0.0], [], 0, 0.0, 0.1, method="rk4", step=1e-3)
    main = threading.main_thread().ident
    assert main is not None
    # a shell that starts the tests in the background has them ignore this signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.15, lambda: signal.pthread_kill(main, signal.SIGINT))
    began = time.perf_counter()
    timer.start()
    try:
        raw = run(tables, [1.0, 0.0], [], 0, 0.0, 1e5, method="rk4", step=1e-3)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert raw.outcome.code == outcomes.INTERRUPTED
    assert time.perf_counter() - began < 60.0
    assert len(raw.t) > 100
