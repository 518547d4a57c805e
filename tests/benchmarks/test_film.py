"""A recording of ten minutes: how long until a page can show it, and how long each instant takes from then on."""

import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live.reading import read_recording
from fsm_dyn.live.session import LiveSession, Settings
from fsm_dyn.live.stepping import Limits
from fsm_dyn.viewer.film import film_of_recording
from fsm_dyn.viewer.projector import Projector, plain_json
from fsm_dyn.viewer.show import plain

pytestmark = pytest.mark.benchmark
ROWS, PERIOD = 1_000_000, 6e-4


@pytest.fixture(scope="module")
def long_recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("long") / "wall.mcap"
    hand = {"axes": 2, "motion": [[0, 0.08, 8.0, 0.0], [1, 0.08, 8.2, 0.3]], "stop": "watchdog", "period": PERIOD}
    how = Settings(
        paced=False, period=PERIOD, ticks=ROWS, privileges=False, guard_timeout=20.0, stall_ticks=10**6,
        limits=Limits(velocity=50.0),
    )  # fmt: skip
    with LiveSession.start(fsm_dyn.compile("virtual_wall"), "scripted", hand, settings=how, record=path) as session:
        assert session.wait(300)
    return path


def test_ten_minutes_open_within_three_seconds_and_go_by_without_a_stall(long_recording):
    begin = time.perf_counter()
    film = film_of_recording(read_recording(long_recording))
    projector = Projector(film)
    text = plain_json(plain(projector.told()))
    projector.frame(0)
    opened = time.perf_counter() - begin
    assert len(film.t) == ROWS
    assert len(film.when) >= 10_000
    spent = []
    for clock in np.random.default_rng(1).uniform(*projector.told()["film"]["span"], 2000):
        begin = time.perf_counter()
        projector.frame(film.number(clock))
        spent.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    projector.words(5000)
    words = time.perf_counter() - begin
    p50, p99, worst = (1e3 * value for value in np.percentile(spent, [50, 99, 100]))
    print(
        f"\n{ROWS} rows, {len(film.when)} transitions, {long_recording.stat().st_size / 1e6:.0f} MB: opened in "
        f"{opened:.2f} s, told in {len(text) / 1e6:.1f} MB; "
        f"an instant p50 {p50:.2f}, p99 {p99:.2f}, worst {worst:.2f} ms; sixty in words {1e3 * words:.0f} ms"
    )
    assert opened <= 3.0
    assert p99 <= 16.0, "a picture of the screen"
