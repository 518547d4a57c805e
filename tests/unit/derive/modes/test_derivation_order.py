"""A mode's programs follow from the model alone, not from earlier derivations."""

import itertools

import fsm_dyn
from fsm_dyn.automaton.initial_values import model_start


def test_modes_are_the_same_in_any_order():
    """All modes of a model, derived forwards, backwards and each with nothing before it."""

    def derive(order, fresh=False):
        graph = fsm_dyn.compile("piano_action_simple", cache=False)
        found = {}
        for states in order:
            if fresh:
                graph = fsm_dyn.compile("piano_action_simple")
            home = model_start(graph.automaton)
            found[states] = graph.automaton.derive(states, 0.0, home.x, home.context).programs
        return found

    codes = [contact.codes for contact in fsm_dyn.compile("piano_action_simple").automaton.contacts]
    chosen = list(itertools.product(*codes))[::37][:6]
    forwards = derive(chosen)
    assert derive(chosen[::-1]) == forwards
    assert derive(chosen, fresh=True) == forwards


def test_modes_do_not_depend_on_the_parameters_of_the_run_that_reached_them():
    programs = []
    for parameters in (None, {"thick": "7.5 mm", "m_door": 1.9}):
        graph = fsm_dyn.compile("latch_door", parameters)
        simulator = fsm_dyn.Simulator(graph)
        simulator.run(2.0, strategy="compiled")
        derived = simulator.extended_graph().automaton.modes[len(graph.modes) :]
        programs.append({mode.states: mode.programs for mode in derived})
    both = programs[0].keys() & programs[1].keys()
    assert both
    assert all(programs[0][states] == programs[1][states] for states in both)
