/* Gaussian elimination with complete pivoting, which shows the rank.

   G. H. Golub and C. F. Van Loan, *Matrix Computations*, 4th ed., section 3.4. */

#include "algebra.h"

static void swap_entries(fsm_indices order, int64_t i, int64_t j)
{
    int64_t entry = order.at[i];
    order.at[i] = order.at[j];
    order.at[j] = entry;
}

/* The remaining block of a matrix while it is factored, from step `k` on, with its largest entry so far. */
struct block {
    const struct fsm_lu *lu;
    int64_t k;
    fsm_vector bounds; // (n,): of each row no less than its largest entry
    double largest;
    int64_t row, column; // in pivoting order
};

/* Enter the largest entry found in row `i`, at `column`, -1 where none is larger than those before. */
static void enter_pivot(struct block *block, double largest, int64_t i, int64_t column)
{
    if (column >= 0) {
        block->largest = largest;
        block->row = i;
        block->column = column;
    }
}

/* Look through row `i` of the block, in pivoting order, for a larger entry. */
static void look_through(struct block *block, int64_t i)
{
    const double *row = block->lu->matrix.at + block->lu->rows.at[i] * block->lu->matrix.m;
    const int64_t *columns = block->lu->columns.at;
    double *bound = &block->bounds.at[block->lu->rows.at[i]];
    if (!(*bound > block->largest)) {
        return;
    }
    double own = 0.0, largest = block->largest;
    int64_t best = -1;
    for (int64_t j = block->k; j < block->lu->matrix.n; j++) {
        double size = fabs(row[columns[j]]);
        own = fsm_larger(own, size);
        if (size > largest) {
            largest = size;
            best = j;
        }
    }
    *bound = own;
    enter_pivot(block, largest, i, best);
}

/* Subtract `quotient` times the pivot row `r` from row `i`, and look for a larger entry meanwhile. */
static void subtract_row(struct block *block, int64_t r, int64_t i, double quotient)
{
    fsm_matrix matrix = block->lu->matrix;
    const double *pivot = matrix.at + r * matrix.m;
    double *row = matrix.at + block->lu->rows.at[i] * matrix.m;
    const int64_t *columns = block->lu->columns.at;
    double own = 0.0, largest = block->largest;
    int64_t best = -1;
    for (int64_t j = block->k; j < matrix.n; j++) {
        int64_t column = columns[j];
        double value = row[column] - quotient * pivot[column], size = fabs(value);
        row[column] = value;
        own = fsm_larger(own, size);
        if (size > largest) {
            largest = size;
            best = j;
        }
    }
    block->bounds.at[block->lu->rows.at[i]] = own;
    enter_pivot(block, largest, i, best);
}

/* Take the pivot found into place `k`; false where it is zero, which ends the elimination. */
static bool take_pivot(struct fsm_lu *lu, int64_t k, double largest, double least, int64_t row, int64_t column)
{
    if (!(largest > least) || largest == 0.0) {
        lu->rank = k;
        return false;
    }
    swap_entries(lu->rows, row, k);
    swap_entries(lu->columns, column, k);
    return true;
}

/* Factor a matrix of many rows.

   Rows in which the pivot's column is zero stay as they are, and are looked through for the next pivot only where they
   can hold a larger entry than the rows before: mechanisms of many bodies have few entries in a row. */
static void factor_large(struct fsm_lu *lu, double tolerance)
{
    int64_t n = lu->matrix.n;
    struct block block = {.lu = lu, .bounds = lu->scratch, .largest = -1.0};
    fsm_vector_fill(block.bounds, FSM_INFINITY);
    for (int64_t i = 0; i < n; i++) {
        look_through(&block, i);
    }
    double least = tolerance * block.largest;
    for (int64_t k = 0; k < n && take_pivot(lu, k, block.largest, least, block.row, block.column); k++) {
        int64_t r = lu->rows.at[k], p = lu->columns.at[k];
        double pivot = AT(lu->matrix, r, p);
        block = (struct block){lu, k + 1, lu->scratch, -1.0, k + 1, k + 1};
        for (int64_t i = k + 1; i < n; i++) {
            double quotient = AT(lu->matrix, lu->rows.at[i], p) / pivot;
            AT(lu->matrix, lu->rows.at[i], p) = quotient;
            if (quotient == 0.0) {
                look_through(&block, i);
            } else {
                subtract_row(&block, r, i, quotient);
            }
        }
    }
}

/* Factor a matrix of few rows: the same, every row looked through. */
static void factor_small(struct fsm_lu *lu, double tolerance)
{
    fsm_matrix matrix = lu->matrix;
    fsm_indices rows = lu->rows, columns = lu->columns;
    int64_t n = matrix.n, row = 0, column = 0;
    double largest = -1.0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            if (fabs(AT(matrix, i, j)) > largest) {
                largest = fabs(AT(matrix, i, j));
                row = i;
                column = j;
            }
        }
    }
    double least = tolerance * largest;
    for (int64_t k = 0; k < n && take_pivot(lu, k, largest, least, row, column); k++) {
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
    for (int64_t i = 0; i < n; i++) {
        lu.rows.at[i] = i;
        lu.columns.at[i] = i;
    }
    if (n > FSM_FEW_ROWS) {
        factor_large(&lu, tolerance);
    } else {
        factor_small(&lu, tolerance);
    }
    return lu;
}

/* Return which entries of the factors differ from zero. */
FSM_LOCAL struct fsm_lu_lists fsm_list_factors(struct fsm_arena *arena, const struct fsm_lu *lu)
{
    int64_t n = lu->matrix.n, length = 0;
    struct fsm_lu_lists lists = {.begin = fsm_arena_indices(arena, n + 1),
                                 .behind = fsm_arena_indices(arena, n),
                                 .columns = fsm_arena_indices(arena, n * n)};
    for (int64_t i = 0; i < n; i++) {
        int64_t known = fsm_least(i, lu->rank);
        lists.begin.at[i] = length;
        for (int64_t j = 0; j < lu->rank; j++) {
            lists.behind.at[i] = j == known ? length : lists.behind.at[i];
            if (AT(lu->matrix, lu->rows.at[i], lu->columns.at[j]) != 0.0 && j != i) {
                lists.columns.at[length++] = j;
            }
        }
        lists.behind.at[i] = known == lu->rank ? length : lists.behind.at[i];
    }
    lists.begin.at[n] = length;
    return lists;
}

/* Solve as fsm_solve does, with the entries that differ from zero alone. */
FSM_LOCAL double fsm_solve_listed(const struct fsm_lu *lu, const struct fsm_lu_lists *lists, fsm_vector right,
                                  fsm_vector solution)
{
    fsm_matrix matrix = lu->matrix;
    fsm_indices rows = lu->rows, columns = lu->columns;
    fsm_vector scratch = lu->scratch;
    int64_t n = matrix.n, rank = lu->rank;
    double remainder = 0.0;
    for (int64_t i = 0; i < n; i++) {
        scratch.at[i] = right.at[rows.at[i]];
        for (int64_t e = lists->begin.at[i]; e < lists->behind.at[i]; e++) {
            int64_t k = lists->columns.at[e];
            scratch.at[i] -= AT(matrix, rows.at[i], columns.at[k]) * scratch.at[k];
        }
    }
    for (int64_t i = rank; i < n; i++) {
        remainder = fsm_larger(remainder, fabs(scratch.at[i]));
        solution.at[columns.at[i]] = 0.0;
    }
    for (int64_t i = rank - 1; i >= 0; i--) {
        double value = scratch.at[i];
        for (int64_t e = lists->behind.at[i]; e < lists->begin.at[i + 1]; e++) {
            int64_t j = columns.at[lists->columns.at[e]];
            value -= AT(matrix, rows.at[i], j) * solution.at[j];
        }
        solution.at[columns.at[i]] = value / AT(matrix, rows.at[i], columns.at[i]);
    }
    return remainder;
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
