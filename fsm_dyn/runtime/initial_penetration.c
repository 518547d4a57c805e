/* Bodies inside one another in a state that comes from outside (docs/theory.md, "Placed inside").

   In the course of a run a negative gap behind a face that ends is no contact: the feature came there around the end.
   An initial state, a jump of an input or a reset map may put it there. */

#include "contacts.h"

static double gap_at(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    return terms->residual.at[AT(tables->contact_rows, k, 0)];
}

static bool is_behind(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    return gap_at(tables, terms, k) < -fsm_gap_tolerance(tables, AT(tables->contact_rows, k, 0));
}

static bool of_same_shapes(const struct fsm_tables *tables, int64_t j, int64_t k)
{
    return tables->contact_flags.at[j] / FSM_FLAG_GROUP == tables->contact_flags.at[k] / FSM_FLAG_GROUP;
}

/* Whether contact `k` is of a corner and a straight face. */
static bool is_of_corner(const struct fsm_tables *tables, int64_t k)
{
    return AT(tables->contact_ends, k, 0) >= 0;
}

/* Whether contacts `j` and `k` are of one corner with faces of one shape, a convex polygon or a chain of segments, or
   of two shapes of which one is round. */
static bool are_alternatives(const struct fsm_tables *tables, int64_t j, int64_t k)
{
    if (tables->contact_outline.at[k] != -1) {
        return tables->contact_outline.at[j] == tables->contact_outline.at[k];
    }
    return of_same_shapes(tables, j, k) && AT(tables->contact_ends, j, 0) == AT(tables->contact_ends, k, 0);
}

/* Whether the corners numbered `one` and `other` are the two ends of the face of contact `k`. */
static bool has_ends(const struct fsm_tables *tables, int64_t k, int64_t one, int64_t other)
{
    int64_t first = AT(tables->contact_ends, k, 1), second = AT(tables->contact_ends, k, 2);
    return one >= 0 && other >= 0 && ((first == one && second == other) || (first == other && second == one));
}

/* Whether contacts `j` and `k` are of corners with one face that ends. */
static bool are_on_one_face(const struct fsm_tables *tables, int64_t j, int64_t k)
{
    return of_same_shapes(tables, j, k) && has_ends(tables, j, AT(tables->contact_ends, k, 1), AT(tables->contact_ends, k, 2));
}

/* Whether the corners numbered `one` and `other` are the two ends of a face. */
static bool share_a_face(const struct fsm_tables *tables, int64_t one, int64_t other)
{
    for (int64_t m = 0; m < tables->contact_outline.n; m++) {
        if (has_ends(tables, m, one, other)) {
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
        if (are_on_one_face(tables, j, k) && terms->reach.at[j] > small && gap_at(tables, terms, j) > small &&
            share_a_face(tables, AT(tables->contact_ends, j, 0), AT(tables->contact_ends, k, 0))) {
            return true;
        }
    }
    return false;
}

/* Whether contact `k` is that of a corner inside a convex polygon, of a polygon that a segment cuts, or of a circle that
   reaches through the face or stands around the corner of the other shape; with the face nearest to it, while no face
   acts on it.

   `states` (n_contacts,): contact states.  Such a feature has not come through a face: it was placed there. */
FSM_LOCAL bool fsm_is_placed_inside(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states,
                                    int64_t k)
{
    bool outlined = tables->contact_outline.at[k] != -1;
    bool round = (tables->contact_flags.at[k] & FSM_FLAG_WHOLE_CIRCLE) != 0;
    double small = tables->tolerances->gap;
    if ((!outlined && !round && !is_of_corner(tables, k)) || !fsm_within_face(tables, terms, k) || (round && (terms->reach.at[k] <= small || terms->aspect.at[k] <= small))) {
        return false;
    }
    double depth = -gap_at(tables, terms, k);
    for (int64_t j = 0; j < states.n; j++) {
        if (!are_alternatives(tables, j, k)) {
            continue;
        }
        double gap = gap_at(tables, terms, j), away = round ? -gap : fabs(gap);
        bool outside = !is_behind(tables, terms, j);
        bool counts = !outside || !(outlined || round); // a corner nearest to a face in front of it is outside
        bool nearer = counts && (away < depth || (away == depth && j < k));
        nearer = nearer && (outlined || fsm_within_face(tables, terms, j));
        if (states.at[j] != FSM_CONTACT_FREE || (outlined && outside) || nearer) {
            return false;
        }
    }
    return outlined || round || is_straddled(tables, terms, k);
}

/* Whether the two ends of the face of contact `k` are on different sides of the face between corners `one` and `other`. */
static bool is_cut_by(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k, int64_t one,
                      int64_t other)
{
    bool before = false, behind = false;
    for (int64_t m = 0; m < tables->contact_outline.n; m++) {
        int64_t end = AT(tables->contact_ends, m, 0);
        bool is_end = end == AT(tables->contact_ends, k, 1) || end == AT(tables->contact_ends, k, 2);
        if (is_end && is_of_corner(tables, m) && has_ends(tables, m, one, other)) {
            before = before || gap_at(tables, terms, m) > tables->tolerances->gap;
            behind = behind || is_behind(tables, terms, m);
        }
    }
    return before && behind;
}

/* Whether the corner of contact `k` is behind a face, and an edge from it cuts that face between its ends. */
static bool crosses(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    if (gap_at(tables, terms, k) >= -FSM_DEEPEST * tables->tolerances->gap) {
        return false;
    }
    for (int64_t j = 0; j < tables->contact_outline.n; j++) {
        if (are_on_one_face(tables, j, k) && gap_at(tables, terms, j) > tables->tolerances->gap &&
            is_cut_by(tables, terms, k, AT(tables->contact_ends, j, 0), AT(tables->contact_ends, k, 0))) {
            return true;
        }
    }
    return false;
}

/* Whether a contact of the same two shapes as `k` acts, or will act as its corner is inside. */
static bool is_kept_apart(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states, int64_t k)
{
    for (int64_t j = 0; j < states.n; j++) {
        if (of_same_shapes(tables, j, k) &&
            (states.at[j] != FSM_CONTACT_FREE ||
             (is_behind(tables, terms, j) && fsm_is_placed_inside(tables, terms, states, j)))) {
            return true;
        }
    }
    return false;
}

/* Whether edges of two bodies cross that rigid contacts keep apart, or compliant ones of which none acts: then no corner
   of either is inside the other.

   `states` (n_contacts,): contact states. */
FSM_LOCAL bool fsm_edges_cross(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states)
{
    for (int64_t k = 0; k < states.n; k++) {
        int64_t flags = tables->contact_flags.at[k];
        bool watched = (flags & (FSM_FLAG_RIGID | FSM_FLAG_COMPLIANT)) != 0 && (flags & FSM_FLAG_TWO_SIDED) == 0;
        if (watched && states.at[k] == FSM_CONTACT_FREE && AT(tables->contact_ends, k, 1) >= 0 &&
            terms->closes_if.at[k] != 0.0 && crosses(tables, terms, k) &&
            ((flags & FSM_FLAG_RIGID) != 0 || !is_kept_apart(tables, terms, states, k))) {
            return true;
        }
    }
    return false;
}
