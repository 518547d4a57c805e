"""Runs campaigns: ``python -m tests.campaigns.run [--only WORDS] [--seconds S] [--cases N] [--seeds N,N] [--jobs N]``.

Cases that the ledger has are not run again.  Campaigns take turns, so that a run that is cut short has some of each.
A case that takes too long, raises, or takes its process with it is a result like any other, and a bad one.  Run by
``make campaign``.
"""

import argparse
import faulthandler
import itertools
import multiprocessing
import os
import signal
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tests.campaigns.kinds import CAMPAIGNS
from tests.campaigns.ledger import ROOT, Ledger, key

LEDGER = ROOT / "out" / "campaign.jsonl"
PATIENCE = 60  # s
SPAWN = multiprocessing.get_context("spawn")  # a forked child would inherit the locks of LLVM's threads


class TooLong(Exception):
    """A case that does not end."""


def _alarm(*_):
    raise TooLong


def outcome(campaign, seed, longest=None):
    """Run a case in this process, whatever becomes of it; a result for the ledger."""
    longest = longest or CAMPAIGNS[campaign].longest
    begin = time.perf_counter()
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(longest)
    faulthandler.dump_traceback_later(longest + PATIENCE, exit=True)  # for what no signal reaches: a loop in C
    try:
        result = CAMPAIGNS[campaign].case(seed)
    except TooLong:
        result = {"ok": False, "reason": f"took longer than {longest} s"}
    except Exception as error:  # what a case raises is what it found
        result = {"ok": False, "reason": f"raises {type(error).__name__}: {str(error).splitlines()[0][:200]}"}
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
    return {**result, "seconds": round(time.perf_counter() - begin, 3)}


def once_more(campaign, seed):
    """As :func:`outcome`, of a case that was asked for by its seed: without how many are bad."""
    return {**outcome(campaign, seed), "again": True}


def pending(ledger, campaigns, most=None, seeds=None):
    """Cases that the ledger has not, a case of each campaign in turn.

    ``most`` of each, found ones included; or those of some ``seeds`` alone.
    """
    lines = [
        [(name, seed) for seed in seeds or range(min(most or kind.cases, kind.cases)) if key(name, seed) not in ledger]
        for name, kind in campaigns.items()
    ]
    for turn in itertools.zip_longest(*lines):
        yield from (case for case in turn if case is not None)


def alone(case, work):
    """Run a case in a process of its own, which may die of it."""
    with ProcessPoolExecutor(1, SPAWN) as pool:
        try:
            return pool.submit(work, *case).result()
        except BrokenProcessPool:
            return {"ok": False, "reason": "the process died"}


def run(ledger, cases, jobs, seconds=float("inf"), work=outcome):
    """Run cases in ``jobs`` processes until there are none, or the time is over; return how many were run."""
    end, done = time.monotonic() + seconds, 0
    cases = iter(cases)
    pool, running = ProcessPoolExecutor(jobs, SPAWN), {}
    try:
        while True:
            room = jobs - len(running) if time.monotonic() < end else 0
            for case in itertools.islice(cases, room):
                try:
                    running[pool.submit(work, *case)] = case
                except BrokenProcessPool:  # it broke after those that had finished were taken: this one is next
                    cases = itertools.chain([case], cases)
                    break
            if not running:
                return done
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            broken = [future for future in finished if isinstance(future.exception(), BrokenProcessPool)]
            for future in finished.difference(broken):
                ledger.add(*running.pop(future), future.result())
                done += 1
            if broken:  # one of those that were running took all with it
                suspects, running = list(running.values()), {}
                pool.shutdown()
                pool = ProcessPoolExecutor(jobs, SPAWN)
                for case in suspects:
                    ledger.add(*case, alone(case, work))
                    done += 1
    finally:
        pool.shutdown(cancel_futures=True)


def main():
    parser = argparse.ArgumentParser(description="run what no campaign has run yet")
    parser.add_argument("--only", default="", help="campaigns whose names hold these words")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no case begins later")
    parser.add_argument("--cases", type=int, help="of each campaign")
    parser.add_argument("--seeds", default="", help="these alone, as 3,14: bad ones of other sources")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    given = parser.parse_args()
    chosen = {name: kind for name, kind in CAMPAIGNS.items() if given.only in name}
    if not chosen:
        parser.error(f"no campaign holds '{given.only}': {', '.join(CAMPAIGNS)}")
    try:
        seeds = [int(seed) for seed in given.seeds.split(",") if seed.strip()]
    except ValueError:
        parser.error(f"--seeds takes whole numbers with commas between them, not '{given.seeds}'")
    ledger = Ledger(given.ledger)
    cases = pending(ledger, chosen, given.cases, seeds)
    done = run(ledger, cases, given.jobs, given.seconds, once_more if seeds else outcome)
    print(f"{done} cases run, written to {given.ledger}")  # noqa: T201
    for name in chosen:
        entries = ledger.of(name)
        bad = [entry for entry in entries if not entry["ok"]]
        print(f"{name}: {len(entries)} of {chosen[name].cases} cases, {len(bad)} bad")  # noqa: T201
        for entry in bad[:3]:
            print(f"  seed {entry['seed']}: {entry['reason']}")  # noqa: T201


if __name__ == "__main__":
    main()
