"""Judges of what is wrong with a file, an artefact or a message: an error of the package, by name and in time.

A case of these campaigns is a batch: many trials of one seed, so that a hundred thousand are tried in minutes.
"""

import contextlib
import resource
import signal
import time
import traceback

from fsm_dyn.core.errors import FsmDynError, InputError

LONGEST = 20.0  # s of processor time of a trial: other processes on the machine do not count
WAITING = 200.0  # s of a trial that may wait for something
MOST_MEMORY = 8 * 2**30  # bytes of address space
MOST_ECHOED = 200  # characters of a text in a message
LONGEST_MESSAGE = 4000


class Hangs(BaseException):
    """A trial that does not end; no handler of ``Exception`` keeps it."""


def _alarm(*_):
    raise Hangs


@contextlib.contextmanager
def bounded(seconds, waiting):
    """Interrupt what works or waits too long, and refuse memory beyond all measure."""
    before = [(number, signal.signal(number, _alarm)) for number in (signal.SIGALRM, signal.SIGPROF)]
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY if hard == resource.RLIM_INFINITY else hard, hard))
    signal.setitimer(signal.ITIMER_REAL, waiting)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        for number, handler in before:
            signal.signal(number, handler)


def echoed(message, text):
    """The longest stretch of a text that a message repeats, as far as it is beyond bounds."""
    for line in message.splitlines():
        for at in range(len(line) - MOST_ECHOED):
            if line[at : at + MOST_ECHOED + 1] in text:
                return line[at : at + 60]
    return ""


def misdeed(work, text="", placed=False):
    """Do the work and return what is wrong with its answer, or nothing; the second entry says how it was answered.

    Parameters
    ----------
    text : str
        What was given, of which a message may repeat little.
    placed : bool
        Whether an error of input is to name file and line.
    """
    begin = time.process_time()
    try:
        with bounded(LONGEST, WAITING):
            work()
    except FsmDynError as error:
        answer = "refused" if isinstance(error, InputError) else "failed by name"
        message = str(error)
        if placed and isinstance(error, InputError) and not error.where.line:
            return f"no line: {_first(error)}", answer
        if len(message) > LONGEST_MESSAGE:
            return f"a message of {len(message)} characters", answer
        if echoed(message, text):
            return f"echoes {echoed(message, text)!r}", answer
    except Hangs:
        return f"hangs at {_place(None)}", "hangs"
    except Exception as error:
        return f"raises {type(error).__name__} at {_place(error)}: {_first(error)}", "raises"
    else:
        answer = "accepted"
    return ("takes too long" if time.process_time() - begin > LONGEST else ""), answer


def _first(error):
    return (str(error).splitlines() or [""])[0][:120]


def _place(error):
    """Where in the package an exception began."""
    frames = traceback.extract_tb(error.__traceback__ if error else None)
    own = [frame for frame in frames if "fsm_dyn" in frame.filename]
    return f"{own[-1].filename.rpartition('fsm_dyn/')[2]}:{own[-1].name}" if own else "?"


def batch(seed, trials, most_reasons=3):
    """The result of a batch for the ledger.

    Parameters
    ----------
    trials : iterable of (work, text, placed, label)
        See :func:`misdeed`; the label says how to make the trial again.
    """
    counts, found, tried = {}, [], 0
    for work, text, placed, label in trials:
        reason, answer = misdeed(work, text, placed)
        tried += 1
        counts[answer] = counts.get(answer, 0) + 1
        if reason:
            found.append(f"{reason} [{label}]")
    reason = "; ".join(found[:most_reasons]) if found else "answered by name"
    return {"ok": not found, "reason": reason, "tried": tried, "wrong": len(found), "answers": counts}
