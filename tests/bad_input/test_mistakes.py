"""Mistakes of a newcomer, `mistakes.yaml`: each with its place and a remedy that works when it is followed."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.language import loader

TABLE = yaml.safe_load((Path(__file__).parent / "mistakes.yaml").read_text(encoding="utf-8"))


def named(mistake):
    return re.sub(r"\W+", "_", mistake["wrong"])[:40]


def text_with(mistake, key):
    assert TABLE["model"].count(mistake["for"]) == 1 or not mistake["for"]
    if not mistake["for"]:
        return TABLE["model"] + mistake[key] + "\n"
    return TABLE["model"].replace(mistake["for"], mistake[key])


def test_there_are_many():
    assert len(TABLE["mistakes"]) + len(TABLE["commands"]) >= 340


@pytest.mark.parametrize("mistake", TABLE["mistakes"], ids=named)
def test_the_message_leads_to_a_model_that_loads(mistake):
    with pytest.raises(fsm_dyn.ModelError) as caught:
        loader.load(text=text_with(mistake, "wrong"))
    first, *rest = str(caught.value).splitlines()
    assert first.startswith(f"<text>:{mistake['at']}: ")
    advice = "\n".join(line for line in rest if line.lstrip().startswith(("allowed:", "remedy:")))
    assert mistake["says"] in advice

    loader.load(text=text_with(mistake, "right"))


@pytest.mark.parametrize("mistake", TABLE["commands"], ids=named)
def test_a_command_lists_allowed_words(mistake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, shlex.split(mistake["wrong"]))
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert mistake["says"] in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())
