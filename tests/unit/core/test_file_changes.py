"""A watched file: a change counts once, when the file has been the same at two looks."""

import os

from fsm_dyn.core.files import FileChanges


def saved(path, text, stamp):
    path.write_text(text)
    os.utime(path, ns=(0, stamp))


def test_a_change_counts_once_and_when_it_is_stable(tmp_path):
    path = tmp_path / "m.yaml"
    saved(path, "one", 1)
    file = FileChanges(path)
    assert not file.changed()
    saved(path, "half", 2)
    assert not file.changed()
    saved(path, "whole", 3)  # still being written
    assert not file.changed()
    assert file.changed()
    assert not file.changed()


def test_an_editor_that_replaces_the_file_makes_one_change(tmp_path):
    path = tmp_path / "m.yaml"
    saved(path, "one", 1)
    file = FileChanges(path)
    path.unlink()
    assert [file.changed() for _ in range(3)] == [False] * 3
    saved(path, "two", 2)
    assert [file.changed() for _ in range(3)] == [False, True, False]


def test_a_file_that_is_missing_at_first_counts_when_it_is_there(tmp_path):
    path = tmp_path / "m.yaml"
    file = FileChanges(path)
    assert not file.changed()
    saved(path, "one", 1)
    assert [file.changed() for _ in range(3)] == [False, True, False]
