/* Bounded faces: range of a contact, and its handover to the next face (docs/theory.md, "Contact geometry"). */

#include "contacts.h"

#define FSM_SUCCESSION 1e-5 // part by which the normals of two pieces of an outline may differ where one follows the other

/* Whether contact `k` is on its face: within its ends, or at one and not leaving the face.

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
    return fsm_speed_tolerance(tables, AT(tables->contact_rows, k, 0)) + FSM_SAME_ROW * slip;
}

/* Return the rate of a gap (m/s) that is rounding where contact `k` takes over from one that leaves its smooth face; 0 for
   others.

   Both have one normal there, but each follows its own place along the outline, to the tolerance of the integration. */
FSM_LOCAL double fsm_speed_of_succession(const struct fsm_resolution *r, int64_t k)
{
    const struct fsm_tables *tables = r->tables;
    if (r->before.at[k] != FSM_CONTACT_FREE || (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) == 0 ||
        AT(tables->contact_ends, k, 0) >= 0) {
        return 0.0;
    }
    for (int64_t j = 0; j < r->before.n; j++) {
        bool same_shapes = tables->contact_flags.at[j] / FSM_FLAG_GROUP == tables->contact_flags.at[k] / FSM_FLAG_GROUP;
        if (!same_shapes || r->before.at[j] == FSM_CONTACT_FREE || r->event.at[j] != FSM_EVENT_LEAVES ||
            !fsm_same_normal(tables, r->terms, j, k, FSM_SUCCESSION)) {
            continue;
        }
        double size = 0.0;
        for (int64_t i = 0; i < r->u.n; i++) {
            size += fabs(AT(r->terms->A, AT(tables->contact_rows, k, 0), i) * r->u.at[i]);
        }
        return FSM_SUCCESSION * size;
    }
    return 0.0;
}

/* Whether contact `j` leaves its round face, of the same two shapes, at the end where the face of `k` begins. */
static bool leaves_beside(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    const struct fsm_tables *tables = r->tables;
    bool straight = AT(tables->contact_ends, k, 0) >= 0 && AT(tables->contact_ends, j, 0) >= 0;
    if (straight || tables->contact_flags.at[j] / FSM_FLAG_GROUP != tables->contact_flags.at[k] / FSM_FLAG_GROUP) {
        return false;
    }
    bool closed = r->before.at[j] != FSM_CONTACT_FREE && (tables->contact_flags.at[j] & FSM_FLAG_LIMITED) != 0;
    return r->event.at[j] == FSM_EVENT_LEAVES ||
           (closed && r->terms->reach.at[j] < sqrt(tables->tolerances->gap * tables->tolerances->length_scale) &&
            r->terms->reach_rate.at[j] < 0.0);
}

/* Exclude from the closed contacts those that would strike where another one leaves its round face.

   Where a contact comes to the end of an arc or a curve, that end belongs for an instant to both faces that meet in it.
   The contact passes along one of them, and does not strike the other: a contact of the same two shapes that begins at
   the end of its own face begins without an impact or not at all.  Where the two faces are tangent the gap of the next
   falls with the square of the way left, and rounding may have it closed before the end is reached.  Corners on straight
   faces are treated in feature_selection.c. */
FSM_LOCAL void fsm_exclude_face_ends(const struct fsm_resolution *r)
{
    const struct fsm_tables *tables = r->tables;
    for (int64_t k = 0; k < r->closed.n; k++) {
        bool begins = r->closed.at[k] == 1 && r->before.at[k] == FSM_CONTACT_FREE &&
                      (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0;
        if (!begins || r->terms->reach.at[k] > tables->tolerances->gap) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 0);
        if (fsm_row_speed(r->terms, row, r->u) >= -fsm_speed_tolerance(tables, row)) {
            continue;
        }
        for (int64_t j = 0; j < r->closed.n; j++) {
            if (leaves_beside(r, j, k)) {
                r->closed.at[k] = 0;
            }
        }
    }
}
