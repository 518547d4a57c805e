/* Active contacts of a time step (docs/theory.md, "Time stepping").

   A negative gap alone does not decide: behind a face that ends it is negative without contact.  A contact of such a face
   takes part only if it was on the free side of the face before, or succeeds a neighbour within the depth that the steps
   leave.  That is recorded per contact, 1 for "on the free side, or in contact since".

   Corners are selected as in event-driven integration (feature_selection.c), but on predicted gaps: within
   a step's travel of a convex corner two faces of one outline are alternatives, and the one whose gap is predicted largest
   for the end of the step bears; both faces of a concave corner hold; of contacts on one line between two bodies the outer
   two do. */

#include "time_stepping.h"

#define FSM_LINE_ALIKE 0.05 // part by which the normals of contacts on one line may differ
#define FSM_LINE_FLUSH 1e-3 // part of depths by which a contact between two others may be off their line

/* Mark the contacts that are in contact or on the free side of their face where a step begins. */
FSM_LOCAL void fsm_begin_sides(const struct fsm_time_step *step)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    fsm_codes codes = step->codes;
    fsm_codes free_side = step->free_side;
    for (int64_t k = 0; k < codes.n; k++) {
        int64_t row = AT(tables->contact_rows, k, 0);
        bool limited = (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0;
        if (!limited || codes.at[k] != FSM_CONTACT_FREE || terms->residual.at[row] >= -fsm_gap_tolerance(tables, row)) {
            free_side.at[k] = 1;
        }
    }
}

/* Return the penetration of the contacts that a contact may succeed: rigid ones, and compliant ones of its shapes (m). */
static double neighbour_depth(const struct fsm_time_step *step, int64_t k)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    fsm_codes codes = step->codes;
    double depth = 0.0;
    for (int64_t j = 0; j < codes.n; j++) {
        int64_t flags = tables->contact_flags.at[j];
        bool beside = (flags & FSM_FLAG_COMPLIANT) != 0 &&
                      tables->contact_flags.at[j] / FSM_FLAG_GROUP == tables->contact_flags.at[k] / FSM_FLAG_GROUP;
        if (codes.at[j] != FSM_CONTACT_FREE && ((flags & FSM_FLAG_RIGID) != 0 || beside)) {
            depth = fsm_larger(depth, -terms->residual.at[AT(tables->contact_rows, j, 0)]);
        }
    }
    return depth;
}

/* Update the marks for the predicted configuration.

   A contact that is not before its face keeps its mark as long as its gap is no deeper than contacts are in this
   step: the depth of a neighbour, and what the contact itself moves in the step.  One that is before it keeps its mark. */
FSM_LOCAL void fsm_update_sides(const struct fsm_time_step *step)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    fsm_codes codes = step->codes;
    fsm_codes free_side = step->free_side;
    for (int64_t k = 0; k < codes.n; k++) {
        if ((tables->contact_flags.at[k] & FSM_FLAG_LIMITED) == 0) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 0);
        double depth = neighbour_depth(step, k) + step->h * fabs(fsm_row_speed(terms, row, step->u));
        bool shallow = terms->residual.at[row] >= -depth;
        if (shallow || !fsm_within_face(tables, terms, k)) {
            free_side.at[k] = shallow;
        }
    }
}

/* Whether a compliant contact is compressed and pushes; of several on one line between two bodies the outer two do. */
FSM_LOCAL bool fsm_presses(const struct fsm_time_step *step, int64_t k)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    if ((tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) == 0 || step->free_side.at[k] == 0) {
        return false;
    }
    bool deep = terms->residual.at[AT(tables->contact_rows, k, 0)] < 0.0 && terms->elastic.at[k] > 0.0;
    return deep && terms->closes_if.at[k] != 0.0 && fsm_within_face(tables, terms, k) &&
           !fsm_is_inner_compression(tables, terms, k);
}

/* Whether a corner is beyond the ends of face `k` and another one by no more than it is deep in the other. */
static bool is_concave(const struct fsm_time_step *step, int64_t k)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    fsm_codes free_side = step->free_side;
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
    for (int64_t i = 1; i < 3; i++) {
        int64_t end = AT(tables->contact_ends, j, i);
        if (end >= 0 && (end == AT(tables->contact_ends, k, 1) || end == AT(tables->contact_ends, k, 2))) {
            return true;
        }
    }
    return false;
}

/* Whether a contact lies between two others that take part, on one line with them and as deep as they are there. */
static bool is_inner_contact(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices part,
                             int64_t k)
{
    if (AT(tables->contact_ends, k, 0) < 0) {
        return false;
    }
    double gap = terms->residual.at[AT(tables->contact_rows, k, 0)];
    for (int64_t j = 0; j < part.n; j++) {
        if (j == k || part.at[j] == 0 || (tables->contact_flags.at[j] & FSM_FLAG_RIGID) == 0 ||
            !fsm_exchangeable(tables, j, k)) {
            continue;
        }
        for (int64_t m = j + 1; m < part.n; m++) {
            if (m == k || part.at[m] == 0 || (tables->contact_flags.at[m] & FSM_FLAG_RIGID) == 0 ||
                !fsm_exchangeable(tables, m, k)) {
                continue;
            }
            double s = fsm_between(tables, terms, k, j, m, FSM_LINE_ALIKE);
            double one = terms->residual.at[AT(tables->contact_rows, j, 0)],
                   other = terms->residual.at[AT(tables->contact_rows, m, 0)];
            double flush = tables->tolerances->gap + FSM_LINE_FLUSH * (fabs(one) + fabs(other));
            if (0.0 < s && s < 1.0 && fabs((1.0 - s) * one + s * other - gap) <= flush) {
                return true;
            }
        }
    }
    return false;
}

/* Remove from `part` (n_contacts,) the contacts of corners and faces that others determine.

   A face behind which a corner has come across another one does not act on it from there. */
static void choose_corners(const struct fsm_time_step *step, fsm_indices part)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    int64_t n = part.n;
    for (int64_t k = 0; k < n; k++) {
        if (part.at[k] == 0 || (tables->contact_flags.at[k] & FSM_FLAG_RIGID) == 0) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 0);
        double end = terms->residual.at[row] + 0.5 * step->h * fsm_row_speed(terms, row, step->u);
        for (int64_t j = 0; j < n; j++) {
            if ((tables->contact_flags.at[j] & FSM_FLAG_RIGID) == 0 || !share_an_end(tables, j, k)) {
                continue;
            }
            int64_t other = AT(tables->contact_rows, j, 0);
            bool touches = terms->residual.at[other] <= tables->tolerances->gap && terms->closes_if.at[j] != 0.0;
            if (part.at[j] == 0 && !(touches && fsm_within_face(tables, terms, j))) {
                continue;
            }
            if (terms->residual.at[other] + 0.5 * step->h * fsm_row_speed(terms, other, step->u) > end) {
                part.at[k] = 0;
                step->free_side.at[k] = 0;
            }
        }
    }
    for (int64_t k = 0; k < n; k++) {
        if (part.at[k] == 1 && (tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0 &&
            is_inner_contact(tables, terms, part, k)) {
            part.at[k] = 0;
        }
    }
}

/* Whether a contact takes part in the step; one that is closed does up to the gap tolerance, in spite of rounding. */
static bool takes_part_in_step(const struct fsm_time_step *step, int64_t k)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    int64_t flags = tables->contact_flags.at[k];
    if (flags & FSM_FLAG_COMPLIANT) {
        return fsm_presses(step, k);
    }
    if (flags & (FSM_FLAG_FRICTION_ONLY | FSM_FLAG_TWO_SIDED)) {
        return true;
    }
    if ((flags & FSM_FLAG_RIGID) == 0) {
        return (flags & FSM_FLAG_FORCE_LIMIT) != 0 && step->codes.at[k] == FSM_CONTACT_HELD;
    }
    int64_t row = AT(tables->contact_rows, k, 0);
    double near = step->codes.at[k] != FSM_CONTACT_FREE ? fsm_gap_tolerance(tables, row) : 0.0;
    return terms->residual.at[row] <= near && step->free_side.at[k] != 0 && terms->closes_if.at[k] != 0.0 &&
           (fsm_within_face(tables, terms, k) || is_concave(step, k));
}

/* Return the constraint rows of the contacts that take part in the step. */
FSM_LOCAL struct fsm_active_rows fsm_list_active(const struct fsm_time_step *step)
{
    const struct fsm_tables *tables = step->tables;
    int64_t count = step->codes.n;
    struct fsm_active_rows active = {.rows =
                                         fsm_indices_first(fsm_arena_indices(step->arena, tables->sizes->n_rows), 0),
                                     .normal = fsm_arena_indices(step->arena, count),
                                     .tangent = fsm_arena_indices(step->arena, count)};
    fsm_indices part = fsm_arena_indices(step->arena, count);
    for (int64_t k = 0; k < count; k++) {
        part.at[k] = takes_part_in_step(step, k);
    }
    choose_corners(step, part);
    fsm_indices_fill(active.normal, -1);
    fsm_indices_fill(active.tangent, -1);
    for (int64_t k = 0; k < count; k++) {
        bool lock = (tables->contact_flags.at[k] & FSM_FLAG_FORCE_LIMIT) != 0; // its force has a bound, as friction has
        int64_t tangent = AT(tables->contact_rows, k, lock ? 0 : 1);
        if (part.at[k] == 0) {
            continue;
        }
        if ((tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0) {
            active.normal.at[k] = active.rows.n;
            active.rows.at[active.rows.n++] = AT(tables->contact_rows, k, 0);
        }
        if (tangent >= 0) {
            active.tangent.at[k] = active.rows.n;
            active.rows.at[active.rows.n++] = tangent;
            if (tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) {
                active.rows.at[active.rows.n++] = tangent + 1;
            }
        }
    }
    return active;
}

/* Whether no open rigid contact is deeper than the gap tolerance where a run begins; compliant ones are marked.

   Behind a face that ends a negative gap is no violation, unless the corner is inside the body. */
FSM_LOCAL bool fsm_may_begin(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states,
                             fsm_codes free_side)
{
    for (int64_t k = 0; k < states.n; k++) {
        int64_t flags = tables->contact_flags.at[k], row = AT(tables->contact_rows, k, 0);
        if ((flags & (FSM_FLAG_RIGID | FSM_FLAG_COMPLIANT)) == 0 || (flags & FSM_FLAG_TWO_SIDED) != 0 ||
            states.at[k] != FSM_CONTACT_FREE || terms->closes_if.at[k] == 0.0 ||
            terms->residual.at[row] >= -fsm_gap_tolerance(tables, row)) {
            continue;
        }
        bool inside = (flags & FSM_FLAG_LIMITED) == 0 || fsm_is_placed_inside(tables, terms, states, k);
        if (inside && (flags & FSM_FLAG_RIGID) != 0) {
            return false;
        }
        free_side.at[k] = inside ? 1 : free_side.at[k];
    }
    return !fsm_edges_cross(tables, terms, states);
}
