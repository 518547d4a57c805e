/* Which contacts touch at an instant (docs/theory.md, "Resolution", position). */

#include "contacts.h"

/* Mark the contacts that touch, to within `near`; False if one is deeper than the gap tolerance.

   In the course of a run what is near but has not fired is left to strike by itself: closing it would move it.  A
   corner on a face that has no speed towards it is flush, and touches. */
static bool mark_closed_contacts(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                 fsm_codes wanted, fsm_indices before, fsm_indices event, int64_t written,
                                 double close_to, fsm_indices closed)
{
    double small = tables->tolerances->gap;
    for (int64_t k = 0; k < wanted.n; k++) {
        closed.at[k] = 0;
        if (tables->contact_kind.at[k] != FSM_KIND_GAP) {
            continue;
        }
        bool let_go = written >= 0 && AT(tables->transition_states, written, k) == FSM_CONTACT_FREE;
        double gap = terms->residual.at[AT(tables->contact_rows, k, 0)];
        if (tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) {
            closed.at[k] = 1;
        } else if (before.at[k] != FSM_CONTACT_FREE) {
            closed.at[k] = (let_go || event.at[k] == FSM_EVENT_LEAVES) ? 0 : 1;
        } else if (terms->closes_if.at[k] != 0.0 && !let_go && fsm_within_face(tables, terms, k)) {
            if (gap < (event.at[k] == FSM_EVENT_CLOSES ? -FSM_DEEPEST * small : -small)) {
                if (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) {
                    continue; // behind the face: that is no violation
                }
                return false;
            }
            bool flush = AT(tables->contact_ends, k, 0) >= 0 && gap <= small;
            if (flush && fabs(fsm_row_speed(terms, AT(tables->contact_rows, k, 0), u)) <= fsm_still(tables, terms, k)) {
                closed.at[k] = 1;
            }
            if (event.at[k] == FSM_EVENT_CLOSES || gap <= close_to) {
                closed.at[k] = 1;
            }
        }
    }
    return true;
}

/* Mark the contacts that are active at the speeds `u` (n_u,) in `closed` (n_contacts,).

   False if one is deeper than the gap tolerance. */
FSM_LOCAL bool fsm_find_active(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                               fsm_codes wanted, fsm_indices before, fsm_indices event, int64_t written,
                               double close_to, fsm_indices closed, fsm_indices implied)
{
    if (!mark_closed_contacts(tables, terms, u, wanted, before, event, written, close_to, closed)) {
        return false;
    }
    fsm_choose_features(tables, terms, u, before, event, closed, implied);
    fsm_hand_over(tables, terms, u, before, event, closed);
    return true;
}
