"""The campaigns: a name, the function that makes a case from a seed, and how many cases there are to be."""

from typing import NamedTuple

from tests.campaigns import (
    agreement,
    artefacts,
    caches,
    component_throws,
    continued,
    edges_of_shapes,
    endurance,
    exported_throws,
    faults,
    files,
    laws,
    messages,
    narrow_guards,
    ramps,
    refutations,
    short_steps,
    steps,
    throws,
    variants,
)  # fmt: skip


class Kind(NamedTuple):
    """One campaign: ``case(seed)`` returns a mapping with ``ok`` and ``reason``; ``cases`` make it complete.

    ``table(entries)`` gives lines of its own for the page.  A case may take ``longest`` seconds, in which large models
    are derived.  A case may be a batch of ``batch`` trials; it then counts in ``tried`` and ``wrong`` the trials
    and went wrong.
    """

    case: object
    cases: int
    says: str
    batch: int = 1
    table: object = None
    longest: int = 900


RAMPS = "random input ramps: no unnamed and no false end"
LAWS = "random starts: energy, gaps, pressure, friction"
NAMED = "an error of the package with file and line within 20 s"
ANSWER = "an error of the package within 20 s"
LEFT = "nothing left, recordings readable, exit codes named, the next start works"
FLUSH = "towers, tiles, dominoes: energy, overlap, pressure, friction"

CAMPAIGNS = {
    "ramps of toggle_switch": Kind(ramps.toggle_switch, 1000, RAMPS),
    "ramps of push_button": Kind(ramps.push_button, 1000, RAMPS),
    "ramps of piano_action_simple": Kind(ramps.piano_action_simple, 1000, RAMPS),
    "laws, models with contacts": Kind(laws.contact_models, 100_000, LAWS),
    "laws, impossible modes": Kind(laws.excluded_modes, 4000, "no mode that the geometry excludes, up to 12 contacts"),
    "laws, refutations": Kind(
        refutations.case, 160, "no configuration has what the geometry excludes, by separate searches", longest=3600
    ),
    "laws, edges of shapes": Kind(
        edges_of_shapes.case,
        10_000,
        "disks, hollow curves, cords, concentric circles: depth, energy, another integration",
    ),
    "laws, flush geometry": Kind(laws.flush_geometry, 3000, FLUSH),
    "laws, steps of nanometres": Kind(steps.case, 2000, "steps of 0.6 nm to 1 um: energy, overlap, no chatter"),
    "laws, aimed throws": Kind(throws.case, 1000, "no touch of two shapes missed, times to 1e-7 s", throws.BATCH),
    "laws, throws at components": Kind(
        component_throws.case, 100, "first touches of shapes in components, as written flat", component_throws.BATCH
    ),
    "laws, narrow guards": Kind(
        narrow_guards.case, 700, "every event of a closed form, to 1e-7 s", narrow_guards.BATCH
    ),
    "laws, published runs": Kind(
        short_steps.case, short_steps.CASES, "the transitions of a longest step of 1e-4 of the run"
    ),
    "agreement of methods": Kind(
        agreement.methods_agreement, 500, "the same end by every method", table=agreement.table
    ),
    "exports, aimed throws in C99": Kind(
        exported_throws.c99_case, 60, "no first touch missed, times to 1e-7 s", exported_throws.BATCH
    ),
    "exports, aimed throws by FMI": Kind(
        exported_throws.fmu_case, 40, "no first touch missed, times to 1e-7 s", exported_throws.BATCH
    ),
    "damaged files, read": Kind(files.read, 500, f"{NAMED}, or a model", files.READ),
    "damaged files, compiled": Kind(files.compiled, 500, f"{NAMED}, or a run", files.COMPILED),
    "tampered automata": Kind(artefacts.automata, 200, f"{ANSWER}, or a run", artefacts.TRIALS),
    "tampered runs": Kind(artefacts.runs, 100, f"{ANSWER}, or a recorded run", artefacts.TRIALS),
    "tampered recordings": Kind(artefacts.recordings, 100, f"{ANSWER}, or a recorded run", artefacts.TRIALS),
    "tampered cache of kernels": Kind(caches.kernels, 20, "what was kept, or nothing", caches.KERNELS),
    "faults": Kind(faults.case, 10 * len(faults.ROWS), LEFT, table=faults.table),
    "endurance": Kind(endurance.two_hours, 1, "2 h of play: memory, energy, ends", table=endurance.table, longest=7200),
    "days, continued": Kind(
        continued.case,
        len(endurance.INPUTS),
        "24 h, saved and continued each hour: memory, ends",
        table=continued.table,
        longest=40_000,
    ),
    "requirements of broken and sound variants": Kind(
        variants.case, len(variants.PAIRS), "the broken one refuted in 60 s, the sound one not"
    ),
    "messages of no page": Kind(messages.messages, 20, f"{ANSWER}, or an answer", messages.TRIALS),
}
