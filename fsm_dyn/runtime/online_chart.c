/* Which rows of an active set are independent, and which speeds they make dependent.

   Asked when a mode is first evaluated in a run and when its pivot sounds the alarm.  Rows are scaled by
   `diag(M)^-1/2` and normalised, so that the answer does not depend on units.  Rank and rows by pivoted
   orthogonalisation (QR); dependent speeds by a pivoted QR of the columns, of rows held and rows of forces at once,
   because both are divided by; their order by complete pivoting (docs/theory.md, "On-line embedding"). */

#include "online.h"

#define FSM_DEPENDENT     1e-9     // what is left of a unit row that is a combination of others
#define FSM_HOLDS_NOTHING 1e-13    // a row this much smaller than the largest holds nothing
#define FSM_CLEARLY       1.000001 // how much larger a later candidate must be: ties go by order, whatever the rounding

static double square(double *w, int64_t at, int64_t count, int64_t stride);
static void sort_rest(int64_t *chart, int64_t columns, int64_t first, int64_t last);

static void swap_indices(int64_t *chart, int64_t i, int64_t j)
{
    int64_t kept = chart[i];
    chart[i] = chart[j];
    chart[j] = kept;
}

/* List the rows that a mode holds, constraints first, and mark the normals of sliding contacts. */
FSM_LOCAL void fsm_list_rows(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    int64_t R = o->sizes->n_rows;
    int64_t count = 0;
    chart[FSM_ONLINE_SLIDES] = 0;
    chart[FSM_ONLINE_PUSHES] = 0;
    chart[FSM_ONLINE_BUSY] = 0;
    for (int64_t r = 0; r < R; r++) {
        if (o->row_role.at[r] == FSM_ROLE_ALWAYS || o->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            chart[FSM_ONLINE_LISTS + count] = r;
            chart[FSM_ONLINE_LISTS + R + count] = -1;
            count++;
        }
    }
    for (int64_t k = 0; k < o->sizes->n_contacts; k++) {
        int64_t code = o->states.at[k], kind = o->contact_kind.at[k];
        if (code == FSM_CONTACT_FREE) {
            continue;
        }
        int64_t normal = AT(o->contact_rows, k, 0), tangent = AT(o->contact_rows, k, 1);
        chart[FSM_ONLINE_LISTS + 2 * R + o->sizes->n_u + chart[FSM_ONLINE_BUSY]] = k;
        chart[FSM_ONLINE_BUSY]++;
        if (kind == FSM_KIND_DRY_FRICTION || kind == FSM_KIND_COMPLIANT) {
            chart[FSM_ONLINE_PUSHES] = 1;
        }
        if (normal >= 0 && kind != FSM_KIND_COMPLIANT) {
            bool slides = code >= FSM_CONTACT_SLIDING && tangent >= 0;
            chart[FSM_ONLINE_LISTS + count] = normal;
            chart[FSM_ONLINE_LISTS + R + count] = slides ? k : -1;
            if (slides) {
                chart[FSM_ONLINE_SLIDES] = 1;
            }
            count++;
        }
        int64_t tangents = code == FSM_CONTACT_HELD ? fsm_tangent_count(o, k) : 0;
        for (int64_t i = 0; i < tangents; i++) {
            chart[FSM_ONLINE_LISTS + count] = tangent + i;
            chart[FSM_ONLINE_LISTS + R + count] = -1;
            count++;
        }
    }
    chart[FSM_ONLINE_ACTIVE] = count;
    chart[FSM_ONLINE_RANK] = count;
    for (int64_t j = 0; j < o->sizes->n_u; j++) {
        chart[FSM_ONLINE_LISTS + 2 * R + j] = j;
    }
}

/* Scale rows to unit length; rows that vanish beside the others become zero. */
static void normalise(double *w, int64_t at, int64_t count, int64_t U)
{
    double largest = 0.0;
    for (int64_t k = 0; k < count; k++) {
        largest = fsm_larger(largest, square(w, at + k * U, U, 1));
    }
    for (int64_t k = 0; k < count; k++) {
        double norm = square(w, at + k * U, U, 1);
        double factor = norm > FSM_HOLDS_NOTHING * FSM_HOLDS_NOTHING * largest ? 1.0 / sqrt(norm) : 0.0;
        for (int64_t j = 0; j < U; j++) {
            w[at + k * U + j] *= factor;
        }
    }
}

static double square(double *w, int64_t at, int64_t count, int64_t stride)
{
    double total = 0.0;
    for (int64_t j = 0; j < count; j++) {
        total += w[at + j * stride] * w[at + j * stride];
    }
    return total;
}

/* Take out of the vector at `at` its part along the unit vector at `pivot`. */
static void remove(double *w, int64_t at, int64_t pivot, int64_t count, int64_t stride)
{
    double product = 0.0;
    for (int64_t j = 0; j < count; j++) {
        product += w[at + j * stride] * w[pivot + j * stride];
    }
    for (int64_t j = 0; j < count; j++) {
        w[at + j * stride] -= product * w[pivot + j * stride];
    }
}

/* Bring independent rows to the front and count them. */
static void choose_rows(int64_t *chart, double *w, int64_t Q, int64_t U, int64_t R)
{
    int64_t count = chart[FSM_ONLINE_ACTIVE];
    for (int64_t k = 0; k < count; k++) {
        int64_t best = k;
        double size = 0.0;
        for (int64_t i = k; i < count; i++) {
            double norm = square(w, Q + i * U, U, 1);
            if (norm > size * FSM_CLEARLY) {
                best = i;
                size = norm;
            }
        }
        if (!(size > FSM_DEPENDENT * FSM_DEPENDENT)) {
            chart[FSM_ONLINE_RANK] = k;
            return;
        }
        swap_indices(chart, FSM_ONLINE_LISTS + k, FSM_ONLINE_LISTS + best);
        swap_indices(chart, FSM_ONLINE_LISTS + R + k, FSM_ONLINE_LISTS + R + best);
        double factor = 1.0 / sqrt(size);
        for (int64_t j = 0; j < U; j++) {
            fsm_swap_entries(w, Q + k * U + j, Q + best * U + j);
            w[Q + k * U + j] *= factor;
        }
        for (int64_t i = k + 1; i < count; i++) {
            remove(w, Q + i * U, Q + k * U, U, 1);
        }
    }
    chart[FSM_ONLINE_RANK] = count;
}

/* Bring the dependent speeds to the front: columns that stay independent of each other in both matrices. */
static void choose_columns(int64_t *chart, double *w, int64_t A, int64_t H, int64_t U, int64_t columns)
{
    int64_t rank = chart[FSM_ONLINE_RANK];
    double norm;
    for (int64_t k = 0; k < rank; k++) {
        int64_t best = k;
        double size = 0.0;
        for (int64_t both = 0; both < 2; both++) { // where nothing serves both, the rows held decide
            for (int64_t j = k; j < U; j++) {
                norm = square(w, A + j, rank, U);
                if (both == 0) {
                    norm = fsm_smaller(norm, square(w, H + j, rank, U));
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
        swap_indices(chart, columns + k, columns + best);
        const int64_t matrices[] = {A, H};
        for (int64_t which = 0; which < 2; which++) {
            int64_t matrix = matrices[which];
            for (int64_t i = 0; i < rank; i++) {
                fsm_swap_entries(w, matrix + i * U + k, matrix + i * U + best);
            }
            norm = sqrt(square(w, matrix + k, rank, U));
            if (norm > 0.0) {
                for (int64_t i = 0; i < rank; i++) {
                    w[matrix + i * U + k] /= norm;
                }
                for (int64_t j = k + 1; j < U; j++) {
                    remove(w, matrix + j, matrix + k, rank, U);
                }
            }
        }
    }
}

/* Order rows and dependent speeds for elimination without further pivoting, by complete pivoting on both. */
static void order(int64_t *chart, double *w, int64_t A, int64_t H, int64_t U, int64_t R)
{
    int64_t rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    for (int64_t k = 0; k < rank; k++) {
        int64_t row = k;
        int64_t column = k;
        double size = 0.0;
        for (int64_t i = k; i < rank; i++) {
            for (int64_t j = k; j < rank; j++) {
                double entry = fsm_smaller(fabs(w[A + i * U + j]), fabs(w[H + i * U + j]));
                if (entry > size * FSM_CLEARLY) {
                    row = i;
                    column = j;
                    size = entry;
                }
            }
        }
        swap_indices(chart, FSM_ONLINE_LISTS + k, FSM_ONLINE_LISTS + row);
        swap_indices(chart, FSM_ONLINE_LISTS + R + k, FSM_ONLINE_LISTS + R + row);
        swap_indices(chart, columns + k, columns + column);
        const int64_t matrices[] = {A, H};
        for (int64_t which = 0; which < 2; which++) {
            int64_t matrix = matrices[which];
            for (int64_t j = 0; j < rank; j++) {
                fsm_swap_entries(w, matrix + k * U + j, matrix + row * U + j);
            }
            for (int64_t i = 0; i < rank; i++) {
                fsm_swap_entries(w, matrix + i * U + k, matrix + i * U + column);
            }
            double pivot = w[matrix + k * U + k];
            if (pivot == 0.0) {
                continue;
            }
            for (int64_t i = k + 1; i < rank; i++) {
                double factor = w[matrix + i * U + k] / pivot;
                for (int64_t j = k; j < rank; j++) {
                    w[matrix + i * U + j] -= factor * w[matrix + k * U + j];
                }
            }
        }
    }
}

/* Write the first rows listed, and the rows of their forces, scaled and normalised. */
static void scaled_rows(struct fsm_online_mode *o, int64_t count, int64_t A, int64_t H)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_M = chart[FSM_ONLINE_AT_M];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows;
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    int64_t rank = chart[FSM_ONLINE_RANK];
    chart[FSM_ONLINE_RANK] = count;
    fsm_force_rows(o, H);
    chart[FSM_ONLINE_RANK] = rank;
    for (int64_t k = 0; k < count; k++) {
        int64_t row = at_A + chart[FSM_ONLINE_LISTS + k] * U;
        for (int64_t j = 0; j < U; j++) {
            double inertia = w[at_M + chart[columns + j] * (U + 1)];
            double scale = inertia > 0.0 ? 1.0 / sqrt(inertia) : 1.0;
            w[A + k * U + j] = w[row + chart[columns + j]] * scale;
            w[H + k * U + j] *= scale;
        }
    }
    normalise(w, A, count, U);
    normalise(w, H, count, U);
}

/* Choose the chart of a mode at a state; it holds until the mode is left or its pivot sounds the alarm. */
FSM_LOCAL void fsm_online_choose_chart(struct fsm_online_mode *o, double t, const double *x, const double *c)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_q_dot = chart[FSM_ONLINE_AT_Q_DOT], at_x = chart[FSM_ONLINE_AT_X],
            at_H = chart[FSM_ONLINE_AT_H];
    int64_t at_Q = chart[FSM_ONLINE_AT_Q];
    int64_t n_q = o->sizes->n_q, U = o->sizes->n_u, R = o->sizes->n_rows;
    chart[FSM_ONLINE_CHOSEN] = 1;
    chart[FSM_ONLINE_CHOICES]++;
    o->alarm->level = 0.0;
    fsm_list_rows(o);
    if (chart[FSM_ONLINE_ACTIVE] == 0) {
        return;
    }
    for (int64_t i = 0; i < n_q + U; i++) {
        w[at_x + i] = x[i];
    }
    o->programs.at[FSM_ONLINE_ROWS](t, w + at_x, c, w + at_A);
    o->programs.at[FSM_ONLINE_MOTION](t, w + at_x, c, w + at_q_dot);
    fsm_online_slip_directions(o, c);
    scaled_rows(o, chart[FSM_ONLINE_ACTIVE], at_Q, at_H);
    choose_rows(chart, w, at_Q, U, R);
    scaled_rows(o, chart[FSM_ONLINE_RANK], at_Q, at_H);
    choose_columns(chart, w, at_Q, at_H, U, FSM_ONLINE_LISTS + 2 * R);
    scaled_rows(o, chart[FSM_ONLINE_RANK], at_Q, at_H);
    order(chart, w, at_Q, at_H, U, R);
    sort_rest(chart, FSM_ONLINE_LISTS + 2 * R, chart[FSM_ONLINE_RANK], U);
}

/* Put the independent speeds in the order of the model. */
static void sort_rest(int64_t *chart, int64_t columns, int64_t first, int64_t last)
{
    for (int64_t i = first + 1; i < last; i++) {
        for (int64_t j = i; j > first; j--) {
            if (chart[columns + j - 1] <= chart[columns + j]) {
                break;
            }
            swap_indices(chart, columns + j - 1, columns + j);
        }
    }
}
