/* Complementarity problems: pivoting by Lemke, and the contact problem as one of them. */

#include "contacts.h"

/* -- Linear complementarity problems by Lemke's method.

   C. E. Lemke (1965), *Bimatrix equilibrium points and mathematical programming*, Management Science 11; R. W. Cottle,
   J.-S. Pang and R. E. Stone, *The Linear Complementarity Problem*, section 4.4 and, for degeneracy, 4.9. */

#define FSM_PIVOT_ZERO  1e-11 // rounding of entries that are about 1
#define FSM_RATIO_EQUAL 1e-13 // relative difference of ratios that are taken as equal
#define FSM_BASIS_RANK  1e-13 // rounding: a basis with a smaller pivot is singular
#define FSM_NEGATIVE    1e-12 // part of the largest entry of q that a basic variable may be below zero
#define FSM_EXCHANGES   12    // of variables that the tableau leaves negative
#define FSM_COVERINGS   8     // covering vectors that are tried

/* Return whether the ratio of row `i` is less than that of `best`: ties are broken lexicographically (which prevents
   cycling), the artificial variable first. */
static bool leaves_before(fsm_matrix table, fsm_indices basic, int64_t entering, double size, int64_t i, int64_t best)
{
    int64_t n = basic.n;
    for (int64_t column = -1; column < n; column++) {
        int64_t at = column < 0 ? 2 * n + 1 : column;
        double ratio = AT(table, i, at) / AT(table, i, entering);
        double other = AT(table, best, at) / AT(table, best, entering);
        if (fabs(ratio - other) > FSM_RATIO_EQUAL * ((column < 0 ? size : 1.0) + fabs(other))) {
            return ratio < other;
        }
        if (column < 0 && basic.at[i] == 2 * n) {
            return true;
        }
        if (column < 0 && basic.at[best] == 2 * n) {
            return false;
        }
    }
    return false;
}

/* Return the row of least ratio, -1 where there is none; `size`: the largest entry of `q`. */
static int64_t least_ratio_row(fsm_matrix table, fsm_indices basic, int64_t entering, double size)
{
    int64_t best = -1;
    for (int64_t i = 0; i < basic.n; i++) {
        if (AT(table, i, entering) > FSM_PIVOT_ZERO &&
            (best < 0 || leaves_before(table, basic, entering, size, i, best))) {
            best = i;
        }
    }
    return best;
}

/* Eliminate the column `entering` from all rows but `row`. */
static void pivot(fsm_matrix table, int64_t row, int64_t entering)
{
    double divisor = AT(table, row, entering);
    for (int64_t j = 0; j < table.m; j++) {
        AT(table, row, j) /= divisor;
    }
    for (int64_t i = 0; i < table.n; i++) {
        double factor = AT(table, i, entering);
        if (i != row && factor != 0.0) {
            for (int64_t j = 0; j < table.m; j++) {
                AT(table, i, j) -= factor * AT(table, row, j);
            }
        }
    }
}

/* Solve for `z` (n,) of the basis in which `z` is basic where `held` and zero elsewhere, from the problem itself.

   `worst`: the entry that violates `z >= 0`, `w >= 0` most, or `w = 0` where `held`; returns by how much. */
static double solve_basis(struct fsm_arena *arena, fsm_matrix P, fsm_vector q, fsm_indices held, fsm_vector z,
                          int64_t *worst)
{
    int64_t n = q.n, count = 0;
    fsm_mark top = fsm_arena_mark(arena);
    fsm_indices basic = fsm_arena_indices(arena, n);
    for (int64_t i = 0; i < n; i++) {
        z.at[i] = 0.0;
        if (held.at[i]) {
            basic.at[count++] = i;
        }
    }
    fsm_matrix system = fsm_arena_matrix(arena, count, count);
    fsm_vector right = fsm_arena_vector(arena, count), found = fsm_arena_vector(arena, count);
    for (int64_t i = 0; i < count; i++) {
        right.at[i] = -q.at[basic.at[i]];
        for (int64_t j = 0; j < count; j++) {
            AT(system, i, j) = AT(P, basic.at[i], basic.at[j]);
        }
    }
    struct fsm_lu lu = fsm_factor(arena, system, FSM_BASIS_RANK);
    fsm_solve(&lu, right, found);
    for (int64_t i = 0; i < count; i++) {
        z.at[basic.at[i]] = found.at[i];
    }
    fsm_arena_release(arena, top);
    double largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double w = q.at[i];
        for (int64_t j = 0; j < n; j++) {
            w += AT(P, i, j) * z.at[j];
        }
        double violation = fsm_larger(-z.at[i], held.at[i] ? fabs(w) : -w);
        if (violation > largest) {
            largest = violation;
            *worst = i;
        }
    }
    return largest;
}

/* Solve the basis found once more, and exchange what is negative in it: small pivots make errors of the tableau large.

   Returns by how much `z` violates the problem.  K. G. Murty (1988), *Linear Complementarity, Linear and Nonlinear
   Programming*, ch. 4 (principal pivoting). */
static double refine(struct fsm_arena *arena, fsm_matrix P, fsm_vector q, fsm_indices held, double size, fsm_vector z)
{
    fsm_vector trial = fsm_arena_vector(arena, q.n);
    double least = FSM_INFINITY;
    for (int64_t pass = 0; pass < FSM_EXCHANGES; pass++) {
        int64_t worst = 0;
        double violation = solve_basis(arena, P, q, held, trial, &worst);
        if (violation < least) {
            least = violation;
            fsm_put(z, trial);
        }
        if (violation <= FSM_NEGATIVE * size) {
            break;
        }
        held.at[worst] = !held.at[worst];
    }
    return least;
}

/* Set up the tableau with all w basic.

   Columns, and numbers of the variables: w, z, the artificial variable; then the right-hand side. */
static void fill_tableau(fsm_matrix P, fsm_vector q, fsm_vector cover, fsm_matrix table, fsm_indices basic)
{
    int64_t n = q.n;
    for (int64_t i = 0; i < n; i++) {
        basic.at[i] = i;
        AT(table, i, i) = 1.0;
        for (int64_t j = 0; j < n; j++) {
            AT(table, i, n + j) = -AT(P, i, j);
        }
        AT(table, i, 2 * n) = -cover.at[i];
        AT(table, i, 2 * n + 1) = q.at[i];
    }
}

/* Run Lemke's method with this covering vector (n,), positive; `size`: the largest entry of `q`, of which one is negative.

   Returns by how much `z` violates the problem: infinite where the method ends in a ray. */
static double solve_covered(struct fsm_arena *arena, fsm_matrix P, fsm_vector q, fsm_vector cover, double size,
                            fsm_vector z)
{
    int64_t n = q.n, row = 0, entering = 2 * n;
    fsm_matrix table = fsm_arena_matrix(arena, n, 2 * n + 2);
    fsm_indices basic = fsm_arena_indices(arena, n), held = fsm_arena_indices(arena, n);
    fill_tableau(P, q, cover, table, basic);
    for (int64_t i = 0; i < n; i++) {
        row = q.at[i] / cover.at[i] < q.at[row] / cover.at[row] ? i : row;
    }
    for (int64_t pass = 0; pass < 60 * n + 60; pass++) {
        pivot(table, row, entering);
        int64_t left = basic.at[row];
        basic.at[row] = entering;
        if (left == 2 * n) {
            break;
        }
        entering = left < n ? left + n : left - n; // the complement of what left
        row = least_ratio_row(table, basic, entering, size);
        if (row < 0) {
            return FSM_INFINITY;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if (basic.at[i] == 2 * n) {
            return FSM_INFINITY;
        }
        if (basic.at[i] >= n) {
            held.at[basic.at[i] - n] = 1;
        }
    }
    return refine(arena, P, q, held, size, z);
}

/* Find `z >= 0` (n,) with `w = P z + q >= 0` and `w·z = 0`; false where the method ends in a ray.

   Where rows of `P` are redundant, the pivots along the path of one covering vector may be rounding alone: its result
   violates the problem, or it is a ray that does not exist.  Other vectors are tried then, and the `z` that violates the
   problem least is kept.  The first vector is 1, the k-th has the fractional parts of multiples of the golden ratio. */
FSM_LOCAL bool fsm_solve_lcp(struct fsm_arena *arena, fsm_matrix P, fsm_vector q, fsm_vector z)
{
    double size = 0.0, least = FSM_INFINITY;
    bool negative = false;
    for (int64_t i = 0; i < q.n; i++) {
        z.at[i] = 0.0;
        size = fsm_larger(size, fabs(q.at[i]));
        negative = negative || q.at[i] < 0.0;
    }
    if (!negative) {
        return true;
    }
    for (int64_t k = 0; k < FSM_COVERINGS && !(least <= FSM_NEGATIVE * size); k++) {
        fsm_mark top = fsm_arena_mark(arena);
        fsm_vector cover = fsm_arena_vector(arena, q.n), trial = fsm_arena_vector(arena, q.n);
        for (int64_t i = 0; i < q.n; i++) {
            cover.at[i] = 1.0 + fmod((double)(k * (i + 1)) * FSM_GOLDEN_RATIO, 1.0);
        }
        double violation = solve_covered(arena, P, q, cover, size, trial);
        if (violation < least) {
            least = violation;
            fsm_put(z, trial);
        }
        fsm_arena_release(arena, top);
    }
    return least < FSM_INFINITY;
}

/* -- Complementarity: candidates of contact islands too large for enumeration.

   In the plane Coulomb's law is a linear complementarity problem `w = P z + q, w >= 0, z >= 0, w·z = 0` (F. Pfeiffer and
   Ch. Glocker, *Multibody Dynamics with Unilateral Contacts*, 1996, ch. 5).  A contact whose slip direction is known has
   one pair `(λ_n, a_n)`; one at rest along its tangent has three,

       z = (λ_n, λ_t + μ λ_n, a_t⁻),   w = (a_n, a_t⁺, μ λ_n - λ_t),   a_t = a_t⁺ - a_t⁻ .

   Static friction above kinetic is no such problem: the static coefficient is tried, and the kinetic one for the
   contacts that slide nevertheless.  What is found is only a proposal: it is evaluated like any other candidate. */

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
