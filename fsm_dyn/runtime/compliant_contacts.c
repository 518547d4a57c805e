/* Compliant contacts, and penetration at the start. */

#include "contacts.h"

/* -- Compliant contacts: compressed contacts, and the active faces at corners (docs/theory.md, "Contact geometry").

   Inside a convex body a corner has a negative gap to every face.  The face through which it entered, or the nearest one
   where it begins inside, acts on it until its gap opens; at the end of that face one other contact at the same place
   succeeds it, with the same compression. */

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

/* -- Bodies inside one another in a state that comes from outside (docs/theory.md, "Placed inside").

   In the course of a run a negative gap behind a face that ends is no contact: the feature came there around the end.
   An initial state, a jump of an input or a reset map may put it there. */

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

/* Whether two polyhedra overlap of which no contact acts.

   The pairs of features with an aspect are the facets of the difference of both: it contains the origin where it is behind
   all of them. `states` (n_contacts,): contact states. */
FSM_LOCAL bool fsm_solids_overlap(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states)
{
    double small = tables->tolerances->gap;
    for (int64_t first = 0, next; first < states.n; first = next) {
        double largest = -FSM_INFINITY;
        bool solids = fsm_is_of_solids(tables, first), acts = false;
        for (next = first; next < states.n && of_same_shapes(tables, next, first); next++) {
            bool facet = fsm_is_of_solids(tables, next) && terms->aspect.at[next] >= -FSM_LEVEL * small;
            largest = facet ? fsm_larger(largest, gap_at(tables, terms, next)) : largest;
            acts = acts || states.at[next] != FSM_CONTACT_FREE || terms->closes_if.at[next] == 0.0;
        }
        if (solids && !acts && largest < -FSM_DEEPEST * small) {
            return true;
        }
    }
    return false;
}
