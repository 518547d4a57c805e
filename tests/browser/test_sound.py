"""Contacts are heard as they close, by their pitch or as a click, and as loud as they are fast."""

import math

import pytest
import yaml

from fsm_dyn.language import models

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("pitch", [None, "440 Hz"])
def test_a_ball_is_heard_on_the_floor(viewed, tmp_path, pitch):
    """It falls 1 m: 4.43 m/s, and 0.8 of it next time."""
    model = yaml.safe_load(models.resolve("bouncing_ball").read_text(encoding="utf-8"))
    if pitch:
        model["contacts"]["ground"]["sound_frequency"] = pitch
    path = tmp_path / "ball.yaml"
    path.write_text(yaml.safe_dump(model), encoding="utf-8")
    _, page = viewed(path)
    page.running()
    assert page.evaluate("fsmDyn.sound.played.length") == 0, "silent unless wanted"
    page.keyboard.press("o")
    page.keyboard.press("r")
    page.wait("fsmDyn.sound.played.length >= 2")
    first, second = page.evaluate("fsmDyn.sound.played.slice(0, 2)")
    assert first["name"] == second["name"] == "ground"
    assert first["note"] is second["note"] is (pitch is not None)
    assert second["speed"] == pytest.approx(0.8 * first["speed"], rel=1e-3)
    assert page.evaluate("fsmDyn.sound.context.state") == "running"
    if page.evaluate("fsmDyn.sound.played.length") < 8:  # the first blow was heard
        assert first["speed"] <= math.sqrt(2 * 9.81) + 1e-6
    page.keyboard.press("o")
    assert page.complaints == []
