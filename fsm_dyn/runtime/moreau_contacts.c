/* Which contacts take part in a step of time stepping (docs/theory.md, "Time stepping").

   A negative gap alone does not tell: behind a face that ends it is negative without anything touching.  A contact of such
   a face takes part only if it was on the free side of the face before, or passes on from a neighbour within the depth
   that the steps leave.  That is remembered per contact, 1 for "on the free side, or in contact since".

   Corners are chosen from as where events are located (features), but on predicted gaps: within
   a step's travel of a convex corner two faces of one outline are alternatives, and the one whose gap is predicted largest
   for the end of the step bears; both faces of a concave corner hold; of contacts on one line between two bodies the outer
   two do. */

#include "time_stepping.h"

#define FSM_MOREAU_CONTACTS_ALIKE 0.05 // part by which the normals of contacts on one line may differ
#define FSM_MOREAU_CONTACTS_FLUSH 1e-3 // part of depths by which a contact between two others may be off their line

static double depth_beside(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_codes codes, int64_t k);

/* Mark the contacts that are in contact or on the free side of their face where a step begins. */
FSM_LOCAL void fsm_begin_sides(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_codes codes,
                               fsm_codes free_side)
{
    for (int64_t k = 0; k < codes.n; k++) {
        int64_t row = AT(tables->contact_rows, k, 0);
        bool limited = (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0;
        if (!limited || codes.at[k] != FSM_CONTACT_FREE || terms->residual.at[row] >= -tables->tolerances->gap) {
            free_side.at[k] = 1;
        }
    }
}

/* Bring the marks up to the predicted configuration.

   A contact that is not before its face keeps its mark as long as its gap is no deeper than contacts are in this
   step: what a neighbour leaves, or what the contact itself moves in the step.  One that is before it keeps its mark. */
FSM_LOCAL void fsm_keep_sides(const struct fsm_tables *tables, const struct fsm_terms *terms, double h, fsm_vector u,
                              fsm_codes codes, fsm_codes free_side)
{
    for (int64_t k = 0; k < codes.n; k++) {
        if ((tables->contact_flags.at[k] & FSM_FLAG_LIMITED) == 0) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 0);
        double depth = depth_beside(tables, terms, codes, k) + h * fabs(fsm_row_speed(terms, row, u));
        bool shallow = terms->residual.at[row] >= -depth;
        if (shallow || !fsm_within_face(tables, terms, k)) {
            free_side.at[k] = (int8_t)(shallow ? 1 : 0);
        }
    }
}

/* How deep the contacts are that may pass on to a contact: rigid ones, and compliant ones of its two shapes. */
static double depth_beside(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_codes codes, int64_t k)
{
    double depth = 0.0;
    for (int64_t j = 0; j < codes.n; j++) {
        int64_t kind = tables->contact_kind.at[j];
        bool beside = kind == FSM_KIND_COMPLIANT &&
                      tables->contact_flags.at[j] / FSM_FLAG_GROUP == tables->contact_flags.at[k] / FSM_FLAG_GROUP;
        if (codes.at[j] != FSM_CONTACT_FREE && (kind == FSM_KIND_GAP || beside)) {
            depth = fsm_larger(depth, -terms->residual.at[AT(tables->contact_rows, j, 0)]);
        }
    }
    return depth;
}

/* Whether a compliant contact is compressed and pushes. */
FSM_LOCAL bool fsm_presses(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k,
                           fsm_codes free_side)
{
    if (tables->contact_kind.at[k] != FSM_KIND_COMPLIANT || free_side.at[k] == 0) {
        return false;
    }
    bool deep = terms->residual.at[AT(tables->contact_rows, k, 0)] < 0.0 && terms->elastic.at[k] > 0.0;
    return deep && terms->closes_if.at[k] != 0.0 && fsm_within_face(tables, terms, k);
}

/* Whether a corner is beyond the ends of face `k` and another one by no more than it is deep in the other. */
static bool is_concave(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_codes free_side, int64_t k)
{
    double small = tables->tolerances->gap;
    int64_t row = AT(tables->contact_rows, k, 0);
    if ((tables->contact_flags.at[k] & FSM_FLAG_LIMITED) == 0 || AT(tables->contact_ends, k, 0) < 0 ||
        terms->aspect.at[k] < -small) {
        return false;
    }
    for (int64_t j = 0; j < free_side.n; j++) {
        if (j == k || AT(tables->contact_ends, j, 0) != AT(tables->contact_ends, k, 0) || free_side.at[j] == 0) {
            continue;
        }
        double other = terms->residual.at[AT(tables->contact_rows, j, 0)];
        if (other < 0.0 && terms->reach.at[k] >= other - small &&
            terms->reach.at[j] >= fsm_smaller(terms->residual.at[row], 0.0) - small) {
            return true;
        }
    }
    return false;
}

/* Whether two contacts are those of one corner with faces that meet in a convex corner. */
static bool share_an_end(const struct fsm_tables *tables, int64_t j, int64_t k)
{
    if (j == k || AT(tables->contact_ends, j, 0) < 0 ||
        AT(tables->contact_ends, j, 0) != AT(tables->contact_ends, k, 0)) {
        return false;
    }
    int64_t first = AT(tables->contact_ends, k, 1), last = AT(tables->contact_ends, k, 2);
    bool found = false;
    fsm_indices list1 = fsm_indices_from(fsm_index_row(tables->contact_ends, j), 1);
    for (int64_t n1 = 0; n1 < list1.n; n1++) {
        int64_t end = list1.at[n1];
        found = found || (end >= 0 && (end == first || end == last));
    }
    return found;
}

/* Whether a contact lies between two others that take part, on one line with them and as deep as they are there. */
static bool moreau_contacts_is_inner(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices part,
                                     int64_t k)
{
    if (AT(tables->contact_ends, k, 0) < 0) {
        return false;
    }
    double gap = terms->residual.at[AT(tables->contact_rows, k, 0)];
    for (int64_t j = 0; j < part.n; j++) {
        if (j == k || part.at[j] == 0 || tables->contact_kind.at[j] != FSM_KIND_GAP ||
            !fsm_exchangeable(tables, j, k)) {
            continue;
        }
        for (int64_t m = j + 1; m < part.n; m++) {
            if (m == k || part.at[m] == 0 || tables->contact_kind.at[m] != FSM_KIND_GAP ||
                !fsm_exchangeable(tables, m, k)) {
                continue;
            }
            double s = fsm_between(tables, terms, k, j, m, FSM_MOREAU_CONTACTS_ALIKE);
            double one = terms->residual.at[AT(tables->contact_rows, j, 0)],
                   other = terms->residual.at[AT(tables->contact_rows, m, 0)];
            double flush = tables->tolerances->gap + FSM_MOREAU_CONTACTS_FLUSH * (fabs(one) + fabs(other));
            if (0.0 < s && s < 1.0 && fabs((1.0 - s) * one + s * other - gap) <= flush) {
                return true;
            }
        }
    }
    return false;
}

/* Take out of `part` (n_contacts,) the contacts of corners and faces that others stand for.

   A face behind which a corner has come by way of another one is not to be met from there. */
static void choose_corners(const struct fsm_tables *tables, const struct fsm_terms *terms, double h, fsm_vector u,
                           fsm_codes free_side, fsm_indices part)
{
    int64_t n = part.n;
    for (int64_t k = 0; k < n; k++) {
        if (part.at[k] == 0 || tables->contact_kind.at[k] != FSM_KIND_GAP) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 0);
        double end = terms->residual.at[row] + 0.5 * h * fsm_row_speed(terms, row, u);
        for (int64_t j = 0; j < n; j++) {
            if (tables->contact_kind.at[j] != FSM_KIND_GAP || !share_an_end(tables, j, k)) {
                continue;
            }
            int64_t other = AT(tables->contact_rows, j, 0);
            bool touches = terms->residual.at[other] <= tables->tolerances->gap && terms->closes_if.at[j] != 0.0;
            if (part.at[j] == 0 && !(touches && fsm_within_face(tables, terms, j))) {
                continue;
            }
            if (terms->residual.at[other] + 0.5 * h * fsm_row_speed(terms, other, u) > end) {
                part.at[k] = 0;
                free_side.at[k] = 0;
            }
        }
    }
    for (int64_t k = 0; k < n; k++) {
        if (part.at[k] == 1 && tables->contact_kind.at[k] == FSM_KIND_GAP &&
            moreau_contacts_is_inner(tables, terms, part, k)) {
            part.at[k] = 0;
        }
    }
}

/* List the rows of the contacts that take part in the step; their places per contact, -1 where none.

   One that is closed takes part up to the gap tolerance, so that rounding does not open it.  `part` (n_contacts,)
   is overwritten. */
FSM_LOCAL int64_t fsm_list_active(const struct fsm_tables *tables, const struct fsm_terms *terms, double h,
                                  fsm_vector u, fsm_codes codes, fsm_codes free_side, fsm_indices part,
                                  fsm_indices which, fsm_indices normal, fsm_indices tangent)
{
    for (int64_t k = 0; k < part.n; k++) {
        int64_t kind = tables->contact_kind.at[k], row = AT(tables->contact_rows, k, 0);
        bool takes_part = kind == FSM_KIND_DRY_FRICTION;
        if (kind == FSM_KIND_COMPLIANT) {
            takes_part = fsm_presses(tables, terms, k, free_side);
        }
        if (kind == FSM_KIND_GAP) {
            double close_to = codes.at[k] != FSM_CONTACT_FREE ? tables->tolerances->gap : 0.0;
            takes_part = terms->residual.at[row] <= close_to && free_side.at[k] != 0 && terms->closes_if.at[k] != 0.0;
            takes_part = takes_part && (fsm_within_face(tables, terms, k) || is_concave(tables, terms, free_side, k));
            takes_part = takes_part || (tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) != 0;
        }
        part.at[k] = takes_part ? 1 : 0;
    }
    choose_corners(tables, terms, h, u, free_side, part);
    int64_t n = 0;
    for (int64_t k = 0; k < normal.n; k++) {
        normal.at[k] = -1;
        tangent.at[k] = -1;
        if (part.at[k] == 0) {
            continue;
        }
        if (tables->contact_kind.at[k] == FSM_KIND_GAP) {
            normal.at[k] = n;
            which.at[n] = AT(tables->contact_rows, k, 0);
            n++;
        }
        if (AT(tables->contact_rows, k, 1) >= 0) {
            tangent.at[k] = n;
            which.at[n] = AT(tables->contact_rows, k, 1);
            n++;
            if (tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) {
                which.at[n] = AT(tables->contact_rows, k, 1) + 1;
                n++;
            }
        }
    }
    return n;
}

/* Whether an open contact is deeper than the gap tolerance; behind a face that ends this is no violation. */
FSM_LOCAL bool fsm_deep_at_start(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_codes codes)
{
    for (int64_t k = 0; k < codes.n; k++) {
        bool plain = tables->contact_kind.at[k] == FSM_KIND_GAP &&
                     (tables->contact_flags.at[k] & (FSM_FLAG_LIMITED | FSM_FLAG_TWO_SIDED)) == 0;
        if (!plain || codes.at[k] != FSM_CONTACT_FREE || terms->closes_if.at[k] == 0.0) {
            continue;
        }
        if (terms->residual.at[AT(tables->contact_rows, k, 0)] < -tables->tolerances->gap) {
            return true;
        }
    }
    return false;
}
