/* Which guards are armed at the start of a mode, and which fire at once.

   A guard is *armed* where it counts as positive: it fires when it falls through zero.  It *waits* where it counts
   as negative: it must first rise.  At zero the sign of its slope decides, except that a gap or a force which the
   resolution left at zero stays armed, so that it cannot sink unnoticed.  Triggering is on `(t0, t1]`, once. */

#include "stepping.h"

#define FSM_IN_TURN 4     // decisions in one instant after which guards that fire in turn count as seen
#define FSM_DEEP    100.0 // times the tolerance of a gap that an open corner is inside a polygon at most

static bool is_inside(const struct fsm_tables *tables, struct fsm_state *state);

/* Tell whether this guard, or the same one of the mode before, is among those that fired. */
static bool just_fired(const struct fsm_tables *tables, struct fsm_state *state, int64_t guard)
{
    for (int64_t k = 0; k < state->counters->fired; k++) {
        int64_t other = state->fired.at[k];
        if (tables->guard_event.at[other] == tables->guard_event.at[guard] &&
            tables->guard_contact.at[other] == tables->guard_contact.at[guard] &&
            tables->guard_direction.at[other] == tables->guard_direction.at[guard]) {
            return true;
        }
    }
    return false;
}

/* Return how much slip against its direction (m/s) a slip may have where it begins or reverses.

   Where that has been decided in this instant already, a slip that counts as none is none; bringing the other speeds
   that count as none to rest exactly, as the mode's rows do, may since have changed it by as much as those. */
static double slip_left(const struct fsm_tables *tables, struct fsm_state *state, int64_t guard, double slope)
{
    double left = 2.0 * slope * tables->tolerances->coincidence;
    bool in_space = (tables->contact_flags.at[tables->guard_contact.at[guard]] & FSM_FLAG_IN_SPACE) != 0;
    if (in_space || state->counters->instant >= FSM_IN_TURN) {
        left = fsm_larger(left, FSM_TURNING * tables->tolerances->speed);
    }
    return left;
}

/* Whether an open contact's guard is never below zero: a gate may open late, a face have an end to go round. */
static bool always_outside(const struct fsm_tables *tables, int64_t contact)
{
    int64_t flags = tables->contact_flags.at[contact];
    return (flags & FSM_FLAG_GATED) == 0 &&
           ((flags & FSM_FLAG_LIMITED) == 0 || tables->contact_outline.at[contact] >= 0);
}

/* Whether a corner is at a face of its outline; the terms are those of the state at hand. */
static bool is_met(const struct fsm_tables *tables, struct fsm_state *state, const struct fsm_terms *terms, int64_t j,
                   int64_t guard)
{
    int64_t outline = tables->contact_outline.at[tables->guard_contact.at[guard]];
    for (int64_t k = outline; k < tables->sizes->n_contacts; k++) {
        double gap = tables->contact_outline.at[k] == outline ? terms->residual.at[AT(tables->contact_rows, k, 0)]
                                                              : FSM_INFINITY;
        if (fabs(gap) <= 4.0 * tables->tolerances->gap && fsm_within_face(tables, terms, k)) {
            return true;
        }
    }
    return false;
}

/* Whether a guard is that of a corner and all faces of a convex polygon. */
static bool has_outline(const struct fsm_tables *tables, int64_t guard)
{
    return tables->contact_outline.at[tables->guard_contact.at[guard]] >= 0;
}

/* Return the speed that counts as zero (m/s). */
static double guard_arming_still(const struct fsm_tables *tables)
{
    return tables->tolerances->speed;
}

/* Return the largest multiplier in the output of the full kernel (N or N m). */
static double largest_force(const struct fsm_tables *tables, struct fsm_work *work, int64_t n_g, int64_t n)
{
    double largest = 0.0;
    int64_t at = n + tables->sizes->n_u + 1 + 2 * n_g;
    for (int64_t r = 0; r < tables->sizes->n_rows; r++) {
        largest = fsm_larger(largest, fabs(work->full_end.at[at + r]));
    }
    return largest;
}

/* Slope of an outline's guard near zero, where several faces may be equally far, and the depth it may start from.

   The largest of these gaps goes on as the one that grows most; where that one is flush it need not be exactly zero,
   nor where it has yet to become the largest.

   Returns
   -------
   slope : float
       m/s; what counts as no rate is zero.
   depth : float
       How far below zero it may begin (m). */
static double at_corners(const struct fsm_tables *tables, struct fsm_state *state, const struct fsm_terms *terms,
                         int64_t j, int64_t guard, double *depth)
{
    int64_t most = tables->sizes->max_guards;
    double small = tables->tolerances->gap;
    double value = state->guards.at[j], own = state->guards.at[most + j];
    double slope = own;
    int64_t outline = tables->contact_outline.at[tables->guard_contact.at[guard]];
    fsm_vector u = fsm_vector_from(state->x, tables->sizes->n_q);
    for (int64_t k = outline; k < tables->sizes->n_contacts; k++) {
        int64_t row = AT(tables->contact_rows, k, 0);
        bool close_to = tables->contact_outline.at[k] == outline && terms->residual.at[row] >= value - 2.0 * small;
        if (close_to && terms->aspect.at[k] >= -small) {
            double rate = fsm_row_speed(terms, row, u);
            slope = fsm_larger(slope, fabs(rate) <= fsm_still(tables, terms, k) ? 0.0 : rate);
        }
    }
    *depth = (slope == 0.0 || (slope > 0.0 && 0.0 > own)) ? 2.0 * small : 0.0;
    return slope;
}

/* Set status and tolerance of every guard of the mode just entered.

   Returns
   -------
   int
       How many guards are below zero already and fire at once; they are in `state.fired`. */
FSM_LOCAL int64_t fsm_arm(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work)
{
    int64_t mode = state->counters->mode;
    int64_t n_g = fsm_guard_count(tables, mode);
    int64_t first = tables->mode_guard_start.at[mode];
    int64_t most = tables->sizes->max_guards;
    double graze = tables->tolerances->graze;
    // a mode may begin with no force at all, where others have just cancelled; their rounding is there all the same
    double largest = fsm_larger(largest_force(tables, work, n_g, state->x.n), 0.5 * state->clock->force);
    state->clock->force = largest;
    double force = tables->tolerances->multiplier * largest;
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    bool fresh = false;
    fsm_indices below = fsm_arena_indices(&work->arena, n_g);
    int64_t now = 0;
    for (int64_t j = 0; j < n_g; j++) {
        int64_t event = tables->guard_event.at[first + j];
        double value = state->guards.at[j];
        double slope = state->guards.at[most + j], depth = 0.0;
        double tolerance = graze;
        bool yields = event == FSM_EVENT_OPENS &&
                      tables->contact_kind.at[tables->guard_contact.at[first + j]] == FSM_KIND_COMPLIANT;
        // what yields opens by its depth, not its force
        if ((event == FSM_EVENT_OPENS || event == FSM_EVENT_SLIDES) && !yields) {
            tolerance = graze + force;
            if (event == FSM_EVENT_SLIDES &&
                (tables->contact_flags.at[tables->guard_contact.at[first + j]] & FSM_FLAG_IN_SPACE)) {
                tolerance *= tolerance + largest; // the guard is a difference of squares
            }
        }
        state->guards.at[2 * most + j] = tolerance;
        int64_t status = FSM_GUARD_ARMED;
        if (event == FSM_EVENT_CLOSES && fabs(value) <= 20.0 * tables->tolerances->gap &&
            has_outline(tables, first + j)) {
            if (!fresh) {
                tables->terms.at[0](state->clock->time, state->x.at, state->c.at, terms->whole.at);
                fresh = true;
            }
            slope = at_corners(tables, state, terms, j, first + j, &depth);
            state->guards.at[most + j] = slope;
            state->guards.at[2 * most + j] = graze + depth;
        }
        if (event == FSM_EVENT_CLOSES || event == FSM_EVENT_WRITTEN) {
            double zero = tolerance;
            bool fired = just_fired(tables, state, first + j);
            if (fired) {
                zero = tolerance + 2.0 * fabs(slope) * tables->tolerances->coincidence;
            }
            bool plain = event == FSM_EVENT_CLOSES && always_outside(tables, tables->guard_contact.at[first + j]);
            if (fired && has_outline(tables, first + j) && !is_met(tables, state, terms, j, first + j)) {
                plain = false; // it passes beside all faces
            }
            if (event == FSM_EVENT_CLOSES && work->implied.at[tables->guard_contact.at[first + j]] == 1) {
                // two others keep this gap: it is zero up to what counts as flush
                state->guards.at[2 * most + j] = fsm_larger(tolerance, 2.0 * tables->tolerances->gap);
            } else if (plain && (fired ? zero : 0.0) >= value && value >= -tables->tolerances->gap) {
                // never out of sight: it fires, or where it is now counts as its zero
                bool seen = fired || state->counters->instant >= FSM_IN_TURN;
                if (seen && work->notes->changed == 0) {
                    // it was seen and changes nothing, as at the end of a face that is held: not again at once
                    depth = 2.0 * tables->tolerances->gap;
                } else if (slope < -tables->tolerances->speed) {
                    below.at[now] = first + j;
                    now++;
                }
                state->guards.at[2 * most + j] = graze + fsm_larger(depth, -value);
            } else if (value < -zero || (value <= zero && slope < 0.0 && (fired || event == FSM_EVENT_WRITTEN))) {
                status = FSM_GUARD_WAITING;
            }
        } else if (event == FSM_EVENT_STICKS && slope > 0.0 && -slip_left(tables, state, first + j, slope) < value &&
                   value < 0.0) {
            // the slip begins here, or reverses: the instant is known to its accuracy only
            status = FSM_GUARD_WAITING;
        } else if (event == FSM_EVENT_LEAVES && 0.0 > value && value >= -2.0 * tables->tolerances->gap &&
                   slope >= -guard_arming_still(tables)) {
            // at the end of its face, as exactly as that is known: it comes in from there, or stays
            status = slope > guard_arming_still(tables) ? FSM_GUARD_WAITING : FSM_GUARD_ARMED;
            state->guards.at[2 * most + j] = graze - value;
        } else if (value < -tolerance) {
            below.at[now] = first + j;
            now++;
        }
        state->armed.at[j] = status;
    }
    for (int64_t k = 0; k < now; k++) {
        state->fired.at[k] = below.at[k];
        state->guards.at[3 * most + k] = state->guards.at[state->fired.at[k] - first];
        state->guards.at[4 * most + k] = state->guards.at[most + state->fired.at[k] - first];
    }
    state->counters->fired = now;
    return now;
}

/* Arm the guards that are above zero at the state at hand, and let the others wait. */
FSM_LOCAL void fsm_arm_positive(const struct fsm_tables *tables, struct fsm_state *state)
{
    int64_t most = tables->sizes->max_guards;
    int64_t last1 = fsm_guard_count(tables, state->counters->mode);
    for (int64_t j = 0; j < last1; j++) {
        state->guards.at[2 * most + j] = tables->tolerances->graze;
        state->armed.at[j] = state->guards.at[j] > 0.0 ? FSM_GUARD_ARMED : FSM_GUARD_WAITING;
    }
}

/* Arm the waiting guards that have risen above zero by the end of a step; return whether one is far below.

   That of a corner and all faces of a convex polygon is below zero only where the corner is inside: whatever was
   decided there, two bodies overlap. */
FSM_LOCAL bool fsm_rearm(const struct fsm_tables *tables, struct fsm_state *state)
{
    double *values = state->guards.at;
    bool below = false;
    double *zeros = values + 2 * tables->sizes->max_guards;
    int64_t last1 = fsm_guard_count(tables, state->counters->mode);
    for (int64_t j = 0; j < last1; j++) {
        if (values[j] > zeros[j]) {
            state->armed.at[j] = FSM_GUARD_ARMED;
        } else {
            below = true;
        }
    }
    return below && is_inside(tables, state);
}

/* Whether a corner that waits to come out of a convex polygon is far inside. */
static bool is_inside(const struct fsm_tables *tables, struct fsm_state *state)
{
    int64_t first = tables->mode_guard_start.at[state->counters->mode];
    int64_t last1 = fsm_guard_count(tables, state->counters->mode);
    for (int64_t j = 0; j < last1; j++) {
        if (state->guards.at[j] < -FSM_DEEP * tables->tolerances->gap && state->armed.at[j] == FSM_GUARD_WAITING) {
            int64_t contact = tables->guard_contact.at[first + j];
            bool closes = tables->guard_event.at[first + j] == FSM_EVENT_CLOSES &&
                          tables->contact_kind.at[contact] == FSM_KIND_GAP;
            if (closes && has_outline(tables, first + j) && always_outside(tables, contact)) {
                return true;
            }
        }
    }
    return false;
}
