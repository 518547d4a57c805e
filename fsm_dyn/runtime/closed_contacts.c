/* Closed contacts at an event time (docs/theory.md, "Resolution", position). */

#include "contacts.h"

/* Whether contact `k`, open before and admitted to close, closes; a corner that has no speed towards its face is flush. */
static bool closes(const struct fsm_resolution *r, int64_t k, double gap, double near)
{
    int64_t row = AT(r->tables->contact_rows, k, 0);
    bool corner = AT(r->tables->contact_ends, k, 0) >= 0 && gap <= r->tables->tolerances->gap;
    if (gap <= r->tables->tolerances->gap && fsm_speed_of_succession(r, k) > 0.0) {
        return true;
    }
    bool flush = corner && fabs(fsm_row_speed(r->terms, row, r->u)) <= fsm_still(r->tables, r->terms, k);
    return flush || r->event.at[k] == FSM_EVENT_CLOSES || gap <= near;
}

/* Whether contact `k` is a corner at an end of a face and behind it: then other faces of the two corners are apart. */
static bool is_behind_end(const struct fsm_resolution *r, int64_t k, double gap)
{
    double small = r->tables->tolerances->gap;
    bool at_end = r->terms->margin_slope.at[k] != 0.0 && fabs(r->terms->reach.at[k]) <= small;
    return at_end && AT(r->tables->contact_ends, k, 0) >= 0 && r->event.at[k] != FSM_EVENT_CLOSES && gap < -small;
}

/* Mark the contacts whose gaps are zero, to within `near` (m); false if one is deeper than the gap tolerance.

   In the course of a run a contact that is near but has not fired is left to close by itself: closing it would move
   it. */
static bool mark_closed(const struct fsm_resolution *r, double near)
{
    const struct fsm_tables *tables = r->tables;
    for (int64_t k = 0; k < r->closed.n; k++) {
        r->closed.at[k] = 0;
        if ((tables->contact_flags.at[k] & FSM_FLAG_RIGID) == 0) {
            continue;
        }
        bool released = r->transition >= 0 && AT(tables->transition_states, r->transition, k) == FSM_CONTACT_FREE;
        if (tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) {
            r->closed.at[k] = 1;
        } else if (r->before.at[k] != FSM_CONTACT_FREE && r->moved.at[k] == 0) {
            r->closed.at[k] = !released && r->event.at[k] != FSM_EVENT_LEAVES;
        } else if (r->terms->closes_if.at[k] != 0.0 && !released && fsm_within_face(tables, r->terms, k)) {
            int64_t row = AT(tables->contact_rows, k, 0);
            double gap = r->terms->residual.at[row], small = fsm_gap_tolerance(tables, row);
            // a guard that was seen in this instant, and changed nothing, is watched from somewhat below zero on
            bool seen = r->event.at[k] == FSM_EVENT_CLOSES || near < tables->tolerances->gap;
            bool deep = gap < (seen ? -FSM_DEEPEST * small : -small);
            bool limited = (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0;
            if (deep && (!limited || (r->placed && fsm_is_placed_inside(tables, r->terms, r->before, k)))) {
                return false;
            }
            bool behind = deep || is_behind_end(r, k, gap); // behind a face that ends there is no penetration
            r->closed.at[k] = !behind && closes(r, k, gap, near * tables->row_unit.at[row]);
        }
    }
    return true;
}

/* Mark the active contacts in `closed`, and those whose gaps others determine in `outcome->implied`.

   `near`: gap up to which a contact that has not fired is closed (m).  False if one is deeper than the gap
   tolerance. */
FSM_LOCAL bool fsm_find_active(const struct fsm_resolution *r, double near)
{
    if (!mark_closed(r, near) || (r->placed && fsm_edges_cross(r->tables, r->terms, r->before))) {
        return false;
    }
    fsm_choose_features(r);
    fsm_exclude_face_ends(r);
    return true;
}
