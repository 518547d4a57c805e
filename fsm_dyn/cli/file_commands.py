"""Commands about model files: ``new``, ``models``, ``schema``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from fsm_dyn.cli.console import handle_errors, print_json, print_status, table
from fsm_dyn.cli.output_paths import prepare_file
from fsm_dyn.errors import InputError
from fsm_dyn.whole_files import write_file

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@handle_errors
def new_command(
    name: Annotated[str, typer.Argument(help="Name of the mechanism; the file becomes NAME.yaml.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder to write to.")] = Path(),
) -> None:
    """Write a commented starter file; an existing file is never touched."""
    # Reading the language takes a moment to import.
    from fsm_dyn import spec

    stem = name.removesuffix(".yaml")
    text = spec.starter(stem)  # refuses what cannot name a model, a path among it
    path = folder / f"{stem}.yaml"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} already exists", remedy="choose another name, or move the file away") from None
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()  # what was begun
        raise InputError(f"{path} cannot be written: {error.strerror}", remedy="check --dir") from None
    typer.echo(f"wrote {path}")
    print_status(f"next: fsm-dyn run {path} --watch")


@handle_errors
def models_command(as_json: Json = False) -> None:
    """List the mechanisms that come with the package."""
    # Reading the language takes a moment to import.
    from fsm_dyn import models, spec

    found = [(name, *spec.heading(models.find(name))) for name in models.names()]
    if as_json:
        print_json(
            [
                {"name": name, "summary": summary, "file": str(models.find(name)), "variants": list(variants)}
                for name, summary, variants in found
            ]
        )
        return
    rows = [(name, summary) for name, summary, _ in found]
    typer.echo(table(("name", "summary"), rows))
    variants = [f"{name}:{variant}" for name, _, names in found for variant in names]
    if variants:
        typer.echo("\nvariants: " + ", ".join(variants))


@handle_errors
def schema_command(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write; default: print it.")] = None,
) -> None:
    """Print the JSON Schema of the model language, for editors."""
    if out is not None:
        prepare_file("--out", out)
    # Reading the language takes a moment to import.
    from fsm_dyn import spec

    schema = spec.json_schema()
    if out is None:
        print_json(schema)
        return
    # The same printer as above, but into a file.
    import json

    write_file(out, json.dumps(schema, indent=2) + "\n")
    typer.echo(f"wrote {out}")
