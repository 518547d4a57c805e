"""How many operations the equations of the shipped mechanisms take: beside the paper's, and against a baseline."""

from pathlib import Path

import pytest
import yaml

from fsm_dyn.programs.program import Program

BASELINE = Path(__file__).with_name("operation_counts.yaml")
COUNTED = yaml.safe_load(BASELINE.read_text(encoding="utf-8"))


def counted(program):
    counts = program.counts()
    return {"multiply_divide": counts.multiply_divide, "add_subtract": counts.add, "sine_cosine": counts.trig}


def operations(mode):
    """Counts of q' alone, of u' alone and of the program that a step evaluates."""
    rhs = mode.programs.rhs
    nodes = rhs.graph()[2]["x_dot"]
    n_q = len(rhs.layout.q)
    return {
        "kinematics": counted(Program.from_nodes(rhs.layout, {"q_dot": nodes[:n_q]})),
        "dynamics": counted(Program.from_nodes(rhs.layout, {"u_dot": nodes[n_q:]})),
        "together": counted(rhs),
    }


@pytest.mark.parametrize("model", COUNTED)
def test_counts_do_not_grow(mode_graph, model):
    found = {mode.name: operations(mode) for mode in mode_graph(model).automaton.modes}
    assert set(found) >= set(COUNTED[model])
    grown = [
        f"{mode}, {part}: {sum(found[mode][part].values())} instead of {sum(numbers.values())}"
        for mode, parts in COUNTED[model].items()
        for part, numbers in parts.items()
        if sum(found[mode][part].values()) > sum(numbers.values())
    ]
    block = "\n".join(
        [f"{model}:"]
        + [f"  {mode}:\n" + "\n".join(f"    {k}: {str(v).replace(chr(39), '')}" for k, v in parts.items())
           for mode, parts in found.items()]
    )  # fmt: skip
    if found != COUNTED[model]:
        print(block)  # noqa: T201 - what the file would hold now, by pytest -rP
    assert not grown, f"more operations than {BASELINE.name} allows: {'; '.join(grown)}\nWith a reason, write:\n{block}"


@pytest.mark.parametrize(
    ("model", "kinematics", "dynamics"),
    [("spherical_wrist", "eq_50", "eq_49"), ("spherical_wrist_rates", "eq_48", "rates_choice")],
)
def test_wrist_beside_table_3(mode_graph, reference, model, kinematics, dynamics):
    """Gillespie (2003), Table 3, which counts a sine every time it is written; ours counts it once."""
    table = reference("gillespie2003")["table_3"]
    (mode,) = mode_graph(model).automaton.modes
    found = operations(mode)
    print(f"{model:24}{'ours':>12}{'Table 3':>12}")  # noqa: T201 - the table, by pytest -rP
    for part, printed in (("kinematics", table[kinematics]), ("dynamics", table[dynamics])):
        for kind, number in printed.items():
            print(f"{part:12}{kind:>16}{found[part][kind]:8}{number:12}")  # noqa: T201
            assert found[part][kind] <= number
