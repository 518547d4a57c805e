/* Faces that end: where a contact is to be had, and how one passes on to the next (docs/theory.md). */

#include "contacts.h"

/* Whether a contact is where its face is: within its ends, or at one and not on the way out.

   A corner is on no face that one of its neighbours lies behind. */
FSM_LOCAL bool fsm_within_face(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    if ((tables->contact_flags.at[k] & FSM_FLAG_LIMITED) == 0) {
        return true;
    }
    double small = tables->tolerances->gap;
    if (terms->aspect.at[k] < -FSM_LEVEL * small) {
        return false;
    }
    if (terms->reach.at[k] > small) {
        return true;
    }
    return terms->reach.at[k] >= -small && terms->reach_rate.at[k] >= -tables->tolerances->speed;
}

/* Return the rate of a gap that counts as zero (m/s): faces that are flush may be as oblique as that allows. */
FSM_LOCAL double fsm_still(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    double slip = AT(tables->contact_ends, k, 1) >= 0 ? fabs(terms->reach_rate.at[k]) : 0.0;
    return tables->tolerances->speed + FSM_SAME_ROW * slip;
}

/* Strike out of `closed` what no contact that leaves its round face can hand over to.

   Where a contact comes to the end of an arc or a curve, that end stands for an instant before both faces that meet
   in it.  It passes along one of them, and the other it does not strike: a contact of the same two shapes that begins
   at the end of its own face takes over without a blow or not at all.  Where the two faces are tangent the gap of the
   next falls with the square of the way left, and rounding may have it closed before the end is reached.  Corners on
   straight faces are seen to by features. */
FSM_LOCAL void fsm_hand_over(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                             fsm_indices before, fsm_indices event, fsm_indices closed)
{
    double edge = sqrt(tables->tolerances->gap);
    for (int64_t k = 0; k < closed.n; k++) {
        bool new = closed.at[k] == 1 && before.at[k] == FSM_CONTACT_FREE &&
                   (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0;
        if (!new || terms->reach.at[k] > tables->tolerances->gap) {
            continue;
        }
        if (fsm_row_speed(terms, AT(tables->contact_rows, k, 0), u) >= -tables->tolerances->speed) {
            continue;
        }
        int64_t group = tables->contact_flags.at[k] / FSM_FLAG_GROUP;
        bool straight = AT(tables->contact_ends, k, 0) >= 0;
        for (int64_t j = 0; j < closed.n; j++) {
            if (tables->contact_flags.at[j] / FSM_FLAG_GROUP != group ||
                (straight && AT(tables->contact_ends, j, 0) >= 0)) {
                continue;
            }
            bool held = before.at[j] != FSM_CONTACT_FREE && (tables->contact_flags.at[j] & FSM_FLAG_LIMITED) != 0;
            if (event.at[j] == FSM_EVENT_LEAVES ||
                (held && terms->reach.at[j] < edge && terms->reach_rate.at[j] < 0.0)) {
                closed.at[k] = 0;
            }
        }
    }
}
