"""Animations play the run at the speed asked for, within bounds on their frames and bytes."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from matplotlib.colors import to_hex
from PIL import Image

import fsm_dyn
from fsm_dyn import page as viewer
from fsm_dyn import plot
from fsm_dyn.core.errors import InputError
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot.animation import MOST_DISPLAY_FRAMES, animation, playback

module = importlib.import_module("fsm_dyn.plot.animation")  # as an attribute of the package the name is the function


def test_a_gif_has_a_frame_for_each_time_and_plays_as_long_as_the_speed_says(box, tmp_path):
    drawn = []
    path = plot.animation(box, tmp_path / "box.gif", speed=2.0, rate=5.0, progress=lambda *n: drawn.append(n))
    expected = round((box.t[-1] - box.t[0]) / 2.0 * 5.0) + 1
    with Image.open(path) as picture:
        assert picture.n_frames == expected
        assert picture.info["duration"] == 200  # ms
        assert picture.info["loop"] == 0
        begin = np.asarray(picture.convert("RGB")).astype(int)
        picture.seek(expected - 1)
        end = np.asarray(picture.convert("RGB")).astype(int)
    assert drawn == [(i + 1, expected) for i in range(expected)]
    stage = slice(60, begin.shape[0] - 80)  # without the heading, and without the band below
    assert np.abs(end - begin)[stage].max() > 100


def test_the_phase_of_each_frame_is_named_in_its_colour():
    run = fsm_dyn.simulate(fsm_dyn.compile("latch_door"), until=0.2)
    scene, plan = module.trajectory_scene(run), playback(0.0, 0.2, 0.1, 5.0)
    view = module.project(run, scene, plan.times)
    named = []
    for time, picture in zip(plan.times, module._display_frames(run, scene, plan, view, None), strict=True):
        (label,) = (text for text in picture.texts if text.get_bbox_patch() is not None)
        visit = run.visits.at(time)
        assert label.get_text() == f"{visit.name}: {visit.text}"
        assert to_hex(label.get_bbox_patch().get_facecolor()) == run.visits.fills[visit.name].colour.lower()
        named.append(visit.name)
    assert list(dict.fromkeys(named)) == ["closing", "ride over", "shut"]


def test_an_animation_is_the_same_twice(box, tmp_path):
    one, two = (animation(box, tmp_path / f"{i}.gif", speed=5.0, rate=2.0).read_bytes() for i in range(2))
    assert one == two


def test_contact_forces_are_drawn_where_there_are_contacts(box, tmp_path):
    def film(run, forces):
        return animation(run, tmp_path / f"{forces}.gif", speed=5.0, rate=2.0, forces=forces).read_bytes()

    def reddest(run, forces):
        film(run, forces)
        with Image.open(tmp_path / f"{forces}.gif") as picture:
            pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3).astype(int)
        return np.abs(pixels - [int(palette.FORCE[i : i + 2], 16) for i in (1, 3, 5)]).max(axis=1).min()

    assert reddest(box, True) <= 4  # of 255, by the palette of a GIF
    assert reddest(box, False) > 40
    free = fsm_dyn.simulate(fsm_dyn.compile("four_bar"), until=1.0)
    assert film(free, True) == film(free, False)


def test_forces_have_the_colour_of_the_page():
    style = Path(viewer.__file__).parent / "static" / "style.css"
    assert f"--force: {palette.FORCE.lower()};" in style.read_text(encoding="utf-8")


def test_a_gif_with_too_many_bytes_has_every_second_frame(box, tmp_path, monkeypatch):
    whole = animation(box, tmp_path / "whole.gif", speed=2.0, rate=5.0)
    monkeypatch.setattr(module, "MOST_BYTES", int(0.8 * whole.stat().st_size))
    less = animation(box, tmp_path / "less.gif", speed=2.0, rate=5.0)
    assert less.stat().st_size <= module.MOST_BYTES
    with Image.open(whole) as a, Image.open(less) as b:
        times = b.info["duration"] // a.info["duration"]
        assert times in (2, 4)
        assert b.n_frames == -(-a.n_frames // times)


@pytest.mark.parametrize("span", [1e-6, 0.03, 0.42, 1.0, 4.0, 12.0, 12.1, 300.0, 8e4])
def test_without_a_speed_the_playback_takes_4_s_to_12_s(span):
    plan = playback(2.0, 2.0 + span, None, 50.0)
    assert 4.0 * (1 - 1e-9) <= span / plan.speed <= 12.0 * (1 + 1e-9)
    assert plan.speed == 1.0 or not 4.0 <= span <= 12.0
    assert len(plan.times) <= MOST_DISPLAY_FRAMES
    assert (plan.times[0], plan.times[-1]) == (2.0, 2.0 + span)


def test_a_run_without_duration_is_two_equal_frames():
    assert playback(1.0, 1.0, None, 20.0).times.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("speed", "rate", "says"),
    [
        (0.0, 20.0, "must be positive"),
        (-1.0, 20.0, "must be positive"),
        (float("nan"), 20.0, "must be positive"),
        (1.0, 0.0, "frame rate"),
        (1.0, 51.0, "frame rate"),
        (0.001, 20.0, "at least"),
    ],
)
def test_what_cannot_be_played_is_refused(speed, rate, says):
    with pytest.raises(InputError, match=says):
        playback(0.0, 10.0, speed, rate)


def test_the_speed_that_a_refusal_names_is_accepted():
    assert len(playback(0.0, 10.0, 0.34, 20.0).times) <= MOST_DISPLAY_FRAMES


def test_other_suffixes_are_refused(box, tmp_path):
    with pytest.raises(InputError, match=r"(?s)box\.avi.*\.gif"):
        animation(box, tmp_path / "box.avi")


@pytest.mark.parametrize("suffix", ["mp4", "webm"])
def test_videos_need_ffmpeg(box, tmp_path, suffix, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="ffmpeg"):
        animation(box, tmp_path / f"box.{suffix}")


@pytest.mark.skipif(not FFMpegWriter.isAvailable(), reason="needs the program ffmpeg")
@pytest.mark.parametrize(("suffix", "mark"), [("mp4", b"ftyp"), ("webm", b"webm")])
def test_videos_are_written_by_ffmpeg(box, tmp_path, suffix, mark):
    path = animation(box, tmp_path / f"box.{suffix}", speed=5.0, rate=2.0)
    assert mark in path.read_bytes()[:64]
