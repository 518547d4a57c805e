/* Which pairs of corner and face are active where bodies meet in their corners (docs/theory.md, "Contact geometry").

   Two convex corners that coincide keep apart as long as *one* direction of both normal cones separates them, so of the
   up to four pairs of corner and face that meet there one has to hold, not all: the one whose gap closes least.  Pairs
   of different corners must hold all together.  Of contacts that keep the same gap one is enough, and of those on one
   line between two bodies the outer two are. */

#include "contacts.h"

#define FSM_EQUAL 1e-9 // accelerations that differ by less than this part are the same

static double slip_sense(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k);

/* Whether a contact is a corner at an end of a face, with no gap, that the body of the corner does not cover. */
FSM_LOCAL bool fsm_at_end(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    double small = tables->tolerances->gap;
    if (terms->margin_slope.at[k] == 0.0 || terms->closes_if.at[k] == 0.0 || terms->aspect.at[k] < -FSM_LEVEL * small) {
        return false;
    }
    return fabs(terms->reach.at[k]) <= small && fabs(terms->residual.at[AT(tables->contact_rows, k, 0)]) <= small;
}

/* Return the number of the corner in which a face ends where the contact `k` is nearer to. */
FSM_LOCAL int64_t fsm_corner_behind(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
{
    return AT(tables->contact_ends, k, terms->margin_slope.at[k] > 0.0 ? 1 : 2);
}

/* Whether two contacts at ends of their faces stand for one pair of corners that meet. */
FSM_LOCAL bool fsm_same_corners(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k)
{
    int64_t one = AT(tables->contact_ends, j, 0), other = fsm_corner_behind(tables, terms, j);
    int64_t first = AT(tables->contact_ends, k, 0), second = fsm_corner_behind(tables, terms, k);
    return (one == first && other == second) || (one == second && other == first);
}

/* Strike out of `closed` (n_contacts,) the pairs of two coinciding corners that close faster than another.

   The gap of two corners is the largest of their pairs', so its rate is the largest rate, also of those on their
   way out; only pairs of that rate can strike or be closed.  A contact that lasts ends where its face does, not
   within the tolerance of it. */
FSM_LOCAL void fsm_separate_corners(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                    fsm_indices before, fsm_indices event, fsm_indices closed)
{
    int64_t n = closed.n;
    for (int64_t k = 0; k < n; k++) {
        if (closed.at[k] == 0 || !fsm_at_end(tables, terms, k)) {
            continue;
        }
        if (before.at[k] != FSM_CONTACT_FREE && event.at[k] != FSM_EVENT_LEAVES &&
            terms->reach.at[k] > tables->tolerances->projection) {
            continue;
        }
        double rate = fsm_row_speed(terms, AT(tables->contact_rows, k, 0), u);
        for (int64_t j = 0; j < n; j++) {
            bool rival = j != k && fsm_at_end(tables, terms, j) && fsm_same_corners(tables, terms, j, k);
            if (rival && fsm_row_speed(terms, AT(tables->contact_rows, j, 0), u) > rate + fsm_still(tables, terms, k)) {
                closed.at[k] = 0;
            }
        }
    }
}

/* Return where contact `i` lies between `j` (0) and `k` (1) on one line, NaN where it is farther off.

   Rows of one line between two bodies are `A_i = (1 - s) A_j + s A_k`, in the metric of the mass matrix' diagonal. */
FSM_LOCAL double fsm_between(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t i, int64_t j,
                             int64_t k, double close)
{
    int64_t n_u = tables->sizes->n_u;
    int64_t a = AT(tables->contact_rows, i, 0), b = AT(tables->contact_rows, j, 0), c = AT(tables->contact_rows, k, 0);
    double along = 0.0, apart = 0.0, size = 0.0;
    double weight;
    for (int64_t v = 0; v < n_u; v++) {
        weight = AT(terms->M, v, v) > 0.0 ? 1.0 / AT(terms->M, v, v) : 1.0;
        double step = AT(terms->A, c, v) - AT(terms->A, b, v);
        along += weight * step * (AT(terms->A, a, v) - AT(terms->A, b, v));
        apart += weight * step * step;
        size += weight * AT(terms->A, a, v) * AT(terms->A, a, v);
    }
    double s = apart > close * close * size ? along / apart : 0.0;
    double off = 0.0;
    for (int64_t v = 0; v < n_u; v++) {
        weight = AT(terms->M, v, v) > 0.0 ? 1.0 / AT(terms->M, v, v) : 1.0;
        off += weight * fsm_square(AT(terms->A, a, v) - (1.0 - s) * AT(terms->A, b, v) - s * AT(terms->A, c, v));
    }
    double drive = terms->b.at[a] - (1.0 - s) * terms->b.at[b] - s * terms->b.at[c];
    if (off > close * close * size || fabs(drive) > tables->tolerances->speed) {
        return FSM_NAN;
    }
    return s;
}

/* Whether of two contacts of corners and faces one may keep the gap of the other; their friction may differ. */
FSM_LOCAL bool fsm_exchangeable(const struct fsm_tables *tables, int64_t j, int64_t k)
{
    int64_t friction = FSM_FLAG_FRICTION | FSM_FLAG_STICKS_ALWAYS;
    bool same = (fsm_modulo(tables->contact_flags.at[j], FSM_FLAG_GROUP) | friction) ==
                (fsm_modulo(tables->contact_flags.at[k], FSM_FLAG_GROUP) | friction);
    return same && AT(tables->contact_ends, j, 0) >= 0 && AT(tables->contact_ends, k, 0) >= 0;
}

/* Whether two contacts of corners and faces obey the same laws as well. */
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

/* How well a contact suits to stand for others at its place: it stays, is needed, was closed, or its corner was.

   `goes_on`: a slip takes the corners apart, so that it does not matter what is needed; the corner that was closed
   is the outer one next. */
static int64_t suitability(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices before,
                           fsm_indices event, int64_t k, bool goes_on)
{
    int64_t rank = 4;
    for (int64_t j = 0; j < (!goes_on ? before.n : 0); j++) {
        bool meets =
            fsm_at_end(tables, terms, k) && fsm_at_end(tables, terms, j) && fsm_same_corners(tables, terms, j, k);
        if (meets && !fsm_same_place(tables, terms, j, k)) {
            rank = 0; // another face could keep the two corners apart: the place may be left to what has no choice
        }
    }
    bool leaving = terms->margin_slope.at[k] != 0.0 && terms->reach.at[k] <= tables->tolerances->gap;
    if (!(leaving && terms->reach_rate.at[k] < -tables->tolerances->speed)) {
        rank += 8;
    }
    if (before.at[k] != FSM_CONTACT_FREE && event.at[k] != FSM_EVENT_LEAVES) {
        return rank + 2;
    }
    for (int64_t j = 0; j < before.n; j++) {
        if (before.at[j] != FSM_CONTACT_FREE && AT(tables->contact_ends, j, 0) == AT(tables->contact_ends, k, 0)) {
            return rank + 1;
        }
    }
    return rank;
}

/* Strike out of `closed` what others keep: contacts at the same place, and those between two on one line.

   `implied` (n_contacts,) is set to 1 for the latter: their gaps need not be watched while the others are closed. */
FSM_LOCAL void fsm_one_of_each_place(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices before,
                                     fsm_indices event, fsm_indices closed, fsm_indices implied)
{
    int64_t n = closed.n;
    for (int64_t k = 0; k < n; k++) {
        implied.at[k] = 0;
        for (int64_t j = 0; j < k; j++) {
            if (closed.at[j] == 1 && closed.at[k] == 1 && fsm_same_place(tables, terms, j, k)) {
                double apart = terms->residual.at[AT(tables->contact_rows, j, 0)] -
                               terms->residual.at[AT(tables->contact_rows, k, 0)];
                bool level = fabs(apart) <= tables->tolerances->projection; // else the step itself decides
                bool goes_on = level && fabs(terms->reach_rate.at[k]) > tables->tolerances->speed;
                int64_t rank = suitability(tables, terms, before, event, j, goes_on);
                bool better = suitability(tables, terms, before, event, k, goes_on) > rank;
                closed.at[better ? j : k] = 0;
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if (closed.at[i] == 0) {
            continue;
        }
        for (int64_t j = 0; j < n; j++) {
            if (j == i || closed.at[j] == 0 || !fsm_exchangeable(tables, i, j)) {
                continue;
            }
            for (int64_t k = j + 1; k < n; k++) {
                if (k == i || closed.at[k] == 0 || !fsm_exchangeable(tables, i, k)) {
                    continue;
                }
                double s = fsm_between(tables, terms, i, j, k, FSM_SAME_ROW);
                if (s > 0.0 && s < 1.0) {
                    implied.at[i] = 1;
                }
            }
        }
        if (implied.at[i] == 1) {
            closed.at[i] = 0;
            if (tables->contact_outline.at[i] >= 0) {
                implied.at[tables->contact_outline.at[i]] = 1;
            }
        }
    }
}

/* Leave in `closed` (n_contacts,) the contacts of corners and faces active at the speeds `u` (n_u,). */
FSM_LOCAL void fsm_choose_features(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                   fsm_indices before, fsm_indices event, fsm_indices closed, fsm_indices implied)
{
    int64_t corners = 0;
    for (int64_t k = 0; k < closed.n; k++) {
        implied.at[k] = 0;
        corners += closed.at[k] == 1 && AT(tables->contact_ends, k, 0) >= 0;
    }
    if (corners < 1) {
        return;
    }
    fsm_separate_corners(tables, terms, u, before, event, closed);
    fsm_one_of_each_place(tables, terms, before, event, closed, implied);
}

/* Second rates (n_contacts,) of the gaps of closed contacts (m/s^2) if none of them gave a force. */
static fsm_vector accelerations(struct fsm_arena *arena, const struct fsm_tables *tables, const struct fsm_terms *terms,
                                fsm_vector u, fsm_codes wanted, fsm_indices closed)
{
    int64_t n_u = tables->sizes->n_u;
    fsm_indices held = fsm_bilateral_rows(arena, tables, wanted);
    fsm_vector target = fsm_arena_vector(arena, held.n), reaction = fsm_arena_vector(arena, held.n),
               motion = fsm_arena_vector(arena, n_u);
    for (int64_t i = 0; i < held.n; i++) {
        target.at[i] = -terms->gamma.at[held.at[i]];
    }
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(arena, terms, held, n_u);
    fsm_solve_bilateral(&bilateral, fsm_vector_first(terms->f, n_u), target, motion, reaction,
                        fsm_rounding_of(terms, fsm_vector_first(u, n_u), true));
    fsm_vector rates = fsm_arena_vector(arena, closed.n);
    for (int64_t k = 0; k < closed.n; k++) {
        if (closed.at[k] == 1) {
            int64_t row = AT(tables->contact_rows, k, 0);
            rates.at[k] = terms->gamma.at[row];
            for (int64_t i = 0; i < n_u; i++) {
                rates.at[k] += AT(terms->A, row, i) * motion.at[i];
            }
        }
    }
    return rates;
}

/* Whether two contacts are pairs of the same coinciding corners, at rest there, with different normals. */
static bool has_rival(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u, int64_t k,
                      int64_t j)
{
    if (j == k || !fsm_at_end(tables, terms, j) || !fsm_same_corners(tables, terms, j, k)) {
        return false;
    }
    if (fabs(fsm_row_speed(terms, AT(tables->contact_rows, j, 0), u)) > fsm_still(tables, terms, j)) {
        return false;
    }
    return !fsm_same_place(tables, terms, j, k);
}

/* Whether a contact was closed and is not at the end of its face on the way out. */
static bool find_stays(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices before,
                       fsm_indices event, int64_t k)
{
    return before.at[k] != FSM_CONTACT_FREE && event.at[k] != FSM_EVENT_LEAVES && fsm_within_face(tables, terms, k);
}

/* Leave in `closed` (n_contacts,) one pair of two corners that coincide and are at rest there.

   One that another contact keeps, or that was closed before, makes the others needless; else it is the one
   whose gap the forces close least. */
FSM_LOCAL void fsm_rest_on_one(struct fsm_arena *arena, const struct fsm_tables *tables, const struct fsm_terms *terms,
                               fsm_vector u, fsm_codes wanted, fsm_indices before, fsm_indices event,
                               fsm_indices closed)
{
    int64_t n = closed.n;
    fsm_vector rates = fsm_arena_vector(arena, 0);
    for (int64_t k = 0; k < n; k++) {
        if (closed.at[k] == 0 || !fsm_at_end(tables, terms, k)) {
            continue;
        }
        if (fabs(fsm_row_speed(terms, AT(tables->contact_rows, k, 0), u)) > fsm_still(tables, terms, k)) {
            continue;
        }
        for (int64_t j = 0; j < n; j++) {
            if (closed.at[k] == 0 || !has_rival(tables, terms, u, k, j)) {
                continue;
            }
            for (int64_t m = 0; m < n; m++) {
                if (closed.at[m] == 1 && m != k && m != j && fsm_same_place(tables, terms, m, j)) {
                    bool apart = !(fsm_at_end(tables, terms, m) && fsm_same_corners(tables, terms, m, k));
                    closed.at[k] = apart ? 0 : closed.at[k];
                }
            }
            if (closed.at[k] == 0 || closed.at[j] == 0) {
                continue;
            }
            bool stays = find_stays(tables, terms, before, event, k),
                 other_stays = find_stays(tables, terms, before, event, j);
            if (stays != other_stays) {
                closed.at[stays ? j : k] = 0;
                continue;
            }
            if (rates.n == 0) {
                rates = accelerations(arena, tables, terms, u, wanted, closed);
            }
            if (fabs(rates.at[k] - rates.at[j]) > FSM_EQUAL * fsm_larger(fabs(rates.at[k]), fabs(rates.at[j]))) {
                closed.at[rates.at[k] > rates.at[j] ? j : k] = 0;
            }
        }
    }
}

/* Where a slip begins out of the end of a face, pass the contact on to another at the same place that stays.

   Changes the states `wanted` (n_contacts,) and the slip directions `sigma` (n_contacts,) found. */
FSM_LOCAL void fsm_follow_slip(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices before,
                               fsm_codes wanted, fsm_vector sigma)
{
    int64_t n = wanted.n;
    for (int64_t k = 0; k < n; k++) {
        bool begins =
            wanted.at[k] == FSM_CONTACT_SLIDING && terms->margin_slope.at[k] != 0.0 && fsm_at_end(tables, terms, k);
        bool slow = fabs(terms->reach_rate.at[k]) <= tables->tolerances->speed;
        if (!(begins && slow && terms->margin_slope.at[k] * sigma.at[k] < 0.0)) {
            continue;
        }
        for (int64_t j = 0; j < n; j++) {
            if (wanted.at[j] != FSM_CONTACT_FREE || j == k || !fsm_within_face(tables, terms, j)) {
                continue;
            }
            if (fabs(terms->residual.at[AT(tables->contact_rows, j, 0)]) > tables->tolerances->gap) {
                continue;
            }
            if (!fsm_alike(tables, terms, j, k) || !fsm_same_place(tables, terms, j, k)) {
                continue; // under other friction it need not slide
            }
            double turned = sigma.at[k] * slip_sense(tables, terms, j, k);
            if (terms->margin_slope.at[j] * turned > 0.0 || terms->reach.at[j] > tables->tolerances->gap) {
                wanted.at[j] = (int8_t)wanted.at[k];
                sigma.at[j] = turned;
                wanted.at[k] = FSM_CONTACT_FREE;
                sigma.at[k] = 0.0;
                break;
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

/* Whether a corner on a straight face that ends is among the contacts that touch. */
FSM_LOCAL bool fsm_has_corners(const struct fsm_tables *tables, fsm_indices closed)
{
    bool found = false;
    for (int64_t k = 0; k < closed.n; k++) {
        found = found || (closed.at[k] == 1 && AT(tables->contact_ends, k, 1) >= 0);
    }
    return found;
}

/* Void the ends of faces that contacts reached in the same instant as an impact, which turns them back. */
FSM_LOCAL void fsm_forget_leaving(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices event)
{
    for (int64_t k = 0; k < event.n; k++) {
        if (event.at[k] == FSM_EVENT_LEAVES && fsm_within_face(tables, terms, k)) {
            event.at[k] = 0;
        }
    }
}
