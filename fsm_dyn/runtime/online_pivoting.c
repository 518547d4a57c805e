/* Pivoted orthogonalisation and complete pivoting of rows and columns, for the choice of a chart (online_chart.c).

   Vectors that have no entries in common are orthogonal as they are: each is known by the extent of what differs from
   zero in it, and its norm is worked out again only where something was taken out of it. */

#include "online.h"

#define FSM_DEPENDENT 1e-9     // what is left of a unit column that is a combination of others
#define FSM_CLEARLY   1.000001 // how much larger a later candidate must be: ties go by order, whatever the rounding

/* Exchange two entries. */
FSM_LOCAL void fsm_swap_indices(int64_t *chart, int64_t i, int64_t j)
{
    int64_t kept = chart[i];
    chart[i] = chart[j];
    chart[j] = kept;
}

/* Return the sum of the squares of `count` entries, `stride` apart. */
FSM_LOCAL double fsm_square_of(double *w, int64_t at, int64_t count, int64_t stride)
{
    double total = 0.0;
    for (int64_t j = 0; j < count; j++) {
        total += w[at + j * stride] * w[at + j * stride];
    }
    return total;
}

/* Vectors to be made orthogonal, `stride` between their entries; vector i begins at `at + i * apart`.

   All entries of one that differ from zero lie from `extent[2 * i]` up to (not including) `extent[2 * i + 1]`. */
struct vectors {
    double *w;
    int64_t at, apart, count, stride;
    int64_t *extent;
    double *norms; // squares of their lengths
};

/* Find extents and norms of the vectors from number `first` up to `last`. */
static void measure(const struct vectors *v, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        const double *vector = v->w + v->at + i * v->apart;
        int64_t begin = 0, end = v->count;
        while (begin < end && vector[begin * v->stride] == 0.0) {
            begin++;
        }
        while (end > begin && vector[(end - 1) * v->stride] == 0.0) {
            end--;
        }
        v->extent[2 * i] = begin;
        v->extent[2 * i + 1] = end;
        v->norms[i] = fsm_square_of(v->w, v->at + i * v->apart, v->count, v->stride);
    }
}

/* Take out of vector `i` its part along the unit vector `pivot`. */
static void remove_along(const struct vectors *v, int64_t i, int64_t pivot)
{
    double *vector = v->w + v->at + i * v->apart;
    const double *along = v->w + v->at + pivot * v->apart;
    int64_t *extent = v->extent + 2 * i, *other = v->extent + 2 * pivot, stride = v->stride;
    double product = 0.0;
    for (int64_t j = fsm_most(extent[0], other[0]); j < fsm_least(extent[1], other[1]); j++) {
        product += vector[j * stride] * along[j * stride];
    }
    if (product == 0.0) {
        return;
    }
    for (int64_t j = other[0]; j < other[1]; j++) {
        vector[j * stride] -= product * along[j * stride];
    }
    extent[0] = fsm_least(extent[0], other[0]);
    extent[1] = fsm_most(extent[1], other[1]);
    v->norms[i] = fsm_square_of(v->w, v->at + i * v->apart, v->count, stride);
}

/* Exchange what is known of two vectors. */
static void swap_measures(const struct vectors *v, int64_t i, int64_t j)
{
    fsm_swap_indices(v->extent, 2 * i, 2 * j);
    fsm_swap_indices(v->extent, 2 * i + 1, 2 * j + 1);
    fsm_swap_entries(v->norms, i, j);
}

/* Bring independent rows to the front and count them. */
FSM_LOCAL void fsm_choose_rows(struct fsm_online_mode *o, int64_t Q)
{
    int64_t *chart = o->chart.at, U = o->sizes->n_u, R = o->sizes->n_rows;
    double *w = o->room.at;
    int64_t count = chart[FSM_ONLINE_ACTIVE];
    struct vectors rows = {w, Q, U, U, 1, o->extent.at, w + chart[FSM_ONLINE_AT_MULTIPLIERS]};
    measure(&rows, 0, count);
    for (int64_t k = 0; k < count; k++) {
        int64_t best = k;
        double size = 0.0;
        for (int64_t i = k; i < count; i++) {
            if (rows.norms[i] > size * FSM_CLEARLY) {
                best = i;
                size = rows.norms[i];
            }
        }
        if (!(size > o->limits->redundancy * o->limits->redundancy)) {
            chart[FSM_ONLINE_RANK] = k;
            return;
        }
        fsm_swap_indices(chart, FSM_ONLINE_LISTS + k, FSM_ONLINE_LISTS + best);
        fsm_swap_indices(chart, FSM_ONLINE_LISTS + R + k, FSM_ONLINE_LISTS + R + best);
        swap_measures(&rows, k, best);
        double factor = 1.0 / sqrt(size);
        for (int64_t j = 0; j < U; j++) {
            fsm_swap_entries(w, Q + k * U + j, Q + best * U + j);
            w[Q + k * U + j] *= factor;
        }
        for (int64_t i = k + 1; i < count; i++) {
            remove_along(&rows, i, k);
        }
    }
    chart[FSM_ONLINE_RANK] = count;
}

/* Return the column from `k` on that is left with the largest norm in both matrices, or in that of the rows held. */
static int64_t largest_column(const struct vectors *held, const struct vectors *forces, int64_t k, int64_t U)
{
    int64_t best = k;
    double size = 0.0;
    for (int64_t both = 0; both < 2; both++) { // where nothing serves both, the rows held decide
        for (int64_t j = k; j < U; j++) {
            double norm = held->norms[j];
            if (both == 0) {
                norm = fsm_smaller(norm, forces->norms[j]);
            }
            if (norm > size * FSM_CLEARLY) {
                best = j;
                size = norm;
            }
        }
        if (size > FSM_DEPENDENT * FSM_DEPENDENT) {
            break;
        }
    }
    return best;
}

/* Bring the dependent speeds to the front: columns that stay independent of each other in both matrices. */
FSM_LOCAL void fsm_choose_columns(struct fsm_online_mode *o, int64_t A, int64_t H)
{
    int64_t *chart = o->chart.at, U = o->sizes->n_u;
    double *w = o->room.at;
    int64_t rank = chart[FSM_ONLINE_RANK], columns = FSM_ONLINE_LISTS + 2 * o->sizes->n_rows;
    const struct vectors matrices[] = {
        {w, A, 1, rank, U, o->extent.at, w + chart[FSM_ONLINE_AT_RIGHT]},
        {w, H, 1, rank, U, o->extent.at + 2 * U, w + chart[FSM_ONLINE_AT_U_DOT]},
    };
    measure(&matrices[0], 0, U);
    measure(&matrices[1], 0, U);
    for (int64_t k = 0; k < rank; k++) {
        int64_t best = largest_column(&matrices[0], &matrices[1], k, U);
        fsm_swap_indices(chart, columns + k, columns + best);
        for (int64_t which = 0; which < 2; which++) {
            const struct vectors *v = &matrices[which];
            for (int64_t i = 0; i < rank; i++) {
                fsm_swap_entries(w, v->at + i * U + k, v->at + i * U + best);
            }
            swap_measures(v, k, best);
            double norm = sqrt(v->norms[k]);
            if (!(norm > 0.0)) {
                continue;
            }
            for (int64_t i = 0; i < rank; i++) {
                w[v->at + i * U + k] /= norm;
            }
            for (int64_t j = k + 1; j < U; j++) {
                remove_along(v, j, k);
            }
        }
    }
}

/* Return the largest entry of a row from column `first` on that is as large in both matrices. */
static double largest_entry(const double *a, const double *h, int64_t first, int64_t last)
{
    double largest = 0.0;
    for (int64_t j = first; j < last; j++) {
        largest = fsm_larger(largest, fsm_smaller(fabs(a[j]), fabs(h[j])));
    }
    return largest;
}

/* Find the pivot of step `k` in both matrices; a row is looked through where its bound lets it hold a larger entry. */
static void find_pivot(const double *A, const double *H, int64_t U, int64_t rank, int64_t k, double *bounds,
                       int64_t *row, int64_t *column)
{
    double size = 0.0;
    for (int64_t i = k; i < rank; i++) {
        if (!(bounds[i] > size * FSM_CLEARLY)) {
            continue;
        }
        for (int64_t j = k; j < rank; j++) {
            double entry = fsm_smaller(fabs(A[i * U + j]), fabs(H[i * U + j]));
            if (entry > size * FSM_CLEARLY) {
                *row = i;
                *column = j;
                size = entry;
            }
        }
        bounds[i] = largest_entry(A + i * U, H + i * U, k, rank);
    }
}

/* Eliminate column `k` from the rows below; true for each row that changed. */
static bool eliminate_from(double *matrix, int64_t U, int64_t rank, int64_t k, int64_t i)
{
    double factor = matrix[i * U + k] / matrix[k * U + k];
    if (matrix[k * U + k] == 0.0 || factor == 0.0) {
        return false;
    }
    for (int64_t j = k; j < rank; j++) {
        matrix[i * U + j] -= factor * matrix[k * U + j];
    }
    return true;
}

/* Order rows and dependent speeds for elimination without further pivoting, by complete pivoting on both. */
FSM_LOCAL void fsm_order_chart(struct fsm_online_mode *o, int64_t A, int64_t H)
{
    int64_t *chart = o->chart.at, U = o->sizes->n_u, R = o->sizes->n_rows;
    double *w = o->room.at, *bounds = w + chart[FSM_ONLINE_AT_MULTIPLIERS];
    int64_t rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    const int64_t matrices[] = {A, H};
    for (int64_t i = 0; i < rank; i++) {
        bounds[i] = largest_entry(w + A + i * U, w + H + i * U, 0, rank);
    }
    for (int64_t k = 0; k < rank; k++) {
        int64_t row = k, column = k;
        find_pivot(w + A, w + H, U, rank, k, bounds, &row, &column);
        fsm_swap_indices(chart, FSM_ONLINE_LISTS + k, FSM_ONLINE_LISTS + row);
        fsm_swap_indices(chart, FSM_ONLINE_LISTS + R + k, FSM_ONLINE_LISTS + R + row);
        fsm_swap_indices(chart, columns + k, columns + column);
        fsm_swap_entries(bounds, k, row);
        for (int64_t which = 0; which < 2; which++) {
            int64_t matrix = matrices[which];
            for (int64_t j = 0; j < rank; j++) {
                fsm_swap_entries(w, matrix + k * U + j, matrix + row * U + j);
            }
            for (int64_t i = 0; i < rank; i++) {
                fsm_swap_entries(w, matrix + i * U + k, matrix + i * U + column);
            }
        }
        for (int64_t i = k + 1; i < rank; i++) {
            bool changed = eliminate_from(w + A, U, rank, k, i);
            changed = eliminate_from(w + H, U, rank, k, i) || changed;
            if (changed) {
                bounds[i] = largest_entry(w + A + i * U, w + H + i * U, k + 1, rank);
            }
        }
    }
}
