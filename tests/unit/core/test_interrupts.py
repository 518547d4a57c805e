"""Ctrl-C as a flag: it is never lost, and never comes where something would be left half done."""

import signal
import sys

import pytest

from fsm_dyn.core.interrupts import asked_to_end, held_back


class Unraisable:
    """Python cannot pass on what its destructor raises."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_is_noted_and_handlers_are_put_back(number):
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    seen = []
    with asked_to_end(seen.append) as asked:
        assert not asked
        signal.raise_signal(number)
        signal.raise_signal(number)
    assert asked
    assert seen == [0, 1]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_what_may_be_broken_off_is_broken_off_also_where_the_exception_was_lost(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    went_on = []

    def lost(asked):
        with asked.at_once():
            Unraisable()
            went_on.append("lost")

    def before(asked):
        signal.raise_signal(signal.SIGINT)
        with asked.at_once():
            went_on.append("before")

    def within(asked):
        with asked.at_once():
            signal.raise_signal(signal.SIGINT)
            went_on.append("within")

    for ask in (lost, before, within):
        with asked_to_end() as asked, pytest.raises(KeyboardInterrupt):
            ask(asked)
    assert went_on == ["lost"]


def test_a_request_to_one_around_counts():
    with asked_to_end():
        signal.raise_signal(signal.SIGINT)
        with asked_to_end() as inner:
            assert inner


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_held_back_it_comes_afterwards(number):
    reached = []

    def work():
        with held_back():
            for _ in range(3):
                signal.raise_signal(number)
                with held_back():
                    reached.append(True)

    with asked_to_end() as asked, pytest.raises(KeyboardInterrupt), asked.at_once():
        work()
    assert len(reached) == 3
    if number == signal.SIGINT:
        with pytest.raises(KeyboardInterrupt):
            work()
    with asked_to_end() as asked:
        work()
        assert asked
