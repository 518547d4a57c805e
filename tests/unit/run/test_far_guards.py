"""Guards left out of steps while their shapes are far apart: its assumption, and whole runs with and without it."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.structures import FEWEST, divided, far_guards
from tests.unit.run.loose_bodies import scene
from tests.unit.run.test_clear_guards import library_of_every_guard, runs_of


@pytest.fixture(scope="module")
def discs():
    return fsm_dyn.compile(scene("discs", 1, 9))


def test_gaps_change_by_no_more_than_the_centres_move():
    """At random states of discs and of balls, on which leaving guards out depends."""
    rng = np.random.default_rng(5)
    for kind, count in (("discs", 9), ("balls", 8)):
        automaton = fsm_dyn.compile(scene(kind, 1, count)).automaton
        far = far_guards(automaton)
        assert len(far.contacts) == len(automaton.contacts) >= FEWEST
        assert far.shapes == count
        rows = [automaton.contacts[k].normal_row for k in sorted(far.contacts)]
        layout = automaton.terms.layout
        x = rng.normal(size=(200, layout.n_x))
        context = np.zeros(layout.n_c)
        context[: len(layout.p)] = [0.1 if name == "r" else 9.81 for name in layout.p]
        terms = automaton.terms.evaluate(0.0, x, context, only={"residual": rows, "A": rows, "b": rows})
        centres = far.centres.evaluate(0.0, x, context)["centres"]
        moved = np.linalg.norm(np.diff(centres[..., :3], axis=0), axis=-1).max(axis=-1)
        assert np.all(np.abs(np.diff(terms["residual"], axis=0)).max(axis=-1) <= 2.0 * moved * (1 + 1e-12))
        u = x[:, len(layout.q) :]
        rates = np.einsum("...ij,...j->...i", terms["A"][..., : u.shape[-1]], u) + terms["b"]
        fastest = np.linalg.norm(centres[..., 3:], axis=-1).max(axis=-1)
        assert np.all(np.abs(rates).max(axis=-1) <= 2.0 * fastest * (1 + 1e-12))


def test_a_moving_wall_and_a_polygon_are_always_looked_at():
    model = scene("discs", 1, 9)
    model.coordinate("w", "m").point("W", from_="O", at="w*N.x").body("wall", center="W", mass="1 kg")
    model.shape("door", line={"from": "W", "along": "N.y"}, side="-N.x")
    mixed = fsm_dyn.compile(scene("mixed", 1, 11)).automaton  # s0 is a box
    for automaton, others in ((fsm_dyn.compile(model).automaton, ["door"]), (mixed, ["s0"])):
        names = [contact.name for contact in automaton.contacts]
        left_out = {names[k] for k in far_guards(automaton).contacts}
        assert {"s1_s2", "s1_ground"} <= left_out
        for other in others:
            assert any(other in name.split("_") for name in names)
            assert not any(other in name.split("_") for name in left_out)


def test_few_contacts_have_no_kernels_for_it():
    automaton = fsm_dyn.compile(scene("discs", 1, 3)).automaton
    assert far_guards(automaton) is None
    tables = Executable(automaton).tables
    assert len(tables.mode_core) == len(tables.guard_kernels) == len(tables.shape_centres) == 0


def test_the_parts_of_a_program_give_its_bits(discs):
    automaton = discs.automaton
    far = far_guards(automaton)
    rng = np.random.default_rng(2)
    for mode in automaton.modes:
        assert isinstance(mode.programs, ModePrograms)
        numbers = far.places(mode.programs.guards)
        core, *each = divided(mode.programs, numbers)
        layout = core.layout
        x, c = rng.normal(size=(20, layout.n_x)), rng.uniform(0.5, 1.0, (20, layout.n_c))
        whole, rest = mode.programs.full.evaluate(0.0, x, c), core.evaluate(0.0, x, c)
        for name, values in whole.items():
            kept = np.ones(values.shape[-1], bool)
            if name in ("guards", "slopes"):
                kept[numbers] = False
                assert not rest[name][..., ~kept].any()
            assert rest[name][..., kept].tobytes() == values[..., kept].tobytes()
        for place, program in zip(numbers, each, strict=True):
            found = program.evaluate(0.0, x, c)
            for name in ("guards", "slopes"):
                assert found[name][..., 0].tobytes() == whole[name][..., place].tobytes()
        assert len(core.instructions) < len(mode.programs.full.instructions) / 2


def test_random_scenes_move_bit_for_bit_as_where_no_guard_is_left_out():
    """Discs, soft discs and balls, by kernels: rows, forces and transitions, with fixed and with adaptive steps."""
    fixed = {"until": 0.15, "method": "rk4", "step": 5e-4, "strategy": "auto"}
    scenes = [
        ["discs", 3, 9, fixed],
        ["discs", 4, 10, {"until": 0.15, "strategy": "auto", "max_step": 2e-3}],
        ["balls", 6, 9, {**fixed, "until": 0.2}],
    ]
    usual, whole = runs_of("", scenes), runs_of(library_of_every_guard(), scenes)
    assert usual == whole
    assert all(rows > 50 for _, rows, _ in usual)
    assert sum(transitions for _, _, transitions in usual) > 10
