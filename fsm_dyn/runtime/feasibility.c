/* Forces that the motion leaves open, and whether some of them keep every law.

   Where contacts repeat each other (a block on two corners that both stick) the rows have a null space: the forces
   `y + N s` give the same motion for every `s`.  Which forces act is then not the question, only whether some that
   act could keep all inequalities `g·y >= h`.  That is a linear program in the few unknowns `s`: the largest margin
   `tau` with `g·(y + N s) - h >= tau`. */

#include "contacts.h"

#define FSM_LEAST_PIVOT 1e-9 // an entry below this is rounding of the pivots before, and none to divide by
#define FSM_FEASIBILITY_PIVOT 1e-12
#define FSM_NEGLIGIBLE        1e-9
#define FSM_MOST_PIVOTS       500

/* Return a basis (n, n - rank) of the null space from the factors of factor.

   What is but rounding beside the rest of a basis vector is zero: a law that it concerns cannot be kept by it. */
FSM_LOCAL fsm_matrix fsm_null_space(struct fsm_arena *arena, fsm_matrix factors, fsm_indices rows, fsm_indices columns,
                                    int64_t rank)
{
    int64_t n = factors.n;
    fsm_matrix basis = fsm_arena_matrix(arena, n, n - rank);
    for (int64_t k = 0; k < n - rank; k++) {
        AT(basis, columns.at[rank + k], k) = 1.0;
        for (int64_t back = 0; back < rank; back++) {
            int64_t i = rank - 1 - back;
            double value = -AT(factors, rows.at[i], columns.at[rank + k]);
            for (int64_t j = i + 1; j < rank; j++) {
                value -= AT(factors, rows.at[i], columns.at[j]) * AT(basis, columns.at[j], k);
            }
            AT(basis, columns.at[i], k) = value / AT(factors, rows.at[i], columns.at[i]);
        }
        double largest = 0.0;
        for (int64_t i = 0; i < n; i++) {
            largest = fsm_larger(largest, fabs(AT(basis, i, k)));
        }
        for (int64_t i = 0; i < n; i++) {
            if (fabs(AT(basis, i, k)) <= FSM_NEGLIGIBLE * largest) {
                AT(basis, i, k) = 0.0;
            }
        }
    }
    return basis;
}

/* Take out of `y` what lies in the null space: of all forces `unit * y` of one effect the smallest remain. */
FSM_LOCAL void fsm_minimum_norm(struct fsm_arena *arena, fsm_vector y, fsm_matrix basis, fsm_vector unit)
{
    int64_t n = basis.n;
    int64_t k = basis.m;
    fsm_matrix gram = fsm_arena_matrix(arena, k, k);
    fsm_vector right = fsm_arena_vector(arena, k);
    fsm_vector shift = fsm_arena_vector(arena, k);
    for (int64_t a = 0; a < k; a++) {
        for (int64_t i = 0; i < n; i++) {
            right.at[a] += unit.at[i] * unit.at[i] * AT(basis, i, a) * y.at[i];
        }
        for (int64_t b = 0; b < k; b++) {
            for (int64_t i = 0; i < n; i++) {
                AT(gram, a, b) += unit.at[i] * unit.at[i] * AT(basis, i, a) * AT(basis, i, b);
            }
        }
    }
    fsm_indices rows = fsm_arena_indices(arena, k);
    fsm_indices columns = fsm_arena_indices(arena, k);
    fsm_vector scratch = fsm_arena_vector(arena, k);
    int64_t rank = fsm_factor(gram, rows, columns, FSM_FEASIBILITY_PIVOT);
    fsm_solve(gram, rows, columns, rank, right, scratch, shift);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t a = 0; a < k; a++) {
            y.at[i] -= AT(basis, i, a) * shift.at[a];
        }
    }
}

/* Do what widest_margin does for one unknown: two laws that lean against each other bound the margin.

   Of all `s` that give it the smallest is taken. */
static double widest_along(fsm_vector g, fsm_vector slack, double cap, fsm_vector s, fsm_vector *out1)
{
    double tau = cap, fixed = cap;
    for (int64_t i = 0; i < g.n; i++) {
        if (fabs(g.at[i]) <= FSM_FEASIBILITY_PIVOT) {
            fixed = fsm_smaller(fixed, slack.at[i]);
        } else if (g.at[i] > 0.0) {
            for (int64_t j = 0; j < g.n; j++) {
                if (g.at[j] < -FSM_FEASIBILITY_PIVOT) {
                    tau = fsm_smaller(tau, (slack.at[j] * g.at[i] - slack.at[i] * g.at[j]) / (g.at[i] - g.at[j]));
                }
            }
        }
    }
    double low = -FSM_INFINITY, high = FSM_INFINITY;
    for (int64_t i = 0; i < g.n; i++) {
        if (g.at[i] > FSM_FEASIBILITY_PIVOT) {
            low = fsm_larger(low, (tau - slack.at[i]) / g.at[i]);
        } else if (g.at[i] < -FSM_FEASIBILITY_PIVOT) {
            high = fsm_smaller(high, (tau - slack.at[i]) / g.at[i]);
        }
    }
    s.at[0] = fsm_smaller(fsm_larger(0.0, low), fsm_larger(low, high));
    *out1 = s;
    return fsm_smaller(tau, fixed);
}

/* Whether an inequality depends on the unknowns. */
static bool depends(fsm_matrix g, int64_t i)
{
    double largest = 0.0;
    for (int64_t a = 0; a < g.m; a++) {
        largest = fsm_larger(largest, fabs(AT(g, i, a)));
    }
    return largest > FSM_FEASIBILITY_PIVOT;
}

/* Maximise `tau <= cap` with `slack + g s >= tau`, by the simplex method with Bland's rule.

   Inequalities that do not depend on `s` bound `tau` but take no part in the choice of `s`: where such a one is
   the narrowest, the others would have room that is left to chance.

   Parameters
   ----------
   g : (m, k), slack : (m,)
       The inequalities; `slack` is their value at `s = 0`.

   Returns
   -------
   tau : float
   s : (k,) */
FSM_LOCAL double fsm_maximise_margin(struct fsm_arena *arena, fsm_matrix g, fsm_vector slack, double cap,
                                     fsm_vector *s_found)
{
    int64_t m = g.n;
    int64_t k = g.m;
    if (k == 1) {
        return widest_along(fsm_only_column(g), slack, cap, fsm_arena_vector(arena, 1), s_found);
    }
    double lowest = cap, fixed = cap;
    for (int64_t i = 0; i < m; i++) {
        if (depends(g, i)) {
            lowest = fsm_smaller(lowest, slack.at[i]);
        } else {
            fixed = fsm_smaller(fixed, slack.at[i]);
        }
    }
    int64_t width = 2 * k + 1 + m + 1; // s+, s-, tau - lowest, one slack variable per row and one for the cap
    fsm_matrix table = fsm_arena_matrix(arena, m + 2, width + 1);
    fsm_indices basic = fsm_arena_indices(arena, m + 1);
    for (int64_t i = 0; i < m + 1; i++) {
        if (i < m) {
            int64_t last1 = depends(g, i) ? k : 0;
            for (int64_t a = 0; a < last1; a++) {
                AT(table, i, a) = -AT(g, i, a);
                AT(table, i, k + a) = AT(g, i, a);
            }
        }
        bool takes_part = i == m || depends(g, i);
        AT(table, i, 2 * k) = takes_part ? 1.0 : 0.0;
        AT(table, i, 2 * k + 1 + i) = 1.0;
        AT(table, i, width) = takes_part ? (i < m ? slack.at[i] : cap) - lowest : 0.0;
        basic.at[i] = 2 * k + 1 + i;
    }
    AT(table, m + 1, 2 * k) = -1.0;
    for (int64_t pass2 = 0; pass2 < FSM_MOST_PIVOTS; pass2++) {
        int64_t entering = -1;
        for (int64_t j = 0; j < width; j++) {
            if (AT(table, m + 1, j) < -FSM_FEASIBILITY_PIVOT) {
                entering = j;
                break;
            }
        }
        if (entering < 0) {
            break;
        }
        int64_t leaving = -1;
        double least = 0.0;
        for (int64_t i = 0; i < m + 1; i++) {
            if (AT(table, i, entering) > FSM_LEAST_PIVOT) {
                double ratio = AT(table, i, width) / AT(table, i, entering);
                if (leaving < 0 || ratio < least || (ratio == least && basic.at[i] < basic.at[leaving])) {
                    leaving = i;
                    least = ratio;
                }
            }
        }
        if (leaving < 0) {
            break;
        }
        double inverse = 1.0 / AT(table, leaving, entering);
        for (int64_t j = 0; j < width + 1; j++) {
            AT(table, leaving, j) *= inverse;
        }
        for (int64_t i = 0; i < m + 2; i++) {
            double factor_ = AT(table, i, entering);
            if (i != leaving && factor_ != 0.0) {
                for (int64_t j = 0; j < width + 1; j++) {
                    AT(table, i, j) -= factor_ * AT(table, leaving, j);
                }
            }
        }
        basic.at[leaving] = entering;
    }
    fsm_vector s = fsm_arena_vector(arena, k);
    for (int64_t i = 0; i < m + 1; i++) {
        if (basic.at[i] < k) {
            s.at[basic.at[i]] += AT(table, i, width);
        } else if (basic.at[i] < 2 * k) {
            s.at[basic.at[i] - k] -= AT(table, i, width);
        }
    }
    *s_found = s;
    return fsm_smaller(lowest + AT(table, m + 1, width), fixed);
}
