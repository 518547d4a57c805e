"""Runs that are continued are those that were not interrupted, to the last bit; what cannot be continued says why."""

import base64
import contextlib
import json
import signal

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import FsmDynError, InputError
from fsm_dyn.language.models import names
from tests.continued import METHODS, differences, rows_that_differ

#: All methods: impacts and a train of them; inputs, user-defined transitions, discrete variables.
ALL = {"bouncing_ball": 1.5, "latch_door": 0.9}
#: By kernels and online: corners, sticking; charts asked for on the way; a change point; compliant contacts.
TWO = {"ball_in_corner": 0.9, "rattleback": 0.5, "four_bar": 2.0, "toggle_switch": 0.4}
QUICK = [(model, method) for model in ALL for method in METHODS]
QUICK += [(model, method) for model in TWO for method in ("dopri5", "online")]


def whole(model, until, method, **options):
    """A run to the end, or to shortly before it fails; None where the method refuses the model."""
    given = {"max_steps": 4000, "on_failure": "return", **METHODS[method], **options}
    try:
        run = fsm_dyn.simulate(fsm_dyn.compile(model), until, **given)
    except InputError:
        return None
    if run.outcome.failed:
        run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.9 * run.t[-1], **given)
    return None if run.outcome.failed else run


def compare(model, until, method, folder):
    """Interrupt a run at two of its ends, in memory and in files, and compare it with the whole."""
    run = whole(model, until, method)
    if run is None:
        return False
    end = run.t[-1]
    first = fsm_dyn.simulate(run._resume.run.graph, 0.37 * end, **METHODS[method])
    assert differences(run, first.resume(0.71 * end).resume(end)) == []
    read = fsm_dyn.open_run(first.save(folder / "first.run.json"))
    second = read.resume(0.71 * end)
    assert differences(run, fsm_dyn.open_run(second.save(folder / "second.run.json")).resume(end)) == []
    rest = fsm_dyn.open_run(read.resume(0.71 * end, whole=False).save(folder / "rest.run.json"))
    assert rows_that_differ(run, rest.resume(end, whole=False)) == []
    return True


@pytest.mark.parametrize(("model", "method"), QUICK)
def test_a_continued_run_is_the_one_that_was_not_interrupted(model, method, tmp_path):
    until = {**ALL, **TWO}[model]
    assert compare(model, 0.3 * until if method == "bdf" else until, method, tmp_path) or method == "moreau_jean"


@pytest.mark.parametrize(
    ("first", "then", "longest"),
    [
        ({}, {"method": "rk4", "step": 2e-3}, 2e-3),
        ({}, {"step": "1 ms"}, 1e-3),
        ({}, {"max_step": 0.01}, 0.01),
        ({}, {"method": "radau"}, 1.0),
        ({"method": "radau"}, {"method": "bdf", "rtol": 1e-8}, 1.0),
        ({"method": "bdf"}, {"method": "dopri5"}, 1.0),
        ({"step": 2e-3}, {"step": 1e-3}, 1e-3),
        ({"step": 2e-3}, {"method": "dopri5"}, 1.0),
    ],
)
def test_a_run_is_continued_by_another_method_or_step(first, then, longest, tmp_path):
    """Modes and the end are those of an accurate run by one method; a file of the run has its last settings."""
    graph = fsm_dyn.compile("bouncing_ball")
    until = 1.2
    reference = fsm_dyn.simulate(graph, until, rtol=1e-12, atol=1e-14)
    begun = fsm_dyn.simulate(graph, 0.6, **first)
    run = begun.resume(until, **then)
    assert run.t[-1] == until
    assert np.all(np.diff(run.t) >= 0.0)
    assert np.diff(run.t[run.t > 0.6 + 2e-3]).max() <= longest * (1.0 + 1e-9)
    assert [item.target for item in run.transitions] == [item.target for item in reference.transitions]
    np.testing.assert_allclose(run.q[-1], reference.q[-1], rtol=0, atol=1e-7)
    opened = fsm_dyn.open_run(run.save(tmp_path / "run.run.json"))  # its settings are the last ones
    assert differences(run.resume(until + 0.1), opened.resume(until + 0.1)) == []


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        ({}, {"method": "moreau_jean", "step": 1e-3}, "a run by dopri5 is not continued by moreau_jean"),
        ({"step": 1e-3}, {"method": "radau"}, "continue it by dopri5, and from there by radau"),
        ({}, {"methd": "rk4"}, "did you mean 'method'"),
        ({}, {"strategy": "online"}, "a run is continued with its own 'strategy'"),
    ],
)
def test_changes_of_a_continued_run_that_are_refused(first, then, told):
    run = fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), 0.2, **first)
    with pytest.raises(InputError, match=told):
        run.resume(0.4, **then)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*contact problems were not solved")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("method", METHODS)
def test_of_all_models(method, tmp_path):
    compared = [name for name in names() if compare(name, 1.0 if method in ("radau", "bdf") else 2.0, method, tmp_path)]
    assert len(compared) > 30


@pytest.mark.parametrize("method", ["dopri5", "rk4", "radau", "moreau_jean"])
def test_interrupted_anywhere(method):
    """At ends in equal distances, on a grid point, on an instant of the schedule, on an event and beside it."""
    run = whole("shopping_cart", 3.0, method)
    events = [item.time for item in run.transitions]
    beside = [np.nextafter(time, side) for time in events[:2] for side in (0.0, 9.0)]
    ends = [*np.linspace(0.0, 2.9, 8), 1.0, 0.5, *events[:3], *beside]
    for end in ends:
        part = fsm_dyn.simulate(run._resume.run.graph, end, **METHODS[method])
        assert differences(run, part.resume(3.0)) == [], end


def test_interrupted_many_times():
    run, part = whole("latch_door", 1.6, "dopri5"), None
    for end in np.linspace(0.0, 1.6, 60):
        part = fsm_dyn.simulate(run._resume.run.graph, end) if part is None else part.resume(end)
    assert differences(run, part) == []


@pytest.mark.parametrize("method", ["dopri5", "online", "radau", "rk4"])
def test_a_run_that_used_up_its_steps_goes_on(method):
    run = whole("shopping_cart", 2.0, method)
    graph = run._resume.run.graph
    for most in (1, 7, 60, 100):
        part = fsm_dyn.simulate(graph, 2.0, max_steps=most, on_failure="return", **METHODS[method])
        assert part.outcome.name == "too many steps"
        assert differences(run, part.resume(2.0)) == [], most


@pytest.mark.parametrize("method", ["dopri5", "radau"])
def test_a_run_that_was_interrupted_goes_on(method):
    """Ctrl-C comes while progress is reported; what was recorded up to then is kept."""
    options = {"step": 1e-5} if method == "dopri5" else METHODS[method]
    graph = fsm_dyn.compile("shopping_cart")
    run = fsm_dyn.simulate(graph, 0.2, **options)
    part = fsm_dyn.simulate(
        graph, 0.2, progress=lambda t: signal.raise_signal(signal.SIGINT), on_failure="return", **options
    )
    assert part.interrupted
    assert len(part) < len(run)
    assert differences(run, part.resume(0.2)) == []


def test_settings_inputs_and_parameters_are_those_of_the_run(tmp_path):
    options = {
        "parameters": {"mB": 22.0}, "initial": {"x": 0.1}, "atol": 1e-10, "rtol": 1e-8, "max_step": 0.05,
        "inputs": {"FA": {"linear": [[0.0, 0.0], [0.7, 30.0], [1.1, 5]]}, "FB": "3*sin(5*t)"},
    }  # fmt: skip
    graph = fsm_dyn.compile("shopping_cart")
    inputs = dict(zip(graph.automaton.terms.layout.w, options.pop("inputs").values(), strict=False))
    options["initial"] = {graph.automaton.terms.layout.q[0]: 0.1}
    run = fsm_dyn.simulate(graph, 1.5, inputs=inputs, **options)
    part = fsm_dyn.simulate(graph, 0.9, inputs=inputs, **options)
    assert differences(run, part.resume(1.5)) == []
    assert differences(run, fsm_dyn.open_run(part.save(tmp_path / "cart.run.json")).resume(1.5)) == []


def test_other_runs_of_the_graph_change_nothing():
    """Modes that other runs have met get other numbers; those of the run are found again."""
    graph, other = fsm_dyn.compile("ball_in_corner"), fsm_dyn.compile("ball_in_corner")
    run, part = fsm_dyn.simulate(graph, 0.9, strategy="online"), fsm_dyn.simulate(graph, 0.5, strategy="online")
    fsm_dyn.simulate(other, 2.0, initial={"u": -3.0, "v": 2.0} if "u" in graph.automaton.terms.layout.u else None)
    assert part._resume.continuation.state.words.tobytes() == (
        fsm_dyn.simulate(other, 0.5, strategy="online")._resume.continuation.state.words.tobytes()
    )
    assert differences(run, part.resume(0.9)) == []


# -- what cannot be continued ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    graph = fsm_dyn.compile("bouncing_ball")
    return fsm_dyn.simulate(graph, 0.5).save(tmp_path_factory.mktemp("runs") / "ball.run.json")


def altered(path, folder, change):
    """A saved run that was changed by hand."""
    data = json.loads(path.read_text())
    change(data)
    other = folder / "other.run.json"
    other.write_text(json.dumps(data))
    return other


def refused(run, until=1.0):
    with pytest.raises(InputError) as error:
        run.resume(until)
    return str(error.value)


def word(data, number, value):
    words = np.frombuffer(base64.b64decode(data["continuation"]["state"]), "<u8").copy()
    words[number] = value
    data["continuation"]["state"] = base64.b64encode(words.tobytes()).decode()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data.pop("continuation"), "continuation"),
        (lambda data: data["continuation"].update(compiler="1"), "another version"),
        (
            lambda data: data["continuation"]["settings"].update(tolerances={"rtol": 1e-3}),
            "model, parameters or settings",
        ),
        (lambda data: data["parameters"].__setitem__(0, 3.0), "model, parameters or settings"),
        (lambda data: data.update(text=data["text"].replace("9.81", "9.80")), "model, parameters or settings"),
        (lambda data: word(data, 1, 3), "another version|format differs|version of the runtime"),
        (lambda data: word(data, 12, 7), "damaged"),
        (lambda data: data["continuation"].update(state="QUJDRA=="), "damaged"),
        (lambda data: data["continuation"].update(state=""), "not a saved state"),
        (lambda data: data["continuation"].update(rows=10**6), "damaged"),
        (lambda data: data["continuation"].update(modes=[[[9], 0]]), "damaged"),
        (lambda data: data["continuation"].update(rows=1.5), "not a saved run"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(path, tmp_path, change, told):
    other = altered(path, tmp_path, change)
    with pytest.raises(InputError, match=told):
        fsm_dyn.open_run(other).resume(1.0)


def integers(value, way=()):
    """Yield the ways to the integers of a structure, of the entries of a list to the first alone."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield way
    entries = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from integers(entry, (*way, key))


@pytest.mark.parametrize("huge", [2**63, -(2**63) - 1, 2**64 + 1, 10**400])
def test_integers_beyond_64_bits_are_refused(path, tmp_path, huge):
    """Wherever they stand: as a file that is no run or cannot be continued, or as a number that ends it by name."""
    ways = list(integers(json.loads(path.read_text())))
    assert {way[-1] for way in ways} >= {"rows", "transitions", "change_points"}
    for way in ways:

        def change(data, way=way):
            for key in way[:-1]:
                data = data[key]
            data[way[-1]] = huge

        with contextlib.suppress(FsmDynError):
            fsm_dyn.open_run(altered(path, tmp_path, change)).resume(0.51)


@pytest.mark.parametrize("method", ["radau", "bdf"])
def test_damaged_numbers_of_a_solver_are_refused_by_name(method, tmp_path):
    path = fsm_dyn.simulate(fsm_dyn.compile("four_bar"), 0.1, method=method).save(tmp_path / "bar.run.json")
    solver = json.loads(path.read_text())["continuation"]["solver"]
    idle = {f"{name}_pivots" for name, value in solver["solver"].items() if value is None} | {"kind", "current_jac"}
    for name in (*solver, *solver["solver"]):
        for value in ("x", [[0.0]], 1e300, {}):

            def change(data, name=name, value=value):
                part = data["continuation"]["solver"]
                (part if name in part else part["solver"])[name] = value

            run = fsm_dyn.open_run(altered(path, tmp_path, change))
            if value == 1e300 or name in idle:  # a number like any other, or not read
                with contextlib.suppress(InputError):
                    run.resume(0.11, max_steps=5, on_failure="return")
            else:
                assert "cannot be continued" in refused(run, 0.11), (name, value)


def test_what_ended_for_good_is_not_continued(tmp_path):
    graph = fsm_dyn.compile("sliding_rod")
    failed = fsm_dyn.simulate(graph, 5.0, inputs=None, on_failure="return", atol=1e-300, rtol=1e-300, max_steps=10**6)
    assert failed.outcome.failed
    assert failed.outcome.name in refused(failed, 9.0)
    assert failed.outcome.name in refused(fsm_dyn.open_run(failed.save(tmp_path / "rod.run.json")), 9.0)


def test_python_functions_are_not_stored():
    graph = fsm_dyn.compile("shopping_cart")
    name = graph.automaton.terms.layout.w[0]
    assert f"'{name}'" in refused(fsm_dyn.simulate(graph, 0.2, inputs={name: np.sin}))


def test_the_end_must_be_later(path):
    assert "later end" in refused(fsm_dyn.open_run(path), 0.4)
    assert "later end" in refused(fsm_dyn.open_run(path), float("nan"))
