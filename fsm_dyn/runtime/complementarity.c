/* Complementarity: candidates of contact islands too large for enumeration.

   In the plane Coulomb's law is a linear complementarity problem `w = P z + q, w >= 0, z >= 0, w·z = 0` (F. Pfeiffer and
   Ch. Glocker, *Multibody Dynamics with Unilateral Contacts*, 1996, ch. 5).  A contact whose slip direction is known has
   one pair `(λ_n, a_n)`; one at rest along its tangent has three,

       z = (λ_n, λ_t + μ λ_n, a_t⁻),   w = (a_n, a_t⁺, μ λ_n - λ_t),   a_t = a_t⁺ - a_t⁻ .

   Static friction above kinetic is no such problem: the static coefficient is tried, and the kinetic one for the
   contacts that slide nevertheless.  What is found is only a proposal: it is evaluated like any other candidate. */

#include "contacts.h"

#define FSM_NO_MOTION    0.1 // part of the tolerance below which a motion without forces is none
#define FSM_NEVER_SLIDES 1e6 // substitutes for infinite friction

/* The complementarity problem of a contact problem, with these coefficients of friction. */
struct lcp {
    fsm_vector friction; // (n_contacts,)
    fsm_indices first;   // (n_contacts,): each contact's first place in z and w
    fsm_matrix P;
    fsm_vector q;
    fsm_vector z;
    fsm_vector w;
};

static bool at_rest(const struct fsm_contact_problem *problem, int64_t k)
{
    return problem->tangent.at[k] >= 0 && !problem->slipping.at[k];
}

/* Write the forces of the rows as `y = forces z + given`. */
static void express_forces(const struct fsm_contact_problem *problem, const struct lcp *lcp, fsm_matrix forces,
                           fsm_vector given)
{
    for (int64_t k = 0; k < problem->normal.n; k++) {
        int64_t a = problem->normal.at[k], b = problem->tangent.at[k], at = lcp->first.at[k];
        if (a >= 0) {
            AT(forces, a, at) = 1.0;
        }
        if (b < 0) {
            continue;
        }
        double along = 1.0;
        if (problem->slipping.at[k]) {
            along = AT(problem->allowed, k, FSM_CHOICE_FORWARD) ? 1.0 : -1.0;
        } else {
            AT(forces, b, at + (a >= 0)) = 1.0;
        }
        if (a >= 0) {
            AT(forces, b, at) = -along * lcp->friction.at[k];
        } else {
            given.at[b] = -along * lcp->friction.at[k];
        }
    }
}

/* Add to the motions of the rows what `z` of contact `k` gives: `motions += K forces`, its own columns alone. */
static void add_motions(const struct fsm_contact_problem *problem, const struct lcp *lcp, int64_t k, fsm_matrix forces,
                        fsm_matrix motions)
{
    int64_t rows[] = {problem->normal.at[k], problem->tangent.at[k]}, first = lcp->first.at[k];
    int64_t last = k + 1 < lcp->first.n ? lcp->first.at[k + 1] : lcp->q.n;
    for (int64_t which = 0; which < 2; which++) {
        int64_t j = rows[which];
        for (int64_t i = 0; j >= 0 && i < motions.n; i++) {
            for (int64_t s = first; s < last; s++) {
                AT(motions, i, s) += AT(problem->K, i, j) * AT(forces, j, s);
            }
        }
    }
}

/* Fill in `P` and `q`: the motions of the rows as they follow from z, contact by contact. */
static void fill_lcp(struct fsm_arena *arena, const struct fsm_contact_problem *problem, const struct lcp *lcp)
{
    int64_t n = problem->K.n, size = lcp->q.n;
    fsm_matrix forces = fsm_arena_matrix(arena, n, size), motions = fsm_arena_matrix(arena, n, size);
    fsm_vector given = fsm_arena_vector(arena, n), motion = fsm_arena_vector(arena, n);
    express_forces(problem, lcp, forces, given);
    for (int64_t i = 0; i < n; i++) {
        motion.at[i] = problem->base.at[i] - problem->target.at[i];
        for (int64_t j = 0; j < n; j++) {
            motion.at[i] += AT(problem->K, i, j) * given.at[j];
        }
    }
    for (int64_t k = 0; k < problem->normal.n; k++) {
        add_motions(problem, lcp, k, forces, motions);
    }
    for (int64_t k = 0; k < problem->normal.n; k++) {
        int64_t a = problem->normal.at[k], b = problem->tangent.at[k], at = lcp->first.at[k];
        if (a >= 0) {
            fsm_put(fsm_row(lcp->P, at), fsm_row(motions, a));
            lcp->q.at[at] = motion.at[a];
            at++;
        }
        if (!at_rest(problem, k)) {
            continue;
        }
        fsm_put(fsm_row(lcp->P, at), fsm_row(motions, b));
        lcp->q.at[at] = motion.at[b];
        AT(lcp->P, at, at + 1) += 1.0;
        AT(lcp->P, at + 1, at) = -1.0;
        if (a >= 0) {
            AT(lcp->P, at + 1, at - 1) = 2.0 * lcp->friction.at[k];
        } else {
            lcp->q.at[at + 1] = 2.0 * lcp->friction.at[k];
        }
    }
}

/* Return the choice that a solution means for contact `k`; motions within `small` count as none. */
static enum fsm_choice choice_of(const struct fsm_contact_problem *problem, const struct lcp *lcp, int64_t k,
                                 double small)
{
    int64_t at = lcp->first.at[k];
    if (problem->normal.at[k] >= 0) {
        bool stays = lcp->w.at[at] <= small && AT(problem->cost, k, FSM_CHOICE_OPEN) > 0.0;
        if (lcp->z.at[at] <= lcp->w.at[at] && !stays) {
            return FSM_CHOICE_OPEN;
        }
        at++;
    }
    if (problem->tangent.at[k] < 0) {
        return FSM_CHOICE_HOLD;
    }
    if (problem->slipping.at[k]) {
        return AT(problem->allowed, k, FSM_CHOICE_FORWARD) ? FSM_CHOICE_FORWARD : FSM_CHOICE_BACKWARD;
    }
    double forward = lcp->w.at[at], backward = lcp->z.at[at + 1]; // one of them is zero, or rounding
    if (forward >= backward && forward > lcp->z.at[at] && forward > small) {
        return FSM_CHOICE_FORWARD;
    }
    if (backward > lcp->w.at[at + 1] && backward > small) {
        return FSM_CHOICE_BACKWARD;
    }
    return FSM_CHOICE_HOLD;
}

/* Solve the complementarity problem with these coefficients of friction; false where Lemke's method ends in a ray. */
static bool propose_with(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_vector friction,
                         fsm_indices choices, double tolerance)
{
    int64_t count = problem->normal.n, size = 0;
    fsm_indices first = fsm_arena_indices(arena, count);
    for (int64_t k = 0; k < count; k++) {
        first.at[k] = size;
        size += (problem->normal.at[k] >= 0) + (at_rest(problem, k) ? 2 : 0);
    }
    struct lcp lcp = {.friction = friction,
                      .first = first,
                      .P = fsm_arena_matrix(arena, size, size),
                      .q = fsm_arena_vector(arena, size),
                      .z = fsm_arena_vector(arena, size)};
    fill_lcp(arena, problem, &lcp);
    double scale = problem->scale;
    for (int64_t i = 0; i < size; i++) {
        scale = fsm_larger(scale, fabs(lcp.q.at[i]));
    }
    for (int64_t i = 0; i < size; i++) { // what counts as none is none: its sign would decide between equals
        lcp.q.at[i] = fabs(lcp.q.at[i]) <= FSM_NO_MOTION * tolerance * scale ? 0.0 : lcp.q.at[i];
    }
    if (!fsm_solve_lcp(arena, lcp.P, lcp.q, lcp.z)) {
        return false;
    }
    lcp.w = fsm_arena_copy(arena, lcp.q);
    for (int64_t i = 0; i < size; i++) {
        for (int64_t j = 0; j < size; j++) {
            lcp.w.at[i] += AT(lcp.P, i, j) * lcp.z.at[j];
        }
    }
    for (int64_t k = 0; k < count; k++) {
        choices.at[k] = choice_of(problem, &lcp, k, tolerance * scale);
    }
    return true;
}

/* Find a candidate by complementarity; false where the method finds none.

   Where contacts are redundant the method ends in one of many vertices, and contacts of which one force is at its limit
   there count as open or sliding though nothing moves: those at rest whose motion is within `tolerance` of the scale
   stay closed and stick, in what is proposed. */
FSM_LOCAL bool fsm_propose(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                           double tolerance)
{
    int64_t count = problem->normal.n;
    fsm_vector friction = fsm_arena_vector(arena, count), kinetic = problem->kinetic_friction;
    for (int64_t k = 0; k < count; k++) {
        bool may_stick = AT(problem->allowed, k, FSM_CHOICE_HOLD) && !problem->slipping.at[k];
        friction.at[k] = may_stick ? problem->static_friction.at[k] : kinetic.at[k];
        if (problem->infinite.at[k]) {
            friction.at[k] = FSM_NEVER_SLIDES;
        }
    }
    for (int64_t pass = 0; pass < count + 1; pass++) {
        fsm_mark top = fsm_arena_mark(arena);
        bool found = propose_with(arena, problem, friction, choices, tolerance);
        fsm_arena_release(arena, top);
        if (!found) {
            return false;
        }
        bool again = false;
        for (int64_t k = 0; k < count; k++) {
            if (choices.at[k] >= FSM_CHOICE_FORWARD && !problem->slipping.at[k] && !problem->infinite.at[k] &&
                friction.at[k] > kinetic.at[k]) {
                friction.at[k] = kinetic.at[k];
                again = true;
            }
        }
        if (!again) {
            break;
        }
    }
    return true;
}
