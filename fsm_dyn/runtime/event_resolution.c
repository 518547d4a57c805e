/* What happens at an instant of transition: impacts, written changes, the next mode; and drift projection.

   The order is that of docs/theory.md, "Resolution": which contacts are closed; an impact if velocities demand one;
   written resets; then, on the level of accelerations, the combination of contact states that is consistent.
   Everything is worked out from the unconstrained terms, so no mode has to be derived to be considered. */

#include "contacts.h"

#define FSM_MOST_CORNERS 4 // impacts in one instant, each of the pairs of coinciding corners that the last one leaves
#define FSM_AGAIN        4 // transitions in one instant after which what came to its limit in it is left for good

static int64_t read_fired(const struct fsm_tables *tables, int64_t mode, fsm_indices fired, int64_t n_fired,
                          const struct fsm_terms *terms, fsm_indices event, fsm_vector direction);
static void forget_limits(const struct fsm_tables *tables, fsm_vector state, fsm_vector before, fsm_indices event);
static int64_t impact_without_collision(struct fsm_work *work, const struct fsm_tables *tables,
                                        const struct fsm_terms *terms, fsm_vector state, fsm_codes wanted,
                                        fsm_indices closed, fsm_vector impulse, struct fsm_impact_energy *energy,
                                        fsm_vector log);
static void reset(const struct fsm_tables *tables, int64_t written, double t, fsm_vector state, fsm_vector context,
                  fsm_vector out);
static bool has_changed(const struct fsm_sizes *sizes, fsm_vector state, fsm_vector before);

/* Return how many floats and integers of an arena suffice for a transition in which so many contacts meet.

   A projection needs less.  Counted out over all that may stand at the same time: the mechanism's own system and the
   responses of the contacts' `n` rows, three scaled copies of the meeting, one part of it and one judgement. */
FSM_API int64_t fsm_arena_sizes(const struct fsm_sizes *sizes, int64_t contacts, int64_t *integers_found)
{
    int64_t held = sizes->n_rows, n = 3 * contacts;
    int64_t system = sizes->n_u + held;
    int64_t context = sizes->n_p + 4 * sizes->n_w + sizes->n_contacts + sizes->n_memory;
    int64_t floats = system * (system + n + 12) + 23 * n * n + 108 * n + 20;
    floats += held * (4 * sizes->n_u + 3 * held + 8) + 2 * system; // the rank of rows is looked at by itself
    floats += 2 * (sizes->n_q + sizes->n_u) + 2 * context + 6 * sizes->n_contacts;
    int64_t integers = 3 * system + 2 * held + 8 * sizes->n_contacts + 100 * contacts + sizes->max_guards + 450;
    *integers_found = integers;
    return floats;
}

/* Whether the arena suffices for the contacts that meet now; if not, that is noted. */
static bool has_room(struct fsm_work *work, const struct fsm_tables *tables, fsm_indices closed)
{
    int64_t contacts = 0;
    for (int64_t k = 0; k < closed.n; k++) {
        contacts += closed.at[k] == 1 || tables->contact_kind.at[k] == FSM_KIND_DRY_FRICTION ||
                    tables->contact_kind.at[k] == FSM_KIND_COMPLIANT;
    }
    int64_t integers;
    int64_t floats = fsm_arena_sizes(tables->sizes, contacts, &integers);
    if (work->arena.floats.n < floats || work->arena.integers.n < integers) {
        work->arena.top->overflown = 1;
        return false;
    }
    return true;
}

/* Resolve position, velocity and acceleration at one instant and find the next mode.

   Parameters
   ----------
   work : Workspace
       Workspace; of its arena, see workspace, what others hold is lost.
   tables : Tables
       The automaton.
   t : float
       The instant (s).
   x : float64 array, shape (n_q + n_u,)
       State before, all speeds consistent with `mode`; on return the state after (impacts, written resets).
   c : float64 array, shape (n_c,)
       Context, inputs as they are *after* the instant; on return with the slip directions and the memory after.
   mode : int
       Mode before.
   reason : int
       `START`, `EVENT`, `INPUT_JUMP`, `ZENO` (what fired ends its train of impacts) or `CONTRADICTION`.
   remaining : float
       How long that train goes on (s).
   fired : int64 array, `n_fired` : int
       Numbers (in `tables.guard_event`) of all guards that reached zero together, the first one leading;
       none unless the reason is `EVENT` or `ZENO`.
   guards : float64 array
       `State.guards`.
   fineness : float
       How finely the event was located (s).
   limits : int64 array, shape (2 n_contacts,)
       `State.limits`; counts once an instant has seen `AGAIN` transitions.
   wanted : int8 array, shape (n_contacts,)
       Out: the contact states found (with `NEED_MODE`: those for which there is no mode yet).
   impulse : float64 array, shape (n_rows,)
       Out: impulse along every row (zero where none).
   energy : float64 array, shape (ENERGY_COUNT,)
       Out: kinetic plus potential energy before and after (J), and the fraction kept by the energy remedy.
   notes : int64 array, shape (NOTE_COUNT,)
       Out: see `CHANGED` and its neighbours; `INSTANT` is in.
   log : float64 array, shape (LOG_LENGTH,)
       Out: the candidates of the decision, see write_log.
   implied : int64 array, shape (n_contacts,)
       Out: 1 for contacts whose gaps two closed ones keep, see features.

   Returns
   -------
   status : int
       `GOING`; `STOPPED` after a written transition with `stop` (state and mode valid);
       `NEED_MODE` (`wanted` filled); `BUFFER_FULL` where the arena is too small; or a failure of
       outcomes.
       Unless it is `GOING` or `STOPPED`, `x` and `c` are as they were: the call can be repeated.
   next_mode : int
       The mode after. */
FSM_LOCAL int64_t fsm_resolve_event(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                                    fsm_vector c, int64_t mode, int64_t reason, double remaining, fsm_indices fired,
                                    int64_t n_fired, fsm_vector guards, double fineness, fsm_indices limits,
                                    fsm_codes wanted, fsm_vector impulse, struct fsm_impact_energy *energy,
                                    struct fsm_notes *notes, fsm_vector log, fsm_indices implied,
                                    int64_t *next_mode_found)
{
    struct fsm_sizes *sizes = tables->sizes;
    int64_t n_contacts = sizes->n_contacts;
    fsm_arena_clear(&work->arena);
    fsm_vector state = fsm_arena_copy(&work->arena, x), context = fsm_arena_copy(&work->arena, c);
    const struct fsm_terms *terms = fsm_terms_of(work);
    for (int64_t r = 0; r < sizes->n_rows; r++) {
        impulse.at[r] = 0.0;
    }
    energy->beta = 1.0;
    tables->terms.at[0](t, state.at, context.at, terms->whole.at);
    energy->before = terms->energies.at[0] + terms->energies.at[1];
    fsm_indices event = fsm_arena_indices(&work->arena, n_contacts);
    fsm_vector direction = fsm_arena_vector(&work->arena, n_contacts);
    int64_t written = read_fired(tables, mode, fired, n_fired, terms, event, direction);
    fsm_matrix slack = fsm_arena_matrix(&work->arena, n_contacts, 2);
    if (written < 0) {
        fsm_read_slack(tables, mode, guards, fired, n_fired, fineness, slack);
    }
    if (reason == FSM_REASON_EVENT && notes->instant >= FSM_AGAIN) {
        fsm_recall_limits(limits, event, direction);
    }
    if (reason == FSM_REASON_EVENT && written < 0 && !fsm_any_event(event)) {
        notes->changed = 0;
        notes->candidates = 0;
        notes->consistent = 0;
        notes->chosen_by = 0;
        *next_mode_found = mode; // gaps fell through zero beyond their faces
        return FSM_CONTINUE;
    }
    fsm_indices before = fsm_arena_indices(&work->arena, n_contacts);
    for (int64_t k = 0; k < n_contacts; k++) {
        before.at[k] = AT(tables->mode_states, mode, k);
        wanted.at[k] = (int8_t)before.at[k];
        int64_t asked = written >= 0 ? AT(tables->transition_states, written, k) : -1;
        if (asked == FSM_CONTACT_FREE || (asked > FSM_CONTACT_FREE && tables->contact_kind.at[k] == FSM_KIND_LOCK)) {
            wanted.at[k] = (int8_t)asked;
        }
    }
    fsm_indices closed = fsm_arena_indices(&work->arena, n_contacts);
    int64_t deep = reason == FSM_REASON_START ? FSM_PENETRATION : FSM_PENETRATION_LATER;
    double close_to = reason == FSM_REASON_START || reason == FSM_REASON_INPUT_JUMP ? tables->tolerances->gap
                                                                                    : tables->tolerances->projection;
    fsm_vector u = fsm_vector_from(state, sizes->n_q);
    if (!fsm_find_active(tables, terms, u, wanted, before, event, written, close_to, closed, implied)) {
        *next_mode_found = mode;
        return deep;
    }
    if (!has_room(work, tables, closed)) {
        *next_mode_found = mode;
        return FSM_BUFFER_FULL;
    }
    fsm_mark top = fsm_arena_mark(&work->arena);
    int64_t status;
    if (reason == FSM_REASON_ZENO) {
        for (int64_t k = 0; k < n_contacts; k++) {
            if (before.at[k] == FSM_CONTACT_FREE && event.at[k] != FSM_EVENT_CLOSES) {
                closed.at[k] = 0; // near, but not of the train: its impact is its own
            }
        }
        status = fsm_complete_zeno_sequence(&work->arena, tables, terms, u, wanted, closed, remaining, impulse, log);
    } else {
        status = fsm_resolve_impact(&work->arena, tables, terms, state, wanted, closed, false, impulse, energy, log);
        for (int64_t pass = 0; pass < FSM_MOST_CORNERS; pass++) {
            if (status != FSM_CONTINUE || !has_changed(sizes, state, x) || !fsm_has_corners(tables, closed)) {
                break;
            }
            // the speeds after the impact choose other pairs of the corners that coincide
            tables->terms.at[0](t, state.at, context.at, terms->whole.at);
            fsm_forget_leaving(tables, terms, event);
            if (!fsm_find_active(tables, terms, u, wanted, before, event, written, close_to, closed, implied)) {
                *next_mode_found = mode;
                return deep;
            }
            if (!fsm_any_strikes(tables, terms, closed, u, tables->tolerances->speed)) {
                break;
            }
            fsm_arena_release(&work->arena, top);
            status =
                fsm_resolve_impact(&work->arena, tables, terms, state, wanted, closed, false, impulse, energy, log);
        }
    }
    if (status != FSM_CONTINUE) {
        *next_mode_found = mode;
        return status;
    }
    forget_limits(tables, state, x, event);
    bool stop = false;
    if (written >= 0) {
        stop = AT(tables->transitions, written, FSM_TRANSITION_STOP) == 1;
        if (AT(tables->transitions, written, FSM_TRANSITION_RESET) != 0) {
            reset(tables, written, t, state, context, fsm_arena_vector(&work->arena, state.n + sizes->n_memory));
            tables->terms.at[0](t, state.at, context.at, terms->whole.at);
            close_to = tables->tolerances->gap;
            if (!fsm_find_active(tables, terms, u, wanted, before, event, written, close_to, closed, implied)) {
                *next_mode_found = mode;
                return deep;
            }
            if (!has_room(work, tables, closed)) {
                *next_mode_found = mode;
                return FSM_BUFFER_FULL;
            }
            fsm_arena_release(&work->arena, top);
            status = fsm_resolve_impact(&work->arena, tables, terms, state, wanted, closed, true, impulse, energy, log);
            if (status != FSM_CONTINUE) {
                *next_mode_found = mode;
                return status;
            }
        }
    }
    fsm_arena_release(&work->arena, top);
    tables->terms.at[0](t, state.at, context.at, terms->whole.at);
    if (fsm_has_corners(tables, closed)) {
        fsm_rest_on_one(&work->arena, tables, terms, u, wanted, before, event, closed);
        fsm_arena_release(&work->arena, top);
    }
    energy->after = terms->energies.at[0] + terms->energies.at[1];
    fsm_vector sigma = fsm_vector_part(context, fsm_sigma_at(sizes), fsm_sigma_at(sizes) + n_contacts);
    fsm_vector old_sigma = fsm_arena_copy(&work->arena, sigma);
    fsm_indices old_closed = fsm_arena_indices(&work->arena, n_contacts);
    fsm_put_indices(old_closed, closed);
    top = fsm_arena_mark(&work->arena);
    status = fsm_select_contact_states(&work->arena, tables, terms, state, before, event, direction, slack, closed,
                                       wanted, sigma, log, &notes->candidates, &notes->consistent, &notes->chosen_by);
    if (status == FSM_INCONSISTENT && tables->sizes->on_inconsistent == 1) {
        fsm_arena_release(&work->arena, top);
        status = impact_without_collision(work, tables, terms, state, wanted, closed, impulse, energy, log);
        if (status == FSM_CONTINUE) {
            tables->terms.at[0](t, state.at, context.at, terms->whole.at);
            energy->after = terms->energies.at[0] + terms->energies.at[1];
            fsm_put_indices(closed, old_closed);
            fsm_put(sigma, old_sigma);
            for (int64_t k = 0; k < n_contacts; k++) {
                event.at[k] = 0;
            }
            int64_t unused2;
            status =
                fsm_select_contact_states(&work->arena, tables, terms, state, before, event, direction, slack, closed,
                                          wanted, sigma, log, &notes->candidates, &notes->consistent, &unused2);
            notes->chosen_by = FSM_CHOSEN_IMPACT_WITHOUT_COLLISION;
        }
    }
    if (work->arena.top->overflown != 0) {
        *next_mode_found = mode;
        return FSM_BUFFER_FULL;
    }
    if (status != FSM_CONTINUE) {
        *next_mode_found = mode;
        return status;
    }
    fsm_follow_slip(tables, terms, before, wanted, sigma);
    int64_t next_mode = fsm_find_mode(tables, wanted);
    if (next_mode < 0) {
        *next_mode_found = mode;
        return FSM_NEED_MODE;
    }
    if (tables->mode_group.at[next_mode] == tables->mode_group.at[mode]) {
        next_mode = mode; // the same mode, in the chart in use
    }
    notes->written_transition = written;
    notes->changed = (written >= 0 || next_mode != mode) ? 1 : 0;
    for (int64_t i = 0; i < x.n; i++) {
        if (state.at[i] != x.at[i]) {
            notes->changed = 1;
        }
        x.at[i] = state.at[i];
    }
    for (int64_t i = 0; i < c.n; i++) {
        if (context.at[i] != c.at[i]) {
            notes->changed = 1;
        }
        c.at[i] = context.at[i];
    }
    *next_mode_found = next_mode;
    return stop ? FSM_STOPPED : FSM_CONTINUE;
}

/* An impact without collision: friction jams, and the slip is brought to rest at once.  Returns a status. */
static int64_t impact_without_collision(struct fsm_work *work, const struct fsm_tables *tables,
                                        const struct fsm_terms *terms, fsm_vector state, fsm_codes wanted,
                                        fsm_indices closed, fsm_vector impulse, struct fsm_impact_energy *energy,
                                        fsm_vector log)
{
    fsm_vector u = fsm_vector_from(state, tables->sizes->n_q);
    struct fsm_bilateral_system bilateral =
        fsm_factor_bilateral(&work->arena, terms, fsm_bilateral_rows(&work->arena, tables, wanted), u.n);
    return fsm_simultaneous_impact(&work->arena, tables, terms, &bilateral, u, closed, FSM_IMPACT_ARREST, impulse,
                                   energy, log);
}

/* Sort fired guards by contact; return the written transition to take (the first in the file), or -1. */
static int64_t read_fired(const struct fsm_tables *tables, int64_t mode, fsm_indices fired, int64_t n_fired,
                          const struct fsm_terms *terms, fsm_indices event, fsm_vector direction)
{
    int64_t written = -1;
    for (int64_t i = 0; i < n_fired; i++) {
        int64_t guard = fired.at[i];
        int64_t k = tables->guard_contact.at[guard];
        if (tables->guard_event.at[guard] == FSM_EVENT_WRITTEN) {
            if (written < 0 || k < written) {
                written = k;
            }
        } else if (tables->guard_event.at[guard] == FSM_EVENT_CLOSES) {
            fsm_mark_closing(tables, terms, k, event);
        } else {
            bool released = event.at[k] == FSM_EVENT_OPENS && (tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) == 0;
            // without a force there is no friction either
            if (!released || tables->guard_event.at[guard] == FSM_EVENT_LEAVES) {
                event.at[k] = tables->guard_event.at[guard];
                direction.at[k] = tables->guard_direction.at[guard];
            }
        }
    }
    for (int64_t w = 0; w < tables->transitions.n; w++) {
        int64_t code = AT(tables->transitions, w, FSM_TRANSITION_EVENT);
        if (code == 0 || AT(tables->transition_leaves, w, mode) == 0 || (written >= 0 && written < w)) {
            continue;
        }
        if (event.at[AT(tables->transitions, w, FSM_TRANSITION_CONTACT)] == code) {
            written = w;
        }
    }
    return written;
}

/* Whether an impact has changed the speeds. */
static bool has_changed(const struct fsm_sizes *sizes, fsm_vector state, fsm_vector before)
{
    bool changed = false;
    for (int64_t i = sizes->n_q; i < state.n; i++) {
        changed = changed || state.at[i] != before.at[i];
    }
    return changed;
}

/* Void what forces and slip reached in the same instant as an impact, which leaves others behind. */
static void forget_limits(const struct fsm_tables *tables, fsm_vector state, fsm_vector before, fsm_indices event)
{
    bool struck = has_changed(tables->sizes, state, before);
    for (int64_t k = 0; k < event.n; k++) {
        bool released = event.at[k] == FSM_EVENT_OPENS && tables->contact_kind.at[k] == FSM_KIND_GAP;
        if (struck && (released || event.at[k] == FSM_EVENT_STICKS || event.at[k] == FSM_EVENT_SLIDES)) {
            event.at[k] = 0;
        }
    }
}

/* Apply a written reset: all assignments at once, from the values before. */
static void reset(const struct fsm_tables *tables, int64_t written, double t, fsm_vector state, fsm_vector context,
                  fsm_vector out)
{
    int64_t n_x = state.n, n_memory = tables->sizes->n_memory;
    int64_t kept = fsm_memory_at(tables->sizes);
    ((fsm_kernel)(intptr_t)AT(tables->transitions, written, FSM_TRANSITION_RESET))(t, state.at, context.at, out.at);
    for (int64_t i = 0; i < n_x; i++) {
        state.at[i] = out.at[i];
    }
    for (int64_t i = 0; i < n_memory; i++) {
        context.at[kept + i] = out.at[n_x + i];
    }
}

/* Return the first mode with these contact states, -1 if there is none. */
FSM_LOCAL int64_t fsm_find_mode(const struct fsm_tables *tables, fsm_codes wanted)
{
    for (int64_t mode = 0; mode < tables->mode_states.n; mode++) {
        bool same = true;
        for (int64_t k = 0; k < wanted.n; k++) {
            if (AT(tables->mode_states, mode, k) != wanted.at[k]) {
                same = false;
                break;
            }
        }
        if (same) {
            return mode;
        }
    }
    return -1;
}
