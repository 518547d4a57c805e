/* Compliant contacts: compressed contacts, and the active faces at corners (docs/theory.md, "Contact geometry").

   Inside a convex body a corner has a negative gap to every face.  The face through which it entered, or the nearest one
   where it begins inside, acts on it until its gap opens; at the end of that face one other contact at the same place
   succeeds it, with the same compression. */

#include "contacts.h"

#define FSM_COMPRESSION_FLUSH 1e-3 // part of compressions by which a contact between two may be off their line
#define FSM_SUCCESSOR_ALIKE   0.05 // part by which normals, and compressions, of a contact and its successor may differ

/* Whether a corner passes face `k` no farther from its end than it is compressed on the next face.

   That one closes more slowly, and acts: the corner slides on from a flush neighbour. */
static bool next_face_acts(const struct fsm_resolution *r, int64_t k)
{
    const struct fsm_tables *tables = r->tables;
    const struct fsm_terms *terms = r->terms;
    double small = tables->tolerances->gap;
    if (tables->contact_outline.at[k] > -2) {
        return false;
    }
    double rate = fsm_row_speed(terms, AT(tables->contact_rows, k, 0), r->u);
    for (int64_t j = 0; j < r->event.n; j++) {
        int64_t row = AT(tables->contact_rows, j, 0);
        double gap = row >= 0 ? terms->residual.at[row] : 0.0;
        if (j == k || tables->contact_outline.at[j] != tables->contact_outline.at[k] || gap >= -small) {
            continue;
        }
        if (terms->reach.at[k] > small - gap || fsm_row_speed(terms, row, r->u) <= rate) {
            continue;
        }
        for (int64_t m = 0; m < r->event.n; m++) {
            bool acts = (tables->contact_flags.at[m] & FSM_FLAG_COMPLIANT) != 0 &&
                        r->before.at[m] != FSM_CONTACT_FREE && r->event.at[m] != FSM_EVENT_OPENS;
            if (acts && (m == j || fsm_same_normal(tables, terms, m, j, FSM_SUCCESSOR_ALIKE))) {
                return true;
            }
        }
    }
    return false;
}

/* Whether contact `k` lies between two others on one line: their compression is what the flush faces have. */
FSM_LOCAL bool fsm_is_inner_compression(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    if (AT(tables->contact_ends, k, 0) < 0) {
        return false;
    }
    int64_t n = tables->contact_ends.n;
    double gap = terms->residual.at[AT(tables->contact_rows, k, 0)];
    for (int64_t j = 0; j < n; j++) {
        if (j == k || !fsm_alike(tables, terms, j, k) || !fsm_within_face(tables, terms, j)) {
            continue;
        }
        for (int64_t m = j + 1; m < n; m++) {
            if (m == k || !fsm_alike(tables, terms, m, k) || !fsm_within_face(tables, terms, m)) {
                continue;
            }
            double s = fsm_between(tables, terms, k, j, m, FSM_SUCCESSOR_ALIKE);
            double one = terms->residual.at[AT(tables->contact_rows, j, 0)],
                   other = terms->residual.at[AT(tables->contact_rows, m, 0)];
            double flush = tables->tolerances->gap + FSM_COMPRESSION_FLUSH * (fabs(one) + fabs(other));
            if (s > FSM_SUCCESSOR_ALIKE && s < 1.0 - FSM_SUCCESSOR_ALIKE &&
                fabs((1.0 - s) * one + s * other - gap) <= flush) {
                return true;
            }
        }
    }
    return false;
}

/* Whether contact `k` begins where `j` leaves its face: with the same gap, at the same place. */
static bool follows(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k)
{
    double small = tables->tolerances->gap;
    double gap = terms->residual.at[AT(tables->contact_rows, j, 0)];
    double difference = gap - terms->residual.at[AT(tables->contact_rows, k, 0)];
    bool straight = AT(tables->contact_ends, j, 0) >= 0 && AT(tables->contact_ends, k, 0) >= 0;
    double alike = FSM_SUCCESSOR_ALIKE * fabs(gap);
    if ((tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) == 0 ||
        fabs(difference) > small + (straight ? alike : 0.0)) {
        return false;
    }
    if (!straight) {
        bool same = tables->contact_flags.at[j] / FSM_FLAG_GROUP == tables->contact_flags.at[k] / FSM_FLAG_GROUP;
        return same && terms->reach.at[k] <= small;
    }
    int64_t one = AT(tables->contact_ends, j, 0), first = AT(tables->contact_ends, k, 0);
    int64_t other = fsm_corner_behind(tables, terms, j);
    int64_t second = fabs(terms->reach.at[k]) <= small + alike ? fsm_corner_behind(tables, terms, k) : first;
    bool linked = one == first || one == second || other == first || other == second;
    return linked && fsm_same_normal(tables, terms, j, k, FSM_SUCCESSOR_ALIKE);
}

/* Return which contact succeeds `j`, which leaves its face, if `k` may: of several that of the same corner, else the
   first. */
static int64_t successor(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    const struct fsm_tables *tables = r->tables;
    int64_t best = k, corner = AT(tables->contact_ends, j, 0);
    for (int64_t m = 0; m < r->event.n; m++) {
        if (m == k || (tables->contact_flags.at[m] & FSM_FLAG_COMPLIANT) == 0 || r->before.at[m] != FSM_CONTACT_FREE ||
            r->event.at[m] == FSM_EVENT_LEAVES) {
            continue;
        }
        if (!fsm_within_face(tables, r->terms, m) || !follows(tables, r->terms, j, m)) {
            continue;
        }
        bool best_same = AT(tables->contact_ends, best, 0) == corner, same = AT(tables->contact_ends, m, 0) == corner;
        if (!best_same && (same || m < best)) {
            best = m;
        }
    }
    return best;
}

/* Whether contact `k` succeeds one that leaves its face at this instant. */
static bool succeeds(const struct fsm_resolution *r, int64_t k)
{
    for (int64_t j = 0; j < r->event.n; j++) {
        if (r->event.at[j] == FSM_EVENT_LEAVES && follows(r->tables, r->terms, j, k) && successor(r, j, k) == k) {
            return true;
        }
    }
    return false;
}

/* Whether compliant contact `k` is compressed after the instant. */
static bool is_compressed(const struct fsm_resolution *r, int64_t k)
{
    const struct fsm_tables *tables = r->tables;
    const struct fsm_terms *terms = r->terms;
    int64_t row = AT(tables->contact_rows, k, 0), event = r->event.at[k];
    double small = fsm_gap_tolerance(tables, row), gap = terms->residual.at[row];
    bool open = r->outcome->wanted.at[k] == FSM_CONTACT_FREE, deep = gap < -small;
    if (open && (terms->closes_if.at[k] == 0.0 || !fsm_within_face(tables, terms, k))) {
        return false;
    }
    if (event == FSM_EVENT_OPENS || event == FSM_EVENT_LEAVES) {
        return false;
    }
    if (event == FSM_EVENT_CLOSES) {
        return !next_face_acts(r, k) && !fsm_is_inner_compression(tables, terms, k);
    }
    bool closing = fabs(gap) <= small && fsm_row_speed(terms, row, r->u) < -fsm_speed_tolerance(tables, row);
    if (!(deep && terms->elastic.at[k] >= 0.0) && !closing) {
        return false;
    }
    bool behind = open && deep && (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0; // its face, unless it succeeds
    bool placed = behind && r->placed && fsm_is_placed_inside(tables, terms, r->before, k) &&
                  !fsm_is_inner_compression(tables, terms, k);
    return !behind || placed || succeeds(r, k);
}

/* Find which compliant contacts are compressed, and add their forces to the generalized forces `force` (n_u,).

   `outcome->wanted`: in, the states before, as a user-defined transition has changed them; out, FSM_CONTACT_HELD where
   compressed. */
FSM_LOCAL void fsm_add_compliant_forces(const struct fsm_resolution *r, fsm_vector force)
{
    for (int64_t k = 0; k < r->event.n; k++) {
        if ((r->tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) == 0) {
            continue;
        }
        bool compressed = is_compressed(r, k);
        r->outcome->wanted.at[k] = compressed ? FSM_CONTACT_HELD : FSM_CONTACT_FREE;
        if (compressed) {
            for (int64_t i = 0; i < force.n; i++) {
                force.at[i] += r->terms->elastic.at[k] * AT(r->terms->A, AT(r->tables->contact_rows, k, 0), i);
            }
        }
    }
}
