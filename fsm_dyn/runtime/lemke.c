/* Linear complementarity problems by Lemke's method.

   C. E. Lemke (1965), *Bimatrix equilibrium points and mathematical programming*, Management Science 11; R. W. Cottle,
   J.-S. Pang and R. E. Stone, *The Linear Complementarity Problem*, section 4.4 and, for degeneracy, 4.9. */

#include "contacts.h"

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
