/* Relations between contacts of corners and faces (docs/theory.md, "Contact geometry").

   A corner on a straight face is a pair of features; two contacts may be pairs of the same two corners, keep the same
   gap at the same place, or lie on one line between two bodies. */

#include "contacts.h"

/* Whether contact `k` is a corner at an end of a face, with no gap, and no neighbour of the corner behind the face. */
FSM_LOCAL bool fsm_at_end(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    double small = tables->tolerances->gap;
    if (terms->margin_slope.at[k] == 0.0 || terms->closes_if.at[k] == 0.0 || terms->aspect.at[k] < -FSM_LEVEL * small) {
        return false;
    }
    return fabs(terms->reach.at[k]) <= small && fabs(terms->residual.at[AT(tables->contact_rows, k, 0)]) <= small;
}

/* Return the number of the corner in which the face of contact `k` ends, at the end nearer to the contact. */
FSM_LOCAL int64_t fsm_corner_behind(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    return AT(tables->contact_ends, k, terms->margin_slope.at[k] > 0.0 ? 1 : 2);
}

/* Whether two contacts at ends of their faces are pairs of the same two coinciding corners. */
FSM_LOCAL bool fsm_same_corners(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k)
{
    int64_t one = AT(tables->contact_ends, j, 0), other = fsm_corner_behind(tables, terms, j);
    int64_t first = AT(tables->contact_ends, k, 0), second = fsm_corner_behind(tables, terms, k);
    return (one == first && other == second) || (one == second && other == first);
}

/* Return where contact `i` lies between `j` (0) and `k` (1) on one line, NaN where it is off it by more than `close`.

   Rows of one line between two bodies are `A_i = (1 - s) A_j + s A_k`, in the metric of the diagonal of the inverse mass matrix. */
FSM_LOCAL double fsm_between(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t i, int64_t j,
                             int64_t k, double close)
{
    int64_t n_u = tables->sizes->n_u;
    int64_t a = AT(tables->contact_rows, i, 0), b = AT(tables->contact_rows, j, 0), c = AT(tables->contact_rows, k, 0);
    double along = 0.0, apart = 0.0, size = 0.0;
    for (int64_t v = 0; v < n_u; v++) {
        double weight = AT(terms->M, v, v) > 0.0 ? 1.0 / AT(terms->M, v, v) : 1.0;
        double step = AT(terms->A, c, v) - AT(terms->A, b, v);
        along += weight * step * (AT(terms->A, a, v) - AT(terms->A, b, v));
        apart += weight * step * step;
        size += weight * AT(terms->A, a, v) * AT(terms->A, a, v);
    }
    double s = apart > close * close * size ? along / apart : 0.0;
    double off = 0.0;
    for (int64_t v = 0; v < n_u; v++) {
        double weight = AT(terms->M, v, v) > 0.0 ? 1.0 / AT(terms->M, v, v) : 1.0;
        off += weight * fsm_square(AT(terms->A, a, v) - (1.0 - s) * AT(terms->A, b, v) - s * AT(terms->A, c, v));
    }
    double offset = terms->b.at[a] - (1.0 - s) * terms->b.at[b] - s * terms->b.at[c];
    if (off > close * close * size || fabs(offset) > tables->tolerances->speed) {
        return FSM_NAN;
    }
    return s;
}

/* Whether two contacts of corners and faces differ in friction at most, so that one may determine the gap of the other. */
FSM_LOCAL bool fsm_exchangeable(const struct fsm_tables *tables, int64_t j, int64_t k)
{
    int64_t friction = FSM_FLAG_FRICTION | FSM_FLAG_STICKS_ALWAYS;
    bool same = (fsm_modulo(tables->contact_flags.at[j], FSM_FLAG_GROUP) | friction) ==
                (fsm_modulo(tables->contact_flags.at[k], FSM_FLAG_GROUP) | friction);
    return same && AT(tables->contact_ends, j, 0) >= 0 && AT(tables->contact_ends, k, 0) >= 0;
}

/* Whether two contacts of corners and faces obey the same contact laws. */
FSM_LOCAL bool fsm_alike(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k)
{
    bool flags = fsm_modulo(tables->contact_flags.at[j], FSM_FLAG_GROUP) ==
                 fsm_modulo(tables->contact_flags.at[k], FSM_FLAG_GROUP);
    bool same = terms->static_friction.at[j] == terms->static_friction.at[k] &&
                terms->kinetic_friction.at[j] == terms->kinetic_friction.at[k];
    return flags && same && terms->restitution.at[j] == terms->restitution.at[k] && fsm_exchangeable(tables, j, k);
}

/* Whether the normal rows of two contacts differ by no more than the part `close`. */
FSM_LOCAL bool fsm_same_normal(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k,
                               double close)
{
    return fsm_between(tables, terms, j, k, k, close) == 0.0;
}

/* Whether two contacts keep the same gap at the same place: of one corner, or of corners that coincide. */
FSM_LOCAL bool fsm_same_place(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k)
{
    if (!fsm_exchangeable(tables, j, k)) {
        return false;
    }
    int64_t one = AT(tables->contact_ends, j, 0), first = AT(tables->contact_ends, k, 0);
    int64_t other = fsm_at_end(tables, terms, j) ? fsm_corner_behind(tables, terms, j) : one;
    int64_t second = fsm_at_end(tables, terms, k) ? fsm_corner_behind(tables, terms, k) : first;
    if (one != first && one != second && other != first && other != second) {
        return false;
    }
    return fsm_same_normal(tables, terms, j, k, FSM_SAME_ROW);
}

/* Whether a corner on a straight face that ends is among the closed contacts. */
FSM_LOCAL bool fsm_has_corners(const struct fsm_tables *tables, fsm_indices closed)
{
    for (int64_t k = 0; k < closed.n; k++) {
        if (closed.at[k] == 1 && AT(tables->contact_ends, k, 1) >= 0) {
            return true;
        }
    }
    return false;
}
