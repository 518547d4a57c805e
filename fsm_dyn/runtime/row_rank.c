/* Rank of the constraint rows of a mode: their smallest part, and when it vanishes (docs/theory.md, "Change points").

   The rows held are scaled on both sides, `B = D A diag(M)^-1/2` with D the inverse of the largest size that each row is
   known to have had: divided by its own norm, a row that vanishes as a whole would not show.  Pivoted orthogonalisation
   splits them, `B[order] = L Q`.  The rows that come last, taken free of those before, `N B`, are what may be lost;
   `N (dB/dt) Qᵀ` tells how fast. */

#include "algebra.h"

#define FSM_TIE 1e-6 // part by which a row must be larger to be taken before an earlier one: ties go by order


static void take_row(fsm_matrix B, fsm_indices order, fsm_matrix L, int64_t k);

/* Return the active set of a mode, bilateral rows first; kinematic rows are never among them.

   `positional`: only rows that have a residual on coordinates. */
FSM_LOCAL fsm_indices fsm_rows_held(struct fsm_arena *arena, const struct fsm_tables *tables, int64_t mode,
                                    bool positional)
{
    fsm_indices rows = fsm_arena_indices(arena, tables->sizes->n_rows);
    int64_t count = 0;
    for (int64_t r = 0; r < rows.n; r++) {
        int64_t role = tables->row_role.at[r];
        if (role == FSM_ROLE_ALWAYS_POSITION || (role == FSM_ROLE_ALWAYS && !positional)) {
            rows.at[count] = r;
            count++;
        }
    }
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t code = AT(tables->mode_states, mode, k);
        if (code == FSM_CONTACT_FREE) {
            continue;
        }
        int64_t normal = AT(tables->contact_rows, k, 0), tangent = AT(tables->contact_rows, k, 1);
        bool rigid = normal >= 0 && (tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) == 0;
        if (rigid && (!positional || tables->row_positional.at[normal] == 1)) {
            rows.at[count] = normal;
            count++;
        }
        if (tangent >= 0 && code == FSM_CONTACT_HELD && !positional) {
            for (int64_t i = 0; i < ((tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) ? 2 : 1); i++) {
                rows.at[count] = tangent + i;
                count++;
            }
        }
    }
    return fsm_indices_first(rows, count);
}

/* Write `diag(M)^-1/2`, 1 where a speed has no inertia, shape (n_u,). */
FSM_LOCAL void fsm_column_scales(const struct fsm_terms *terms, fsm_vector scale)
{
    for (int64_t i = 0; i < scale.n; i++) {
        scale.at[i] = AT(terms->M, i, i) > 0.0 ? 1.0 / sqrt(AT(terms->M, i, i)) : 1.0;
    }
}

/* Return the norm of a row in scaled speeds. */
FSM_LOCAL double fsm_row_norm(const struct fsm_terms *terms, int64_t row, fsm_vector scale)
{
    double square = 0.0;
    for (int64_t i = 0; i < scale.n; i++) {
        square += fsm_square(AT(terms->A, row, i) * scale.at[i]);
    }
    return sqrt(square);
}

/* Write the rows scaled, `B` of shape (m, n_u); `sizes` is indexed by row. */
FSM_LOCAL void fsm_fill_scaled(const struct fsm_terms *terms, fsm_indices rows, fsm_vector scale, fsm_vector sizes,
                               fsm_matrix B)
{
    for (int64_t k = 0; k < rows.n; k++) {
        double factor = sizes.at[rows.at[k]] > 0.0 ? 1.0 / sizes.at[rows.at[k]] : 1.0;
        for (int64_t i = 0; i < scale.n; i++) {
            AT(B, k, i) = AT(terms->A, rows.at[k], i) * scale.at[i] * factor;
        }
    }
}

/* Return those of `rows` that no others imply, in the same order.

   A configuration that is off its rows by some residual leaves of a redundant row a part of that size, taken `amount`
   times; a row of which no more is left must not be used, as moving along it would divide the residual by itself.  Rows
   count as no smaller than the part `least_size` of the largest: one that is about to vanish is not used. */
FSM_LOCAL fsm_indices fsm_independent_rows(struct fsm_arena *arena, const struct fsm_tables *tables,
                                           const struct fsm_terms *terms, fsm_indices rows, double amount,
                                           double least_size)
{
    int64_t m = rows.n, n_u = tables->sizes->n_u;
    double unit = fsm_scaled_length(tables->tolerances);
    fsm_vector scale = fsm_arena_vector(arena, n_u), sizes = fsm_arena_vector(arena, terms->residual.n);
    fsm_column_scales(terms, scale);
    double off = 0.0, largest = 0.0;
    for (int64_t k = 0; k < m; k++) {
        sizes.at[rows.at[k]] = fsm_row_norm(terms, rows.at[k], scale);
        largest = fsm_larger(largest, sizes.at[rows.at[k]] / tables->row_unit.at[rows.at[k]]);
    }
    for (int64_t k = 0; k < m; k++) {
        int64_t r = rows.at[k];
        sizes.at[r] = fsm_larger(sizes.at[r], least_size * largest * tables->row_unit.at[r]);
        off = fsm_larger(off, fabs(terms->residual.at[r]) / unit / fsm_larger(sizes.at[r], FSM_TINIEST));
    }
    fsm_matrix B = fsm_arena_matrix(arena, m, n_u);
    fsm_indices order = fsm_arena_indices(arena, m);
    fsm_matrix L = fsm_arena_matrix(arena, m, m);
    fsm_fill_scaled(terms, rows, scale, sizes, B);
    int64_t taken = fsm_orthogonalise(B, order, L, fsm_larger(tables->tolerances->redundancy, amount * off));
    fsm_indices independent = fsm_arena_indices(arena, m);
    int64_t count = 0;
    for (int64_t k = 0; k < m; k++) {
        for (int64_t i = 0; i < taken; i++) {
            if (order.at[i] == k) {
                independent.at[count] = rows.at[k];
                count++;
            }
        }
    }
    return fsm_indices_first(independent, count);
}

/* Orthogonalise rows with pivoting, in place: `B_before[order[i]] = sum_j L[i, j] B[order[j]]`.

   Modified Gram-Schmidt with reorthogonalisation (Golub and Van Loan, *Matrix Computations*, section 5.2).  `B` is
   (m, n); `order` (m,), the order in which the rows were taken, and `L` (m, m), lower triangular, are written.  A
   remainder below the part `least` of the first row ends it.  Returns the number of rows taken, the rank; rows beyond it
   keep their remainders. */
FSM_LOCAL int64_t fsm_orthogonalise(fsm_matrix B, fsm_indices order, fsm_matrix L, double least)
{
    int64_t m = B.n, n = B.m;
    for (int64_t i = 0; i < m; i++) {
        order.at[i] = i;
        for (int64_t j = 0; j < m; j++) {
            AT(L, i, j) = 0.0;
        }
    }
    double first = 0.0;
    for (int64_t k = 0; k < m; k++) {
        int64_t best = k;
        double size = -1.0;
        for (int64_t i = k; i < m; i++) {
            double square = 0.0;
            for (int64_t j = 0; j < n; j++) {
                square += AT(B, order.at[i], j) * AT(B, order.at[i], j);
            }
            if (square > size * (1.0 + FSM_TIE)) {
                best = i;
                size = square;
            }
        }
        size = sqrt(fsm_larger(size, 0.0));
        if (k == 0) {
            first = size;
        }
        if (!(size > least * first)) {
            return k;
        }
        int64_t row = order.at[best];
        order.at[best] = order.at[k];
        order.at[k] = row;
        for (int64_t j = 0; j < k; j++) {
            double entry = AT(L, best, j);
            AT(L, best, j) = AT(L, k, j);
            AT(L, k, j) = entry;
        }
        take_row(B, order, L, k);
    }
    return m;
}

/* Make row `order[k]` a unit vector normal to those before it, and subtract its part from those after it. */
static void take_row(fsm_matrix B, fsm_indices order, fsm_matrix L, int64_t k)
{
    int64_t m = B.n, n = B.m;
    int64_t row = order.at[k];
    for (int64_t j = 0; j < k; j++) { // once more: what rounding left along the rows before
        double product = 0.0;
        for (int64_t i = 0; i < n; i++) {
            product += AT(B, row, i) * AT(B, order.at[j], i);
        }
        for (int64_t i = 0; i < n; i++) {
            AT(B, row, i) -= product * AT(B, order.at[j], i);
        }
        AT(L, k, j) += product;
    }
    double square = 0.0;
    for (int64_t i = 0; i < n; i++) {
        square += AT(B, row, i) * AT(B, row, i);
    }
    AT(L, k, k) = sqrt(square);
    if (square == 0.0) {
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        AT(B, row, i) /= AT(L, k, k);
    }
    for (int64_t p = k + 1; p < m; p++) {
        int64_t other = order.at[p];
        double product = 0.0;
        for (int64_t i = 0; i < n; i++) {
            product += AT(B, other, i) * AT(B, row, i);
        }
        if (product != 0.0) {
            for (int64_t i = 0; i < n; i++) {
                AT(B, other, i) -= product * AT(B, row, i);
            }
        }
        AT(L, p, k) = product;
    }
}

/* Write the `move` (n,) of least norm with `B_before move = right` for the first `rank` rows of `order`.

   `B`, `order`, `L`: as fsm_orthogonalise left them; `right` (m,) is overwritten. */
FSM_LOCAL void fsm_least_move(fsm_matrix B, fsm_indices order, fsm_matrix L, int64_t rank, fsm_vector right,
                              fsm_vector move)
{
    int64_t n = B.m;
    for (int64_t i = 0; i < n; i++) {
        move.at[i] = 0.0;
    }
    for (int64_t k = 0; k < rank; k++) {
        int64_t row = order.at[k];
        double value = right.at[row];
        for (int64_t j = 0; j < k; j++) {
            value -= AT(L, k, j) * right.at[order.at[j]];
        }
        value /= AT(L, k, k);
        right.at[row] = value;
        for (int64_t i = 0; i < n; i++) {
            move.at[i] += value * AT(B, row, i);
        }
    }
}
