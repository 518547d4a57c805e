/* Gaussian elimination with complete pivoting, which shows the rank.

   G. H. Golub and C. F. Van Loan, *Matrix Computations*, 4th ed., section 3.4. */

#include "algebra.h"

static void swap_entries(fsm_indices order, int64_t i, int64_t j)
{
    int64_t entry = order.at[i];
    order.at[i] = order.at[j];
    order.at[j] = entry;
}

/* Factor a square matrix (n, n), which is overwritten by its factors.

   `tolerance`: a pivot below this fraction of the first is taken as zero, which ends the elimination. */
FSM_LOCAL struct fsm_lu fsm_factor(struct fsm_arena *arena, fsm_matrix matrix, double tolerance)
{
    int64_t n = matrix.n;
    struct fsm_lu lu = {.matrix = matrix,
                        .rows = fsm_arena_indices(arena, n),
                        .columns = fsm_arena_indices(arena, n),
                        .rank = n,
                        .scratch = fsm_arena_vector(arena, n)};
    fsm_indices rows = lu.rows, columns = lu.columns;
    double largest = -1.0;
    int64_t row = 0, column = 0;
    for (int64_t i = 0; i < n; i++) {
        rows.at[i] = i;
        columns.at[i] = i;
        for (int64_t j = 0; j < n; j++) {
            if (fabs(AT(matrix, i, j)) > largest) {
                largest = fabs(AT(matrix, i, j));
                row = i;
                column = j;
            }
        }
    }
    double first = largest;
    for (int64_t k = 0; k < n; k++) {
        if (!(largest > tolerance * first) || largest == 0.0) {
            lu.rank = k;
            return lu;
        }
        swap_entries(rows, row, k);
        swap_entries(columns, column, k);
        int64_t r = rows.at[k], p = columns.at[k];
        double pivot = AT(matrix, r, p);
        largest = -1.0; // of the remaining block, found while it is eliminated
        row = k + 1;
        column = k + 1;
        for (int64_t i = k + 1; i < n; i++) {
            int64_t at = rows.at[i];
            double quotient = AT(matrix, at, p) / pivot;
            AT(matrix, at, p) = quotient;
            for (int64_t j = k + 1; j < n; j++) {
                double value = AT(matrix, at, columns.at[j]) - quotient * AT(matrix, r, columns.at[j]);
                AT(matrix, at, columns.at[j]) = value;
                if (fabs(value) > largest) {
                    largest = fabs(value);
                    row = i;
                    column = j;
                }
            }
        }
    }
    return lu;
}

/* Solve for `solution` (n,); unknowns beyond the rank are zero.  `right` (n,) and `solution` are different arrays.

   Returns the largest remainder among the equations beyond the rank: zero where they agree with the others. */
FSM_LOCAL double fsm_solve(const struct fsm_lu *lu, fsm_vector right, fsm_vector solution)
{
    fsm_matrix matrix = lu->matrix;
    fsm_indices rows = lu->rows, columns = lu->columns;
    fsm_vector scratch = lu->scratch;
    int64_t n = matrix.n, rank = lu->rank;
    for (int64_t i = 0; i < n; i++) {
        int64_t known = fsm_least(i, rank);
        scratch.at[i] = right.at[rows.at[i]];
        for (int64_t k = 0; k < known; k++) {
            scratch.at[i] -= AT(matrix, rows.at[i], columns.at[k]) * scratch.at[k];
        }
    }
    double remainder = 0.0;
    for (int64_t i = rank; i < n; i++) {
        remainder = fsm_larger(remainder, fabs(scratch.at[i]));
        solution.at[columns.at[i]] = 0.0;
    }
    for (int64_t i = rank - 1; i >= 0; i--) {
        double value = scratch.at[i];
        for (int64_t j = i + 1; j < rank; j++) {
            value -= AT(matrix, rows.at[i], columns.at[j]) * solution.at[columns.at[j]];
        }
        solution.at[columns.at[i]] = value / AT(matrix, rows.at[i], columns.at[i]);
    }
    return remainder;
}
