/* What the guards that fired say of their contacts, and how accurately.

   Where a contact is released its normal force has fallen to zero, and where it begins to slide the margin of its
   friction has; the accelerations do not jump there.  The law of the state after such an event, `a_n > 0` or
   `σ a_t > 0`, therefore holds by its rate and not by its value, which is zero up to what the location of the event
   resolves:

   - the value of the guard there, which for guards that are resolved together is as much as they still have to fall (one
     that is far below zero, where a mode begins, was not located);
   - the rate of the force times the resolution of time;
   - the tolerance of the guard, below which a force is the rounding of the forces that cancel in it.

   A fraction of the accelerations at hand would be no measure, as all forces may cancel (docs/theory.md, "Resolution"). */

#include "contacts.h"

/* Fill in how far from zero the forces may be whose guards fired.

   Parameters
   ----------
   guards : float64 array, shape (5 n_most,)
       `State.guards`: values, slopes and tolerances of the guards of `mode`, then values and slopes of those that
       fired.
   fired : int64 array, `n_fired` : int
       Numbers of the guards that fired.
   resolution : float
       How finely the event was located (s).
   slack : float64 array, shape (n_contacts, 2)
       Out: of the normal force and of the margin of friction (N or N m, friction in space squared), zero where no
       guard on it fired. */
FSM_LOCAL void fsm_read_slack(const struct fsm_tables *tables, int64_t mode, fsm_vector guards, fsm_indices fired,
                              int64_t n_fired, double resolution, fsm_matrix slack)
{
    int64_t most = guards.n / 5, first = tables->mode_guard_start.at[mode];
    for (int64_t i = 0; i < n_fired; i++) {
        int64_t event = tables->guard_event.at[fired.at[i]], k = tables->guard_contact.at[fired.at[i]];
        if (event != FSM_EVENT_OPENS && event != FSM_EVENT_SLIDES) {
            continue;
        }
        int64_t at = event == FSM_EVENT_OPENS ? 0 : 1;
        double slope = fabs(guards.at[4 * most + i]);
        double known =
            fsm_smaller(fabs(guards.at[3 * most + i]), slope * tables->tolerances->coincidence) + slope * resolution;
        AT(slack, k, at) = fsm_larger(AT(slack, k, at), known + guards.at[2 * most + fired.at[i] - first]);
    }
}

/* Add what came to its limit earlier in this instant, in other modes: none of the states in a cycle is a way on. */
FSM_LOCAL void fsm_recall_limits(fsm_indices limits, fsm_indices event, fsm_vector direction)
{
    for (int64_t k = 0; k < event.n; k++) {
        if (event.at[k] == 0 && limits.at[k] != 0) {
            event.at[k] = limits.at[k];
            direction.at[k] = (double)limits.at[event.n + k];
        }
    }
}

/* Mark the contact whose gap fell to zero, or those of its outline that are met, if their faces are there. */
FSM_LOCAL void fsm_mark_closing(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t contact,
                                fsm_indices event)
{
    int64_t outline = tables->contact_outline.at[contact];
    double largest = -FSM_DEEPEST * tables->tolerances->gap;
    for (int64_t part = 0; part < 2; part++) {
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
            } else if (part == 0) {
                largest = fsm_larger(largest, gap);
            } else if (gap >= largest - tables->tolerances->gap) {
                event.at[k] = FSM_EVENT_CLOSES;
            }
        }
    }
}

/* Whether anything happens to any contact. */
FSM_LOCAL bool fsm_any_event(fsm_indices event)
{
    bool happens = false;
    for (int64_t k = 0; k < event.n; k++) {
        happens = happens || event.at[k] != 0;
    }
    return happens;
}
