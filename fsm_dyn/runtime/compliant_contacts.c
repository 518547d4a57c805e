/* Compliant contacts: which are compressed, and on which face where corners meet (docs/theory.md, "Contact geometry").

   Inside a convex body a corner has a negative gap to every face.  The face by which it came in presses until its gap
   opens; at the end of that face one other contact at the same place takes over, with the same compression. */

#include "contacts.h"

#define FSM_COMPLIANT_CONTACTS_FLUSH 1e-3 // part of compressions by which a place between two may be off their line
#define FSM_COMPLIANT_CONTACTS_ALIKE                                                                                   \
    0.05 // part by which normals, and compressions, may differ where one contact takes over from another

static bool compliant_contacts_beside(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                      fsm_indices before, fsm_indices event, int64_t k);
static bool compliant_contacts_is_inner(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k);
static bool takes_over(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices before,
                       fsm_indices event, int64_t k);
static bool follows(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k);

/* Tell which compliant contacts are compressed, and add their forces.

   Parameters
   ----------
   u : float64 array, shape (n_u,)
       Speeds.
   before, event : int64 arrays, shape (n_contacts,)
       The states before, and what happens to each contact.
   wanted : int8 array, shape (n_contacts,)
       In: the states before, as a written transition has changed them; out: `HELD` where compressed.
   force : float64 array, shape (n_u,)
       Generalized forces, to which those of the contacts are added. */
FSM_LOCAL void fsm_add_compliant_forces(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                        fsm_indices before, fsm_indices event, fsm_codes wanted, fsm_vector force)
{
    double slow = tables->tolerances->speed, small = tables->tolerances->gap;
    for (int64_t k = 0; k < event.n; k++) {
        if (tables->contact_kind.at[k] != FSM_KIND_COMPLIANT) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 0);
        double gap = terms->residual.at[row];
        bool deep = gap < -small;
        bool pressed =
            (deep && terms->elastic.at[k] >= 0.0) || (fabs(gap) <= small && fsm_row_speed(terms, row, u) < -slow);
        if (event.at[k] == FSM_EVENT_OPENS || event.at[k] == FSM_EVENT_CLOSES || event.at[k] == FSM_EVENT_LEAVES) {
            pressed = event.at[k] == FSM_EVENT_CLOSES && !compliant_contacts_beside(tables, terms, u, before, event, k);
            pressed = pressed && !compliant_contacts_is_inner(tables, terms, k);
        } else if (wanted.at[k] == FSM_CONTACT_FREE && deep && (tables->contact_flags.at[k] & FSM_FLAG_LIMITED)) {
            pressed = pressed && takes_over(tables, terms, before, event, k); // else it is behind the face
        }
        if (wanted.at[k] == FSM_CONTACT_FREE && (terms->closes_if.at[k] == 0.0 || !fsm_within_face(tables, terms, k))) {
            pressed = false;
        }
        wanted.at[k] = (int8_t)(pressed ? FSM_CONTACT_HELD : FSM_CONTACT_FREE);
        if (pressed) {
            for (int64_t i = 0; i < force.n; i++) {
                force.at[i] += terms->elastic.at[k] * AT(terms->A, row, i);
            }
        }
    }
}

/* Whether a corner passes face `k` no farther from its end than it is compressed on the next face.

   That one closes more slowly, and bears: the corner slides on from a flush neighbour. */
static bool compliant_contacts_beside(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                      fsm_indices before, fsm_indices event, int64_t k)
{
    double small = tables->tolerances->gap;
    if (tables->contact_outline.at[k] > -2) {
        return false;
    }
    double rate = fsm_row_speed(terms, AT(tables->contact_rows, k, 0), u);
    for (int64_t j = 0; j < event.n; j++) {
        double gap = AT(tables->contact_rows, j, 0) >= 0 ? terms->residual.at[AT(tables->contact_rows, j, 0)] : 0.0;
        if (j == k || tables->contact_outline.at[j] != tables->contact_outline.at[k] || gap >= -small) {
            continue;
        }
        if (terms->reach.at[k] > small - gap || fsm_row_speed(terms, AT(tables->contact_rows, j, 0), u) <= rate) {
            continue;
        }
        for (int64_t m = 0; m < event.n; m++) {
            bool bears = tables->contact_kind.at[m] == FSM_KIND_COMPLIANT && before.at[m] != FSM_CONTACT_FREE &&
                         event.at[m] != FSM_EVENT_OPENS;
            if (bears && (m == j || fsm_same_normal(tables, terms, m, j, FSM_COMPLIANT_CONTACTS_ALIKE))) {
                return true;
            }
        }
    }
    return false;
}

/* Whether a contact lies between two others on one line: their compression is what the flush faces have. */
static bool compliant_contacts_is_inner(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k)
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
            double s = fsm_between(tables, terms, k, j, m, FSM_COMPLIANT_CONTACTS_ALIKE);
            double one = terms->residual.at[AT(tables->contact_rows, j, 0)],
                   other = terms->residual.at[AT(tables->contact_rows, m, 0)];
            double flush = tables->tolerances->gap + FSM_COMPLIANT_CONTACTS_FLUSH * (fabs(one) + fabs(other));
            if (s > FSM_COMPLIANT_CONTACTS_ALIKE && s < 1.0 - FSM_COMPLIANT_CONTACTS_ALIKE &&
                fabs((1.0 - s) * one + s * other - gap) <= flush) {
                return true;
            }
        }
    }
    return false;
}

/* Whether a contact leaves its face in this instant where that of `k` begins, and `k` is the one to take over.

   Of several the one of the same corner does, else the first. */
static bool takes_over(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices before,
                       fsm_indices event, int64_t k)
{
    for (int64_t j = 0; j < event.n; j++) {
        if (event.at[j] != FSM_EVENT_LEAVES || !follows(tables, terms, j, k)) {
            continue;
        }
        int64_t best = k;
        for (int64_t m = 0; m < event.n; m++) {
            bool other = m != k && tables->contact_kind.at[m] == FSM_KIND_COMPLIANT && before.at[m] == FSM_CONTACT_FREE;
            if (other && event.at[m] != FSM_EVENT_LEAVES && fsm_within_face(tables, terms, m) &&
                follows(tables, terms, j, m)) {
                bool same = AT(tables->contact_ends, best, 0) == AT(tables->contact_ends, j, 0);
                bool better = AT(tables->contact_ends, m, 0) == AT(tables->contact_ends, j, 0) && !same;
                best = (better || (m < best && !same)) ? m : best;
            }
        }
        if (best == k) {
            return true;
        }
    }
    return false;
}

/* Whether contact `k` begins where `j` leaves its face: with the same gap, at the same place. */
static bool follows(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t j, int64_t k)
{
    double small = tables->tolerances->gap;
    double gap = terms->residual.at[AT(tables->contact_rows, j, 0)];
    double apart = gap - terms->residual.at[AT(tables->contact_rows, k, 0)];
    bool straight = AT(tables->contact_ends, j, 0) >= 0 && AT(tables->contact_ends, k, 0) >= 0;
    if (tables->contact_kind.at[k] != FSM_KIND_COMPLIANT ||
        fabs(apart) > small + (straight ? FSM_COMPLIANT_CONTACTS_ALIKE * fabs(gap) : 0.0)) {
        return false;
    }
    if (!straight) {
        bool same = tables->contact_flags.at[j] / FSM_FLAG_GROUP == tables->contact_flags.at[k] / FSM_FLAG_GROUP;
        return same && terms->reach.at[k] <= small;
    }
    int64_t one = AT(tables->contact_ends, j, 0), first = AT(tables->contact_ends, k, 0);
    int64_t other = fsm_corner_behind(tables, terms, j);
    int64_t second = fabs(terms->reach.at[k]) <= small + FSM_COMPLIANT_CONTACTS_ALIKE * fabs(gap)
                         ? fsm_corner_behind(tables, terms, k)
                         : first;
    bool linked = one == first || one == second || other == first || other == second;
    return linked && fsm_same_normal(tables, terms, j, k, FSM_COMPLIANT_CONTACTS_ALIKE);
}
