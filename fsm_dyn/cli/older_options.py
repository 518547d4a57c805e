"""Older spellings of options: read as the new ones, with a line on stderr that names these."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

from fsm_dyn.cli.console import print_status

_LIVE: Final = {
    "--for": "--duration", "--force": "--max-force", "--slew": "--max-slew", "--guard-timeout": "--watchdog-timeout",
}  # fmt: skip
#: Options by command, with an older spelling before the new one; a value follows its option after "=".
OPTIONS: Final = {
    "run": {
        "--drive": "--scenario", "--record": "--save-run", "--plot=ending": "--plot=outcome",
        "--strategy=graph": "--strategy=compiled", "--strategy=mixed": "--strategy=auto",
    },
    "study": {"--drive": "--scenario", "--of": "--quantity"},
    "view": {"--port": "--page-port"},
    "live": {**_LIVE, "--unpaced": "--no-pacing"},
    "device": {**_LIVE, "--serve-on": "--page-port", "--list": "--list-drivers"},
}  # fmt: skip
#: Options that became commands.
COMMANDS: Final = {("device", "--analyse"): "passivity"}


def renamed_arguments(command: str, arguments: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the arguments of a command with new spellings, and the pairs of old and new ones in it."""
    names = OPTIONS.get(command, {})
    result: list[str] = []
    used: list[tuple[str, str]] = []
    for i, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[i:]], used
        option, equals, value = argument.partition("=")
        old, new = option, names.get(option)
        if new is not None:
            argument = new + equals + value
        elif i and f"{arguments[i - 1]}={argument}" in names:
            old = f"{arguments[i - 1]}={argument}"
            new = names[old]
            argument = new.partition("=")[2]
        elif argument in names:
            old, new = argument, names[argument]
            argument = new
        if new is not None and (old, new) not in used:
            used.append((old, new))
        result.append(argument)
    return result, used


class Command(TyperCommand):
    """A command that takes older spellings of its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments under their new spellings."""
        args, used = renamed_arguments(self.name or "", args)
        for old, new in used:
            print_status(f"{old} is called {new} now")
        return super().parse_args(ctx, args)


class Group(TyperGroup):
    """The group of commands; options that became commands are accepted."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that arguments name."""
        for (command, option), new in COMMANDS.items():
            if args[:1] == [command] and option in args:
                print_status(f"{command} {option} is called {new} now")
                args = [new, *(item for item in args[1:] if item != option)]
        return super().resolve_command(ctx, args)
