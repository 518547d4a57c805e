/* Contacts of the guards that fired, and the accuracy of their values.

   Where a contact is released its normal force has fallen to zero, and where it begins to slide the margin of its
   friction has; the accelerations do not jump there.  The law of the state after such an event, `a_n > 0` or
   `σ a_t > 0`, therefore holds by its rate and not by its value, which is zero up to what event location resolves:

   - the value of the guard there, which for guards that are resolved together is as much as they still have to fall (one
     that is far below zero, where a mode begins, was not located);
   - the rate of the force times the resolution of time;
   - the tolerance of the guard, below which a force is the rounding of the forces that cancel in it.

   A fraction of the accelerations would be no measure, as all forces may cancel (docs/theory.md, "Resolution"). */

#include "contacts.h"

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

/* Return what contact `k` does by its change of state, 0 where that is no event. */
static int64_t event_of_change(const struct fsm_resolution *r, int64_t k, bool hands_over)
{
    int64_t before = r->before.at[k], after = r->outcome->wanted.at[k];
    bool opens = after == FSM_CONTACT_FREE;
    if (before == after) {
        return 0;
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
   the geometry jump, and where contacts change with others. */
FSM_LOCAL void fsm_make_due_by_changes(const struct fsm_resolution *r, const struct fsm_instant *instant)
{
    if (r->tables->transitions.n == 0 || instant->reason == FSM_REASON_START) {
        return;
    }
    bool hands_over = false;
    for (int64_t i = 0; i < instant->fired.n; i++) {
        hands_over = hands_over || r->tables->guard_event.at[instant->fired.at[i]] == FSM_EVENT_LEAVES;
    }
    for (int64_t k = 0; k < r->event.n; k++) {
        r->event.at[k] = event_of_change(r, k, hands_over);
    }
    make_due_by_contacts(r, instant, r->event);
}
