"""Saved automata as graphs, without compilation unless an older version wrote them."""

from __future__ import annotations

import os

from fsm_dyn.automaton import storage
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.core.errors import NOWHERE, Location
from fsm_dyn.core.files import read_file
from fsm_dyn.language.loader import load as load_mechanism
from fsm_dyn.language.values import Parameters


def open_graph(path: str | os.PathLike[str], parameters: Parameters | None = None) -> ModeGraph:
    """Read a graph that ``ModeGraph.save`` wrote; sympy is not needed, unless an older version wrote it.

    Parameters
    ----------
    path : str or path
        A file that ``ModeGraph.save`` wrote.
    parameters : mapping, optional
        Values that replace those of the file: SI numbers, or text with units.

    Returns
    -------
    ModeGraph
        The same data as when it was saved.

    Raises
    ------
    InputError
        The file is not a saved automaton, or is inconsistent or corrupt.
    """
    data = read_file(path, storage.LARGEST_FILE, "an automaton")
    return graph_with_parameters(stored_automaton(data, Location(os.fspath(path))), parameters)


def stored_automaton(data: bytes | str, where: Location = NOWHERE) -> Automaton:
    """Return the automaton from the content of a file; one of an older format is compiled again from its model.

    Raises
    ------
    InputError
        The data are inconsistent.
    """
    text = storage.older_text(data)
    if text is None:
        return storage.from_bytes(data, where=where)
    from fsm_dyn.automaton.compilation import automaton_of  # for these alone

    return automaton_of(load_mechanism("<automaton of an older format>", text=text))
