/* Dense factors, eigenvalues, rank of rows. */

#include "algebra.h"

/* -- Gaussian elimination with complete pivoting, which shows the rank.

   G. H. Golub and C. F. Van Loan, *Matrix Computations*, 4th ed., section 3.4. */

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

/* -- Eigenvalues of small general matrices, without allocation: reduction to Hessenberg form and shifted QR steps.

   G. H. Golub and C. F. Van Loan, *Matrix Computations*, 4th ed., sections 7.4 and 7.5: reduction by
   elimination with pivoting, then the implicit double step of Francis with deflation. */

#define FSM_EIGENVALUE_ROUNDING FSM_EPS
#define FSM_MOST_QR_STEPS       60 // double steps per eigenvalue

static void to_hessenberg(fsm_matrix H);
static int64_t deflate(fsm_matrix H, int64_t high);
static void pair_eigenvalues(fsm_matrix H, int64_t high, fsm_vector real, fsm_vector imaginary);
static void double_step(fsm_matrix H, int64_t low, int64_t high, bool exceptional);

/* Write the eigenvalues of `H` (n, n), which is overwritten, to `real` and `imaginary` (n,); false if the QR steps do
   not converge. */
FSM_LOCAL bool fsm_eigenvalues(fsm_matrix H, fsm_vector real, fsm_vector imaginary)
{
    int64_t n = H.n;
    to_hessenberg(H);
    int64_t high = n - 1, tries = 0;
    while (high >= 0) {
        int64_t low = deflate(H, high);
        if (low == high) {
            real.at[high] = AT(H, high, high);
            imaginary.at[high] = 0.0;
            high -= 1;
            tries = 0;
        } else if (low == high - 1) {
            pair_eigenvalues(H, high, real, imaginary);
            high -= 2;
            tries = 0;
        } else {
            if (tries == FSM_MOST_QR_STEPS) {
                return false;
            }
            tries++;
            double_step(H, low, high, tries % 10 == 0);
        }
    }
    return true;
}

/* Return where the block that ends at `high` begins; entries below the diagonal that are rounding become zero. */
static int64_t deflate(fsm_matrix H, int64_t high)
{
    int64_t k = high;
    while (k > 0) {
        double size = fabs(AT(H, k, k)) + fabs(AT(H, k - 1, k - 1));
        if (fabs(AT(H, k, k - 1)) <= FSM_EIGENVALUE_ROUNDING * size || fabs(AT(H, k, k - 1)) < FSM_TINIEST) {
            AT(H, k, k - 1) = 0.0;
            return k;
        }
        k--;
    }
    return 0;
}

/* Write the two eigenvalues of the block of two that ends at `high`. */
static void pair_eigenvalues(fsm_matrix H, int64_t high, fsm_vector real, fsm_vector imaginary)
{
    double a = AT(H, high - 1, high - 1), b = AT(H, high - 1, high), c = AT(H, high, high - 1), d = AT(H, high, high);
    double middle = 0.5 * (a + d), half = 0.5 * (a - d);
    double inside = half * half + b * c;
    double root = sqrt(fabs(inside));
    if (inside >= 0.0) {
        double larger = middle >= 0.0 ? middle + root : middle - root;
        real.at[high - 1] = larger;
        real.at[high] = larger != 0.0 ? (a * d - b * c) / larger : 0.0;
        imaginary.at[high - 1] = 0.0;
        imaginary.at[high] = 0.0;
    } else {
        real.at[high - 1] = middle;
        real.at[high] = middle;
        imaginary.at[high - 1] = root;
        imaginary.at[high] = -root;
    }
}

/* Apply the reflection that takes (v0, v1, v2) to a multiple of the first unit vector, from both sides.

   It acts on `count` (2 or 3) rows from `at` on, in the columns from `first` on, and on as many columns, in the rows up
   to `last`. */
static void reflect(fsm_matrix H, int64_t at, int64_t count, double v0, double v1, double v2, int64_t first,
                    int64_t last)
{
    double norm = sqrt(v0 * v0 + v1 * v1 + v2 * v2);
    if (norm == 0.0) {
        return;
    }
    double w0 = v0 + (v0 >= 0.0 ? norm : -norm);
    double factor = 2.0 / (w0 * w0 + v1 * v1 + v2 * v2);
    for (int64_t j = first; j < H.n; j++) {
        double total = w0 * AT(H, at, j) + v1 * AT(H, at + 1, j);
        if (count == 3) {
            total += v2 * AT(H, at + 2, j);
        }
        total *= factor;
        AT(H, at, j) -= total * w0;
        AT(H, at + 1, j) -= total * v1;
        if (count == 3) {
            AT(H, at + 2, j) -= total * v2;
        }
    }
    for (int64_t i = 0; i <= last; i++) {
        double total = w0 * AT(H, i, at) + v1 * AT(H, i, at + 1);
        if (count == 3) {
            total += v2 * AT(H, i, at + 2);
        }
        total *= factor;
        AT(H, i, at) -= total * w0;
        AT(H, i, at + 1) -= total * v1;
        if (count == 3) {
            AT(H, i, at + 2) -= total * v2;
        }
    }
}

/* One implicit double step on the block from `low` to `high`; an exceptional shift breaks a cycle. */
static void double_step(fsm_matrix H, int64_t low, int64_t high, bool exceptional)
{
    // the first column of the shifted product over H[low + 1, low], from differences of the diagonal alone
    double first = AT(H, low, low);
    double r = AT(H, high, high) - first, s = AT(H, high - 1, high - 1) - first;
    double w = AT(H, high - 1, high) * AT(H, high, high - 1);
    if (exceptional) {
        double size = fabs(AT(H, high, high - 1)) + fabs(AT(H, high - 1, high - 2));
        s = 0.75 * size;
        r = s;
        w = -0.4375 * size * size;
    }
    double x = (r * s - w) / AT(H, low + 1, low) + AT(H, low, low + 1);
    double y = AT(H, low + 1, low + 1) - first - r - s;
    double z = AT(H, low + 2, low + 1);
    for (int64_t k = low; k < high - 1; k++) {
        reflect(H, k, 3, x, y, z, fsm_most(low, k - 1), fsm_least(high, k + 3));
        x = AT(H, k + 1, k);
        y = AT(H, k + 2, k);
        z = k + 3 <= high ? AT(H, k + 3, k) : 0.0;
    }
    reflect(H, high - 1, 2, x, y, 0.0, fsm_most(low, high - 2), high);
}

/* Bring a matrix to Hessenberg form by elimination with pivoting (a similarity). */
static void to_hessenberg(fsm_matrix H)
{
    int64_t n = H.n;
    for (int64_t k = 1; k < n - 1; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++) {
            if (fabs(AT(H, i, k - 1)) > fabs(AT(H, best, k - 1))) {
                best = i;
            }
        }
        if (best != k) {
            for (int64_t j = k - 1; j < n; j++) {
                double entry = AT(H, best, j);
                AT(H, best, j) = AT(H, k, j);
                AT(H, k, j) = entry;
            }
            for (int64_t i = 0; i < n; i++) {
                double entry = AT(H, i, best);
                AT(H, i, best) = AT(H, i, k);
                AT(H, i, k) = entry;
            }
        }
        if (AT(H, k, k - 1) == 0.0) {
            continue;
        }
        for (int64_t i = k + 1; i < n; i++) {
            double factor = AT(H, i, k - 1) / AT(H, k, k - 1);
            if (factor == 0.0) {
                continue;
            }
            AT(H, i, k - 1) = 0.0;
            for (int64_t j = k; j < n; j++) {
                AT(H, i, j) -= factor * AT(H, k, j);
            }
            for (int64_t j = 0; j < n; j++) {
                AT(H, j, k) += factor * AT(H, j, i);
            }
        }
    }
}

/* -- Rank of the constraint rows of a mode: their smallest part, and when it vanishes (docs/theory.md, "Change points").

   The rows held are scaled on both sides, `B = D A diag(M)^-1/2` with D the inverse of the largest size that each row is
   known to have had: divided by its own norm, a row that vanishes as a whole would not show.  Pivoted orthogonalisation
   splits them, `B[order] = L Q`.  The rows that come last, taken free of those before, `N B`, are what may be lost;
   `N (dB/dt) Qᵀ` tells how fast. */

#define FSM_TIE 1e-6 // part by which a row must be larger to be taken before an earlier one: ties go by order



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
    int64_t taken = fsm_orthogonalise(arena, B, order, L, fsm_larger(tables->tolerances->redundancy, amount * off));
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

/* Columns that differ from zero of the rows that fsm_orthogonalise has taken: each walks through its own alone. */
struct taken_columns {
    fsm_indices columns; // (m n,), ascending, from n k of the row taken k-th
    fsm_indices counts;  // (m,)
};

/* Return the sum of squares of row `r`. */
static double row_square(fsm_matrix B, int64_t r)
{
    double square = 0.0;
    for (int64_t i = 0; i < B.m; i++) {
        square += AT(B, r, i) * AT(B, r, i);
    }
    return square;
}

/* Subtract from row `r` its part along the unit vector taken k-th, row `unit`; return the size of that part. */
static double subtract_part(fsm_matrix B, int64_t r, int64_t unit, const struct taken_columns *taken, int64_t k)
{
    const int64_t *columns = taken->columns.at + k * B.m;
    int64_t count = taken->counts.at[k];
    double product = 0.0;
    for (int64_t j = 0; j < count; j++) {
        product += AT(B, r, columns[j]) * AT(B, unit, columns[j]);
    }
    for (int64_t j = 0; product != 0.0 && j < count; j++) {
        AT(B, r, columns[j]) -= product * AT(B, unit, columns[j]);
    }
    return product;
}

/* Make row `order[k]` a unit vector normal to those before it, and subtract its part from those after it.

   `squares` (m,) of the rows are brought up to date. */
static void take_row(fsm_matrix B, fsm_indices order, fsm_matrix L, int64_t k, struct taken_columns *taken,
                     fsm_vector squares)
{
    int64_t m = B.n, n = B.m;
    int64_t row = order.at[k];
    for (int64_t j = 0; j < k; j++) { // once more: what rounding left along the rows before
        AT(L, k, j) += subtract_part(B, row, order.at[j], taken, j);
    }
    double square = row_square(B, row);
    AT(L, k, k) = sqrt(square);
    taken->counts.at[k] = 0;
    if (square == 0.0) {
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        AT(B, row, i) /= AT(L, k, k);
        if (AT(B, row, i) != 0.0) {
            taken->columns.at[k * n + taken->counts.at[k]] = i;
            taken->counts.at[k]++;
        }
    }
    for (int64_t p = k + 1; p < m; p++) {
        int64_t other = order.at[p];
        AT(L, p, k) = subtract_part(B, other, row, taken, k);
        if (AT(L, p, k) != 0.0) {
            squares.at[other] = row_square(B, other);
        }
    }
}

/* Orthogonalise rows with pivoting, in place: `B_before[order[i]] = sum_j L[i, j] B[order[j]]`.

   Modified Gram-Schmidt with reorthogonalisation (Golub and Van Loan, *Matrix Computations*, section 5.2).  `B` is
   (m, n); `order` (m,), the order in which the rows were taken, and `L` (m, m), lower triangular, are written.  A
   remainder below the part `least` of the first row ends it.  Returns the number of rows taken, the rank; rows beyond it
   keep their remainders.  Zeros are passed over: rows of a long mechanism have few entries. */
FSM_LOCAL int64_t fsm_orthogonalise(struct fsm_arena *arena, fsm_matrix B, fsm_indices order, fsm_matrix L,
                                    double least)
{
    int64_t m = B.n, n = B.m;
    fsm_mark mark = fsm_arena_mark(arena);
    fsm_vector squares = fsm_arena_vector(arena, m);
    struct taken_columns taken = {fsm_arena_indices(arena, m * n), fsm_arena_indices(arena, m)};
    if (arena->top->overflown == 1) {
        return 0;
    }
    for (int64_t i = 0; i < m; i++) {
        order.at[i] = i;
        squares.at[i] = row_square(B, i);
        for (int64_t j = 0; j < m; j++) {
            AT(L, i, j) = 0.0;
        }
    }
    double first = 0.0;
    int64_t k = 0;
    for (; k < m; k++) {
        int64_t best = k;
        double size = -1.0;
        for (int64_t i = k; i < m; i++) {
            double square = squares.at[order.at[i]];
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
            break;
        }
        int64_t row = order.at[best];
        order.at[best] = order.at[k];
        order.at[k] = row;
        for (int64_t j = 0; j < k; j++) {
            double entry = AT(L, best, j);
            AT(L, best, j) = AT(L, k, j);
            AT(L, k, j) = entry;
        }
        take_row(B, order, L, k, &taken, squares);
    }
    fsm_arena_release(arena, mark);
    return k;
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
