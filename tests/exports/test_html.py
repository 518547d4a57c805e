"""Pages that simulate alone: models as WebAssembly in Node against Python, bit for bit; the runtime; refusals."""

import base64
import json
import shutil
import struct
import subprocess

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.derive.guards import list_guards
from fsm_dyn.derive.unconstrained_system import of_one_corner
from fsm_dyn.exports.c_model import guards_by_state
from fsm_dyn.exports.export import prepared
from fsm_dyn.exports.html import BINARY, build, for_page, machine_lengths, page_data, wasm_model
from fsm_dyn.page.broadcast import plain
from fsm_dyn.page.report import bundled
from fsm_dyn.programs.graph import OPERATIONS, ExpressionGraph
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.program import Program
from fsm_dyn.runtime.abi import GuardQuantity
from tests.exports.building import LONG

QUICK = ["latch", "shopping_cart", "cart_on_ramp", "piano_action"]
ALL = [pytest.param(name, marks=() if name in QUICK else LONG) for name in fsm_dyn.language.models.names()]

# A run of the schedule, then kernels called from outside; numbers as the bits of doubles.
RUN = """
const { about, runtime, model, calls } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { Machine } = module_machine, bytes = (text) => Buffer.from(text, "base64");
const machine = new Machine(about, bytes(runtime), bytes(model));
const bits = (numbers) => Buffer.from(Float64Array.from(numbers).buffer).toString("hex");
const status = machine.advance(about.until), { made, records } = machine.log();
const results = calls.map(([kernel, count, x]) => bits(machine.evaluate(kernel, count, x)));
const transitions = records.map(({ time, source, target }) => [bits([time]), source, target]);
console.log(JSON.stringify({ status, made, transitions, time: bits([machine.time]), x: bits(machine.x), results }));
"""


def bits(numbers):
    """Return the bytes of doubles as text."""
    return np.asarray(numbers, "<f8").tobytes().hex()


def in_node(run, further=(), calls=(), script=RUN):
    """Run an exported model in Node; `calls`: number of the further program, results, state."""
    if not shutil.which("node"):
        pytest.skip("no node")
    model = wasm_model(run, further)
    data = {
        "about": machine_lengths(run, model, further),
        "runtime": base64.b64encode(BINARY.read_bytes()).decode(),
        "model": base64.b64encode(model.module).decode(),
        "calls": [[model.extra[k], count, x] for k, count, x in calls],
    }
    done = subprocess.run(
        ["node", "-e", bundled("machine") + script], input=json.dumps(data), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ALL)
def test_the_same_bits_as_in_python(name):
    """The elementary functions are the runtime's own, so nothing may differ."""
    graph = fsm_dyn.compile(name)
    found = in_node(run := prepared(graph))
    wanted = fsm_dyn.Simulator(graph).run(strategy="compiled", on_failure="return")
    assert found["status"] == wanted.outcome.code
    assert found["made"] == len(wanted.transitions)
    names = [[bits([x.time]), x.source, x.target] for x in wanted.transitions]
    made = [[time, run.mode_names[a], run.mode_names[b]] for time, a, b in found["transitions"]]
    assert made == names[: len(made)]
    assert len(made) >= min(len(names), 256)
    assert found["time"] == bits([wanted.t[-1]])
    assert found["x"] == bits([*wanted.q[-1], *wanted.u[-1]])


# The same with modes that are embedded online where they are met.
EMBED = """
const { data, runtime, model } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { Machine } = module_machine, { MachineModes } = module_machine_modes;
const bytes = (text) => Buffer.from(text, "base64");
const machine = new Machine(data.machine, bytes(runtime), bytes(model)), modes = new MachineModes(data, machine);
const runs = [];
for (const again of [false, true]) {
  if (again) machine.restart();
  modes.forget();
  const status = machine.advance(data.machine.until), made = machine.log().records;
  modes.update();
  const states = (mode) => data.modes[mode].states;
  const steps = made.map(({ time, source, target }) => [time, states(source), states(target)]);
  const further = machine.modes - data.machine.n_modes;
  runs.push({ status, steps, made: further, labels: data.model.graph.modes.length, x: Array.from(machine.x) });
}
console.log(JSON.stringify(runs));
"""


def test_modes_that_are_not_in_the_page_are_embedded_online():
    """Against the run by kernels; other charts of the same modes round otherwise, so times agree to 1e-8 s."""
    if not shutil.which("node"):
        pytest.skip("no node")
    graph, _ = for_page(fsm_dyn.compile("piano_action_simple"), None)
    data, module = page_data(prepared(graph, listed_modes=True), graph, own_ports=False)
    whole = {
        "data": data,
        "runtime": base64.b64encode(BINARY.read_bytes()).decode(),
        "model": base64.b64encode(module).decode(),
    }
    script = bundled("machine") + bundled("machine_modes") + EMBED
    done = subprocess.run(["node", "-e", script], input=json.dumps(plain(whole)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, again = json.loads(done.stdout)
    wanted = fsm_dyn.Simulator(graph).run(strategy="compiled")
    names = graph.automaton.name_of
    assert first["made"] > 10
    made = [(names(a).name, names(b).name) for _, a, b in first["steps"]]
    assert made == [(x.source, x.target) for x in wanted.transitions]
    times = [step[0] for step in first["steps"]]
    np.testing.assert_allclose(times, [x.time for x in wanted.transitions], rtol=0.0, atol=1e-8)
    assert again["steps"] == first["steps"], "a run started again is the same, to the last bit"
    assert again["x"] == first["x"]
    assert again["labels"] == first["labels"], "a mode that is met again has its name"


@pytest.mark.parametrize("name", ["piano_action", "rocking_block", "gripper"])
def test_guards_of_any_mode_are_those_of_its_contacts(name):
    """A page joins from the contacts the list that the package makes for the whole mode."""
    automaton = fsm_dyn.compile(name).automaton
    contacts, rng = automaton.contacts, np.random.default_rng(1)
    *by_contact, [leaving] = guards_by_state(automaton)
    for _ in range(60):
        states = [int(rng.integers(len(contact.states))) for contact in contacts]
        joined = [
            guard
            for k, code in enumerate(states)
            for guard in by_contact[k][code]
            if guard.quantity is not GuardQuantity.LARGEST_GAP or not any(states[i] for i in of_one_corner(contacts, k))
        ]
        listed = list_guards(automaton.system, states, range(len(automaton.user_transitions)))
        assert tuple(joined + leaving) == listed


def test_every_operation_as_in_machine_code():
    """Over signs, zeros, infinities and NaN; the bits of a NaN do not count."""
    run = prepared(fsm_dyn.compile("bouncing_ball"))
    layout = run.automaton.terms.layout
    names = [*layout.q, *layout.u][:2]
    graph = ExpressionGraph()
    a, b = (graph.symbol(name) for name in names)
    nodes = [graph.intern(op, (a, b, a)[: entry.arity]) for op, entry in OPERATIONS.items()]
    halves = [graph.intern("pow", (a, graph.constant(n + 0.5))) for n in range(4)]
    program = Program.from_nodes(layout, {"all": [*nodes, *halves]})
    assert {op for op, _ in program.instructions} >= set(OPERATIONS), "nothing was folded away"
    kernel = compile_programs([program])[0]
    special = [0.0, -0.0, 1.0, -1.5, 2.5, 1e-310, np.inf, -np.inf, np.nan]
    rng = np.random.default_rng(3)
    pairs = [(x, y) for x in special for y in special] + rng.normal(scale=3.0, size=(60, 2)).tolist()
    states = [[*pair, *np.zeros(layout.n_x - 2)] for pair in pairs]
    words = {np.inf: "Infinity", -np.inf: "-Infinity"}  # JSON has neither infinities nor NaN; JavaScript reads these
    written = [[words.get(v, "NaN") if not np.isfinite(v) else v for v in x] for x in states]
    found = in_node(run, [program], [(0, program.size, x) for x in written])
    for x, result in zip(states, found["results"], strict=True):
        wanted = kernel(0.0, np.array(x), run.c)
        own = np.array(struct.unpack(f"<{program.size}d", bytes.fromhex(result)))
        np.testing.assert_array_equal(own, wanted, err_msg=str(x))
        np.testing.assert_array_equal(np.signbit(own) & ~np.isnan(own), np.signbit(wanted) & ~np.isnan(wanted))


def test_the_shipped_runtime_is_built_from_these_sources():
    if not shutil.which("clang") or not shutil.which("wasm-ld"):
        pytest.skip("no clang for WebAssembly")
    version = subprocess.run(["clang", "--version"], capture_output=True, text=True).stdout
    if "version 14." not in version:
        pytest.skip("the shipped runtime was made by clang 14")
    assert build() == BINARY.read_bytes(), "make wasm builds it again"


def test_a_page_is_one_file_and_always_the_same(tmp_path):
    graph = fsm_dyn.compile("latch")
    page = fsm_dyn.export(graph, tmp_path / "own.html", target="html")
    assert page == tmp_path / "own.html"
    assert [path.name for path in tmp_path.iterdir()] == ["own.html"]
    text = page.read_text(encoding="utf-8")
    assert "src=" not in text.replace("script-src", "").split("<script")[0]
    again = fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path / "folder", target="html")
    assert again == tmp_path / "folder" / "latch.html"
    assert again.read_bytes() == page.read_bytes()


def test_what_cannot_leave_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="'radau' cannot be exported"):
        fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path / "x.html", target="html", method="radau")
    assert not list(tmp_path.iterdir())
