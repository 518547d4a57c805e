"""Every file in ``files/`` is malformed; its first lines have the place of the error and parts of its message."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load

FILES = sorted((Path(__file__).parent / "files").glob("*.yaml"))


def test_there_are_many() -> None:
    assert len(FILES) >= 60


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_message_and_place(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    place = re.match(r"# line: (\d+), column: (\d+)\n", text)
    assert place
    with pytest.raises(ModelError) as caught:
        load(path)
    message = str(caught.value)
    for fragment in re.findall(r"^# says: (.*)$", text, re.MULTILINE):
        assert fragment in message
    assert message.startswith(f"{path}:{place[1]}:{place[2]}: "), message
    assert len(message) < 1000


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_exit_code(path: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(path)], catch_exceptions=False)
    assert result.exit_code == 2
    assert path.name in result.stderr
    assert result.stdout == ""
