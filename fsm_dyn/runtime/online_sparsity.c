/* Sparsity of the matrices of a mode embedded online, in its chart.

   Mechanisms are long more often than they are tightly knit: a row holds a few speeds, and a mass matrix has blocks.
   Once the chart is chosen, the elimination that it leads to is followed with marks instead of numbers, and what is
   marked is listed; evaluations touch what is listed and nothing else (T. A. Davis, *Direct Methods for Sparse Linear
   Systems*, 2006).  The same operations are done in the same order as on full matrices, less those with a zero. */

#include "online.h"

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
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows;
    int64_t at_P = chart[FSM_ONLINE_AT_P], at_H = chart[FSM_ONLINE_AT_H], at_MT = chart[FSM_ONLINE_AT_MT],
            at_mass = chart[FSM_ONLINE_AT_MASS];
    for (int64_t j = 0; j < U; j++) {
        o->place.at[chart[FSM_ONLINE_LISTS + 2 * R + j]] = j;
    }
    clear(w, at_P, R * (U + 2));
    clear(w, at_H, R * U);
    clear(w, at_MT, U * U);
    clear(w, at_mass, U * U);
    list_held(o, w + at_H);
    list_below(o, w + at_H);
    list_tied(o);
    list_moved(o, w + at_MT);
    list_reduced(o, w + at_mass);
    clear(w, at_H, R * U);
    clear(w, at_MT, U * U);
    clear(w, at_mass, U * U);
}
