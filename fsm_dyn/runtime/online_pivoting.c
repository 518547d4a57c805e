/* Pivots and sparsity of modes embedded online. */

#include "online.h"

/* -- Quality of the chart of a mode embedded online: pivots, and consistency of redundant rows. */

/* Return the square of a row's norm, speeds in units of the root of their inertia. */
static double weighted_norm(const struct fsm_online_mode *o, int64_t row)
{
    int64_t U = o->sizes->n_u;
    const double *M = o->room.at + o->chart.at[FSM_ONLINE_AT_M];
    const double *entries = o->room.at + o->chart.at[FSM_ONLINE_AT_A] + row * U;
    double total = 0.0;
    for (int64_t e = o->row_begin.at[row]; e < o->row_begin.at[row + 1]; e++) {
        int64_t j = o->row_columns.at[e];
        double inertia = M[j * (U + 1)];
        total += entries[j] * entries[j] / (inertia > 0.0 ? inertia : 1.0);
    }
    return total;
}

/* Return how much there is of a row, 1 at most: its norm in the mechanism's own units.

   Among rows of which some are redundant one may vanish while all together keep their rank, which its own norm does not
   show. */
FSM_LOCAL double fsm_part_of_row(const struct fsm_online_mode *o, int64_t row)
{
    const double *entries = o->room.at + o->chart.at[FSM_ONLINE_AT_A] + row * o->sizes->n_u;
    double total = 0.0;
    for (int64_t e = o->row_begin.at[row]; e < o->row_begin.at[row + 1]; e++) {
        int64_t j = o->row_columns.at[e];
        total += fsm_square(entries[j] * o->state_unit.at[o->sizes->n_q + j]);
    }
    double whole = o->limits->length_scale / o->limits->time_scale * o->row_unit.at[row];
    return fsm_smaller(sqrt(total) / whole, 1.0);
}

/* Whether a row is smaller than the largest one held by so much that it holds nothing: what is left of it is rounding. */
static bool holds_nothing(const struct fsm_online_mode *o, int64_t row)
{
    double largest = 0.0;
    for (int64_t k = 0; k < o->chart.at[FSM_ONLINE_ACTIVE]; k++) {
        largest = fsm_larger(largest, weighted_norm(o, o->chart.at[FSM_ONLINE_LISTS + k]));
    }
    return weighted_norm(o, row) <= fsm_square(FSM_HOLDS_NOTHING) * largest;
}

/* Return `part` divided by a norm over its pivot: zero also where a row has vanished, with the quotient 0/0. */
static double part_of_pivot(double part, double quotient)
{
    return quotient < FSM_INFINITY ? part / fsm_larger(quotient, FSM_TINIEST) : 0.0;
}

/* Return the smallest scaled pivot of the rows, `least` at most; 0 where a row left out holds something now. */
FSM_LOCAL double fsm_row_pivots(struct fsm_online_mode *o, double least)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_M = chart[FSM_ONLINE_AT_M], at_P = chart[FSM_ONLINE_AT_P],
            at_H = chart[FSM_ONLINE_AT_H];
    int64_t at_Q = chart[FSM_ONLINE_AT_Q];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R, width = U + 2;
    if (chart[FSM_ONLINE_SLIDES] == 1) {
        fsm_force_rows(o, at_Q);
    }
    double inertia;
    for (int64_t k = 0; k < rank; k++) {
        inertia = w[at_M + chart[columns + k] * (U + 1)];
        double size = inertia > 0.0 ? sqrt(inertia) : 1.0;
        double norm = sqrt(weighted_norm(o, chart[FSM_ONLINE_LISTS + k])) * size;
        double part = rank < chart[FSM_ONLINE_ACTIVE] ? fsm_part_of_row(o, chart[FSM_ONLINE_LISTS + k]) : 1.0;
        least = fsm_smaller(least, part_of_pivot(part, fabs(w[at_P + k * width + k]) * norm));
        if (chart[FSM_ONLINE_SLIDES] == 1) {
            double total = 0.0;
            for (int64_t e = o->held_begin.at[k]; e < o->held_begin.at[k + 1]; e++) {
                int64_t j = o->held_columns.at[e];
                double mass = w[at_M + chart[columns + j] * (U + 1)];
                total += w[at_Q + k * U + j] * w[at_Q + k * U + j] / (mass > 0.0 ? mass : 1.0);
            }
            least = fsm_smaller(least, part_of_pivot(1.0, fabs(w[at_H + k * U + k]) * sqrt(total) * size));
        }
    }
    for (int64_t k = rank; k < chart[FSM_ONLINE_ACTIVE]; k++) {
        int64_t left_out = chart[FSM_ONLINE_LISTS + k], row = at_A + left_out * U;
        double rest = 0.0;
        for (int64_t j = rank; j < U; j++) {
            double left = w[row + chart[columns + j]];
            for (int64_t m = 0; m < rank; m++) {
                left -= w[row + chart[columns + m]] * w[at_P + m * width + j];
            }
            inertia = w[at_M + chart[columns + j] * (U + 1)];
            rest += left * left / (inertia > 0.0 ? inertia : 1.0);
        }
        if (rest > o->limits->redundancy * o->limits->redundancy * weighted_norm(o, left_out) && !holds_nothing(o, left_out)) {
            return 0.0;
        }
    }
    return least;
}

/* -- Sparsity of the matrices of a mode embedded online, in its chart.

   Mechanisms are long more often than they are tightly knit: a row holds a few speeds, and a mass matrix has blocks.
   Once the chart is chosen, the elimination that it leads to is followed with marks instead of numbers, and what is
   marked is listed; evaluations touch what is listed and nothing else (T. A. Davis, *Direct Methods for Sparse Linear
   Systems*, 2006).  The same operations are done in the same order as on full matrices, less those with a zero. */

#define FSM_MARKED 1.0

static void mark_row(struct fsm_online_mode *o, int64_t row, double *marks)
{
    for (int64_t e = o->row_begin.at[row]; e < o->row_begin.at[row + 1]; e++) {
        marks[o->place.at[o->row_columns.at[e]]] = FSM_MARKED;
    }
}

/* Mark in `marks` what is marked in `others`, from `first` up to `last`. */
static void unite(double *marks, const double *others, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j++) {
        if (others[j] != 0.0) {
            marks[j] = FSM_MARKED;
        }
    }
}

/* Mark what elimination without pivoting fills in `n` rows of `columns` entries, `width` apart. */
static void mark_eliminated(double *marks, int64_t n, int64_t width, int64_t columns)
{
    for (int64_t k = 0; k < n; k++) {
        marks[k * width + k] = FSM_MARKED;
        for (int64_t i = k + 1; i < n; i++) {
            if (marks[i * width + k] != 0.0) {
                unite(marks + i * width, marks + k * width, k + 1, columns);
            }
        }
    }
}

/* Append to a list the columns from `first` up to `last` that are marked; return its length. */
static int64_t list_marked(fsm_indices list, int64_t length, const double *marks, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j++) {
        if (marks[j] != 0.0) {
            list.at[length++] = j;
        }
    }
    return length;
}

/* Mark and list the entries of the rows held and of the rows of their forces. */
static void list_held(struct fsm_online_mode *o, double *marks)
{
    const int64_t *chart = o->chart.at;
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK], length = 0;
    for (int64_t k = 0; k < rank; k++) {
        int64_t contact = chart[FSM_ONLINE_LISTS + R + k];
        mark_row(o, chart[FSM_ONLINE_LISTS + k], marks + k * U);
        for (int64_t i = 0; contact >= 0 && i < fsm_tangent_count(o, contact); i++) {
            mark_row(o, AT(o->contact_rows, contact, 1) + i, marks + k * U);
        }
        for (int64_t d = 0; d < chart[FSM_ONLINE_SHARED]; d++) {
            int64_t other = chart[FSM_ONLINE_LISTS + R + rank + d];
            mark_row(o, chart[FSM_ONLINE_LISTS + rank + d], marks + k * U);
            for (int64_t i = 0; other >= 0 && i < fsm_tangent_count(o, other); i++) {
                mark_row(o, AT(o->contact_rows, other, 1) + i, marks + k * U);
            }
        }
    }
    mark_eliminated(marks, rank, U, U);
    for (int64_t k = rank - 1; k >= 0; k--) {
        for (int64_t m = k + 1; m < rank; m++) {
            if (marks[k * U + m] != 0.0) {
                unite(marks + k * U, marks + m * U, rank, U);
            }
        }
    }
    for (int64_t k = 0; k < rank; k++) {
        o->held_begin.at[k] = length;
        length = list_marked(o->held_columns, length, marks + k * U, 0, k + 1);
        o->held_behind.at[k] = length;
        length = list_marked(o->held_columns, length, marks + k * U, k + 1, rank);
        o->held_rest.at[k] = length;
        length = list_marked(o->held_columns, length, marks + k * U, rank, U);
    }
    o->held_begin.at[rank] = length;
}

/* List the rows that have entries below the diagonal of each column of the rows held. */
static void list_below(struct fsm_online_mode *o, const double *marks)
{
    int64_t U = o->sizes->n_u, rank = o->chart.at[FSM_ONLINE_RANK], length = 0;
    for (int64_t k = 0; k < rank; k++) {
        o->below_begin.at[k] = length;
        for (int64_t i = k + 1; i < rank; i++) {
            if (marks[i * U + k] != 0.0) {
                o->below_rows.at[length++] = i;
            }
        }
    }
    o->below_begin.at[rank] = length;
}

/* List the dependent speeds that each row of the mass matrix has entries of. */
static void list_tied(struct fsm_online_mode *o)
{
    int64_t U = o->sizes->n_u, rank = o->chart.at[FSM_ONLINE_RANK], length = 0;
    for (int64_t i = 0; i < U; i++) {
        int64_t first = length;
        for (int64_t e = o->mass_begin.at[i]; e < o->mass_begin.at[i + 1]; e++) {
            int64_t column = o->place.at[o->mass_columns.at[e]];
            if (column >= rank) {
                continue;
            }
            int64_t at = length++;
            for (; at > first && o->tied_columns.at[at - 1] > column; at--) {
                o->tied_columns.at[at] = o->tied_columns.at[at - 1];
            }
            o->tied_columns.at[at] = column;
        }
        o->tied_begin.at[i + 1] = length;
    }
}

/* Mark in `marks` the independent speeds, counted from zero, that row `k` of the rows held depends on. */
static void mark_rest(struct fsm_online_mode *o, int64_t k, double *marks)
{
    int64_t rank = o->chart.at[FSM_ONLINE_RANK];
    for (int64_t e = o->held_rest.at[k]; e < o->held_begin.at[k + 1]; e++) {
        marks[o->held_columns.at[e] - rank] = FSM_MARKED;
    }
}

/* Mark and list the entries of M T. */
static void list_moved(struct fsm_online_mode *o, double *marks)
{
    int64_t U = o->sizes->n_u, rank = o->chart.at[FSM_ONLINE_RANK], length = 0;
    for (int64_t i = 0; i < U; i++) {
        double *row = marks + i * U;
        for (int64_t e = o->mass_begin.at[i]; e < o->mass_begin.at[i + 1]; e++) {
            int64_t column = o->place.at[o->mass_columns.at[e]];
            if (column >= rank) {
                row[column - rank] = FSM_MARKED;
            }
        }
        for (int64_t e = o->tied_begin.at[i]; e < o->tied_begin.at[i + 1]; e++) {
            mark_rest(o, o->tied_columns.at[e], row);
        }
        length = list_marked(o->moved_columns, length, row, 0, U - rank);
        o->moved_begin.at[i + 1] = length;
    }
}

/* Mark in `marks` the entries of a row of M T. */
static void mark_moved(struct fsm_online_mode *o, int64_t speed, double *marks)
{
    for (int64_t e = o->moved_begin.at[speed]; e < o->moved_begin.at[speed + 1]; e++) {
        marks[o->moved_columns.at[e]] = FSM_MARKED;
    }
}

/* Mark all entries between speeds that are joined, directly or through others: rows may be exchanged then. */
static void mark_blocks(double *marks, int64_t n, int64_t width)
{
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i < n; i++) {
            if (marks[i * width + k] != 0.0 || marks[k * width + i] != 0.0) {
                marks[i * width + k] = FSM_MARKED;
                marks[k * width + i] = FSM_MARKED;
            }
        }
    }
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i < n; i++) {
            if (marks[i * width + k] != 0.0) {
                unite(marks + i * width, marks + k * width, 0, n);
            }
        }
    }
}

/* Mark and list the entries of the reduced mass matrix. */
static void list_reduced(struct fsm_online_mode *o, double *marks)
{
    const int64_t *chart = o->chart.at;
    int64_t U = o->sizes->n_u, rank = chart[FSM_ONLINE_RANK], n = U - rank, length = 0;
    const int64_t *columns = chart + FSM_ONLINE_LISTS + 2 * o->sizes->n_rows;
    for (int64_t i = 0; i < n; i++) {
        mark_moved(o, columns[rank + i], marks + i * U);
    }
    for (int64_t k = 0; k < rank; k++) {
        for (int64_t e = o->held_rest.at[k]; e < o->held_begin.at[k + 1]; e++) {
            mark_moved(o, columns[k], marks + (o->held_columns.at[e] - rank) * U);
        }
    }
    if (chart[FSM_ONLINE_SLIDES] == 1) {
        mark_blocks(marks, n, U);
    }
    mark_eliminated(marks, n, U, n);
    for (int64_t i = 0; i < n; i++) {
        o->reduced_begin.at[i] = length;
        length = list_marked(o->reduced_columns, length, marks + i * U, 0, i + 1);
        o->reduced_behind.at[i] = length;
        length = list_marked(o->reduced_columns, length, marks + i * U, i + 1, n);
    }
    o->reduced_begin.at[n] = length;
}

static void clear(double *w, int64_t at, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        w[at + i] = 0.0;
    }
}

/* List what can differ from zero in the chart that was just chosen, and clear the matrices worked out. */
FSM_LOCAL void fsm_list_nonzero(struct fsm_online_mode *o)
{
    const int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, active = chart[FSM_ONLINE_ACTIVE];
    int64_t at_P = chart[FSM_ONLINE_AT_P], at_H = chart[FSM_ONLINE_AT_H], at_MT = chart[FSM_ONLINE_AT_MT],
            at_mass = chart[FSM_ONLINE_AT_MASS];
    for (int64_t j = 0; j < U; j++) {
        o->place.at[chart[FSM_ONLINE_LISTS + 2 * R + j]] = j;
    }
    clear(w, at_P, active * (U + 2));
    clear(w, at_H, active * U);
    clear(w, at_MT, U * U);
    clear(w, at_mass, U * U);
    list_held(o, w + at_H);
    list_below(o, w + at_H);
    list_tied(o);
    list_moved(o, w + at_MT);
    list_reduced(o, w + at_mass);
    clear(w, at_H, active * U);
    clear(w, at_MT, U * U);
    clear(w, at_mass, U * U);
}

/* -- Pivoted orthogonalisation and complete pivoting of rows and columns, for the choice of a chart (online_chart.c).

   Vectors that have no entries in common are orthogonal as they are: each is known by the extent of what differs from
   zero in it, and its norm is worked out again only where something was taken out of it. */

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
