"""Where results are written: checked, and folders made, before anything is computed for them."""

from __future__ import annotations

import os
from pathlib import Path

from fsm_dyn.errors import InputError


def prepare_folder(option: str, folder: Path) -> None:
    """Make a folder for output, unless there is one.

    Raises
    ------
    InputError
        It is a file or below one, or may not be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        taken = next((place for place in (folder, *folder.parents) if place.exists() and not place.is_dir()), None)
        raise InputError(
            f"{option}: there is no folder '{folder}' and it cannot be made",
            found=f"'{taken}' is a file" if taken else error.strerror or "",
            remedy="name a folder, new or with permission to write",
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option}: no permission to write to the folder '{folder}'", remedy="name another folder")


def prepare_file(option: str, file: Path) -> None:
    """Make the folder of a file for output, unless there is one; an existing file is replaced later.

    Raises
    ------
    InputError
        The file is a folder, or its folder cannot be made or written to.
    """
    if file.is_dir():
        raise InputError(f"{option}: '{file}' is a folder", remedy=f"name a file in it: {file / 'NAME'}")
    prepare_folder(option, file.parent)
    if file.exists() and not os.access(file, os.W_OK):
        raise InputError(f"{option}: no permission to write '{file}'", remedy="name another file")
