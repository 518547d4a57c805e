/* Resolution of an event into impacts, resets and the next mode. */

#include <string.h>

#include "contacts.h"
#include "stepping.h"

/* -- Event resolution: impacts, reset maps and the next mode at one event time (docs/theory.md, "Resolution").

   In this order: which contacts are closed (position); an impact if velocities demand one (velocity); user-defined
   resets; then the contact states that are consistent with the accelerations.  Everything is computed from the
   unconstrained terms, so no mode has to be derived to be considered. */

#define FSM_MOST_CORNER_IMPACTS 4 // in one instant, each of the pairs of coinciding corners that the last one leaves
#define FSM_LIMITS_RECALLED     4 // transitions in one instant after which limits reached in it are not returned to

/* Return how many floats and integers of an arena suffice for a transition with so many contacts in its problem.

   A projection needs less.  Counted over all that may exist at the same time: the mechanism's own system and the
   responses of the contacts' `n` rows, three scaled copies of the contact problem, one island of it and one candidate. */
FSM_API int64_t fsm_arena_sizes(const struct fsm_sizes *sizes, int64_t contacts, int64_t *integers)
{
    int64_t held = sizes->n_rows, n = 3 * contacts;
    int64_t system = sizes->n_u + held;
    int64_t context = sizes->n_p + 4 * sizes->n_w + sizes->n_contacts + sizes->n_memory;
    int64_t floats = system * (system + n + 12) + 33 * n * n + 125 * n + 20;
    floats += held * (4 * sizes->n_u + 3 * held + 8) + 2 * system; // the rank of rows is found by itself
    floats += 3 * (sizes->n_q + sizes->n_u) + 2 * context + 11 * sizes->n_contacts + 3 * held + sizes->n_terms;
    floats += 4 * sizes->n_transitions + 2 * sizes->n_rows;
    *integers = 2 * system * (system + 3) + 3 * system + 2 * held + 12 * sizes->n_contacts + 126 * contacts +
                sizes->max_guards + 450;
    return floats;
}

/* Whether the arena suffices for the contacts that take part now; if not, that is noted in it. */
static bool has_room(const struct fsm_resolution *r)
{
    int64_t contacts = 0, integers;
    for (int64_t k = 0; k < r->closed.n; k++) {
        int64_t flags = r->tables->contact_flags.at[k];
        contacts += r->closed.at[k] == 1 || (flags & FSM_FLAG_FRICTION_ONLY) != 0 || (flags & FSM_FLAG_COMPLIANT) != 0;
    }
    int64_t floats = fsm_arena_sizes(r->tables->sizes, contacts, &integers);
    if (r->arena->floats.n < floats || r->arena->integers.n < integers) {
        r->arena->top->overflown = 1;
        return false;
    }
    return true;
}

/* Evaluate the unconstrained terms at the state as it is now. */
static void evaluate(const struct fsm_resolution *r)
{
    r->tables->terms.at[0](r->t, r->state.at, r->context.at, r->terms->whole.at);
}

static double total_energy(const struct fsm_resolution *r)
{
    return r->terms->energies.at[0] + r->terms->energies.at[1];
}

/* Whether the speeds in the state differ from those in `x` (n_q + n_u,). */
static bool speeds_differ(const struct fsm_resolution *r, fsm_vector x)
{
    for (int64_t i = r->tables->sizes->n_q; i < x.n; i++) {
        if (r->state.at[i] != x.at[i]) {
            return true;
        }
    }
    return false;
}

/* Copy `source` to `target`; return whether that changes it. */
static bool replace(fsm_vector target, fsm_vector source)
{
    bool changed = false;
    for (int64_t i = 0; i < target.n; i++) {
        changed = changed || target.at[i] != source.at[i];
        target.at[i] = source.at[i];
    }
    return changed;
}

/* Begin with copies of state and context, evaluated, and nothing known of the contacts. */
static struct fsm_resolution begin_resolution(struct fsm_work *work, const struct fsm_tables *tables,
                                              const struct fsm_instant *instant, fsm_vector x, fsm_vector c,
                                              struct fsm_outcome *outcome)
{
    const struct fsm_sizes *sizes = tables->sizes;
    struct fsm_arena *arena = &work->arena;
    int64_t n_contacts = sizes->n_contacts, sigma_at = fsm_sigma_at(sizes);
    fsm_arena_clear(arena);
    struct fsm_resolution r = {.arena = arena,
                               .tables = tables,
                               .terms = fsm_terms_of(work),
                               .t = instant->t,
                               .state = fsm_arena_copy(arena, x),
                               .context = fsm_arena_copy(arena, c),
                               .before = fsm_arena_indices(arena, n_contacts),
                               .event = fsm_arena_indices(arena, n_contacts),
                               .direction = fsm_arena_vector(arena, n_contacts),
                               .slack = fsm_arena_matrix(arena, n_contacts, 2),
                               .closed = fsm_arena_indices(arena, n_contacts),
                               .jammed = fsm_arena_indices(arena, n_contacts),
                               .moved = fsm_arena_indices(arena, n_contacts),
                               .between = fsm_arena_matrix(arena, sizes->n_transitions, 2),
                               .answers = fsm_arena_indices(arena, n_contacts),
                               .insists = fsm_arena_indices(arena, n_contacts),
                               .transition = -1,
                               .outcome = outcome};
    r.u = fsm_vector_from(r.state, sizes->n_q);
    r.sigma = fsm_vector_part(r.context, sigma_at, sigma_at + n_contacts);
    for (int64_t i = 0; i < outcome->impulse.n; i++) {
        outcome->impulse.at[i] = 0.0;
    }
    for (int64_t i = 0; i < 2 * sizes->n_transitions; i++) {
        r.between.at[i] = FSM_INFINITY;
    }
    evaluate(&r);
    outcome->mode = instant->mode;
    outcome->energy->beta = 1.0;
    outcome->energy->before = total_energy(&r);
    return r;
}

/* Read what the guards that fired say; false where nothing happens: gaps fell through zero beyond their faces. */
static bool read_instant(struct fsm_resolution *r, const struct fsm_instant *instant)
{
    fsm_read_events(r, instant);
    r->transition = fsm_first_due(instant->conditions);
    r->placed = fsm_is_from_outside(instant->reason) || r->transition >= 0;
    bool at_event = instant->reason == FSM_REASON_EVENT;
    if (r->transition < 0) {
        fsm_read_slack(r->tables, instant, r->slack);
    }
    if (at_event && instant->transitions >= FSM_LIMITS_RECALLED) {
        fsm_recall_limits(instant->limits, r->event, r->direction);
    }
    if (at_event && r->transition < 0 && !fsm_any_event(r->event)) {
        return false;
    }
    for (int64_t k = 0; k < r->before.n; k++) {
        r->insists.at[k] = instant->reason == FSM_REASON_ZENO; // a sequence of impacts is completed
        r->before.at[k] = AT(r->tables->mode_states, instant->mode, k);
        r->outcome->wanted.at[k] = AT(r->tables->mode_states, instant->mode, k);
        if (r->transition < 0) {
            continue;
        }
        int8_t asked = AT(r->tables->transition_states, r->transition, k);
        bool lock = (r->tables->contact_flags.at[k] & FSM_FLAG_SWITCHED) != 0;
        if (asked == FSM_CONTACT_FREE || (asked > FSM_CONTACT_FREE && lock)) {
            r->outcome->wanted.at[k] = asked;
        }
    }
    fsm_release_overloaded_locks(r);
    return true;
}

/* Position: mark the contacts that are closed, to within `near` (m); returns a status. */
static int64_t find_closed(const struct fsm_resolution *r, const struct fsm_instant *instant, double near)
{
    if (!fsm_find_active(r, near)) {
        return instant->reason == FSM_REASON_START ? FSM_PENETRATION : FSM_PENETRATION_LATER;
    }
    return has_room(r) ? FSM_CONTINUE : FSM_BUFFER_FULL;
}

/* Velocity: carry out impacts until no pair of coinciding corners strikes; returns a status.

   `x` (n_q + n_u,): the state before them. */
static int64_t impacts_in_turn(const struct fsm_resolution *r, const struct fsm_instant *instant, fsm_vector x,
                               double near)
{
    fsm_mark top = fsm_arena_mark(r->arena);
    int64_t status = fsm_resolve_impact(r, FSM_IMPACT_REBOUND);
    for (int64_t pass = 0; pass < FSM_MOST_CORNER_IMPACTS; pass++) {
        if (status != FSM_CONTINUE || !speeds_differ(r, x) || !fsm_has_corners(r->tables, r->closed)) {
            break;
        }
        evaluate(r); // the speeds after the impact choose other pairs of the corners that coincide
        fsm_void_face_ends(r);
        if (!fsm_find_active(r, near)) {
            return instant->reason == FSM_REASON_START ? FSM_PENETRATION : FSM_PENETRATION_LATER;
        }
        if (!fsm_any_strikes(r)) {
            break;
        }
        fsm_arena_release(r->arena, top);
        status = fsm_resolve_impact(r, FSM_IMPACT_REBOUND);
    }
    return status;
}

/* Velocity: carry out the impacts of this instant; returns a status.

   A contact that closes in it, and that the transition opens, has one if nothing else stops its bodies: neither a lock that is
   engaged nor another contact.  `x` (n_q + n_u,): the state before them. */
static int64_t resolve_impacts(const struct fsm_resolution *r, const struct fsm_instant *instant, fsm_vector x,
                               double near)
{
    if (r->transition < 0) {
        return impacts_in_turn(r, instant, x, near);
    }
    fsm_vector impulse = fsm_arena_copy(r->arena, r->outcome->impulse);
    double beta = r->outcome->energy->beta;
    int64_t status = impacts_in_turn(r, instant, x, near);
    if (status != FSM_CONTINUE || !fsm_any_insists(r, near)) {
        return status;
    }
    replace(r->state, x);
    replace(r->outcome->impulse, impulse);
    r->outcome->energy->beta = beta;
    evaluate(r);
    status = find_closed(r, instant, near);
    return status == FSM_CONTINUE ? impacts_in_turn(r, instant, x, near) : status;
}

/* Whether contact `k` takes the place of one that was closed and leaves its face. */
static bool succeeds_another(const struct fsm_resolution *r, int64_t k)
{
    for (int64_t j = 0; j < r->before.n; j++) {
        if (r->before.at[j] != FSM_CONTACT_FREE && r->event.at[j] == FSM_EVENT_LEAVES &&
            fsm_same_place(r->tables, r->terms, j, k)) {
            return true;
        }
    }
    return false;
}

/* Velocity at a Zeno time: complete the sequence of impacts of the contacts whose guards fired; returns a status. */
static int64_t resolve_zeno(const struct fsm_resolution *r, const struct fsm_instant *instant)
{
    bool leaves = false; // any contact its face
    for (int64_t k = 0; k < r->event.n; k++) {
        leaves = leaves || r->event.at[k] == FSM_EVENT_LEAVES;
    }
    for (int64_t k = 0; k < r->closed.n; k++) {
        bool has_gap = (r->tables->contact_flags.at[k] & FSM_FLAG_NO_GAP) == 0;
        bool apart = r->before.at[k] == FSM_CONTACT_FREE && r->event.at[k] != FSM_EVENT_CLOSES;
        if (apart && has_gap && !(leaves && succeeds_another(r, k))) {
            r->closed.at[k] = 0; // near, but not of the sequence: it has an impact of its own
        }
    }
    return fsm_complete_zeno_sequence(r, instant->remaining);
}

/* Mark the contacts that were closed, or close in this instant, and whose gaps are not what they were; `gaps` (n_contacts,):
   before the reset map.  What closed before it is not at its gap any more. */
static void mark_moved_contacts(const struct fsm_resolution *r, fsm_vector gaps)
{
    for (int64_t k = 0; k < gaps.n; k++) {
        int64_t row = AT(r->tables->contact_rows, k, 0);
        bool closes = r->event.at[k] == FSM_EVENT_CLOSES;
        bool held = (r->before.at[k] != FSM_CONTACT_FREE || closes) && row >= 0;
        double jump = held ? r->terms->residual.at[row] - gaps.at[k] : 0.0;
        r->moved.at[k] = held && fabs(jump) > fsm_gap_tolerance(r->tables, row);
        if (r->moved.at[k] != 0 && closes) {
            r->event.at[k] = 0;
        }
    }
}

/* Apply the reset map of the user-defined transition, and the impacts that it demands; returns a status.

   The state it leads to is resolved as one that motion leads to: what approaches at a gap of zero strikes and rebounds.
   Contacts closed before it answer the impulses of a transition without rebound.  A closed contact whose gap the reset map
   changes, by coordinates or by memory, opens, or penetrates.

   `x` (n_q + n_u,): the state before the instant. */
static int64_t resolve_reset(const struct fsm_resolution *r, const struct fsm_instant *instant, fsm_vector x,
                             fsm_mark top)
{
    if (r->transition < 0) {
        return FSM_CONTINUE;
    }
    int64_t address = AT(r->tables->transitions, r->transition, FSM_TRANSITION_RESET);
    if (address == 0) {
        return FSM_CONTINUE;
    }
    if (speeds_differ(r, x)) { // an impact came before
        evaluate(r);
        fsm_look_between(r, instant, r->terms->when);
    }
    bool impulsive = AT(r->tables->transitions, r->transition, FSM_TRANSITION_IMPULSE) != 0;
    fsm_vector gaps = fsm_arena_vector(r->arena, r->before.n);
    for (int64_t k = 0; k < gaps.n; k++) {
        int64_t row = AT(r->tables->contact_rows, k, 0);
        gaps.at[k] = row >= 0 ? r->terms->residual.at[row] : 0.0;
        bool touches = r->closed.at[k] == 1 || (row >= 0 && gaps.at[k] <= fsm_gap_tolerance(r->tables, row));
        r->answers.at[k] = impulsive && touches;
    }
    if (!fsm_apply_reset(r, address)) {
        return FSM_NON_FINITE;
    }
    evaluate(r);
    mark_moved_contacts(r, gaps);
    double near = r->tables->tolerances->gap;
    int64_t status = find_closed(r, instant, near);
    if (status != FSM_CONTINUE) {
        return status;
    }
    fsm_arena_release(r->arena, top);
    fsm_vector reset = fsm_arena_copy(r->arena, r->state), when = fsm_arena_copy(r->arena, r->terms->when);
    status = resolve_impacts(r, instant, reset, near);
    if (status == FSM_CONTINUE && !impulsive && speeds_differ(r, reset)) {
        fsm_look_between(r, instant, when);
    }
    return status;
}

/* Impact without collision: friction jams, and the slip of the contacts that jam is stopped at once; returns a status. */
static int64_t impact_without_collision(const struct fsm_resolution *r)
{
    fsm_suspend_limited_locks(r);
    fsm_indices held = fsm_bilateral_rows(r->arena, r->tables, r->outcome->wanted);
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(r->arena, r->terms, held, r->u.n);
    int64_t status = fsm_simultaneous_impact(r, &bilateral, r->jammed, FSM_IMPACT_ARREST);
    fsm_resume_limited_locks(r);
    return status;
}

/* Acceleration: select the contact states after the instant, after an impact without collision if the model says so. */
static int64_t resolve_accelerations(const struct fsm_resolution *r)
{
    struct fsm_outcome *outcome = r->outcome;
    fsm_mark top = fsm_arena_mark(r->arena);
    evaluate(r);
    if (fsm_has_corners(r->tables, r->closed)) {
        fsm_rest_on_one(r);
        fsm_arena_release(r->arena, top);
    }
    outcome->energy->after = total_energy(r);
    fsm_vector sigma = fsm_arena_copy(r->arena, r->sigma);
    fsm_indices closed = fsm_arena_indices(r->arena, r->closed.n);
    fsm_put_indices(closed, r->closed);
    top = fsm_arena_mark(r->arena);
    int64_t status = fsm_select_contact_states(r);
    for (int64_t pass = 0; pass < closed.n && status == FSM_INCONSISTENT && r->tables->sizes->on_inconsistent == 1;
         pass++) { // one island after the other
        fsm_arena_release(r->arena, top);
        status = impact_without_collision(r);
        if (status == FSM_CONTINUE) {
            evaluate(r);
            outcome->energy->after = total_energy(r);
            fsm_put_indices(r->closed, closed);
            fsm_put(r->sigma, sigma);
            fsm_indices_fill(r->event, 0);
            status = fsm_select_contact_states(r);
            outcome->notes->chosen_by = FSM_CHOSEN_IMPACT_WITHOUT_COLLISION;
        }
    }
    return r->arena->top->overflown != 0 ? FSM_BUFFER_FULL : status;
}

/* Enter the mode after in the outcome, and write state and context back; returns a status. */
static int64_t finish(const struct fsm_resolution *r, const struct fsm_instant *instant, fsm_vector x, fsm_vector c)
{
    const struct fsm_tables *tables = r->tables;
    struct fsm_outcome *outcome = r->outcome;
    int64_t mode = instant->mode, after = fsm_find_mode(tables, outcome->wanted, mode);
    bool online = after >= 0 && after < tables->mode_online.n && tables->mode_online.at[after] != 0;
    if (after >= 0 && !online && tables->mode_rhs.at[after] == NULL) {
        return FSM_NEED_MODE; // it rests: its machine code is lent to another
    }
    if (after < 0) {
        return FSM_NEED_MODE;
    }
    if (tables->mode_group.at[after] == tables->mode_group.at[mode]) {
        after = mode; // the same mode, in the chart in use
    }
    fsm_make_due_by_changes(r, instant, fsm_vector_from(x, tables->sizes->n_q));
    outcome->mode = after;
    fsm_make_due_between(r, instant);
    bool state_changed = replace(x, r->state), context_changed = replace(c, r->context);
    outcome->notes->written_transition = r->transition;
    outcome->notes->changed = r->transition >= 0 || after != mode || state_changed || context_changed;
    int64_t stops = r->transition >= 0 ? AT(tables->transitions, r->transition, FSM_TRANSITION_STOP) : 0;
    bool goes_on = stops == 0 || stops == FSM_TRANSITION_KINK;
    return goes_on ? FSM_CONTINUE : stops == FSM_TRANSITION_LEFT_RANGE ? FSM_LEFT_RANGE : FSM_STOPPED;
}

/* -- A decision is kept in the arena while the caller provides its mode, and made once. */

/* A decision on an instant, and of what it was one. */
struct decision {
    struct fsm_resolution r;
    fsm_vector x, c; // before
    double t;
    int64_t mode, reason, fired, solved;
};

/* Keep the decision on an instant, behind `top` in the arena, if there is room; `solved`: combinations solved before it. */
static void keep_decision(const struct fsm_resolution *r, const struct fsm_instant *instant, fsm_vector x, fsm_vector c,
                          fsm_mark top, int64_t solved)
{
    struct fsm_arena *arena = r->arena;
    int64_t words = (int64_t)(sizeof(struct decision) / sizeof(int64_t));
    if (top.floats + x.n + c.n > arena->floats.n || top.integers + words > arena->integers.n) {
        return;
    }
    fsm_arena_release(arena, top);
    struct decision kept = {*r,           fsm_arena_copy(arena, x), fsm_arena_copy(arena, c), instant->t,
                            instant->mode, instant->reason,          instant->fired.n,         arena->top->solved - solved};
    memcpy(fsm_arena_indices(arena, words).at, &kept, sizeof kept);
    arena->top->decision = top.integers + 1;
}

/* Whether two vectors have the same entries. */
static bool are_equal(fsm_vector a, fsm_vector b)
{
    return a.n == b.n && memcmp(a.at, b.at, (size_t)a.n * sizeof *a.at) == 0;
}

/* Whether a decision is kept on this instant, which is then written to `r` as if made now. */
static bool recall_decision(struct fsm_arena *arena, const struct fsm_tables *tables, const struct fsm_instant *instant,
                            fsm_vector x, fsm_vector c, struct fsm_outcome *outcome, struct fsm_resolution *r)
{
    int64_t place = arena->top->decision;
    if (place == 0) {
        return false;
    }
    struct decision kept;
    memcpy(&kept, arena->integers.at + place - 1, sizeof kept);
    arena->top->decision = 0;
    if (kept.t != instant->t || kept.mode != instant->mode || kept.reason != instant->reason ||
        kept.fired != instant->fired.n || !are_equal(kept.x, x) || !are_equal(kept.c, c)) {
        return false;
    }
    arena->top->solved += kept.solved;
    *r = kept.r;
    r->arena = arena;
    r->tables = tables;
    r->outcome = outcome;
    return true;
}

/* Resolve position, velocity and acceleration at one instant and find the next mode.

   `work`: its arena and unconstrained terms are overwritten.  `x` (n_q + n_u,): the state before, all speeds consistent
   with the mode; on return that after (impacts, user-defined resets).  `c` (n_c,): the context, inputs as they are after
   the instant; on return with the slip directions and discrete variables after.

   Returns FSM_CONTINUE; FSM_STOPPED or FSM_LEFT_RANGE after a transition that ends the run (state and mode valid); FSM_NEED_MODE
   (`outcome->wanted`: the contact states for which there is no mode yet); FSM_BUFFER_FULL where the arena is too small; or
   a failure.  Unless the mode is valid, `x` and `c` are as they were: the call can be repeated. */
FSM_LOCAL int64_t fsm_resolve_event(struct fsm_work *work, const struct fsm_tables *tables,
                                    const struct fsm_instant *instant, fsm_vector x, fsm_vector c,
                                    struct fsm_outcome *outcome)
{
    struct fsm_resolution r;
    if (recall_decision(&work->arena, tables, instant, x, c, outcome, &r)) {
        return finish(&r, instant, x, c);
    }
    int64_t solved = work->arena.top->solved;
    r = begin_resolution(work, tables, instant, x, c, outcome);
    bool happens = read_instant(&r, instant);
    bool observes = happens && fsm_only_observes(&r, instant) && fsm_changes_no_motion(&r, x, c);
    if (!happens || observes) {
        outcome->notes->changed = 0;
        outcome->notes->candidates = 0;
        outcome->notes->consistent = 0;
        outcome->notes->chosen_by = FSM_CHOSEN_NO_CANDIDATES;
        outcome->energy->after = outcome->energy->before;
        return happens ? finish(&r, instant, x, c) : FSM_CONTINUE;
    }
    double near = fsm_is_from_outside(instant->reason) ? tables->tolerances->gap : tables->tolerances->projection;
    int64_t status = find_closed(&r, instant, near);
    if (status != FSM_CONTINUE) {
        return status;
    }
    fsm_vector when = fsm_arena_copy(r.arena, r.terms->when);
    fsm_mark top = fsm_arena_mark(r.arena);
    status = instant->reason == FSM_REASON_ZENO ? resolve_zeno(&r, instant) : resolve_impacts(&r, instant, x, near);
    if (status != FSM_CONTINUE) {
        return status;
    }
    if (speeds_differ(&r, x)) {
        fsm_void_limits(&r);
        if (fsm_is_from_outside(instant->reason)) { // a jump came before the impact
            fsm_look_between(&r, instant, when);
        }
    }
    status = resolve_reset(&r, instant, x, top);
    if (status != FSM_CONTINUE) {
        return status;
    }
    fsm_arena_release(r.arena, top);
    status = resolve_accelerations(&r);
    if (status != FSM_CONTINUE) {
        return status;
    }
    fsm_follow_slip(&r);
    status = finish(&r, instant, x, c);
    if (status == FSM_NEED_MODE) {
        keep_decision(&r, instant, x, c, top, solved);
    }
    return status;
}

/* Return the first mode with these contact states (n_contacts,), -1 if there is none.

   `near`: a mode that differs from it in few contacts; most modes differ from it in one of these. */
FSM_LOCAL int64_t fsm_find_mode(const struct fsm_tables *tables, fsm_codes states, int64_t near)
{
    int64_t first = 0, last = states.n - 1;
    while (first < last && AT(tables->mode_states, near, first) == states.at[first]) {
        first++;
    }
    while (last > first && AT(tables->mode_states, near, last) == states.at[last]) {
        last--;
    }
    for (int64_t mode = 0; mode < tables->mode_states.n; mode++) {
        const int8_t *found = tables->mode_states.at + mode * tables->mode_states.m;
        if (states.n == 0 || (found[first] == states.at[first] && found[last] == states.at[last] &&
                              memcmp(found, states.at, (size_t)states.n) == 0)) {
            return mode;
        }
    }
    return -1;
}
