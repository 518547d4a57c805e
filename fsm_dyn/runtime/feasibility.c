/* Indeterminate contact forces, and whether some of them satisfy every contact law.

   Where contacts are redundant (a block on two corners that both stick) the rows have a null space: the forces `y + N
   s` give the same motion for every `s`.  They are indeterminate, but it can be decided whether some satisfy all
   inequalities `g·y >= h`.  That is a linear program in the few unknowns `s`: the largest margin `tau` with `g·(y + N
   s) - h >= tau`. */

#include "contacts.h"

#define FSM_LEAST_PIVOT       1e-9  // an entry below this is rounding of the pivots before, and none to divide by
#define FSM_FEASIBILITY_PIVOT 1e-12 // rounding: a pivot below this fraction of the first is zero
#define FSM_NEGLIGIBLE        1e-9  // part of the largest entry of a null vector below which an entry is rounding
#define FSM_MOST_PIVOTS       500

/* Return a basis (n, n - rank) of the null space of a factored matrix.

   What is but rounding beside the rest of a basis vector is zero: a law that it concerns cannot be satisfied by it. */
FSM_LOCAL fsm_matrix fsm_null_space(struct fsm_arena *arena, const struct fsm_lu *lu)
{
    int64_t n = lu->matrix.n, rank = lu->rank;
    fsm_matrix basis = fsm_arena_matrix(arena, n, n - rank);
    for (int64_t k = 0; k < n - rank; k++) {
        AT(basis, lu->columns.at[rank + k], k) = 1.0;
        for (int64_t i = rank - 1; i >= 0; i--) {
            double value = -AT(lu->matrix, lu->rows.at[i], lu->columns.at[rank + k]);
            for (int64_t j = i + 1; j < rank; j++) {
                value -= AT(lu->matrix, lu->rows.at[i], lu->columns.at[j]) * AT(basis, lu->columns.at[j], k);
            }
            AT(basis, lu->columns.at[i], k) = value / AT(lu->matrix, lu->rows.at[i], lu->columns.at[i]);
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

/* Subtract from `y` (n,) its part in the null space `basis` (n, k): the forces `unit * y` become those of least norm. */
FSM_LOCAL void fsm_minimum_norm(struct fsm_arena *arena, fsm_vector y, fsm_matrix basis, fsm_vector unit)
{
    int64_t n = basis.n, k = basis.m;
    fsm_matrix gram = fsm_arena_matrix(arena, k, k);
    fsm_vector right = fsm_arena_vector(arena, k), shift = fsm_arena_vector(arena, k);
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
    struct fsm_lu lu = fsm_factor(arena, gram, FSM_FEASIBILITY_PIVOT);
    fsm_solve(&lu, right, shift);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t a = 0; a < k; a++) {
            y.at[i] -= AT(basis, i, a) * shift.at[a];
        }
    }
}

/* Maximise the margin for one unknown: two inequalities of opposite sign bound it.  Writes the `s` of least magnitude. */
static double maximise_along(fsm_vector g, fsm_vector slack, double cap, double *s)
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
    *s = fsm_smaller(fsm_larger(0.0, low), fsm_larger(low, high));
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

/* Return the simplex tableau (m + 2, width + 1) of the margin above `lowest`, its objective in the last row.

   Columns: s+, s-, tau - lowest, one slack variable for each inequality and one for the cap, right-hand side. */
static fsm_matrix tableau(struct fsm_arena *arena, fsm_matrix g, fsm_vector slack, double cap, double lowest,
                          fsm_indices basic)
{
    int64_t m = g.n, k = g.m, width = 2 * k + 1 + m + 1;
    fsm_matrix table = fsm_arena_matrix(arena, m + 2, width + 1);
    for (int64_t i = 0; i < m + 1; i++) {
        bool takes_part = i == m || depends(g, i);
        if (i < m && takes_part) {
            for (int64_t a = 0; a < k; a++) {
                AT(table, i, a) = -AT(g, i, a);
                AT(table, i, k + a) = AT(g, i, a);
            }
        }
        AT(table, i, 2 * k) = takes_part ? 1.0 : 0.0;
        AT(table, i, 2 * k + 1 + i) = 1.0;
        AT(table, i, width) = takes_part ? (i < m ? slack.at[i] : cap) - lowest : 0.0;
        basic.at[i] = 2 * k + 1 + i;
    }
    AT(table, m + 1, 2 * k) = -1.0;
    return table;
}

/* Return the row that leaves the basis for the column `entering`, -1 where the objective is unbounded. */
static int64_t leaving_row(fsm_matrix table, fsm_indices basic, int64_t entering)
{
    int64_t leaving = -1, last = table.m - 1;
    double least = 0.0;
    for (int64_t i = 0; i < basic.n; i++) {
        if (AT(table, i, entering) > FSM_LEAST_PIVOT) {
            double ratio = AT(table, i, last) / AT(table, i, entering);
            if (leaving < 0 || ratio < least || (ratio == least && basic.at[i] < basic.at[leaving])) {
                leaving = i;
                least = ratio;
            }
        }
    }
    return leaving;
}

/* Exchange a basic variable: eliminate the column `entering` from all rows but `leaving`. */
static void exchange_basic(fsm_matrix table, int64_t leaving, int64_t entering)
{
    double inverse = 1.0 / AT(table, leaving, entering);
    for (int64_t j = 0; j < table.m; j++) {
        AT(table, leaving, j) *= inverse;
    }
    for (int64_t i = 0; i < table.n; i++) {
        double factor = AT(table, i, entering);
        if (i != leaving && factor != 0.0) {
            for (int64_t j = 0; j < table.m; j++) {
                AT(table, i, j) -= factor * AT(table, leaving, j);
            }
        }
    }
}

/* Maximise `tau <= cap` with `slack + g s >= tau`, by the simplex method with Bland's rule; return `tau`.

   `g` is (m, k), `slack` (m,) the value of the inequalities at `s = 0`; `shares` becomes `s` (k,).  Inequalities that do
   not depend on `s` bound `tau` but take no part in the choice of `s`: where such a one is the tightest, the others
   would be left to chance.

   R. G. Bland (1977), *New finite pivoting rules for the simplex method*, Math. Oper. Res. 2. */
FSM_LOCAL double fsm_maximise_margin(struct fsm_arena *arena, fsm_matrix g, fsm_vector slack, double cap,
                                     fsm_vector *shares)
{
    int64_t m = g.n, k = g.m;
    fsm_vector s = fsm_arena_vector(arena, k);
    *shares = s;
    if (k == 1) {
        return maximise_along(fsm_only_column(g), slack, cap, s.at);
    }
    double lowest = cap, fixed = cap;
    for (int64_t i = 0; i < m; i++) {
        if (depends(g, i)) {
            lowest = fsm_smaller(lowest, slack.at[i]);
        } else {
            fixed = fsm_smaller(fixed, slack.at[i]);
        }
    }
    fsm_indices basic = fsm_arena_indices(arena, m + 1);
    fsm_matrix table = tableau(arena, g, slack, cap, lowest, basic);
    int64_t width = table.m - 1;
    for (int64_t pass = 0; pass < FSM_MOST_PIVOTS; pass++) {
        int64_t entering = 0;
        while (entering < width && !(AT(table, m + 1, entering) < -FSM_FEASIBILITY_PIVOT)) {
            entering++;
        }
        int64_t leaving = entering < width ? leaving_row(table, basic, entering) : -1;
        if (leaving < 0) {
            break;
        }
        exchange_basic(table, leaving, entering);
        basic.at[leaving] = entering;
    }
    for (int64_t i = 0; i < m + 1; i++) {
        if (basic.at[i] < k) {
            s.at[basic.at[i]] += AT(table, i, width);
        } else if (basic.at[i] < 2 * k) {
            s.at[basic.at[i] - k] -= AT(table, i, width);
        }
    }
    return fsm_smaller(lowest + AT(table, m + 1, width), fixed);
}
