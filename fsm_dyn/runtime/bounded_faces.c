/* Bounded faces: range of a contact, and its handover to the next face (docs/theory.md, "Contact geometry"). */

#include "contacts.h"

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

/* Whether contacts `j` and `k` are of one corner with faces of one shape: a convex polygon or a chain of segments. */
static bool same_corner(const struct fsm_tables *tables, int64_t j, int64_t k)
{
    if (tables->contact_outline.at[k] != -1) {
        return tables->contact_outline.at[j] == tables->contact_outline.at[k];
    }
    bool same_shapes = tables->contact_flags.at[j] / FSM_FLAG_GROUP == tables->contact_flags.at[k] / FSM_FLAG_GROUP;
    return same_shapes && AT(tables->contact_ends, j, 0) == AT(tables->contact_ends, k, 0);
}

/* Whether the corners of contacts `j` and `k` are the two ends of a face. */
static bool share_a_face(const struct fsm_tables *tables, int64_t j, int64_t k)
{
    int64_t one = AT(tables->contact_ends, j, 0), other = AT(tables->contact_ends, k, 0);
    for (int64_t m = 0; m < tables->contact_outline.n; m++) {
        int64_t first = AT(tables->contact_ends, m, 1), second = AT(tables->contact_ends, m, 2);
        if (one >= 0 && ((first == one && second == other) || (first == other && second == one))) {
            return true;
        }
    }
    return false;
}

/* Whether the face of contact `k` cuts an edge of the polygon whose corner is behind it. */
static bool is_straddled(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    double small = tables->tolerances->gap;
    for (int64_t j = 0; j < tables->contact_outline.n; j++) {
        bool same_face = tables->contact_flags.at[j] / FSM_FLAG_GROUP == tables->contact_flags.at[k] / FSM_FLAG_GROUP &&
                         AT(tables->contact_ends, j, 1) == AT(tables->contact_ends, k, 1) &&
                         AT(tables->contact_ends, j, 2) == AT(tables->contact_ends, k, 2);
        if (same_face && AT(tables->contact_ends, j, 1) >= 0 && terms->reach.at[j] > small &&
            terms->residual.at[AT(tables->contact_rows, j, 0)] > small && share_a_face(tables, j, k)) {
            return true;
        }
    }
    return false;
}

/* Whether contact `k` is that of a corner inside a convex polygon, or of a polygon that a segment cuts, with the face
   nearest to it, while no face acts on it.

   `states` (n_contacts,): contact states.  Such a corner has not come through a face: it was placed there. */
FSM_LOCAL bool fsm_is_placed_inside(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states,
                                    int64_t k)
{
    bool outlined = tables->contact_outline.at[k] != -1;
    if ((!outlined && AT(tables->contact_ends, k, 0) < 0) || !fsm_within_face(tables, terms, k)) {
        return false;
    }
    double depth = -terms->residual.at[AT(tables->contact_rows, k, 0)];
    for (int64_t j = 0; j < states.n; j++) {
        if (!same_corner(tables, j, k)) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, j, 0);
        double gap = terms->residual.at[row];
        bool outside = gap >= -fsm_gap_tolerance(tables, row);
        bool nearer = !outside && (-gap < depth || (-gap == depth && j < k));
        nearer = nearer && (outlined || fsm_within_face(tables, terms, j));
        if (states.at[j] != FSM_CONTACT_FREE || (outlined && outside) || nearer) {
            return false;
        }
    }
    return outlined || is_straddled(tables, terms, k);
}

/* Return the rate of a gap that counts as zero (m/s): faces that are flush may be as oblique as that allows. */
FSM_LOCAL double fsm_still(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    double slip = AT(tables->contact_ends, k, 1) >= 0 ? fabs(terms->reach_rate.at[k]) : 0.0;
    return fsm_speed_tolerance(tables, AT(tables->contact_rows, k, 0)) + FSM_SAME_ROW * slip;
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
