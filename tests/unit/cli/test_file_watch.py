"""Runs again after every change of a file."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fsm_dyn.cli.run import watch
from fsm_dyn.core.errors import InputError
from fsm_dyn.language import models


def test_watch_runs_again_after_a_save_and_ends_with_ctrl_c(tmp_path):
    path = tmp_path / "ball.yaml"
    text = models.find("bouncing_ball").read_text()
    path.write_text(text)
    command = [sys.executable, "-m", "fsm_dyn", "run", str(path), "--until", "0.5", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        lines = []

        def until(word):
            while word not in (line := process.stdout.readline()):
                assert line, "".join(lines)
                lines.append(line)

        try:
            until("bounces")
            path.write_text(text.replace("coordinates", "cordinates"))
            until("did you mean 'coordinates'")
            path.write_text(text.replace("0.8", "0.7"))
            until("bounces")
            process.send_signal(signal.SIGINT)
            until("stopped watching")
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_ctrl_c_ends_a_watch_even_where_python_cannot_raise_it(tmp_path, capsys):
    class Thing:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    path = tmp_path / "a.yaml"
    path.touch()
    seen = []

    def action():
        seen.append(1)
        Thing()

    before = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda _: None)
        watch(path, action)
    assert seen == [1]
    assert capsys.readouterr().err.rstrip().endswith("stopped watching")
    assert signal.getsignal(signal.SIGINT) is before


def test_watch_runs_again_after_every_change_and_survives_errors(tmp_path, capsys, monkeypatch):
    path = tmp_path / "m.yaml"
    path.write_text("one")
    steps = iter(["half", "two", "", None, "three", "", "four", ""])
    stamps = iter(range(1, 100))
    seen = []

    def action():
        seen.append(path.read_text())
        if seen[-1] == "two":
            raise InputError("two is bad")
        if seen[-1] == "three":
            raise ZeroDivisionError

    def edit(_):
        try:
            text = next(steps)
        except StopIteration:
            raise KeyboardInterrupt from None
        if text is None:
            path.unlink()
        elif text:
            path.write_text(text)
            os.utime(path, ns=(0, next(stamps)))

    monkeypatch.setattr(time, "sleep", edit)
    watch(path, action)
    assert seen == ["one", "two", "three", "four"]
    told = capsys.readouterr().err
    assert "two is bad" in told
    assert "ZeroDivisionError" in told
    assert told.rstrip().endswith("stopped watching")
