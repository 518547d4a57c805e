/* Eigenvalues of small general matrices, without allocation: reduction to Hessenberg form and shifted QR steps.

   G. H. Golub and C. F. Van Loan, *Matrix Computations*, 4th ed., sections 7.4 and 7.5: reduction by
   elimination with pivoting, then the implicit double step of Francis with deflation. */

#include "algebra.h"

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
