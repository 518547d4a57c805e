"""The command line called as from a shell."""

from typer.testing import CliRunner

from fsm_dyn.cli.console import app


def call(*arguments):
    """Return what a command gave: exit code, output."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
