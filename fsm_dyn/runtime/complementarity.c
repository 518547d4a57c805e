/* Complementarity problems: pivoting by Lemke, and the contact problem as one of them. */

#include "elementary.h"
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

/* -- Widest margin of laws among which are cones of friction, by an interior-point method.

   A law of one row is `w >= tau`, a cone of three rows `|(w₁, w₂)| <= w₀ - tau`, with `w = slack + g s`.  The path is
   that of S. Mehrotra's predictor and corrector (1992) in the scaling of Yu. E. Nesterov and M. J. Todd (1997),
   *Self-scaled barriers and interior-point methods for convex programming*, Math. Oper. Res. 22.  In the form of L.
   Vandenberghe (2010), *The CVXOPT linear and quadratic cone program solvers*: minimise `x·P x / 2 - tau` with
   `G x + w = h`, `w` in the cones, for `x = (s, tau)`.  `P` selects the smallest of equally good shares. */

#define FSM_CONE_ROWS    3     // of a cone of friction: its bound, and the force along both tangents
#define FSM_CONE_STEPS   50    // most steps; about ten are taken
#define FSM_CONE_GAP     1e-13 // between the margin and a bound of it, in units of its cap
#define FSM_CONE_SMALL   1e-11 // weight of the squares of the shares, in the same units
#define FSM_CONE_BOUNDED 0.99  // part of the way to the boundary that is taken
#define FSM_NO_SHARE     1e-12 // rounding: a law whose entries are no larger does not depend on the shares

/* A cone program and the point reached: blocks of one row or of three, `size` of each. */
struct cone_program {
    fsm_matrix g;       // (m, n)
    fsm_vector h;       // (m,)
    fsm_indices size;   // (blocks,)
    fsm_vector x;       // (n,)
    fsm_vector w;       // (m,)
    fsm_vector z;       // (m,): multipliers
    fsm_vector scaling; // (m,): of each block the vector v of its scaling `W = beta (2 v vᵀ - J)`, J = diag(1, -1, -1)
    fsm_vector beta;    // (blocks,)
    fsm_vector lambda;  // (m,): W z, equal to W⁻¹ w
};

/* Return the product of the tails of two blocks. */
static double tail_product(const double *a, const double *b, int64_t size)
{
    double total = 0.0;
    for (int64_t i = 1; i < size; i++) {
        total += a[i] * b[i];
    }
    return total;
}

/* Return how far a block is within its cone: the root of the product of its eigenvalues, 0 outside. */
static double depth_of(const double *a, int64_t size)
{
    double radius = sqrt(tail_product(a, a, size));
    return sqrt(fsm_larger((a[0] - radius) * (a[0] + radius), 0.0));
}

/* Write `W a` of one block, or `W⁻¹ a`; `out` may be `a`. */
static void scale_block(const struct cone_program *p, int64_t block, int64_t at, bool inverse, const double *a, double *out)
{
    int64_t size = p->size.at[block];
    const double *v = p->scaling.at + at;
    double sign = inverse ? -1.0 : 1.0, beta = inverse ? 1.0 / p->beta.at[block] : p->beta.at[block];
    double along = v[0] * a[0] + sign * tail_product(v, a, size);
    out[0] = beta * (2.0 * along * v[0] - a[0]);
    for (int64_t i = 1; i < size; i++) {
        out[i] = beta * (2.0 * sign * along * v[i] + a[i]);
    }
}

/* Write `W a` of all blocks, or `W⁻¹ a`. */
static void scale_all(const struct cone_program *p, bool inverse, fsm_vector a, fsm_vector out)
{
    for (int64_t block = 0, at = 0; block < p->size.n; at += p->size.at[block], block++) {
        scale_block(p, block, at, inverse, a.at + at, out.at + at);
    }
}

/* Find the scaling of the point reached, and its image; returns the gap, zero where it is at the boundary. */
static double find_scaling(const struct cone_program *p)
{
    double gap = 0.0;
    for (int64_t block = 0, at = 0; block < p->size.n; at += p->size.at[block], block++) {
        int64_t size = p->size.at[block];
        const double *w = p->w.at + at, *z = p->z.at + at;
        double *v = p->scaling.at + at;
        double a = depth_of(w, size), b = depth_of(z, size);
        if (!(a > 0.0 && b > 0.0)) {
            return 0.0;
        }
        double product = w[0] * z[0] + tail_product(w, z, size);
        double gamma = sqrt(0.5 * (1.0 + product / (a * b)));
        v[0] = (w[0] / a + z[0] / b) / (2.0 * gamma);
        double norm = sqrt(2.0 * (v[0] + 1.0));
        v[0] = (v[0] + 1.0) / norm;
        for (int64_t i = 1; i < size; i++) {
            v[i] = (w[i] / a - z[i] / b) / (2.0 * gamma * norm);
        }
        p->beta.at[block] = sqrt(a / b);
        gap += product;
    }
    scale_all(p, false, p->z, p->lambda);
    return gap;
}

/* Return the longest step from a block along `d` within its cone, at most `most`. */
static double longest_step(const double *a, const double *d, int64_t size, double most)
{
    double square = d[0] * d[0] - tail_product(d, d, size), half = a[0] * d[0] - tail_product(a, d, size);
    double depth = fsm_square(depth_of(a, size)), inner = half * half - square * depth;
    double slope = sqrt(fsm_larger(inner, 0.0)) - half; // of a point within the cone, below zero by rounding alone
    return slope > 0.0 ? fsm_smaller(most, depth / slope) : most;
}

/* Direction of one step, scaled: `u = W dz`, and `q - u = W⁻¹ dw`. */
struct cone_step {
    fsm_matrix scaled;    // (m, n): W⁻¹ G
    struct fsm_lu normal; // of its normal equations
    fsm_vector rest;      // (n,): what the multipliers leave of the slope
    fsm_vector missed;    // (m,): W⁻¹ (G x + w - h)
    fsm_vector dx, u, q, right;
};

/* Solve for the direction with `q`; returns the longest step along it. */
static double solve_step(const struct cone_program *p, const struct cone_step *step, double rest)
{
    int64_t n = p->x.n, m = p->h.n;
    for (int64_t j = 0; j < n; j++) {
        step->right.at[j] = -rest * step->rest.at[j];
        for (int64_t i = 0; i < m; i++) {
            step->right.at[j] -= AT(step->scaled, i, j) * (step->q.at[i] + rest * step->missed.at[i]);
        }
    }
    fsm_solve(&step->normal, step->right, step->dx);
    for (int64_t i = 0; i < m; i++) {
        step->u.at[i] = step->q.at[i] + rest * step->missed.at[i];
        for (int64_t j = 0; j < n; j++) {
            step->u.at[i] += AT(step->scaled, i, j) * step->dx.at[j];
        }
    }
    double longest = 1.0 / FSM_CONE_BOUNDED;
    for (int64_t block = 0, at = 0; block < p->size.n; at += p->size.at[block], block++) {
        double other[FSM_CONE_ROWS];
        for (int64_t i = 0; i < p->size.at[block]; i++) {
            other[i] = step->q.at[at + i] - step->u.at[at + i];
        }
        longest = longest_step(p->lambda.at + at, step->u.at + at, p->size.at[block], longest);
        longest = longest_step(p->lambda.at + at, other, p->size.at[block], longest);
    }
    return longest;
}

/* Let `q` become `lambda \ (-lambda o lambda - (q - u) o u + target e)`: Mehrotra's correction of the direction. */
static void correct(const struct cone_program *p, const struct cone_step *step, double target)
{
    for (int64_t block = 0, at = 0; block < p->size.n; at += p->size.at[block], block++) {
        int64_t size = p->size.at[block];
        const double *lambda = p->lambda.at + at, *u = step->u.at + at;
        double *q = step->q.at + at, d[FSM_CONE_ROWS], other[FSM_CONE_ROWS] = {0.0};
        for (int64_t i = 0; i < size; i++) {
            other[i] = q[i] - u[i];
        }
        d[0] = target - other[0] * u[0] - tail_product(other, u, size);
        for (int64_t i = 1; i < size; i++) {
            d[i] = -other[0] * u[i] - u[0] * other[i];
        }
        double first = (lambda[0] * d[0] - tail_product(lambda, d, size)) / fsm_square(depth_of(lambda, size));
        q[0] = first - lambda[0];
        for (int64_t i = 1; i < size; i++) {
            q[i] = (d[i] - first * lambda[i]) / lambda[0] - lambda[i];
        }
    }
}

/* Write the equations of a step from the point reached; returns the largest entry of what is left of the slope. */
static double prepare_step(struct fsm_arena *arena, const struct cone_program *p, struct cone_step *step)
{
    int64_t n = p->x.n, m = p->h.n;
    double largest = 0.0;
    fsm_matrix normal = fsm_arena_matrix(arena, n, n);
    for (int64_t j = 0; j < n; j++) {
        bool is_margin = j == n - 1;
        step->rest.at[j] = is_margin ? -1.0 : FSM_CONE_SMALL * p->x.at[j];
        AT(normal, j, j) = is_margin ? 0.0 : FSM_CONE_SMALL;
        for (int64_t i = 0; i < m; i++) {
            step->rest.at[j] += AT(p->g, i, j) * p->z.at[i];
        }
        largest = fsm_larger(largest, fabs(step->rest.at[j]));
        for (int64_t block = 0, at = 0; block < p->size.n; at += p->size.at[block], block++) {
            double column[FSM_CONE_ROWS];
            for (int64_t i = 0; i < p->size.at[block]; i++) {
                column[i] = AT(p->g, at + i, j);
            }
            scale_block(p, block, at, true, column, column);
            for (int64_t i = 0; i < p->size.at[block]; i++) {
                AT(step->scaled, at + i, j) = column[i];
            }
        }
    }
    for (int64_t i = 0; i < m; i++) {
        step->missed.at[i] = p->w.at[i] - p->h.at[i];
        for (int64_t j = 0; j < n; j++) {
            step->missed.at[i] += AT(p->g, i, j) * p->x.at[j];
            for (int64_t l = 0; l < n; l++) {
                AT(normal, j, l) += AT(step->scaled, i, j) * AT(step->scaled, i, l);
            }
        }
    }
    scale_all(p, true, step->missed, step->missed);
    step->normal = fsm_factor(arena, normal, 0.0);
    return largest;
}

/* Go along a step. */
static void move_on(const struct cone_program *p, const struct cone_step *step, double length)
{
    for (int64_t j = 0; j < p->x.n; j++) {
        p->x.at[j] += length * step->dx.at[j];
    }
    for (int64_t i = 0; i < p->h.n; i++) {
        step->q.at[i] -= step->u.at[i];
    }
    scale_all(p, false, step->q, step->q);
    scale_all(p, true, step->u, step->u);
    for (int64_t i = 0; i < p->h.n; i++) {
        p->w.at[i] += length * step->q.at[i];
        p->z.at[i] += length * step->u.at[i];
    }
}

/* Follow the path from the point reached to the solution. */
static void follow_path(struct fsm_arena *arena, const struct cone_program *p)
{
    int64_t n = p->x.n, m = p->h.n;
    struct cone_step step = {.scaled = fsm_arena_matrix(arena, m, n),
                             .rest = fsm_arena_vector(arena, n),
                             .missed = fsm_arena_vector(arena, m),
                             .dx = fsm_arena_vector(arena, n),
                             .u = fsm_arena_vector(arena, m),
                             .q = fsm_arena_vector(arena, m),
                             .right = fsm_arena_vector(arena, n)};
    fsm_mark top = fsm_arena_mark(arena);
    for (int64_t pass = 0; pass < FSM_CONE_STEPS; pass++) {
        double gap = find_scaling(p);
        double rest = gap > 0.0 ? prepare_step(arena, p, &step) : 0.0;
        if (gap <= FSM_CONE_GAP && rest <= sqrt(FSM_CONE_GAP)) {
            break;
        }
        for (int64_t i = 0; i < m; i++) {
            step.q.at[i] = -p->lambda.at[i];
        }
        double left = 1.0 - fsm_smaller(solve_step(p, &step, 1.0), 1.0), centring = left * left * left;
        correct(p, &step, centring * gap / (double)p->size.n);
        move_on(p, &step, FSM_CONE_BOUNDED * solve_step(p, &step, 1.0 - centring));
        fsm_arena_release(arena, top);
    }
}

/* Return the margin of one law, of rows from `i` on, with the shares `s` (k,). */
static double margin_of(fsm_matrix g, fsm_vector slack, int64_t i, bool is_cone, fsm_vector s)
{
    double w[FSM_CONE_ROWS] = {0.0};
    for (int64_t row = 0; row < (is_cone ? FSM_CONE_ROWS : 1); row++) {
        w[row] = slack.at[i + row];
        for (int64_t a = 0; a < g.m; a++) {
            w[row] += AT(g, i + row, a) * s.at[a];
        }
    }
    return w[0] - fsm_hypot(w[1], w[2]);
}

/* Whether a law, of rows from `i` on, depends on the shares. */
static bool law_depends(fsm_matrix g, int64_t i, bool is_cone)
{
    double largest = 0.0;
    for (int64_t row = i; row < i + (is_cone ? FSM_CONE_ROWS : 1); row++) {
        for (int64_t a = 0; a < g.m; a++) {
            largest = fsm_larger(largest, fabs(AT(g, row, a)));
        }
    }
    return largest > FSM_NO_SHARE;
}

/* As fsm_maximise_margin, where row i of `g` is the first of a cone's three if `cone.at[i]` (m,) is not zero. */
FSM_LOCAL double fsm_widest_margin(struct fsm_arena *arena, fsm_matrix g, fsm_vector slack, fsm_indices cone, double cap,
                                   fsm_vector *shares)
{
    int64_t m = g.n, k = g.m, rows = 0, cones = 0;
    for (int64_t i = 0; i < m; i++) {
        cones += cone.at[i] != 0;
    }
    if (cones == 0) {
        return fsm_maximise_margin(arena, g, slack, cap, shares);
    }
    *shares = fsm_arena_vector(arena, k);
    struct cone_program p = {.g = fsm_arena_matrix(arena, m + 1, k + 1),
                             .h = fsm_arena_vector(arena, m + 1),
                             .size = fsm_indices_first(fsm_arena_indices(arena, m + 1), 0),
                             .x = fsm_arena_vector(arena, k + 1)};
    double lowest = 1.0, widest = cap;
    for (int64_t i = 0, size; i < m + 1; i += size) {
        size = i < m && cone.at[i] ? FSM_CONE_ROWS : 1;
        if (i < m && !law_depends(g, i, size > 1)) {
            continue;
        }
        p.size.at[p.size.n++] = size;
        AT(p.g, rows, k) = 1.0;
        for (int64_t row = i; row < i + size; row++, rows++) {
            p.h.at[rows] = row < m ? slack.at[row] / cap : 1.0;
            for (int64_t a = 0; row < m && a < k; a++) {
                AT(p.g, rows, a) = -AT(g, row, a);
            }
        }
        lowest = i < m ? fsm_smaller(lowest, margin_of(g, slack, i, size > 1, *shares) / cap) : lowest;
    }
    p.g = fsm_matrix_first(p.g, rows);
    p.h = fsm_vector_first(p.h, rows);
    p.x.at[k] = lowest - 1.0;
    p.w = fsm_arena_copy(arena, p.h);
    p.z = fsm_arena_vector(arena, rows);
    p.scaling = fsm_arena_vector(arena, rows);
    p.lambda = fsm_arena_vector(arena, rows);
    p.beta = fsm_arena_vector(arena, p.size.n);
    for (int64_t block = 0, at = 0; block < p.size.n; at += p.size.at[block], block++) {
        p.w.at[at] -= p.x.at[k];
        p.z.at[at] = 1.0 / (double)p.size.n;
    }
    follow_path(arena, &p);
    for (int64_t a = 0; a < k; a++) {
        shares->at[a] = cap * p.x.at[a];
    }
    for (int64_t i = 0; i < m; i += cone.at[i] ? FSM_CONE_ROWS : 1) {
        widest = fsm_smaller(widest, margin_of(g, slack, i, cone.at[i] != 0, *shares));
    }
    return widest;
}
