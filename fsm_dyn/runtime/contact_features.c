/* Features of contacts in touch: faces with ends, corners, selection among them. */

#include <string.h>

#include "contacts.h"

/* -- Relations between contacts of corners and faces (docs/theory.md, "Contact geometry").

   A corner on a straight face is a pair of features; two contacts may be pairs of the same two corners, keep the same
   gap at the same place, or lie on one line between two bodies. */

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

/* Return the next column after `column` in which one of three rows can differ from zero, `n_u` behind the last. */
static int64_t next_column(const struct fsm_terms *terms, const int64_t rows[3], int64_t at[3], int64_t n_u)
{
    int64_t next = n_u;
    for (int64_t i = 0; i < 3; i++) {
        if (at[i] < terms->row_begin.at[rows[i] + 1] && terms->row_columns.at[at[i]] < next) {
            next = terms->row_columns.at[at[i]];
        }
    }
    for (int64_t i = 0; i < 3; i++) {
        at[i] += at[i] < terms->row_begin.at[rows[i] + 1] && terms->row_columns.at[at[i]] == next ? 1 : 0;
    }
    return next;
}

/* Return where contact `i` lies between `j` (0) and `k` (1) on one line, NaN where it is off it by more than `close`.

   Rows of one line between two bodies are `A_i = (1 - s) A_j + s A_k`, in the metric of the diagonal of the inverse mass matrix. */
FSM_LOCAL double fsm_between(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t i, int64_t j,
                             int64_t k, double close)
{
    int64_t n_u = tables->sizes->n_u;
    int64_t a = AT(tables->contact_rows, i, 0), b = AT(tables->contact_rows, j, 0), c = AT(tables->contact_rows, k, 0);
    const int64_t rows[3] = {a, b, c};
    const int64_t begin[3] = {terms->row_begin.at[a], terms->row_begin.at[b], terms->row_begin.at[c]};
    int64_t at[3] = {begin[0], begin[1], begin[2]};
    double along = 0.0, apart = 0.0, size = 0.0;
    for (int64_t v = next_column(terms, rows, at, n_u); v < n_u; v = next_column(terms, rows, at, n_u)) {
        double weight = AT(terms->M, v, v) > 0.0 ? 1.0 / AT(terms->M, v, v) : 1.0;
        double step = AT(terms->A, c, v) - AT(terms->A, b, v);
        along += weight * step * (AT(terms->A, a, v) - AT(terms->A, b, v));
        apart += weight * step * step;
        size += weight * AT(terms->A, a, v) * AT(terms->A, a, v);
    }
    double s = apart > close * close * size ? along / apart : 0.0;
    double off = 0.0;
    memcpy(at, begin, sizeof at);
    for (int64_t v = next_column(terms, rows, at, n_u); v < n_u; v = next_column(terms, rows, at, n_u)) {
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
    bool alike = terms->restitution.at[j] == terms->restitution.at[k] &&
                 terms->tangential_restitution.at[j] == terms->tangential_restitution.at[k];
    return flags && same && alike && fsm_exchangeable(tables, j, k);
}

/* Whether the normal rows of two contacts differ by no more than the part `close`. */
FSM_LOCAL bool fsm_same_normal(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k,
                               double close)
{
    return fsm_between(tables, terms, j, k, k, close) == 0.0;
}

/* Whether contact `k` is of two polyhedra in space: of a corner and a face, or of two edges. */
FSM_LOCAL bool fsm_is_of_solids(const struct fsm_tables *tables, int64_t k)
{
    return (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0 && AT(tables->contact_ends, k, 0) >= 0 &&
           AT(tables->contact_ends, k, 1) < 0;
}

/* Whether two contacts keep the same gap at the same place: of one corner, or of corners that coincide.

   Features of polyhedra coincide where their rows do: a corner of either body and the edges that cross there. */
FSM_LOCAL bool fsm_same_place(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k)
{
    if (!fsm_exchangeable(tables, j, k)) {
        return false;
    }
    if (fsm_is_of_solids(tables, j) && fsm_is_of_solids(tables, k)) {
        return fsm_same_normal(tables, terms, j, k, FSM_SAME_ROW);
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

/* -- Bounded faces: range of a contact, and its handover to the next face (docs/theory.md, "Contact geometry"). */

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
   faces are treated in contact_features.c. */
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

/* -- Feature selection: active pairs of corner and face where bodies touch at their corners (docs/theory.md, "Contact
   geometry").

   Two convex corners that coincide keep apart as long as *one* direction of both normal cones separates them, so of the
   up to four pairs of corner and face there one has to be active, not all: the one whose gap closes least.  Pairs of
   different corners must be active all together.  Of contacts that keep the same gap one is enough, and of those on one
   line between two bodies the outer two are. */

#define FSM_BESIDE 3e-6 // normals that differ by less than this part are one to the rank of a candidate's rows
#define FSM_ACCELERATION_EQUAL 1e-9 // accelerations that differ by less than this part are the same

static double normal_speed(const struct fsm_resolution *r, int64_t k)
{
    return fsm_row_speed(r->terms, AT(r->tables->contact_rows, k, 0), r->u);
}

static double gap_of(const struct fsm_resolution *r, int64_t k)
{
    return r->terms->residual.at[AT(r->tables->contact_rows, k, 0)];
}

/* Whether contacts `j` and `k` are pairs of the same two coinciding corners. */
static bool coincide(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    return fsm_at_end(r->tables, r->terms, k) && fsm_at_end(r->tables, r->terms, j) &&
           fsm_same_corners(r->tables, r->terms, j, k);
}

/* Whether contact `k` is on its face, and `j` beside its own, and the rates of their gaps are those of one place.

   Corners that coincide may be apart by the tolerance of a gap; bodies that turn have other speeds there. */
static bool is_decided_by_place(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    double close = r->tables->tolerances->projection, size = 0.0;
    int64_t row = AT(r->tables->contact_rows, k, 0);
    for (int64_t i = 0; i < r->u.n; i++) {
        size += fabs(AT(r->terms->A, row, i) * r->u.at[i]);
    }
    return r->terms->reach.at[k] > close && r->terms->reach.at[j] < -close &&
           normal_speed(r, j) - normal_speed(r, k) <= FSM_SAME_ROW * size;
}

/* Remove from the closed contacts the pairs of two coinciding corners that close faster than another.

   The gap of two corners is the largest of their pairs', so its rate is the largest rate, also of those that leave their
   faces; only pairs of that rate can strike or be closed.  A contact that lasts ends where its face does, not within the
   tolerance of it. */
static void separate_corners(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->closed.n; k++) {
        if (r->closed.at[k] == 0 || !fsm_at_end(r->tables, r->terms, k)) {
            continue;
        }
        if (r->before.at[k] != FSM_CONTACT_FREE && r->event.at[k] != FSM_EVENT_LEAVES &&
            r->terms->reach.at[k] > r->tables->tolerances->projection) {
            continue;
        }
        double rate = normal_speed(r, k);
        for (int64_t j = 0; j < r->closed.n; j++) {
            if (j != k && coincide(r, j, k) && normal_speed(r, j) > rate + fsm_still(r->tables, r->terms, k)) {
                r->closed.at[is_decided_by_place(r, j, k) ? j : k] = 0;
            }
        }
    }
}

/* Return how well contact `k` represents others at its place: it stays, is needed, was closed, or its corner was.

   `goes_on`: a slip takes the corners apart, so that it does not matter what is needed; the corner that was closed is
   the outer one next. */
static int64_t suitability(const struct fsm_resolution *r, int64_t k, bool goes_on)
{
    const struct fsm_terms *terms = r->terms;
    int64_t rank = 4;
    for (int64_t j = 0; !goes_on && j < r->before.n; j++) {
        if (coincide(r, j, k) && !fsm_same_place(r->tables, terms, j, k)) {
            rank = 0; // another face could keep the two corners apart
        }
    }
    bool ends = terms->margin_slope.at[k] != 0.0 || fsm_is_of_solids(r->tables, k);
    bool at_end = ends && terms->reach.at[k] <= r->tables->tolerances->gap;
    if (!at_end || !(terms->reach_rate.at[k] < -r->tables->tolerances->speed)) {
        rank += 8;
    }
    if (r->before.at[k] != FSM_CONTACT_FREE && r->event.at[k] != FSM_EVENT_LEAVES) {
        return rank + 2;
    }
    for (int64_t j = 0; j < r->before.n; j++) {
        if (r->before.at[j] != FSM_CONTACT_FREE &&
            AT(r->tables->contact_ends, j, 0) == AT(r->tables->contact_ends, k, 0)) {
            return rank + 1;
        }
    }
    return rank;
}

/* Of two closed contacts at the same place remove the less suitable one. */
static void remove_one(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    double difference = gap_of(r, j) - gap_of(r, k);
    bool level = fabs(difference) <= r->tables->tolerances->projection; // else the step itself decides
    bool goes_on = level && fabs(r->terms->reach_rate.at[k]) > r->tables->tolerances->speed;
    bool better = suitability(r, k, goes_on) > suitability(r, j, goes_on);
    r->closed.at[better ? j : k] = 0;
}

/* Whether contact `k` is so far within its face that its end is not level with it. */
static bool is_off_ends(const struct fsm_resolution *r, int64_t k)
{
    return r->terms->reach.at[k] > FSM_LEVEL * r->tables->tolerances->gap;
}

/* Of two closed contacts nanometres apart, a corner on either body, return the one whose gap grows as the other's falls;
   -1 for others.

   Both gaps are to be kept, but their rows are the same to rounding: the one that falls keeps the other. */
static int64_t find_kept_beside(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    bool may = is_off_ends(r, j) && is_off_ends(r, k) && fsm_exchangeable(r->tables, j, k);
    if (!may || !fsm_same_normal(r->tables, r->terms, j, k, FSM_BESIDE)) {
        return -1;
    }
    double ahead = normal_speed(r, j) - normal_speed(r, k);
    double still = fsm_larger(fsm_still(r->tables, r->terms, j), fsm_still(r->tables, r->terms, k));
    return fabs(ahead) > still ? (ahead > 0.0 ? j : k) : -1;
}

/* Whether the normal rows of two contacts can differ from zero in one column. */
static bool share_bodies(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    const struct fsm_terms *terms = r->terms;
    int64_t a = AT(r->tables->contact_rows, j, 0), b = AT(r->tables->contact_rows, k, 0);
    int64_t one = terms->row_begin.at[a], other = terms->row_begin.at[b];
    while (one < terms->row_begin.at[a + 1] && other < terms->row_begin.at[b + 1]) {
        int64_t first = terms->row_columns.at[one], second = terms->row_columns.at[other];
        if (first == second) {
            return true;
        }
        one += first < second ? 1 : 0;
        other += first < second ? 0 : 1;
    }
    return false;
}

/* Whether contact `i` lies between `j` and `k` on one line, and its gap does not fall while theirs last. */
static bool is_kept_by(const struct fsm_resolution *r, int64_t i, int64_t j, int64_t k)
{
    double s = fsm_between(r->tables, r->terms, i, j, k, FSM_SAME_ROW);
    if (!(s > 0.0 && s < 1.0)) {
        return false;
    }
    double kept = (1.0 - s) * normal_speed(r, j) + s * normal_speed(r, k);
    return !(is_off_ends(r, i) && normal_speed(r, i) < kept - fsm_still(r->tables, r->terms, i));
}

/* Whether contact `i` lies between two other closed ones on one line, and its gap does not fall while theirs last.

   `list`: those that are closed, or were.  Rows of other bodies do not combine to one.  In space all three share the
   friction. */
static bool is_between(const struct fsm_resolution *r, fsm_indices list, int64_t i)
{
    if ((r->tables->contact_flags.at[i] & FSM_FLAG_IN_SPACE) != 0) {
        return false;
    }
    for (int64_t a = 0; a < list.n; a++) {
        int64_t j = list.at[a];
        if (j == i || r->closed.at[j] == 0 || !fsm_exchangeable(r->tables, i, j) || !share_bodies(r, i, j)) {
            continue;
        }
        for (int64_t b = 0; b < list.n; b++) {
            int64_t k = list.at[b];
            if (k == i || k == j || r->closed.at[k] == 0 || !fsm_exchangeable(r->tables, i, k)) {
                continue;
            }
            bool seen = b < a && share_bodies(r, i, k);
            if (!seen && is_kept_by(r, i, j < k ? j : k, j < k ? k : j)) {
                return true;
            }
        }
    }
    return false;
}

/* List the closed contacts. */
static fsm_indices list_closed(const struct fsm_resolution *r)
{
    int64_t count = 0;
    for (int64_t k = 0; k < r->closed.n; k++) {
        count += r->closed.at[k] == 0 ? 0 : 1;
    }
    fsm_indices list = fsm_arena_indices(r->arena, count);
    count = 0;
    for (int64_t k = 0; k < r->closed.n; k++) {
        if (r->closed.at[k] != 0) {
            list.at[count++] = k;
        }
    }
    return list;
}

/* Remove from the closed contacts what others determine: contacts at the same place, and those between two on a line.

   The latter are marked as implied: their gaps need not be watched while the others are closed. */
static void remove_redundant(const struct fsm_resolution *r)
{
    fsm_mark top = fsm_arena_mark(r->arena);
    fsm_indices list = list_closed(r);
    for (int64_t b = 0; b < list.n; b++) {
        for (int64_t a = 0; a < b && r->closed.at[list.at[b]] != 0; a++) {
            int64_t j = list.at[a], k = list.at[b];
            if (r->closed.at[j] == 0) {
                continue;
            }
            if (fsm_same_place(r->tables, r->terms, j, k)) {
                remove_one(r, j, k);
                continue;
            }
            int64_t kept = find_kept_beside(r, j, k);
            if (kept >= 0) {
                r->closed.at[kept] = 0;
            }
        }
    }
    fsm_indices implied = r->outcome->implied, outline = r->tables->contact_outline;
    for (int64_t a = 0; a < list.n; a++) {
        int64_t i = list.at[a];
        if (r->closed.at[i] == 0) {
            continue;
        }
        if (is_between(r, list, i)) {
            implied.at[i] = 1;
        }
        if (implied.at[i] == 1) {
            r->closed.at[i] = 0;
            if (outline.at[i] >= 0) {
                implied.at[outline.at[i]] = 1;
            }
        }
    }
    fsm_arena_release(r->arena, top);
}

/* Leave in `closed` the contacts of corners and faces that are active at the current speeds. */
FSM_LOCAL void fsm_choose_features(const struct fsm_resolution *r)
{
    bool corners = false;
    for (int64_t k = 0; k < r->closed.n; k++) {
        r->outcome->implied.at[k] = 0;
        corners = corners || (r->closed.at[k] == 1 && AT(r->tables->contact_ends, k, 0) >= 0);
    }
    if (corners) {
        separate_corners(r);
        remove_redundant(r);
    }
}

/* Return the second rates (n_contacts,) of the gaps of closed contacts (m/s²) without contact forces. */
static fsm_vector gap_accelerations(const struct fsm_resolution *r)
{
    const struct fsm_terms *terms = r->terms;
    int64_t n_u = r->u.n;
    fsm_indices held = fsm_bilateral_rows(r->arena, r->tables, r->outcome->wanted);
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(r->arena, terms, held, n_u);
    fsm_vector motion = fsm_arena_vector(r->arena, n_u), rates = fsm_arena_vector(r->arena, r->closed.n);
    fsm_base_accelerations(r->arena, r->tables, terms, &bilateral, fsm_vector_first(terms->f, n_u), r->u, motion,
                           fsm_arena_vector(r->arena, held.n));
    for (int64_t k = 0; k < r->closed.n; k++) {
        if (r->closed.at[k] == 1) {
            int64_t row = AT(r->tables->contact_rows, k, 0);
            rates.at[k] = terms->gamma.at[row];
            for (int64_t i = 0; i < n_u; i++) {
                rates.at[k] += AT(terms->A, row, i) * motion.at[i];
            }
        }
    }
    return rates;
}

static bool is_still(const struct fsm_resolution *r, int64_t k)
{
    return fabs(normal_speed(r, k)) <= fsm_still(r->tables, r->terms, k);
}

/* Whether contacts `j` and `k` are pairs of the same coinciding corners, at rest there, with different normals. */
static bool are_rivals(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    return j != k && coincide(r, j, k) && is_still(r, j) && !fsm_same_place(r->tables, r->terms, j, k);
}

/* Whether contact `k` was closed and does not leave its face. */
static bool remains(const struct fsm_resolution *r, int64_t k)
{
    return r->before.at[k] != FSM_CONTACT_FREE && r->event.at[k] != FSM_EVENT_LEAVES &&
           fsm_within_face(r->tables, r->terms, k);
}

/* Whether a third closed contact, not of the corners of `k`, keeps the gap of `j`. */
static bool is_kept_elsewhere(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    for (int64_t m = 0; m < r->closed.n; m++) {
        if (r->closed.at[m] == 1 && m != k && m != j && fsm_same_place(r->tables, r->terms, m, j) &&
            !coincide(r, m, k)) {
            return true;
        }
    }
    return false;
}

/* Leave in `closed` one pair of two corners that coincide and are at rest there.

   One that another contact keeps, or that was closed before, makes the others needless; else it is the one whose gap
   the forces close least. */
FSM_LOCAL void fsm_rest_on_one(const struct fsm_resolution *r)
{
    int64_t n = r->closed.n;
    fsm_vector rates = fsm_arena_vector(r->arena, 0);
    for (int64_t k = 0; k < n; k++) {
        if (r->closed.at[k] == 0 || !fsm_at_end(r->tables, r->terms, k) || !is_still(r, k)) {
            continue;
        }
        for (int64_t j = 0; j < n; j++) {
            if (r->closed.at[k] == 0 || !are_rivals(r, j, k)) {
                continue;
            }
            if (is_kept_elsewhere(r, j, k)) {
                r->closed.at[k] = 0;
            }
            if (r->closed.at[k] == 0 || r->closed.at[j] == 0) {
                continue;
            }
            bool stays = remains(r, k);
            if (stays != remains(r, j)) {
                r->closed.at[stays ? j : k] = 0;
                continue;
            }
            if (rates.n == 0) {
                rates = gap_accelerations(r);
            }
            double larger = fsm_larger(fabs(rates.at[k]), fabs(rates.at[j]));
            if (fabs(rates.at[k] - rates.at[j]) > FSM_ACCELERATION_EQUAL * larger) {
                r->closed.at[rates.at[k] > rates.at[j] ? j : k] = 0;
            }
        }
    }
}

/* Return +1 where two contacts at one place count their slip the same way, else -1. */
static double slip_sense(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k)
{
    double total = 0.0;
    for (int64_t v = 0; v < tables->sizes->n_u; v++) {
        total += AT(terms->A, AT(tables->contact_rows, j, 1), v) * AT(terms->A, AT(tables->contact_rows, k, 1), v);
    }
    return total >= 0.0 ? 1.0 : -1.0;
}

/* Whether a slide of contact `k` begins out of the end of its face. */
static bool slides_off(const struct fsm_resolution *r, int64_t k)
{
    const struct fsm_terms *terms = r->terms;
    return r->outcome->wanted.at[k] == FSM_CONTACT_SLIDING && terms->margin_slope.at[k] != 0.0 &&
           fsm_at_end(r->tables, terms, k) && fabs(terms->reach_rate.at[k]) <= r->tables->tolerances->speed &&
           terms->margin_slope.at[k] * r->sigma.at[k] < 0.0;
}

/* Whether open contact `j` is at the place of `k`, on its face; under other friction it need not slide. */
static bool may_succeed(const struct fsm_resolution *r, int64_t j, int64_t k)
{
    return j != k && r->outcome->wanted.at[j] == FSM_CONTACT_FREE && fsm_within_face(r->tables, r->terms, j) &&
           fabs(gap_of(r, j)) <= r->tables->tolerances->gap && fsm_alike(r->tables, r->terms, j, k) &&
           fsm_same_place(r->tables, r->terms, j, k);
}

/* Where a slide begins out of the end of a face, replace the contact by another at the same place that stays.

   Changes the contact states found and their slip directions. */
FSM_LOCAL void fsm_follow_slip(const struct fsm_resolution *r)
{
    fsm_codes wanted = r->outcome->wanted;
    fsm_vector sigma = r->sigma;
    for (int64_t k = 0; k < wanted.n; k++) {
        if (!slides_off(r, k)) {
            continue;
        }
        for (int64_t j = 0; j < wanted.n; j++) {
            if (!may_succeed(r, j, k)) {
                continue;
            }
            double direction = sigma.at[k] * slip_sense(r->tables, r->terms, j, k);
            if (r->terms->margin_slope.at[j] * direction > 0.0 || r->terms->reach.at[j] > r->tables->tolerances->gap) {
                wanted.at[j] = wanted.at[k];
                sigma.at[j] = direction;
                wanted.at[k] = FSM_CONTACT_FREE;
                sigma.at[k] = 0.0;
                break;
            }
        }
    }
}

/* Void the ends of faces that contacts reached together with an impact, which turns them back. */
FSM_LOCAL void fsm_void_face_ends(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->event.n; k++) {
        if (r->event.at[k] == FSM_EVENT_LEAVES && fsm_within_face(r->tables, r->terms, k)) {
            r->event.at[k] = 0;
        }
    }
}

/* -- Closed contacts at an event time (docs/theory.md, "Resolution", position). */

/* Whether contact `k`, open before and admitted to close, closes; a corner that has no speed towards its face is flush. */
static bool closes(const struct fsm_resolution *r, int64_t k, double gap, double near)
{
    int64_t row = AT(r->tables->contact_rows, k, 0);
    bool corner = AT(r->tables->contact_ends, k, 0) >= 0 && gap <= r->tables->tolerances->gap;
    if (gap <= r->tables->tolerances->gap && fsm_speed_of_succession(r, k) > 0.0) {
        return true;
    }
    bool flush = corner && fabs(fsm_row_speed(r->terms, row, r->u)) <= fsm_still(r->tables, r->terms, k);
    return flush || r->event.at[k] == FSM_EVENT_CLOSES || gap <= near;
}

/* Whether contact `k` is a corner at an end of a face and behind it: then other faces of the two corners are apart. */
static bool is_behind_end(const struct fsm_resolution *r, int64_t k, double gap)
{
    double small = r->tables->tolerances->gap;
    bool at_end = r->terms->margin_slope.at[k] != 0.0 && fabs(r->terms->reach.at[k]) <= small;
    return at_end && AT(r->tables->contact_ends, k, 0) >= 0 && r->event.at[k] != FSM_EVENT_CLOSES && gap < -small;
}

/* Whether contact `k` is open in the mode that the transition names. */
static bool is_released(const struct fsm_resolution *r, int64_t k)
{
    return r->transition >= 0 && AT(r->tables->transition_states, r->transition, k) == FSM_CONTACT_FREE;
}

/* Mark in `insists` the contacts that close in this instant, that the transition opens, and whose bodies still approach after
   the impacts of all others, to within `near` (m); returns whether there are more of them. */
FSM_LOCAL bool fsm_any_insists(const struct fsm_resolution *r, double near)
{
    const struct fsm_tables *tables = r->tables;
    bool any = false;
    for (int64_t k = 0; k < r->closed.n; k++) {
        int64_t row = AT(tables->contact_rows, k, 0), flags = tables->contact_flags.at[k];
        bool apart = (flags & FSM_FLAG_RIGID) != 0 && (flags & FSM_FLAG_TWO_SIDED) == 0 &&
                     (r->before.at[k] == FSM_CONTACT_FREE || r->moved.at[k] != 0);
        if (apart && is_released(r, k) && r->insists.at[k] == 0 && r->terms->closes_if.at[k] != 0.0 &&
            fsm_within_face(tables, r->terms, k) &&
            closes(r, k, r->terms->residual.at[row], near * tables->row_unit.at[row]) &&
            fsm_row_speed(r->terms, row, r->u) < -fsm_still(tables, r->terms, k)) {
            r->insists.at[k] = any = true;
        }
    }
    return any;
}

/* Mark the contacts whose gaps are zero, to within `near` (m); false if one is deeper than the gap tolerance.

   In the course of a run a contact that is near but has not fired is left to close by itself: closing it would move
   it.  A transition to a mode in which a contact is open releases it; one that closes in this instant has its impact if it
   insists. */
static bool mark_closed(const struct fsm_resolution *r, double near)
{
    const struct fsm_tables *tables = r->tables;
    for (int64_t k = 0; k < r->closed.n; k++) {
        r->closed.at[k] = 0;
        if ((tables->contact_flags.at[k] & FSM_FLAG_RIGID) == 0) {
            continue;
        }
        if (tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) {
            r->closed.at[k] = 1;
        } else if (r->before.at[k] != FSM_CONTACT_FREE && r->moved.at[k] == 0) {
            r->closed.at[k] = !is_released(r, k) && r->event.at[k] != FSM_EVENT_LEAVES;
        } else if (r->terms->closes_if.at[k] != 0.0 && fsm_within_face(tables, r->terms, k) &&
                   (!is_released(r, k) || r->insists.at[k] == 1)) {
            int64_t row = AT(tables->contact_rows, k, 0);
            double gap = r->terms->residual.at[row], small = fsm_gap_tolerance(tables, row);
            // a guard that was seen in this instant, and changed nothing, is watched from somewhat below zero on
            bool seen = r->event.at[k] == FSM_EVENT_CLOSES || near < tables->tolerances->gap;
            bool deep = gap < (seen ? -FSM_DEEPEST * small : -small);
            bool limited = (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0;
            if (deep && (!limited || (r->placed && fsm_is_placed_inside(tables, r->terms, r->before, k)))) {
                return false;
            }
            bool behind = deep || is_behind_end(r, k, gap); // behind a face that ends there is no penetration
            r->closed.at[k] = !behind && closes(r, k, gap, near * tables->row_unit.at[row]);
        }
    }
    return true;
}

/* Mark the active contacts in `closed`, and those whose gaps others determine in `outcome->implied`.

   `near`: gap up to which a contact that has not fired is closed (m).  False if one is deeper than the gap
   tolerance. */
FSM_LOCAL bool fsm_find_active(const struct fsm_resolution *r, double near)
{
    if (!mark_closed(r, near) || (r->placed && (fsm_edges_cross(r->tables, r->terms, r->before) ||
                                                fsm_solids_overlap(r->tables, r->terms, r->before)))) {
        return false;
    }
    fsm_choose_features(r);
    fsm_exclude_face_ends(r);
    return true;
}
