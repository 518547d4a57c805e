/* The machine for a simulator that integrates: evaluation where it asks, and events where it found them.

   It works on what only fsm_machine.c knows. */

#include "fsm_machine.c"

#include "fsm_exchange.h"

#define SET_BACK_STEPS 20   // of Newton's method, along the flow to a contact that is late
#define UNRESOLVED     0.25 // of a flight, by which a contact is late where the importer's steps cannot follow any more

FSM_LOCAL void fsm_machine_follow_input(struct fsm_machine *m, int64_t input, double value)
{
    fsm_machine_set_input(m, input, value);
    m->state.c.at[m->tables.sizes->n_p + input] = value;
    m->changed = true;
}

FSM_LOCAL void fsm_machine_ramp_input(struct fsm_machine *m, int64_t input, double rise)
{
    if (!m->holds) {
        fsm_machine_set_input(m, input, m->state.c.at[m->tables.sizes->n_p + input]);
    }
    m->goals[input] += rise;
}

/* Let the phases know that the machine was moved: no step leads there. */
static void leave_row(struct fsm_machine *m)
{
    if (m->model->phases != NULL) {
        m->phase.counts[FSM_PHASE_ROW_MODE] = 0;
    }
}

FSM_LOCAL void fsm_machine_place(struct fsm_machine *m, double time, const double *x)
{
    m->state.clock->time = time;
    memmove(m->state.x.at, x, (size_t)m->state.x.n * sizeof *x);
    leave_row(m);
}

/* Evaluate the state as it is given at the start, with speeds that no constraint has changed yet. */
static bool evaluate_start(struct fsm_machine *m)
{
    const struct fsm_state *state = &m->state;
    fsm_vector given = m->work.u_before, speeds = fsm_speeds_of(&m->run);
    fsm_write_inputs(m->run.inputs, state->clock->time, state->counters->segment, state->x, state->c);
    fsm_put(given, speeds);
    bool finite = fsm_evaluate_here(&m->run);
    fsm_put(speeds, given);
    return finite;
}

FSM_LOCAL bool fsm_machine_evaluate(struct fsm_machine *m)
{
    bool jumped = m->jumped; // contact states are decided again later
    m->changed = true;
    m->jumped = false;
    bool finite = begin_advance(m, m->state.clock->time);
    m->changed = m->jumped = jumped;
    return m->state.counters->started != 0 ? finite : evaluate_start(m);
}

FSM_LOCAL const double *fsm_machine_rates(const struct fsm_machine *m)
{
    return m->state.x_dot.at;
}

FSM_LOCAL int64_t fsm_machine_guard_count(const struct fsm_machine *m)
{
    return fsm_guard_count(&m->tables, m->state.counters->mode);
}

FSM_LOCAL const double *fsm_machine_motion(struct fsm_machine *m)
{
    return connection_arguments(m);
}

FSM_LOCAL bool fsm_machine_is_exported(const struct fsm_machine *m)
{
    return m->state.counters->mode < m->model->tables->sizes->n_modes;
}

FSM_LOCAL int64_t fsm_machine_mode_item(const struct fsm_machine *m)
{
    return name_of_mode(m, m->state.counters->mode) + 1;
}

FSM_LOCAL int64_t fsm_machine_guard(const struct fsm_machine *m, int64_t guard)
{
    int64_t number = m->tables.mode_guard_start.at[m->state.counters->mode] + guard;
    return fsm_machine_is_exported(m) ? number : listed_guards(m->model) + m->spare.guards[number];
}

FSM_LOCAL void fsm_machine_probe(struct fsm_machine *m, const double *along, double h, double *full)
{
    int64_t n = m->state.x.n;
    double *x = m->state.x.at, *inputs = m->state.c.at + m->tables.sizes->n_p;
    for (int64_t i = 0; i < n; i++) {
        x[i] += h * along[i];
    }
    for (int64_t i = 0; i < m->tables.sizes->n_w; i++) {
        inputs[i] += h * along[n + i];
    }
    m->tables.mode_full.at[m->state.counters->mode](m->state.clock->time, x, m->state.c.at, full);
}

FSM_LOCAL double fsm_machine_breakpoint(const struct fsm_machine *m)
{
    return fsm_next_jump(&m->run);
}

/* Return how much an indicator is above its guard: the tolerance of one that is zero. */
static double raised(const struct fsm_machine *m, const struct fsm_watch *watch, int64_t j)
{
    return watch->low[j] != 0 ? m->state.guards.at[2 * m->tables.sizes->max_guards + j] : 0.0;
}

FSM_LOCAL double fsm_machine_indicator(const struct fsm_machine *m, const struct fsm_watch *watch, int64_t j)
{
    return m->state.guards.at[j] + raised(m, watch, j);
}

/* Whether an armed guard is a condition's that is met: it may have become so in a jump, and has no slope then. */
static bool is_met_condition(const struct fsm_machine *m, int64_t j)
{
    int64_t guard = m->tables.mode_guard_start.at[m->state.counters->mode] + j;
    return m->tables.guard_event.at[guard] == FSM_EVENT_TRANSITION && m->state.armed.at[j] == FSM_GUARD_ARMED &&
           m->state.guards.at[j] < -m->state.guards.at[2 * m->tables.sizes->max_guards + j];
}

/* Return the armed guard whose indicator fired first, or FSM_NO_EVENT; one at zero within the resolution has fired. */
static int64_t fallen_guard(const struct fsm_machine *m, const struct fsm_watch *watch)
{
    int64_t lead = FSM_NO_EVENT, most = m->tables.sizes->max_guards;
    const double *values = m->state.guards.at, *slopes = values + most;
    double soonest = m->tables.tolerances->coincidence;
    for (int64_t j = 0; j < fsm_guard_count(&m->tables, m->state.counters->mode); j++) {
        bool falls = m->state.armed.at[j] == FSM_GUARD_ARMED && slopes[j] < 0.0;
        double value = values[j] + raised(m, watch, j);
        if (falls && value <= -slopes[j] * soonest) {
            soonest = -value / slopes[j];
            lead = j;
        } else if (lead == FSM_NO_EVENT && is_met_condition(m, j)) {
            lead = j;
        }
    }
    return lead;
}

/* Whether an armed guard is below what counts as zero, and falling. */
static bool is_overdue(const struct fsm_machine *m)
{
    int64_t most = m->tables.sizes->max_guards;
    const double *values = m->state.guards.at, *slopes = values + most, *tolerances = slopes + most;
    for (int64_t j = 0; j < fsm_guard_count(&m->tables, m->state.counters->mode); j++) {
        bool sinks = m->state.armed.at[j] == FSM_GUARD_ARMED && slopes[j] < 0.0 && values[j] < -tolerances[j];
        if (sinks || is_met_condition(m, j)) {
            return true;
        }
    }
    return false;
}

/* Whether a contact passed its gap's zero, `late` (s) ago, beyond the end of its face, where nothing closes. */
static bool passed_off_face(struct fsm_machine *m, int64_t guard, double late)
{
    const struct fsm_tables *tables = &m->tables;
    int64_t contact = tables->guard_contact.at[guard];
    if ((tables->contact_flags.at[contact] & FSM_FLAG_LIMITED) == 0 || has_outline(tables, guard)) {
        return false;
    }
    const struct fsm_terms *terms = fsm_terms_of(&m->work);
    tables->terms.at[0](m->state.clock->time, m->state.x.at, m->state.c.at, terms->whole.at);
    double rate = terms->reach_rate.at[contact], reach = terms->reach.at[contact] - late * rate;
    double small = tables->tolerances->gap;
    return reach < -small || (reach <= small && rate < -tables->tolerances->speed); // as fsm_within_face has it
}

/* Whether a rigid contact should have closed before: its gap falls, below what counts as zero. */
static bool is_late(struct fsm_machine *m, int64_t j)
{
    const struct fsm_tables *tables = &m->tables;
    int64_t most = tables->sizes->max_guards, guard = tables->mode_guard_start.at[m->state.counters->mode] + j;
    const double *values = m->state.guards.at, *slopes = values + most, *tolerances = slopes + most;
    bool rigid = tables->guard_event.at[guard] == FSM_EVENT_CLOSES &&
                 (tables->contact_flags.at[tables->guard_contact.at[guard]] & FSM_FLAG_COMPLIANT) == 0;
    bool falls = rigid && m->state.armed.at[j] == FSM_GUARD_ARMED && slopes[j] < 0.0 && values[j] < -tolerances[j];
    return falls && !passed_off_face(m, guard, values[j] / slopes[j]);
}

/* Project the state onto the active rows: the integration of the importer drifts off them. */
static enum fsm_status project_here(struct fsm_machine *m)
{
    bool moved = false;
    if ((m->tables.mode_flags.at[m->state.counters->mode] & FSM_MODE_PROJECTS) == 0) {
        return FSM_DONE;
    }
    enum fsm_status status = fsm_project(&m->run, m->state.clock->time, m->state.x, &moved);
    return status == FSM_CONTINUE ? FSM_DONE : status;
}

/* Return how long ago (s) the first of the contacts closed that are late, 0 where none is; `lead`: its guard. */
static double longest_late(struct fsm_machine *m, int64_t *lead)
{
    const double *values = m->state.guards.at, *slopes = values + m->tables.sizes->max_guards;
    double longest = 0.0;
    for (int64_t j = 0; j < fsm_guard_count(&m->tables, m->state.counters->mode); j++) {
        if (is_late(m, j) && values[j] / slopes[j] > longest) {
            longest = values[j] / slopes[j];
            *lead = j;
        }
    }
    return longest;
}

/* Set the state back along the flow, on the active rows, to where the first of the contacts closes that are late.

   An importer with fixed steps, or a coarse search for events, comes here behind the contact.  Its drift off the rows
   moves gaps too, so that every step begins on them.  `lead`: the guard, FSM_NO_EVENT where none is late; `late`: by how
   much the state was set back (s). */
static enum fsm_status set_back(struct fsm_machine *m, int64_t *lead, double *late)
{
    *lead = FSM_NO_EVENT;
    *late = 0.0;
    enum fsm_status status = project_here(m);
    for (int64_t step = 0; step < SET_BACK_STEPS && status == FSM_DONE; step++) {
        double longest = fsm_machine_evaluate(m) ? longest_late(m, lead) : 0.0;
        if (longest == 0.0) {
            break;
        }
        for (int64_t i = 0; i < m->state.x.n; i++) {
            m->state.x.at[i] -= longest * m->state.x_dot.at[i];
        }
        *late += longest;
        status = project_here(m);
    }
    return status;
}

/* Whether an open contact is penetrated: rigid, with a face that does not end. */
static bool is_penetrated(const struct fsm_machine *m, const struct fsm_terms *terms, int64_t contact)
{
    const struct fsm_tables *tables = &m->tables;
    int64_t row = AT(tables->contact_rows, contact, 0), flags = tables->contact_flags.at[contact];
    bool open = AT(tables->mode_states, m->state.counters->mode, contact) == FSM_CONTACT_FREE;
    return open && (flags & FSM_FLAG_RIGID) != 0 && (flags & FSM_FLAG_LIMITED) == 0 && row >= 0 &&
           tables->row_positional.at[row] == 1 && terms->closes_if.at[contact] != 0.0 &&
           terms->residual.at[row] < -fsm_gap_tolerance(tables, row);
}

/* Return the rows to move onto: those of the mode, the gap of `lead`, and gaps that are penetrated, if there are any. */
static fsm_indices rows_to_meet(struct fsm_machine *m, const struct fsm_terms *terms, int64_t lead)
{
    const struct fsm_tables *tables = &m->tables;
    fsm_indices held = configuration_rows(&m->run);
    fsm_indices rows = fsm_arena_indices(&m->work.arena, held.n + tables->sizes->n_contacts);
    memcpy(rows.at, held.at, (size_t)held.n * sizeof *rows.at);
    int64_t count = held.n, first = tables->mode_guard_start.at[m->state.counters->mode];
    int64_t leads = lead == FSM_NO_EVENT ? -1 : tables->guard_contact.at[first + lead];
    bool any = false;
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        bool penetrated = k != leads && is_penetrated(m, terms, k);
        if (penetrated || k == leads) {
            rows.at[count] = AT(tables->contact_rows, k, 0);
            count++;
        }
        any = any || penetrated;
    }
    return fsm_indices_first(rows, any ? count : 0);
}

/* Move the configuration out of what it penetrates without being late for it.

   The way back along the flow is not the way that the importer came: a body that has just rebounded can be set back
   behind what it left. */
static void move_out(struct fsm_machine *m, int64_t lead)
{
    const struct fsm_terms *terms = fsm_terms_of(&m->work);
    for (int64_t step = 0; step < SET_BACK_STEPS; step++) {
        fsm_arena_clear(&m->work.arena);
        m->tables.terms.at[0](m->state.clock->time, m->state.x.at, m->state.c.at, terms->whole.at);
        fsm_indices rows = rows_to_meet(m, terms, lead);
        if (rows.n == 0) {
            return;
        }
        newton_step(&m->run, terms, rows, m->state.x);
    }
}

/* Let what was located end a Zeno sequence, without rebound, where flights are too short for the importer's steps. */
static void end_short_flights(struct fsm_machine *m, double late, double flight)
{
    struct fsm_state *state = &m->state;
    if (late > UNRESOLVED * flight && state->counters->reason == FSM_REASON_EVENT) {
        state->counters->reason = FSM_REASON_ZENO;
        state->clock->remaining = state->clock->jump = 0.0;
        state->counters->cycle = 1;
    }
}

/* Evaluate here, arm the guards that have risen, and change the chart where it has become bad. */
static enum fsm_status settle(struct fsm_machine *m)
{
    if (!fsm_machine_evaluate(m)) {
        return FSM_NON_FINITE;
    }
    if (fsm_rearm(&m->run)) {
        return FSM_PENETRATION_LATER;
    }
    if (m->state.clock->pivot >= m->state.clock->pivot_alarm) {
        return FSM_DONE;
    }
    enum fsm_status status = fsm_choose_chart(&m->run);
    bool keeps = status == FSM_CONTINUE || (status == FSM_NEED_CHART && keeps_chart(m));
    return keeps ? FSM_DONE : FSM_SINGULAR;
}

/* Decide the phase at the present state; whether it is another one than before. */
static bool decide_phase_here(struct fsm_machine *m)
{
    if (m->model->phases == NULL) {
        return false;
    }
    int64_t before = m->phase.counts[FSM_PHASE_NOW];
    judge_here(m);
    decide_phase(m, m->state.clock->time, m->state.counters->mode, m->phase.now);
    return m->phase.counts[FSM_PHASE_NOW] != before;
}

FSM_LOCAL enum fsm_status fsm_machine_end_step(struct fsm_machine *m, struct fsm_watch *watch)
{
    if (fsm_machine_evaluate(m) && is_overdue(m)) {
        return FSM_PAUSED; // event mode sets back what has passed its contact
    }
    enum fsm_status status = settle(m);
    bool phase_begins = decide_phase_here(m);
    const double *values = m->state.guards.at, *tolerances = values + 2 * m->tables.sizes->max_guards;
    for (int64_t j = 0; j < fsm_guard_count(&m->tables, m->state.counters->mode); j++) {
        watch->low[j] = watch->low[j] != 0 && values[j] <= tolerances[j];
    }
    return status == FSM_DONE && phase_begins ? FSM_PAUSED : status;
}

/* Whether the flight that was foreseen ends here. */
static bool is_due(const struct fsm_machine *m, const struct fsm_watch *watch)
{
    const double *values = m->state.guards.at, *tolerances = values + 2 * m->tables.sizes->max_guards;
    double now = m->state.clock->time;
    bool here = fabs(now - watch->due) <= fsm_clock_resolution(&m->tables, now);
    return here && values[watch->guard] <= tolerances[watch->guard];
}

/* Length of the first step that the method of the model would take from here (s). */
static double step_ahead(const struct fsm_machine *m)
{
    bool adaptive = m->model->method->counts->adaptive != 0;
    double longest = fsm_machine_breakpoint(m) - m->state.clock->time;
    longest = fsm_smaller(longest, adaptive ? FSM_INFINITY : m->model->step);
    return adaptive ? fsm_first_step(&m->run, longest) : longest;
}

/* Whether an armed guard at zero is going to fall below its tolerance, and not merely the rounding in it. */
static bool falls_clearly(struct fsm_machine *m, int64_t j)
{
    const struct fsm_sizes *sizes = m->tables.sizes;
    double tolerance = m->state.guards.at[2 * sizes->max_guards + j], value = -FSM_INFINITY;
    if (m->state.guards.at[j] >= -tolerance) {
        double h = step_ahead(m);
        fsm_trial_step(&m->run, h, m->state.clock->time + h);
        value = fsm_end_is_finite(&m->run) ? m->work.full_end.at[m->state.x.n + sizes->n_u + 1 + j] : value;
        fsm_machine_evaluate(m);
    }
    return value < -tolerance;
}

/* Note which armed guards are zero up to their tolerance, so that their sign does not show that they rise and fall
   again; return whether there is one. */
static bool note_low(const struct fsm_machine *m, struct fsm_watch *watch)
{
    int64_t most = m->tables.sizes->max_guards;
    const double *values = m->state.guards.at, *tolerances = values + 2 * most;
    bool any = false;
    for (int64_t j = 0; j < fsm_guard_count(&m->tables, m->state.counters->mode); j++) {
        watch->low[j] = m->state.armed.at[j] == FSM_GUARD_ARMED && fabs(values[j]) <= tolerances[j];
        any = any || watch->low[j] != 0;
    }
    return any;
}

/* Take a trial step of length `h` (s) and return where the first guard fires in it (s), or a negative number.

   `guard`: which, FSM_NO_EVENT, or FSM_INTERPOLANT_UNRELIABLE where the step is too long. */
static double first_event_within(struct fsm_machine *m, double h, int64_t *guard)
{
    const struct fsm_run *run = &m->run;
    double t_end = m->state.clock->time + h;
    *guard = FSM_INTERPOLANT_UNRELIABLE;
    fsm_trial_step(run, h, t_end);
    if (!fsm_end_is_finite(run) || fsm_project_end(run, t_end) != FSM_CONTINUE) {
        return -1.0;
    }
    fsm_evaluate_middle(run, h);
    double fraction = fsm_first_event(run, h, guard);
    return *guard < 0 ? -1.0 : fsm_locate(run, h, &fraction, *guard, guard);
}

/* Look ahead for the end of a flight that no sign shows; whether all is finite. */
static bool foresee(struct fsm_machine *m, struct fsm_watch *watch)
{
    watch->due = FSM_INFINITY;
    if (!note_low(m, watch)) {
        return true;
    }
    double now = m->state.clock->time, least = fsm_clock_resolution(&m->tables, now), h = step_ahead(m);
    int64_t guard = FSM_INTERPOLANT_UNRELIABLE;
    while (guard == FSM_INTERPOLANT_UNRELIABLE && h > least) {
        double length = first_event_within(m, h, &guard);
        if (guard >= 0) {
            watch->due = now + length;
            watch->guard = guard;
        }
        h *= 0.5;
    }
    return fsm_machine_evaluate(m); // the trial steps changed inputs and the evaluation
}

/* Return the guard that leads what happens here, or FSM_NO_EVENT. */
static int64_t leading_guard(struct fsm_machine *m, struct fsm_watch *watch)
{
    if (is_due(m, watch)) {
        return watch->guard;
    }
    int64_t lead = fallen_guard(m, watch);
    return lead == FSM_NO_EVENT || watch->low[lead] != 0 || falls_clearly(m, lead) ? lead : FSM_NO_EVENT;
}

/* Make the transitions of the guards that fired here, then those of inputs that jumped. */
static enum fsm_status resolve_guards(struct fsm_machine *m, struct fsm_watch *watch)
{
    bool jumped = m->jumped;
    if (m->state.counters->started != 0 && m->state.counters->phase == FSM_PHASE_STEPPING) {
        double flight = m->state.clock->time - m->state.clock->event_time;
        m->jumped = false;
        int64_t overdue;
        double late;
        enum fsm_status status = set_back(m, &overdue, &late);
        move_out(m, overdue);
        status = status == FSM_DONE ? settle(m) : status;
        if (status != FSM_DONE) {
            return status;
        }
        int64_t lead = overdue == FSM_NO_EVENT ? leading_guard(m, watch) : overdue;
        if (lead != FSM_NO_EVENT) {
            fsm_collect_fired(&m->run, lead);
            fsm_begin_event(&m->run);
            end_short_flights(m, late, flight);
            status = fsm_machine_advance(m, m->state.clock->time);
        }
        if (status != FSM_DONE) {
            return status;
        }
        m->jumped = jumped;
        m->changed = true;
    }
    return fsm_machine_advance(m, m->state.clock->time);
}

/* Make the transitions that are due: of guards, of inputs, of the schedule. */
static enum fsm_status resolve_instant(struct fsm_machine *m, struct fsm_watch *watch)
{
    enum fsm_status status = resolve_guards(m, watch);
    double now = m->state.clock->time, next = fsm_machine_breakpoint(m);
    if (status != FSM_DONE || next - now > fsm_clock_resolution(&m->tables, now)) {
        return status;
    }
    m->option_numbers.until = FSM_INFINITY;
    m->state.clock->time = next;
    status = reach_target(&m->run);
    return status == FSM_CONTINUE ? fsm_machine_advance(m, m->state.clock->time) : status;
}

FSM_LOCAL bool fsm_machine_is_due(struct fsm_machine *m, struct fsm_watch *watch)
{
    double now = m->state.clock->time;
    bool is_corner = fsm_machine_breakpoint(m) - now <= fsm_clock_resolution(&m->tables, now);
    bool steps = m->state.counters->started != 0 && m->state.counters->phase == FSM_PHASE_STEPPING;
    return is_corner || (steps && leading_guard(m, watch) != FSM_NO_EVENT);
}

FSM_LOCAL enum fsm_status fsm_machine_resolve(struct fsm_machine *m, struct fsm_watch *watch)
{
    enum fsm_status status = resolve_instant(m, watch);
    return status == FSM_DONE && !foresee(m, watch) ? FSM_NON_FINITE : status;
}
