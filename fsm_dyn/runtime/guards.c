/* Guards: armed, waiting, fired. */

#include "contacts.h"
#include "stepping.h"

/* -- Contacts of the guards that fired, and the accuracy of their values.

   Where a contact is released its normal force has fallen to zero, and where it begins to slide the margin of its
   friction has; the accelerations do not jump there.  The law of the state after such an event, `a_n > 0` or
   `σ a_t > 0`, therefore holds by its rate and not by its value, which is zero up to what event location resolves:

   - the value of the guard there, which for guards that are resolved together is as much as they still have to fall (one
     that is far below zero, where a mode begins, was not located);
   - the rate of the force times the resolution of time;
   - the tolerance of the guard, below which a force is the rounding of the forces that cancel in it.

   A fraction of the accelerations would be no measure, as all forces may cancel (docs/theory.md, "Resolution"). */

/* Mark the contact whose gap fell to zero, or those of its outline that touch, if they are on their faces. */
static void mark_closing(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t contact,
                         fsm_indices event)
{
    int64_t outline = tables->contact_outline.at[contact];
    double largest = -FSM_DEEPEST * tables->tolerances->gap;
    for (int64_t pass = 0; pass < 2; pass++) { // the largest gap first
        for (int64_t k = contact; k < event.n; k++) {
            if (k != contact && (outline < 0 || tables->contact_outline.at[k] != outline)) {
                continue;
            }
            if (terms->closes_if.at[k] == 0.0 || !fsm_within_face(tables, terms, k)) {
                continue;
            }
            double gap = terms->residual.at[AT(tables->contact_rows, k, 0)];
            if (outline < 0) {
                event.at[k] = FSM_EVENT_CLOSES;
            } else if (pass == 0) {
                largest = fsm_larger(largest, gap);
            } else if (gap >= largest - tables->tolerances->gap) {
                event.at[k] = FSM_EVENT_CLOSES;
            }
        }
    }
}

/* Make the user-defined transitions due that leave the mode before with one of these events, (n_contacts,). */
static void make_due_by_contacts(const struct fsm_resolution *r, const struct fsm_instant *instant, fsm_indices event)
{
    const struct fsm_tables *tables = r->tables;
    for (int64_t w = 0; w < tables->transitions.n; w++) {
        int64_t wanted = AT(tables->transitions, w, FSM_TRANSITION_EVENT);
        if (wanted != 0 && AT(tables->transition_leaves, w, instant->mode) != 0 &&
            event.at[AT(tables->transitions, w, FSM_TRANSITION_CONTACT)] == wanted) {
            instant->conditions.at[FSM_CONDITION_WIDTH * w + FSM_CONDITION_DUE] = FSM_DUE_BY_CONTACT;
        }
    }
}

/* Write the event of each contact, and make the user-defined transitions due that wait for it. */
FSM_LOCAL void fsm_read_events(const struct fsm_resolution *r, const struct fsm_instant *instant)
{
    const struct fsm_tables *tables = r->tables;
    fsm_indices event = r->event;
    for (int64_t i = 0; i < instant->fired.n; i++) {
        int64_t guard = instant->fired.at[i];
        int64_t k = tables->guard_contact.at[guard], fired = tables->guard_event.at[guard];
        if (fired == FSM_EVENT_CLOSES) {
            mark_closing(tables, r->terms, k, event);
        } else {
            bool released = event.at[k] == FSM_EVENT_OPENS && (tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) == 0;
            if (!released || fired == FSM_EVENT_LEAVES) { // without a force there is no friction either
                event.at[k] = fired;
                r->direction.at[k] = tables->guard_direction.at[guard];
            }
        }
    }
    make_due_by_contacts(r, instant, event);
}

/* Write how far from zero the forces may be whose guards fired, `slack` (n_contacts, 2).

   Of the normal force and of the margin of friction (N or N m; friction in space squared), zero where no guard on it
   fired.  `instant->guards` has values, slopes and tolerances of the guards of the mode, then values and slopes of those
   that fired. */
FSM_LOCAL void fsm_read_slack(const struct fsm_tables *tables, const struct fsm_instant *instant, fsm_matrix slack)
{
    fsm_vector guards = instant->guards;
    int64_t most = guards.n / 5, first = tables->mode_guard_start.at[instant->mode];
    for (int64_t i = 0; i < instant->fired.n; i++) {
        int64_t guard = instant->fired.at[i];
        int64_t event = tables->guard_event.at[guard], k = tables->guard_contact.at[guard];
        if (event != FSM_EVENT_OPENS && event != FSM_EVENT_SLIDES) {
            continue;
        }
        int64_t at = event == FSM_EVENT_OPENS ? 0 : 1;
        double value = fabs(guards.at[3 * most + i]), slope = fabs(guards.at[4 * most + i]);
        double known = fsm_smaller(value, slope * tables->tolerances->coincidence) + slope * instant->resolution;
        AT(slack, k, at) = fsm_larger(AT(slack, k, at), known + guards.at[2 * most + guard - first]);
    }
}

/* Add the limits reached before at this event time, in other modes: no state of a cycle is a way on. */
FSM_LOCAL void fsm_recall_limits(fsm_indices limits, fsm_indices event, fsm_vector direction)
{
    for (int64_t k = 0; k < event.n; k++) {
        if (event.at[k] == 0 && limits.at[k] != 0) {
            event.at[k] = limits.at[k];
            direction.at[k] = (double)limits.at[event.n + k];
        }
    }
}

/* Void the limits that forces and slip reached together with an impact, after which they are others. */
FSM_LOCAL void fsm_void_limits(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->event.n; k++) {
        int64_t event = r->event.at[k];
        bool released = event == FSM_EVENT_OPENS && (r->tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0;
        if (released || event == FSM_EVENT_STICKS || event == FSM_EVENT_SLIDES) {
            r->event.at[k] = 0;
        }
    }
}

/* Whether any contact has an event. */
FSM_LOCAL bool fsm_any_event(fsm_indices event)
{
    for (int64_t k = 0; k < event.n; k++) {
        if (event.at[k] != 0) {
            return true;
        }
    }
    return false;
}

/* Whether contact `k` is rigid and approaches with the speeds `u` (n_u,). */
FSM_LOCAL bool fsm_approaches(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k, fsm_vector u)
{
    int64_t row = AT(tables->contact_rows, k, 0);
    bool rigid = (tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0;
    return rigid && row >= 0 && fsm_row_speed(terms, row, u) < -fsm_speed_tolerance(tables, row);
}

/* Whether contact `k` approached with the speeds `before` (n_u,) and has had an impulse; `impulse`: one for each row. */
static bool has_struck(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k, fsm_vector before,
                       fsm_vector impulse)
{
    return fsm_approaches(tables, terms, k, before) && impulse.at[AT(tables->contact_rows, k, 0)] != 0.0;
}

/* Write the contacts that struck at the start, as guards of the transition `record` that begin with number `n`; return how
   many there are then. */
FSM_LOCAL int64_t fsm_write_struck(const struct fsm_run *run, fsm_vector record, int64_t n)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_terms *terms = fsm_terms_of(run->work);
    for (int64_t k = 0; k < tables->sizes->n_contacts && n < FSM_MAX_FIRED; k++) {
        if (has_struck(tables, terms, k, run->work->u_before, run->work->impulse)) {
            int64_t row = AT(tables->contact_rows, k, 0);
            double *guard = record.at + FSM_RECORD_GUARDS + n * FSM_GUARD_WIDTH;
            guard[0] = FSM_EVENT_CLOSES;
            guard[1] = (double)k;
            guard[2] = 0.0;
            guard[3] = terms->residual.at[row];
            guard[4] = fsm_row_speed(terms, row, run->work->u_before);
            n++;
        }
    }
    return n;
}

/* Whether the gap of contact `k` is among the guards that fired. */
static bool gap_fired(const struct fsm_resolution *r, const struct fsm_instant *instant, int64_t k)
{
    for (int64_t i = 0; i < instant->fired.n; i++) {
        int64_t guard = instant->fired.at[i];
        if (r->tables->guard_event.at[guard] == FSM_EVENT_CLOSES && r->tables->guard_contact.at[guard] == k) {
            return true;
        }
    }
    return false;
}

/* Whether open contact `k` closed and rebounded by a jump, without a guard that fired, or without its guard where a
   reset map acts. */
static bool rebounds_by_jump(const struct fsm_resolution *r, const struct fsm_instant *instant, int64_t k)
{
    int64_t row = AT(r->tables->contact_rows, k, 0);
    bool rigid = (r->tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0;
    bool placed = r->transition >= 0 && AT(r->tables->transitions, r->transition, FSM_TRANSITION_RESET) != 0;
    bool alone = instant->fired.n == 0 && (r->transition >= 0 || fsm_is_from_outside(instant->reason));
    bool jump = alone || (placed && !gap_fired(r, instant, k));
    return jump && rigid && row >= 0 && r->outcome->impulse.at[row] != 0.0;
}

/* Return what contact `k` does by its change of state, 0 where that is no event. */
static int64_t event_of_change(const struct fsm_resolution *r, const struct fsm_instant *instant, int64_t k,
                               bool hands_over)
{
    int64_t before = r->before.at[k], after = r->outcome->wanted.at[k];
    bool opens = after == FSM_CONTACT_FREE;
    if (before == after) {
        return opens && rebounds_by_jump(r, instant, k) ? FSM_EVENT_CLOSES : 0;
    }
    if (opens || before == FSM_CONTACT_FREE) {
        // a lock that is released or engaged as the model asks does nothing by itself
        bool asked = (r->tables->contact_flags.at[k] & FSM_FLAG_SWITCHED) != 0 && r->transition >= 0 &&
                     AT(r->tables->transition_states, r->transition, k) == after;
        return hands_over || asked ? 0 : opens ? FSM_EVENT_OPENS : FSM_EVENT_CLOSES;
    }
    return after == FSM_CONTACT_HELD ? FSM_EVENT_STICKS : before == FSM_CONTACT_HELD ? FSM_EVENT_SLIDES : 0;
}

/* Make the user-defined transitions due that wait for an event of a contact whose guard did not fire: where forces, speeds or
   the geometry jump, and where contacts change with others; `before` (n_u,): the speeds before the instant.

   At a start that are impacts alone: a contact that begins closed has not closed. */
FSM_LOCAL void fsm_make_due_by_changes(const struct fsm_resolution *r, const struct fsm_instant *instant,
                                       fsm_vector before)
{
    if (r->tables->transitions.n == 0) {
        return;
    }
    bool starts = instant->reason == FSM_REASON_START;
    bool hands_over = false;
    for (int64_t i = 0; i < instant->fired.n; i++) {
        hands_over = hands_over || r->tables->guard_event.at[instant->fired.at[i]] == FSM_EVENT_LEAVES;
    }
    for (int64_t k = 0; k < r->event.n; k++) {
        bool struck = starts && has_struck(r->tables, r->terms, k, before, r->outcome->impulse);
        r->event.at[k] = struck ? FSM_EVENT_CLOSES : starts ? 0 : event_of_change(r, instant, k, hands_over);
    }
    make_due_by_contacts(r, instant, r->event);
}

/* -- Arming of guards at the start of a mode, and guards that fire at once.

   A guard is *armed* where it counts as positive: it fires when it falls through zero.  It *waits* where it counts
   as negative: it must first rise.  At zero the sign of its slope decides, except that a gap or a force which the
   resolution left at zero stays armed, so that it cannot sink unnoticed.  Triggering is on `(t0, t1]`, once. */

#define FSM_UNDECIDED 10.0 // tolerances by which a force may exceed its limit where decisions in an instant disagree
#define FSM_IN_TURN   4    // decisions in one instant after which guards that fire in turn count as seen
#define FSM_SUNK      3.0  // tolerances of a gap down to which a guard that is watched may have sunk between two events
#define FSM_KEPT      1e-3  // tolerances of a speed by which the solution of an impact may differ from the speeds before it
#define FSM_DEEP      100.0 // times the tolerance of a gap that an open corner is inside a polygon at most

/* Whether this guard, or the same one of the mode before, is among those that fired. */
static bool just_fired(const struct fsm_run *run, int64_t guard)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
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
static double slip_left(const struct fsm_run *run, int64_t guard, double slope)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    double left = 2.0 * slope * tables->tolerances->coincidence;
    int64_t contact = tables->guard_contact.at[guard];
    bool in_space = (tables->contact_flags.at[contact] & FSM_FLAG_IN_SPACE) != 0;
    if (in_space || state->counters->instant >= FSM_IN_TURN) {
        left = fsm_larger(left, FSM_TURNING * fsm_slip_tolerance(tables, contact));
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

/* Whether a guard is the gap of a piece of a smooth outline that ends. */
static bool is_on_smooth_face(const struct fsm_tables *tables, int64_t guard)
{
    int64_t contact = tables->guard_contact.at[guard], flags = tables->contact_flags.at[contact];
    return (flags & FSM_FLAG_LIMITED) != 0 && (flags & FSM_FLAG_GATED) == 0 && AT(tables->contact_ends, contact, 0) < 0;
}

/* Whether a corner is at a face of its outline; the terms are those of the current state. */
static bool is_met(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t guard)
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

/* Return the largest multiplier in the output of the full kernel at the current state, as a force (N). */
static double largest_force(const struct fsm_run *run)
{
    const struct fsm_sizes *sizes = run->tables->sizes;
    int64_t n_g = fsm_guard_count(run->tables, run->state->counters->mode);
    const double *multipliers = run->work->full_end.at + run->state->x.n + sizes->n_u + 1 + 2 * n_g;
    double largest = 0.0;
    for (int64_t r = 0; r < sizes->n_rows; r++) {
        largest = fsm_larger(largest, fabs(multipliers[r]) * run->tables->row_unit.at[r]);
    }
    return largest;
}

/* Slope of an outline's guard near zero, where several faces may be equally far, and the depth it may start from.

   The largest of these gaps continues as the one that grows most; where that one is flush it need not be exactly zero,
   nor where it has yet to become the largest.

   Returns the slope (m/s), zero where it counts as none; `depth`: how far below zero the guard may begin (m). */
static double at_corners(const struct fsm_run *run, const struct fsm_terms *terms, int64_t j, int64_t guard,
                         double *depth)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
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

/* Whether the decision just made kept the mode `before`, and changed speeds by rounding at the most. */
static bool is_kept(const struct fsm_run *run, int64_t before)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_notes *notes = run->work->notes;
    if (notes->changed == 0 || notes->written_transition >= 0 || before != run->state->counters->mode) {
        return notes->changed == 0;
    }
    fsm_vector u = fsm_vector_from(run->state->x, tables->sizes->n_q);
    for (int64_t i = 0; i < u.n; i++) {
        double unit = tables->state_unit.at[tables->sizes->n_q + i];
        if (fabs(u.at[i] - run->work->u_before.at[i]) > FSM_KEPT * tables->tolerances->speed * unit) {
            return false;
        }
    }
    return true;
}

/* A guard of the mode just entered, at the current state. */
struct entered_guard {
    int64_t j, number;    // within the mode, of all
    enum fsm_event event; // that it detects
    double value, slope;  // slope per s
    double tolerance;     // how far below zero it has not fired
    double depth;         // how far below zero it may begin
    bool sunk;            // it is deeper than a gap's tolerance, and was armed in the mode before
    bool kept;            // the decision just made changed nothing
    bool inside_face;     // it is the gap of a smooth face, within its ends
    bool beyond;          // the gap of a compliant contact is far below zero: the guard is how fast it recedes
};

/* Mark the guards of closing contacts that are deeper than a gap's tolerance, and were armed in the mode before.

   The end of a flush face is watched from two tolerances below zero on: what happens in between finds it deeper than one.
   `sunk` (n_guards,) is written.  To be called before the arming of the mode before is overwritten. */
static void find_sunk(const struct fsm_run *run, int64_t before, fsm_indices sunk)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_state *state = run->state;
    int64_t first = tables->mode_guard_start.at[state->counters->mode];
    int64_t begin = tables->mode_guard_start.at[before], end = begin + fsm_guard_count(tables, before);
    for (int64_t j = 0; j < sunk.n; j++) {
        int64_t contact = tables->guard_contact.at[first + j];
        bool deep = tables->guard_event.at[first + j] == FSM_EVENT_CLOSES &&
                    state->guards.at[j] < -fsm_guard_gap_tolerance(tables, first + j);
        for (int64_t other = begin; deep && other < end; other++) {
            if (tables->guard_event.at[other] == FSM_EVENT_CLOSES && tables->guard_contact.at[other] == contact) {
                sunk.at[j] = state->armed.at[other - begin] == FSM_GUARD_ARMED;
            }
        }
    }
}

/* Return the unit of the force that a guard on a force measures, over that of a force along a length. */
static double force_unit(const struct fsm_tables *tables, int64_t guard)
{
    int64_t column = tables->guard_event.at[guard] == FSM_EVENT_OPENS ? 0 : 1;
    return 1.0 / tables->row_unit.at[AT(tables->contact_rows, tables->guard_contact.at[guard], column)];
}

/* Whether a guard is that of a contact that yields. */
static bool yields(const struct fsm_tables *tables, int64_t guard)
{
    return (tables->contact_flags.at[tables->guard_contact.at[guard]] & FSM_FLAG_COMPLIANT) != 0;
}

/* Return how far below zero a guard has not fired; `largest`: the largest multiplier of the mode, as a force (N).

   A contact that yields opens by its depth, not by its force. */
static double tolerance_of(const struct fsm_tables *tables, int64_t guard, double largest)
{
    int64_t event = tables->guard_event.at[guard], contact = tables->guard_contact.at[guard];
    double graze = fsm_graze_tolerance(tables, guard);
    bool releases = event == FSM_EVENT_OPENS && !yields(tables, guard);
    if (!releases && event != FSM_EVENT_SLIDES) {
        return graze;
    }
    largest *= force_unit(tables, guard);
    double tolerance = graze + tables->tolerances->multiplier * largest;
    if (event == FSM_EVENT_SLIDES && (tables->contact_flags.at[contact] & FSM_FLAG_IN_SPACE) != 0) {
        tolerance *= tolerance + largest; // the guard is a difference of squares
    }
    return tolerance;
}

/* Return the status of a guard of a closing contact; `fires`: it fires at once.

   One that is never out of sight fires, or where it is now counts as its zero; one that was seen and changes nothing, as
   at the end of a face that is active, does not fire again at once. */
static enum fsm_guard_status arm_closing(const struct fsm_run *run, const struct fsm_terms *terms,
                                         const struct entered_guard *g, bool *fires)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_tolerances *tolerances = tables->tolerances;
    double *tolerance = &run->state->guards.at[2 * tables->sizes->max_guards + g->j];
    int64_t contact = tables->guard_contact.at[g->number];
    bool fired = just_fired(run, g->number);
    bool on_speeds = (tables->contact_flags.at[contact] & FSM_FLAG_NO_GAP) != 0;
    int64_t row = AT(tables->contact_rows, contact, 0);
    double zero = g->tolerance;
    double small = on_speeds ? fsm_speed_tolerance(tables, row) : fsm_gap_tolerance(tables, row);
    if (fired) {
        zero = g->tolerance + 2.0 * fabs(g->slope) * tolerances->coincidence;
    }
    if (run->work->implied.at[contact] == 1) { // two others keep this gap: it is zero up to what counts as flush
        *tolerance = fsm_larger(g->tolerance, 2.0 * small);
        return FSM_GUARD_ARMED;
    }
    bool outside = always_outside(tables, contact) || g->inside_face;
    if (outside && fired && has_outline(tables, g->number)) { // else it passes beside all faces
        outside = is_met(tables, terms, g->number);
    }
    if (g->beyond && fired) { // it was met by how fast it recedes, deep behind a face that it is not pressed into
        outside = false;
    }
    if (outside && (fired ? zero : 0.0) >= g->value && g->value >= -(g->sunk ? FSM_SUNK : 1.0) * small) {
        bool seen = fired || run->state->counters->instant >= FSM_IN_TURN;
        double depth = g->depth;
        if (seen && g->kept) {
            depth = 2.0 * small;
        } else if (g->slope < -fsm_speed_tolerance(tables, row)) {
            *fires = true;
        }
        *tolerance = fsm_graze_tolerance(tables, g->number) + fsm_larger(depth, -g->value);
        return FSM_GUARD_ARMED;
    }
    bool falls = g->value <= zero && g->slope < 0.0 && fired;
    return g->value < -zero || falls ? FSM_GUARD_WAITING : FSM_GUARD_ARMED;
}

/* Whether a force is beyond its limit by no more than a decision, which judges by all forces at play, can tell. */
static bool is_undecided(const struct fsm_run *run, const struct entered_guard *g)
{
    if (g->value >= -g->tolerance || (g->event != FSM_EVENT_OPENS && g->event != FSM_EVENT_SLIDES)) {
        return false;
    }
    fsm_vector f = fsm_terms_of(run->work)->f;
    double largest = run->state->clock->force;
    const struct fsm_tables *tables = run->tables;
    const double *unit = tables->state_unit.at + tables->sizes->n_q; // of the speeds, to which hidden ones are added
    double speed = tables->tolerances->length_scale / tables->tolerances->time_scale;
    for (int64_t i = 0; i < f.n; i++) {
        double ratio = i < tables->sizes->n_u ? unit[i] / speed : 1.0;
        largest = fsm_larger(largest, fabs(f.at[i]) * ratio);
    }
    return g->value >= -FSM_UNDECIDED * tables->tolerances->multiplier * largest * force_unit(tables, g->number);
}

/* Return the status of any other guard; `fires`: it fires at once.

   Where a slip begins or reverses, and at the end of a face, the instant is known to its accuracy only. */
static enum fsm_guard_status arm_other(const struct fsm_run *run, const struct entered_guard *g, bool *fires)
{
    const struct fsm_tolerances *tolerances = run->tables->tolerances;
    double still = tolerances->speed, graze = fsm_graze_tolerance(run->tables, g->number);
    if (g->event == FSM_EVENT_STICKS && g->slope > 0.0 && -slip_left(run, g->number, g->slope) < g->value &&
        g->value < 0.0) {
        return FSM_GUARD_WAITING;
    }
    if (g->event == FSM_EVENT_LEAVES && 0.0 > g->value && g->value >= -2.0 * tolerances->gap && g->slope >= -still) {
        run->state->guards.at[2 * run->tables->sizes->max_guards + g->j] = graze - g->value;
        return g->slope > still ? FSM_GUARD_WAITING : FSM_GUARD_ARMED; // it comes in from there, or stays
    }
    if (g->event == FSM_EVENT_OPENS && 0.0 > g->value && g->value >= -fsm_guard_gap_tolerance(run->tables, g->number) &&
        g->slope > 0.0 && yields(run->tables, g->number)) {
        return FSM_GUARD_WAITING; // it is pressed in from within the tolerance of its gap
    }
    if (run->state->counters->instant >= FSM_IN_TURN && is_undecided(run, g)) {
        // contacts would give way in turn, each with the other held: they are kept until the limit is clearly exceeded
        run->state->guards.at[2 * run->tables->sizes->max_guards + g->j] = graze - 2.0 * g->value;
        return FSM_GUARD_ARMED;
    }
    *fires = g->value < -g->tolerance;
    return FSM_GUARD_ARMED;
}

/* Return the status of a bound of a coordinate's range, or of a kink; `fires`: it is passed at once.

   What is held at a bound stays within: it is there to within the tolerances of a gap and its rate. */
static enum fsm_guard_status arm_bound(const struct fsm_run *run, const struct entered_guard *g, bool *fires)
{
    double near = fsm_guard_gap_tolerance(run->tables, g->number);
    double still = run->tables->tolerances->speed / run->tables->tolerances->gap * near;
    *fires = g->value < -near || (g->value <= near && g->slope < -still);
    return FSM_GUARD_ARMED;
}

/* Set status and tolerance of every guard of the mode just entered; `before`: the mode before.

   Returns how many are below zero already and fire at once; they are in `state->fired`, their values and slopes behind
   the tolerances in `state->guards`.  The arena is cleared. */
FSM_LOCAL int64_t fsm_arm(const struct fsm_run *run, int64_t before)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    const struct fsm_terms *terms = fsm_terms_of(run->work);
    int64_t mode = state->counters->mode, most = tables->sizes->max_guards;
    int64_t n_g = fsm_guard_count(tables, mode), first = tables->mode_guard_start.at[mode], count = 0;
    double *values = state->guards.at, *slopes = values + most, *tolerances = slopes + most;
    // a mode may begin with no force at all, where others have just cancelled; their rounding is there nevertheless
    double largest = fsm_larger(largest_force(run), 0.5 * state->clock->force);
    state->clock->force = largest;
    fsm_arena_clear(&run->work->arena);
    fsm_indices below = fsm_arena_indices(&run->work->arena, n_g), sunk = fsm_arena_indices(&run->work->arena, n_g);
    find_sunk(run, before, sunk);
    bool evaluated = false, kept = is_kept(run, before);
    for (int64_t j = 0; j < n_g; j++) {
        struct entered_guard g = {j,         first + j,       (enum fsm_event)tables->guard_event.at[first + j],
                                  values[j], slopes[j],       tolerance_of(tables, first + j, largest),
                                  0.0,       sunk.at[j] == 1, kept, false, false};
        tolerances[j] = g.tolerance;
        bool closes = g.event == FSM_EVENT_CLOSES;
        bool near = closes && fabs(g.value) <= 20.0 * tables->tolerances->gap;
        bool outline = near && has_outline(tables, g.number), smooth = near && is_on_smooth_face(tables, g.number);
        bool compliant = near && yields(tables, g.number);
        if ((outline || smooth || compliant) && !evaluated) {
            tables->terms.at[0](state->clock->time, state->x.at, state->c.at, terms->whole.at);
            evaluated = true;
        }
        int64_t row = closes ? AT(tables->contact_rows, tables->guard_contact.at[g.number], 0) : -1;
        g.beyond = compliant && row >= 0 && terms->residual.at[row] < -FSM_DEEP * tables->tolerances->gap;
        g.inside_face = smooth && terms->reach.at[tables->guard_contact.at[g.number]] > tables->tolerances->gap;
        if (outline) {
            g.slope = at_corners(run, terms, j, g.number, &g.depth);
            slopes[j] = g.slope;
            tolerances[j] = fsm_graze_tolerance(tables, g.number) + g.depth;
        }
        bool fires = false;
        if (fsm_is_bound(tables, g.number) || fsm_is_kink(tables, g.number)) {
            state->armed.at[j] = arm_bound(run, &g, &fires);
        } else {
            state->armed.at[j] = g.event == FSM_EVENT_TRANSITION ? fsm_arm_condition(run, j, g.value, g.slope, &fires)
                                 : closes                     ? arm_closing(run, terms, &g, &fires)
                                                              : arm_other(run, &g, &fires);
        }
        if (fires) {
            below.at[count++] = g.number;
        } else if (g.value < 0.0 &&
                   state->armed.at[j] ==
                       FSM_GUARD_ARMED) { // at its mark the sign of its slope would be lost in rounding
            tolerances[j] = fsm_larger(tolerances[j], fsm_graze_tolerance(tables, g.number) - g.value);
        } else if (g.slope < 0.0 && state->armed.at[j] == FSM_GUARD_WAITING) {
            // a fast one that fired may still be above it by what the clock resolves, and would count as risen
            tolerances[j] = fsm_larger(tolerances[j], g.value);
        }
    }
    for (int64_t k = 0; k < count; k++) {
        int64_t j = below.at[k] - first;
        state->fired.at[k] = below.at[k];
        values[3 * most + k] = values[j];
        values[4 * most + k] = slopes[j];
    }
    state->counters->fired = count;
    return count;
}

/* Arm the guards that are above zero at the current state, and let the others wait. */
FSM_LOCAL void fsm_arm_positive(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    int64_t most = tables->sizes->max_guards;
    int64_t n_g = fsm_guard_count(tables, state->counters->mode);
    int64_t first = tables->mode_guard_start.at[state->counters->mode];
    for (int64_t j = 0; j < n_g; j++) {
        state->guards.at[2 * most + j] = fsm_graze_tolerance(tables, first + j);
        state->armed.at[j] = state->guards.at[j] > 0.0 ? FSM_GUARD_ARMED : FSM_GUARD_WAITING;
    }
}

/* Whether a corner that waits to come out of a convex polygon is far inside. */
static bool is_inside(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    int64_t first = tables->mode_guard_start.at[state->counters->mode];
    int64_t n_g = fsm_guard_count(tables, state->counters->mode);
    for (int64_t j = 0; j < n_g; j++) {
        if (state->guards.at[j] < -FSM_DEEP * tables->tolerances->gap && state->armed.at[j] == FSM_GUARD_WAITING) {
            int64_t contact = tables->guard_contact.at[first + j];
            bool closes = tables->guard_event.at[first + j] == FSM_EVENT_CLOSES &&
                          (tables->contact_flags.at[contact] & FSM_FLAG_RIGID) != 0;
            if (closes && has_outline(tables, first + j) && always_outside(tables, contact)) {
                return true;
            }
        }
    }
    return false;
}

/* Arm the waiting guards that have risen above zero by the end of a step; return whether one is far below.

   That of a corner and all faces of a convex polygon is below zero only where the corner is inside: whatever was
   decided there, two bodies overlap. */
FSM_LOCAL bool fsm_rearm(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    double *values = state->guards.at;
    bool below = false;
    double *tolerances = values + 2 * tables->sizes->max_guards;
    const int64_t *numbers;
    int64_t count = fsm_guards_looked_at(run, &numbers);
    for (int64_t i = 0; i < count; i++) {
        int64_t j = numbers == NULL ? i : numbers[i];
        if (values[j] > tolerances[j]) {
            state->armed.at[j] = FSM_GUARD_ARMED;
        } else {
            below = true;
        }
    }
    return below && is_inside(run);
}
